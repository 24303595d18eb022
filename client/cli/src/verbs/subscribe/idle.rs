//! When there is nothing left to wait for.

use std::time::Duration;
use tokio::time::Instant;
use weir_proto::v1::Group;

/// Measures how long a group has been quiet.
#[derive(Debug)]
pub(super) struct Idle {
    limit: Duration,
    since: Option<Instant>,
}

impl Idle {
    /// Quiet for `limit` is long enough.
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, since: None }
    }

    /// Takes note of how the group is at `now`; returns whether it has been quiet long enough.
    pub(super) fn observe(&mut self, now: Instant, quiet: bool) -> bool {
        if !quiet {
            self.since = None;
            return false;
        }
        let since = *self.since.get_or_insert(now);
        now.saturating_duration_since(since) >= self.limit
    }
}

/// Whether nothing of the group is ready, delayed or in flight, but for the `own` messages this member keeps. Messages
/// that wait although nothing stands before them are about to be ready.
pub(super) fn is_quiet(group: &Group, own: u64) -> bool {
    let stuck = own + group.parked + group.held > 0;
    group.ready == 0 && group.delayed == 0 && group.in_flight <= own && (group.waiting == 0 || stuck)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_counts_from_the_last_thing_that_happened() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut idle = Idle::new(Duration::from_secs(5));
        assert!(!idle.observe(at(0), true));
        assert!(!idle.observe(at(4), true));
        assert!(!idle.observe(at(5), false));
        assert!(!idle.observe(at(6), true));
        assert!(!idle.observe(at(10), true));
        assert!(idle.observe(at(11), true));
    }

    #[test]
    fn no_time_at_all_is_over_at_once() {
        assert!(Idle::new(Duration::ZERO).observe(Instant::now(), true));
    }

    #[test]
    fn a_group_is_quiet_when_nothing_can_come() {
        let group = Group { offered: 9, ..Group::default() };
        assert!(is_quiet(&group, 0));
        assert!(!is_quiet(&Group { ready: 1, ..group.clone() }, 0));
        assert!(!is_quiet(&Group { delayed: 1, ..group.clone() }, 0));
        assert!(!is_quiet(&Group { in_flight: 1, ..group.clone() }, 0));
        assert!(!is_quiet(&Group { waiting: 1, ..group.clone() }, 0));
        assert!(is_quiet(&Group { waiting: 1, parked: 1, ..group.clone() }, 0));
        assert!(is_quiet(&Group { waiting: 1, held: 1, ..group.clone() }, 0));
        assert!(is_quiet(&Group { waiting: 1, in_flight: 2, ..group.clone() }, 2));
        assert!(!is_quiet(&Group { in_flight: 3, ..group }, 2));
    }
}
