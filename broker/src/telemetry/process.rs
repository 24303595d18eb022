//! What the system says of this process. What it does not say is left out.

use super::catalogue::{OPEN_FILES, RESIDENT, THREADS};
use super::text::Exposition;
use std::fs;

/// The process in the text format of Prometheus.
pub(crate) fn render() -> String {
    let mut text = Exposition::default();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(kib) = number(&status, "VmRSS:") {
        text.single(RESIDENT, kib * 1024);
    }
    if let Some(threads) = number(&status, "Threads:") {
        text.single(THREADS, threads);
    }
    if let Ok(files) = fs::read_dir("/proc/self/fd") {
        text.single(OPEN_FILES, files.count());
    }
    text.into_text()
}

/// The number in the line that begins with `key`.
fn number(status: &str, key: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_systems_words_is_read_by_its_key() {
        let status = "Name:\tweir\nVmRSS:\t   1234 kB\nThreads:\t7\n";
        assert_eq!(number(status, "VmRSS:"), Some(1234));
        assert_eq!(number(status, "Threads:"), Some(7));
        assert_eq!(number(status, "Absent:"), None);
    }
}
