//! Why messages left a group's backlog, by the names that metrics and the wire share.

use crate::model::GroupCounts;

/// In the order of `model::SettledCause`.
const SETTLED: [&str; 7] = ["done", "skipped_final", "filtered", "cancelled", "discarded", "sought", "resolved"];
/// In the order of `model::GoneCause`.
const GONE: [&str; 5] = ["ttl", "deadline", "retention", "trimmed", "purged"];

/// Messages settled, for every cause.
pub(crate) fn settled(counts: &GroupCounts) -> impl Iterator<Item = (&'static str, u64)> {
    SETTLED.into_iter().zip(counts.settled)
}

/// Messages gone unsettled, for every cause.
pub(crate) fn gone(counts: &GroupCounts) -> impl Iterator<Item = (&'static str, u64)> {
    GONE.into_iter().zip(counts.gone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{GoneCause, SettledCause};

    #[test]
    fn each_cause_stands_at_its_number() {
        assert_eq!(SETTLED[SettledCause::Done as usize], "done");
        assert_eq!(SETTLED[SettledCause::Cancelled as usize], "cancelled");
        assert_eq!(SETTLED[SettledCause::Resolved as usize], "resolved");
        assert_eq!(GONE[GoneCause::Ttl as usize], "ttl");
        assert_eq!(GONE[GoneCause::Purged as usize], "purged");
    }
}
