//! Gauges and durable counters, rendered from one snapshot of the engine.

use super::catalogue as m;
use super::causes;
use super::text::Exposition;
use crate::broker::{Health, Status};
use crate::model::{GroupCounts, GroupInfo};

/// One number of a group.
type NumberOf = fn(&GroupInfo) -> u64;

/// The broker's metrics as text. Without a status there is only what its health says.
pub(crate) fn render(health: &Health, status: Option<&Status>) -> String {
    let mut text = Exposition::default();
    text.single(m::SERVING, u8::from(*health == Health::Serving));
    text.single(m::FAILED, u8::from(matches!(health, Health::Failed(_))));
    if let Some(status) = status {
        broker(&mut text, status);
        groups(&mut text, &status.groups);
    }
    text.into_text()
}

fn broker(text: &mut Exposition, status: &Status) {
    let singles = [
        (m::PUBLISHED, status.published),
        (m::LEASES, status.leases),
        (m::SESSIONS, status.sessions),
        (m::WAITING_FETCHES, status.waiting_fetches),
        (m::POLICIES, status.policies),
        (m::CHANNEL_COUNT, status.channels),
        (m::GROUP_COUNT, status.groups.len() as u64),
        (m::UNKNOWN_ENTERED, status.unknown_entered),
        (m::UNKNOWN_RESOLVED, status.unknown_left),
        (m::JOURNAL_APPLIED, status.applied.get()),
        (m::JOURNAL_DURABLE, status.durable.get()),
        (m::JOURNAL_SEGMENTS, status.segments),
        (m::STORAGE_FULL, u64::from(status.storage_full)),
        (m::ROWS, status.rows_in_memory),
        (m::DIRTY_ROWS, status.dirty_rows),
    ];
    for (metric, value) in singles {
        text.single(metric, value);
    }
}

fn groups(text: &mut Exposition, groups: &[GroupInfo]) {
    let numbers: [(m::Metric, NumberOf); 11] = [
        (m::GROUP_DEPTH, GroupInfo::depth),
        (m::GROUP_WAITING, |info| info.waiting),
        (m::GROUP_READY, |info| info.ready),
        (m::GROUP_INFLIGHT, |info| info.in_flight),
        (m::GROUP_DELAYED, |info| info.delayed),
        (m::GROUP_HELD, |info| info.held),
        (m::GROUP_PARKED, |info| info.parked),
        (m::MEMBERS, |info| info.members),
        (m::GROUP_OFFERED, |info| info.counts.offered),
        (m::DELIVERIES, |info| info.counts.delivered),
        (m::REDELIVERIES, |info| info.counts.redelivered),
    ];
    for (metric, number) in numbers {
        text.head(metric);
        for info in groups {
            text.sample(metric, &labels(info), number(info));
        }
    }
    text.head(m::GROUP_OLDEST_HELD);
    for info in groups {
        let (seconds, millis) = (info.oldest_held_ms / 1000, info.oldest_held_ms % 1000);
        text.sample(m::GROUP_OLDEST_HELD, &labels(info), format_args!("{seconds}.{millis:03}"));
    }
    by_cause(text, m::GROUP_SETTLED, groups, |counts| causes::settled(counts).collect());
    by_cause(text, m::GROUP_GONE, groups, |counts| causes::gone(counts).collect());
}

fn by_cause(
    text: &mut Exposition,
    metric: m::Metric,
    groups: &[GroupInfo],
    of: fn(&GroupCounts) -> Vec<(&'static str, u64)>,
) {
    text.head(metric);
    for info in groups {
        let [tenant, policy, group] = labels(info);
        for (cause, count) in of(&info.counts) {
            text.sample(metric, &[tenant, policy, group, cause], count);
        }
    }
}

/// Tenant (the scope), policy and name.
fn labels(info: &GroupInfo) -> [&str; 3] {
    let name = &info.spec.name;
    [&name.scope, &name.policy, &name.name]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{GroupRef, GroupSpec, Lsn, Selector, Start, UnixMillis};

    fn status() -> Status {
        let name = GroupRef { scope: "acme".into(), policy: "task_events".into(), name: "g".into() };
        let spec = GroupSpec {
            name,
            selector: Selector::Tenant("acme".into()),
            start: Start::Earliest,
            executes: true,
            skip_if_final: false,
            pressure: true,
            window: 0,
            max_attempts: 5,
        };
        let mut counts = GroupCounts { offered: 9, delivered: 4, redelivered: 1, ..Default::default() };
        counts.settled[0] = 2;
        counts.gone[0] = 1;
        let group = GroupInfo {
            spec,
            made_at: UnixMillis(0),
            counts,
            waiting: 1,
            ready: 1,
            delayed: 1,
            in_flight: 1,
            held: 2,
            parked: 1,
            members: 3,
            oldest_held_ms: 12_345,
        };
        Status {
            health: Health::Serving,
            at: UnixMillis(0),
            applied: Lsn(8),
            durable: Lsn(7),
            segments: 1,
            groups: vec![group],
            leases: 1,
            sessions: 3,
            waiting_fetches: 2,
            unknown_entered: 5,
            unknown_left: 4,
            published: 9,
            policies: 2,
            channels: 1,
            storage_full: false,
            rows_in_memory: 10,
            dirty_rows: 3,
        }
    }

    #[test]
    fn the_books_of_a_group_balance_in_one_scrape() {
        let text = render(&Health::Serving, Some(&status()));
        let labels = "{tenant=\"acme\",policy=\"task_events\",group=\"g\"}";
        for line in [
            format!("weir_group_offered_total{labels} 9"),
            format!("weir_group_depth{labels} 5"),
            format!("weir_group_inflight{labels} 1"),
            format!("weir_group_parked{labels} 1"),
            format!("weir_members{labels} 3"),
            format!("weir_group_oldest_held_seconds{labels} 12.345"),
            "weir_group_settled_total{tenant=\"acme\",policy=\"task_events\",group=\"g\",cause=\"done\"} 2".to_owned(),
            "weir_group_gone_total{tenant=\"acme\",policy=\"task_events\",group=\"g\",cause=\"ttl\"} 1".to_owned(),
            "weir_waiting_fetches 2".to_owned(),
            "weir_journal_durable_lsn 7".to_owned(),
            "weir_unknown_resolved_total 4".to_owned(),
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn a_failed_broker_says_so_without_a_status() {
        let text = render(&Health::Failed("EIO".into()), None);
        assert!(text.contains("\nweir_serving 0\n") && text.contains("\nweir_failed 1\n"), "{text}");
    }
}
