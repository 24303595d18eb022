//! Channels and their policies.

use super::channel_ref;
use crate::model::ChannelInfo;
use crate::model::policy::{ChannelPolicy, PolicyOwner};
use weir_proto::server as wire;

/// A channel as of now.
pub(crate) fn channel(info: ChannelInfo) -> wire::Channel {
    wire::Channel {
        channel: Some(channel_ref(info.channel)),
        earliest_offset: info.base.get(),
        end_offset: info.head.get(),
        published_bytes: info.bytes,
        depth: info.depth,
        created_unix_ms: info.made_at.get(),
        last_publish_unix_ms: info.last_publish_at.get(),
    }
}

/// A policy with all its settings.
pub(crate) fn policy(policy: ChannelPolicy) -> wire::Policy {
    wire::Policy {
        name: policy.name,
        key_template: policy.key.text().to_owned(),
        retention_ms: policy.retention_ms,
        replay: Some(policy.replay),
        depth_alert: policy.depth_alert,
        max_depth: policy.max_depth.unwrap_or(0),
        payload_bytes_max: policy.payload_bytes_max,
        require_artifact: policy.require_artifact,
        remember_ms: policy.remember_ms,
        owned_by_file: policy.owner == PolicyOwner::File,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::decode;

    #[test]
    fn a_policy_says_on_the_wire_what_it_was_declared_as() {
        let mut declared = ChannelPolicy::named("refunds");
        declared.replay = false;
        declared.max_depth = Some(7);
        declared.require_artifact = true;
        for policy_in in [ChannelPolicy::named("plain"), declared] {
            assert_eq!(decode::policy(Some(policy(policy_in.clone()))).unwrap(), policy_in);
        }
    }
}
