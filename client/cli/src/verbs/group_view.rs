//! Groups, their members and what they have set aside, as records.

use crate::enums;
use crate::output::{Column, Map, Tree};
use crate::verbs::reference;
use weir_proto::v1::{Group, GroupSettings, Member, ParkedMessage, StartFrom};

/// Columns of a list of groups.
pub(super) const GROUPS: &[Column] = &[
    Column::new("SCOPE", "scope"),
    Column::new("POLICY", "policy"),
    Column::new("GROUP", "name"),
    Column::new("DEPTH", "depth"),
    Column::new("READY", "ready"),
    Column::new("WAITING", "waiting"),
    Column::new("DELAYED", "delayed"),
    Column::new("IN FLIGHT", "in_flight"),
    Column::new("HELD", "held"),
    Column::new("PARKED", "parked"),
    Column::new("MEMBERS", "members"),
    Column::wide("SELECTOR", "settings.selector"),
    Column::wide("EXECUTES", "settings.executes"),
    Column::wide("OFFERED", "offered"),
    Column::wide("SETTLED", "settled"),
    Column::wide("GONE", "gone"),
    Column::wide("DELIVERED", "delivered"),
    Column::wide("REDELIVERED", "redelivered"),
    Column::wide("CREATED", "created_unix_ms"),
];

/// Columns of a list of members.
pub(super) const MEMBERS: &[Column] =
    &[Column::new("MEMBER", "name"), Column::new("LEASES", "leases"), Column::new("LAST HEARD", "last_heard_unix_ms")];

/// Columns of a list of messages set aside.
pub(super) const PARKED: &[Column] = &[
    Column::new("CHANNEL", "channel"),
    Column::new("OFFSET", "offset"),
    Column::new("TASK", "task_id"),
    Column::new("PARKED", "parked_unix_ms"),
    Column::new("FAILED", "failed"),
    Column::new("LOST", "lease_lost"),
    Column::words("REASON", "reason"),
];

/// A group.
pub(super) fn record(group: Group) -> Tree {
    reference::group_names(Map::new(), group.group.unwrap_or_default())
        .with("settings", group.settings.map(settings))
        .with("created_unix_ms", group.created_unix_ms)
        .with("depth", group.depth)
        .with("ready", group.ready)
        .with("waiting", group.waiting)
        .with("delayed", group.delayed)
        .with("in_flight", group.in_flight)
        .with("held", group.held)
        .with("oldest_held_ms", group.oldest_held_ms)
        .with("parked", group.parked)
        .with("offered", group.offered)
        .with("settled", group.settled)
        .with("gone", group.gone)
        .with("members", group.members)
        .with("delivered", group.delivered)
        .with("redelivered", group.redelivered)
        .done()
}

fn settings(settings: GroupSettings) -> Map {
    let start = settings.start.unwrap_or_default();
    let offset = (start.from == i32::from(StartFrom::Offset)).then_some(start.offset);
    Map::new()
        .with("selector", settings.selector)
        .with("start", Map::new().with("from", enums::start_from(start.from)).with_some("offset", offset))
        .with("executes", settings.executes.unwrap_or(true))
        .with("skip_if_final", settings.skip_if_final)
        .with("pressure", settings.pressure.unwrap_or(true))
        .with("max_attempts", settings.max_attempts)
        .with("window", settings.window)
}

/// A member.
pub(super) fn member(member: Member) -> Tree {
    Map::new()
        .with("name", member.name)
        .with("last_heard_unix_ms", member.last_heard_unix_ms)
        .with("leases", member.leases)
        .done()
}

/// A message set aside.
pub(super) fn parked_message(parked: ParkedMessage) -> Tree {
    reference::channel_names(Map::new(), parked.channel.unwrap_or_default())
        .with("offset", parked.offset)
        .with("task_id", parked.task_id)
        .with("parked_unix_ms", parked.parked_unix_ms)
        .with("reason", parked.reason)
        .with("failed", parked.failed)
        .with("lease_lost", parked.lease_lost)
        .done()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_proto::v1::GroupRef;

    #[test]
    fn every_column_shows_a_value_there_is() {
        let group =
            Group { group: Some(GroupRef::default()), settings: Some(GroupSettings::default()), ..Group::default() };
        let shown = [
            (GROUPS, record(group)),
            (MEMBERS, member(Member::default())),
            (PARKED, parked_message(ParkedMessage::default())),
        ];
        for (columns, record) in shown {
            for column in columns {
                assert_ne!(record.at(column.path()), &Tree::Null, "{}", column.path());
            }
        }
    }
}
