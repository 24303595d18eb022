//! What the engine needs of a message: read once from its bytes, the same live and at recovery.

use crate::engine::hash::NameHasher;
use crate::journal::entry::{ExecutionHash, TaskHash};
use crate::model::{Effect, Epoch, FinalState, GoneCause, UnixMillis};
use std::sync::Arc;

/// A message without its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MessageHead {
    pub(crate) task: TaskHash,
    pub(crate) task_id: Arc<str>,
    /// Hash of the message id.
    pub(crate) id: u128,
    pub(crate) message_id: Arc<str>,
    /// The sender.
    pub(crate) agent_id: Arc<str>,
    pub(crate) execution_id: Option<Arc<str>>,
    pub(crate) final_state: Option<FinalState>,
    /// Asks for an execution (design, section 1).
    pub(crate) is_request: bool,
    pub(crate) effect: Effect,
    pub(crate) artifact_ref: Arc<str>,
    /// The begin a report says it comes from.
    pub(crate) fencing_token: Option<Epoch>,
    /// Time to live from the publish, in milliseconds; 0 means for ever.
    pub(crate) ttl_ms: u64,
    pub(crate) not_before: Option<UnixMillis>,
    pub(crate) deadline: Option<UnixMillis>,
    /// Hash of payload, content type and artifact_ref.
    pub(crate) body: u64,
    /// Bytes of the whole encoded message.
    pub(crate) bytes: u32,
    /// Bytes of the payload alone.
    pub(crate) payload_bytes: u32,
}

impl MessageHead {
    /// When a message published at `at` expires.
    pub(crate) const fn expires(&self, at: UnixMillis) -> Option<UnixMillis> {
        if self.ttl_ms == 0 { None } else { Some(at.plus(self.ttl_ms)) }
    }

    /// When it goes by itself, published at `at`, and why: at its deadline, or before a begin at the end of its TTL.
    /// A final report has no deadline.
    pub(crate) fn goes(&self, at: UnixMillis, unbegun: bool) -> Option<(UnixMillis, GoneCause)> {
        let ttl = self.expires(at).filter(|_| unbegun).map(|at| (at, GoneCause::Ttl));
        let deadline = self.deadline.filter(|_| self.final_state.is_none()).map(|at| (at, GoneCause::Deadline));
        ttl.into_iter().chain(deadline).min_by_key(|(at, _)| *at)
    }

    /// The hash of its execution in `tenant`.
    pub(crate) fn execution(&self, hasher: NameHasher, tenant: &str) -> Option<ExecutionHash> {
        self.execution_id.as_deref().map(|id| hasher.execution(tenant, id))
    }
}
