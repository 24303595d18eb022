//! From a message's bytes to its head.

use super::hash::NameHasher;
use super::head::MessageHead;
use crate::model::{Effect, Epoch, FinalState, Refusal, UnixMillis};
use prost::Message;
use std::sync::Arc;

pub(crate) fn head_of(hasher: NameHasher, bytes: &[u8]) -> Result<Arc<MessageHead>, Refusal> {
    let m = weir_proto::v1::Message::decode(bytes).map_err(|e| Refusal::invalid("message", e.to_string()))?;
    let final_state = match m.final_state {
        1 => Some(FinalState::Completed),
        2 => Some(FinalState::Failed),
        3 => Some(FinalState::Canceled),
        4 => Some(FinalState::Rejected),
        5 => Some(FinalState::Unknown),
        _ => None,
    };
    let request = matches!(m.r#type.as_str(), "task.request" | "action.preview")
        || (m.r#type.starts_with("x.") && m.r#type.ends_with(".request"));
    Ok(Arc::new(MessageHead {
        task: hasher.task(&m.task_id),
        task_id: m.task_id.as_str().into(),
        id: hasher.message(&m.message_id),
        message_id: m.message_id.as_str().into(),
        agent_id: m.agent_id.as_str().into(),
        is_request: request && final_state.is_none() && !m.execution_id.is_empty(),
        execution_id: (!m.execution_id.is_empty()).then(|| m.execution_id.as_str().into()),
        final_state,
        effect: match m.effect {
            1 => Effect::None,
            2 => Effect::Idempotent,
            3 => Effect::Unsafe,
            _ => Effect::Unspecified,
        },
        artifact_ref: m.artifact_ref.as_str().into(),
        fencing_token: (m.fencing_token != 0).then_some(Epoch(m.fencing_token)),
        ttl_ms: m.ttl_ms,
        not_before: (m.not_before_unix_ms != 0).then_some(UnixMillis(m.not_before_unix_ms)),
        deadline: (m.deadline_unix_ms != 0).then_some(UnixMillis(m.deadline_unix_ms)),
        body: hasher.body(&m.payload, &m.content_type, &m.artifact_ref),
        bytes: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
    }))
}
