//! A publish and its answers.

use super::{Execution, Offset, UnixMillis};
use bytes::Bytes;

/// A channel by its policy and key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChannelRef {
    /// Name of the channel policy.
    pub policy: String,
    /// Owner.
    pub tenant: String,
    /// Owning agent; empty for a policy keyed by `{tenant}` alone.
    pub agent: String,
}

impl std::fmt::Display for ChannelRef {
    /// `task_events/acme:desk`
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.policy, self.tenant)?;
        if self.agent.is_empty() { Ok(()) } else { write!(f, ":{}", self.agent) }
    }
}

/// Up to 1,000 encoded `weir.v1.Message`s for one channel: all or none are taken.
#[derive(Clone, Debug)]
pub struct Publish {
    /// Where to.
    pub channel: ChannelRef,
    /// The messages, in order, as the producer encoded them. They are stored and delivered verbatim.
    pub messages: Vec<Bytes>,
}

/// What became of a publish: one result a message, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// One for each message of the request.
    pub results: Vec<PublishResult>,
    /// Greatest depth of the channel over its groups, after this.
    pub depth: u64,
    /// `max_depth` of the policy, if it has one.
    pub limit: Option<u64>,
    /// How close the channel is to its limits.
    pub level: Level,
    /// When to publish more, in milliseconds, where the level asks for it.
    pub retry_after_ms: Option<u64>,
}

/// How close a channel is to its limits (design, section 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing to say.
    Ok,
    /// Depth has reached `depth_alert`.
    Warn,
    /// Depth has reached 80 % of `max_depth`.
    Slow,
    /// Depth has reached `max_depth`.
    Full,
}

/// What became of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublishResult {
    /// Stored at this offset.
    Stored(Offset),
    /// A repeat of a stored message; nothing was stored.
    Duplicate(Box<Duplicate>),
}

/// What a repeat is a repeat of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// By which identity it was recognised.
    pub kind: DuplicateKind,
    /// The first one's channel.
    pub channel: ChannelRef,
    /// The first one's offset.
    pub offset: Offset,
    /// Whether the first one can still be read.
    pub retained: bool,
    /// The first one's message id.
    pub message_id: String,
    /// When the first one came.
    pub first_seen: UnixMillis,
    /// Whether payload, content type and artifact_ref are the first one's. The first one's stay.
    pub payload_matches: bool,
    /// What is known of the execution, where the message has one.
    pub execution: Option<Box<Execution>>,
}

/// By which identity a repeat was recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DuplicateKind {
    /// The same `message_id` in the same task.
    MessageId,
    /// The same <execution_id, final_state> in the tenant and policy.
    Pair,
}
