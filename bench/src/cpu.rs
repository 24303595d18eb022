//! CPU time of a process by thread, as the kernel counts it.

use anyhow::Context as _;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Ticks in which `/proc` tells CPU time: the same on every Linux, whatever the kernel counts in.
const TICKS_PER_SECOND: f64 = 100.0;
/// Threads that ended between two looks, and what the rounding to ticks leaves of the others.
const REST: &str = "(rest)";

/// CPU time in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CpuTime {
    /// In the program's own code.
    pub(crate) user: f64,
    /// In the kernel for it.
    pub(crate) system: f64,
}

impl CpuTime {
    /// Both together.
    pub(crate) fn total(self) -> f64 {
        self.user + self.system
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Ticks {
    user: u64,
    system: u64,
}

impl Ticks {
    const fn since(self, earlier: Self) -> Self {
        Self { user: self.user.saturating_sub(earlier.user), system: self.system.saturating_sub(earlier.system) }
    }

    const fn plus(self, other: Self) -> Self {
        Self { user: self.user + other.user, system: self.system + other.system }
    }

    #[expect(clippy::cast_precision_loss, reason = "years of CPU time fit")]
    fn time(self) -> CpuTime {
        let micros = |ticks: u64| ticks as f64 * 1e6 / TICKS_PER_SECOND;
        CpuTime { user: micros(self.user), system: micros(self.system) }
    }
}

/// What the threads of a process had used at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct CpuSample {
    process: Ticks,
    threads: BTreeMap<u32, (String, Ticks)>,
}

impl CpuSample {
    /// Of a process, now.
    ///
    /// # Errors
    /// If it is gone, or the kernel does not tell.
    pub(crate) fn of(pid: u32) -> anyhow::Result<Self> {
        let folder = Path::new("/proc").join(pid.to_string());
        let (_, process) = read_stat(&folder.join("stat"))?;
        let mut threads = BTreeMap::new();
        for entry in fs::read_dir(folder.join("task"))? {
            let entry = entry?;
            let Some(thread) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            // A thread may end between being listed and being looked at; it shows as ended then.
            if let Ok(stat) = read_stat(&entry.path().join("stat")) {
                threads.insert(thread, stat);
            }
        }
        Ok(Self { process, threads })
    }

    /// What was used since an earlier sample, by name; numbered threads of one kind together. Nothing that used none.
    pub(crate) fn since(&self, earlier: &Self) -> BTreeMap<String, CpuTime> {
        let mut by_name: BTreeMap<String, Ticks> = BTreeMap::new();
        let mut living = Ticks::default();
        for (thread, (name, ticks)) in &self.threads {
            let before = earlier.threads.get(thread).map(|(_, ticks)| *ticks).unwrap_or_default();
            let used = ticks.since(before);
            living = living.plus(used);
            let sum = by_name.entry(kind_of(name)).or_default();
            *sum = sum.plus(used);
        }
        by_name.insert(REST.to_owned(), self.process.since(earlier.process).since(living));
        by_name.retain(|_, ticks| *ticks != Ticks::default());
        by_name.into_iter().map(|(name, ticks)| (name, ticks.time())).collect()
    }

    /// What the whole process used since an earlier sample.
    pub(crate) fn whole_since(&self, earlier: &Self) -> CpuTime {
        self.process.since(earlier.process).time()
    }
}

/// What all processes and the kernel had used at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MachineSample {
    busy: u64,
}

impl MachineSample {
    /// Of this machine, now.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub(crate) fn now() -> anyhow::Result<Self> {
        let text = fs::read_to_string("/proc/stat")?;
        let busy = parse_busy(&text).with_context(|| format!("/proc/stat: {text}"))?;
        Ok(Self { busy })
    }

    /// CPU microseconds used since an earlier sample, by anything.
    #[expect(clippy::cast_precision_loss, reason = "years of CPU time fit")]
    pub(crate) fn since(self, earlier: Self) -> f64 {
        self.busy.saturating_sub(earlier.busy) as f64 * 1e6 / TICKS_PER_SECOND
    }
}

/// Ticks in which a core did something, or was taken away by a host: all but idle and waiting for a disk.
fn parse_busy(text: &str) -> Option<u64> {
    let ticks: Vec<u64> = text.lines().next()?.split_ascii_whitespace().skip(1).map_while(|n| n.parse().ok()).collect();
    let [user, nice, system, _idle, _waiting, interrupts, soft_interrupts, stolen, ..] = ticks.as_slice() else {
        return None;
    };
    Some(user + nice + system + interrupts + soft_interrupts + stolen)
}

/// Name and CPU ticks out of a `stat` file.
fn read_stat(path: &Path) -> anyhow::Result<(String, Ticks)> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    parse_stat(&text).with_context(|| format!("{}: {text}", path.display()))
}

fn parse_stat(text: &str) -> Option<(String, Ticks)> {
    // The name stands in brackets and may hold anything, brackets too.
    let (head, tail) = text.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let mut fields = tail.split_ascii_whitespace().skip(11);
    let user = fields.next()?.parse().ok()?;
    let system = fields.next()?.parse().ok()?;
    Some((name.to_owned(), Ticks { user, system }))
}

/// The name without the number at its end.
fn kind_of(name: &str) -> String {
    match name.rsplit_once('-') {
        Some((kind, number)) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{kind}-n")
        }
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_blanks_does_not_shift_the_fields() {
        let text = "12 (a) b( c) S 1 2 3 4 5 6 7 8 9 10 70 30 0 0 20 0 1";
        assert_eq!(parse_stat(text), Some(("a) b( c".to_owned(), Ticks { user: 70, system: 30 })));
        assert_eq!(parse_stat("12 (short) S 1"), None);
    }

    #[test]
    fn idle_cores_and_waits_for_a_disk_are_not_busy() {
        assert_eq!(parse_busy("cpu  1 2 4 100 200 8 16 32 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n"), Some(63));
        assert_eq!(parse_busy("cpu 1 2"), None);
    }

    #[test]
    fn numbered_threads_are_one_kind() {
        assert_eq!(kind_of("weir-load-12"), "weir-load-n");
        assert_eq!(kind_of("tokio-rt-worker"), "tokio-rt-worker");
        assert_eq!(kind_of("weir-"), "weir-");
    }

    #[test]
    fn threads_that_came_and_went_are_counted() {
        let ticks = |user, system| Ticks { user, system };
        let before = CpuSample {
            process: ticks(100, 50),
            threads: BTreeMap::from([(1, ("main".into(), ticks(60, 40))), (2, ("old".into(), ticks(40, 10)))]),
        };
        let after = CpuSample {
            process: ticks(200, 60),
            threads: BTreeMap::from([(1, ("main".into(), ticks(60, 40))), (3, ("w-1".into(), ticks(70, 5)))]),
        };
        let used = after.since(&before);
        assert_eq!(used.keys().map(String::as_str).collect::<Vec<_>>(), ["(rest)", "w-n"]);
        assert_eq!(used.get("w-n").map(|time| time.total()), Some(750_000.0));
        assert_eq!(used.get(REST), Some(&CpuTime { user: 300_000.0, system: 50_000.0 }));
        assert_eq!(after.whole_since(&before), CpuTime { user: 1_000_000.0, system: 100_000.0 });
    }
}
