//! File handles: how many the process may have, and how many of them go to connections.
//!
//! The data folder needs handles at any time, and a disk that cannot open a file has failed. So connections get a share
//! that leaves it enough.

use rustix::process::{Resource, getrlimit, setrlimit};
use weir_broker::model::limits;

/// Handles that connections never take: segments, tables of RocksDB, the ports, the process's own.
const FOR_STORAGE: u64 = 512;
const CONNECTIONS_MIN: usize = 16;

/// Asks the system for all the handles the process may have, and returns how many connections they allow.
pub(super) fn connections_max() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::warn!(%error, "the limit of open files stays as it was");
            limit = getrlimit(Resource::Nofile);
        }
    }
    share(limit.current)
}

/// No limit at all is `None`.
fn share(handles: Option<u64>) -> usize {
    let left = handles.map_or(u64::MAX, |handles| handles.saturating_sub(FOR_STORAGE));
    usize::try_from(left).unwrap_or(usize::MAX).clamp(CONNECTIONS_MIN, limits::CONNECTIONS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_has_its_handles_before_connections_have_theirs() {
        assert_eq!([Some(0), Some(600), Some(1024), Some(1 << 20), None].map(share), [16, 88, 512, 1024, 1024]);
    }
}
