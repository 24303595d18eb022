//! References of the wire as records.

use crate::names::ChannelKey;
use crate::output::{Map, Tree};
use weir_proto::v1::{ChannelRef, GroupRef, MessageRef};

/// A group: scope, policy, name.
pub(super) fn group(group: Option<GroupRef>) -> Tree {
    group.map_or(Tree::Null, |group| group_names(Map::new(), group).done())
}

/// The names of a group as the first values of a record.
pub(super) fn group_names(record: Map, group: GroupRef) -> Map {
    record.with("scope", group.scope).with("policy", group.policy).with("name", group.name)
}

/// The names of a channel as the first values of a record.
pub(super) fn channel_names(record: Map, channel: ChannelRef) -> Map {
    record
        .with("policy", channel.policy)
        .with("channel", ChannelKey::new(channel.tenant.clone(), channel.agent_id).to_string())
        .with("tenant", channel.tenant)
}

/// A stored message: policy, channel, tenant, offset.
pub(super) fn message(message: Option<MessageRef>) -> Tree {
    message.map_or(Tree::Null, |message| {
        channel_names(Map::new(), message.channel.unwrap_or_default()).with("offset", message.offset).done()
    })
}
