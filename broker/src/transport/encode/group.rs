//! Groups, their members and their books.

use super::{channel_ref, group_ref};
use crate::model::{GroupAudit, GroupCounts, GroupInfo, GroupSpec, MemberInfo, ParkedInfo, Start};
use crate::telemetry::causes;
use std::collections::BTreeMap;
use weir_proto::server as wire;

/// A group as of now.
pub(crate) fn group(info: GroupInfo) -> wire::Group {
    wire::Group {
        depth: info.depth(),
        settings: Some(settings(&info.spec)),
        group: Some(group_ref(info.spec.name)),
        created_unix_ms: info.made_at.get(),
        ready: info.ready,
        waiting: info.waiting,
        delayed: info.delayed,
        in_flight: info.in_flight,
        held: info.held,
        parked: info.parked,
        offered: info.counts.offered,
        settled: settled(&info.counts),
        gone: gone(&info.counts),
        members: info.members,
        oldest_held_ms: info.oldest_held_ms,
        delivered: info.counts.delivered,
        redelivered: info.counts.redelivered,
    }
}

fn settings(spec: &GroupSpec) -> wire::GroupSettings {
    let (from, offset) = match spec.start {
        Start::Earliest => (wire::StartFrom::Earliest, 0),
        Start::Latest => (wire::StartFrom::Latest, 0),
        Start::Offset(offset) => (wire::StartFrom::Offset, offset.get()),
    };
    wire::GroupSettings {
        selector: spec.selector.to_string(),
        start: Some(wire::GroupStart { from: from.into(), offset }),
        executes: Some(spec.executes),
        skip_if_final: spec.skip_if_final,
        pressure: Some(spec.pressure),
        max_attempts: spec.max_attempts,
        window: spec.window,
    }
}

/// A group's books, counted twice.
pub(crate) fn audit(audit: GroupAudit) -> wire::GroupAudit {
    let info = audit.info;
    wire::GroupAudit {
        offered: info.counts.offered,
        settled: info.counts.settled_total(),
        settled_by_cause: settled(&info.counts),
        waiting: info.waiting,
        delayed: info.delayed,
        in_flight: info.in_flight,
        held: info.held,
        parked: info.parked,
        gone: info.counts.gone_total(),
        gone_by_cause: gone(&info.counts),
        counted_unsettled: audit.counted_unsettled,
        balanced: audit.balanced,
        group: Some(group_ref(info.spec.name)),
    }
}

fn settled(counts: &GroupCounts) -> BTreeMap<String, u64> {
    causes::settled(counts).map(|(cause, count)| (cause.to_owned(), count)).collect()
}

fn gone(counts: &GroupCounts) -> BTreeMap<String, u64> {
    causes::gone(counts).map(|(cause, count)| (cause.to_owned(), count)).collect()
}

/// A member with a live session. The session itself stays the member's secret.
pub(crate) fn member(member: MemberInfo) -> wire::Member {
    wire::Member { name: member.member, last_heard_unix_ms: member.last_seen.get(), leases: member.leases }
}

/// A message set aside.
pub(crate) fn parked(parked: ParkedInfo) -> wire::ParkedMessage {
    wire::ParkedMessage {
        channel: Some(channel_ref(parked.channel)),
        offset: parked.offset.get(),
        task_id: parked.task_id,
        parked_unix_ms: parked.since.get(),
        reason: parked.reason,
        failed: parked.failed,
        lease_lost: parked.lease_lost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_its_name_whether_or_not_it_occurred() {
        let counts = GroupCounts { settled: [1, 2, 3, 4, 5, 6, 7], gone: [1, 2, 3, 4, 5], ..Default::default() };
        let settled = settled(&counts);
        let expected = [
            ("done", 1),
            ("skipped_final", 2),
            ("filtered", 3),
            ("cancelled", 4),
            ("discarded", 5),
            ("sought", 6),
            ("resolved", 7),
        ];
        for (cause, count) in expected {
            assert_eq!(settled[cause], count);
        }
        let gone = gone(&counts);
        for (cause, count) in [("ttl", 1), ("deadline", 2), ("retention", 3), ("trimmed", 4), ("purged", 5)] {
            assert_eq!(gone[cause], count);
        }
        assert_eq!((settled.len(), gone.len()), (7, 5));
    }
}
