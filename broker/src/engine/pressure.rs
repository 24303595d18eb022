//! Depth, levels and limits (design, section 10).

use super::Engine;
use super::memory::Memory;
use crate::model::{ChannelNo, ChannelRef, Level, PolicyNo, policy::ChannelPolicy};

/// A channel is SLOW from this many hundredths of its limit on.
const SLOW_PERCENT: u64 = 80;
/// When to try again at a limit, in milliseconds.
pub(super) const RETRY_AFTER_MS: u64 = 200;

/// A channel's depth against its policy's limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pressure {
    pub(super) depth: u64,
    pub(super) limit: Option<u64>,
    pub(super) level: Level,
}

impl Pressure {
    pub(super) const fn retry_after_ms(&self) -> Option<u64> {
        match self.level {
            Level::Ok | Level::Warn => None,
            Level::Slow | Level::Full => Some(RETRY_AFTER_MS),
        }
    }
}

/// The level of `depth` under these limits.
pub(super) const fn level(depth: u64, policy: &ChannelPolicy) -> Level {
    match policy.max_depth {
        Some(limit) if depth >= limit => Level::Full,
        Some(limit) if depth.saturating_mul(100) >= limit.saturating_mul(SLOW_PERCENT) => Level::Slow,
        _ if depth >= policy.depth_alert => Level::Warn,
        _ => Level::Ok,
    }
}

impl Memory {
    /// Greatest depth of the channel over the groups that put pressure on it; 0 without any.
    pub(super) fn pressing_depth(&self, policy: PolicyNo, channel: &ChannelRef, no: ChannelNo) -> u64 {
        self.groups_reading(policy, &channel.tenant, &channel.agent)
            .into_iter()
            .filter(|group| self.groups.get(group).is_some_and(|g| g.row.spec.pressure))
            .map(|group| self.channel_depth(group, no))
            .max()
            .unwrap_or_default()
    }
}

impl Engine {
    pub(super) fn pressure(&self, no: PolicyNo, policy: &ChannelPolicy, channel: &ChannelRef) -> Pressure {
        let depth = self
            .memory
            .channel_no(no, &channel.tenant, &channel.agent)
            .map_or(0, |number| self.memory.pressing_depth(no, channel, number));
        Pressure { depth, limit: policy.max_depth, level: level(depth, policy) }
    }
}
