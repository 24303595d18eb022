//! From a message's bytes to its head.

use super::hash::NameHasher;
use super::head::MessageHead;
use crate::model::FieldFault;
use crate::model::admission::Admission;
use crate::model::envelope::Envelope;
use crate::model::limits::PAYLOAD_BYTES_MAX;
use std::sync::Arc;

/// The head of a stored message. Its producer's bytes were admitted once; weir's own always are.
///
/// # Errors
/// The field that is badly encoded: the bytes are not a message.
pub(crate) fn head_of(hasher: NameHasher, bytes: &[u8]) -> Result<Arc<MessageHead>, FieldFault> {
    Ok(Arc::new(read(hasher, &Envelope::parse(bytes)?)))
}

/// The head of a message that is offered for storing: checked by all rules that need no policy.
///
/// # Errors
/// The first field that is badly encoded or breaks a rule.
pub(crate) fn admitted_head_of(hasher: NameHasher, bytes: &[u8]) -> Result<Arc<MessageHead>, FieldFault> {
    let any_policy = Admission { payload_bytes_max: PAYLOAD_BYTES_MAX, require_artifact: false };
    Ok(Arc::new(read(hasher, &any_policy.admit(bytes)?)))
}

fn read(hasher: NameHasher, envelope: &Envelope<'_>) -> MessageHead {
    let size = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    MessageHead {
        task: hasher.task(envelope.task_id),
        task_id: envelope.task_id.into(),
        id: hasher.message(envelope.message_id),
        message_id: envelope.message_id.into(),
        agent_id: envelope.agent_id.into(),
        execution_id: (!envelope.execution_id.is_empty()).then(|| envelope.execution_id.into()),
        final_state: envelope.final_state,
        is_request: envelope.is_request(),
        effect: envelope.effect,
        artifact_ref: envelope.artifact_ref.into(),
        fencing_token: envelope.fencing_token,
        ttl_ms: envelope.ttl_ms,
        not_before: envelope.not_before,
        deadline: envelope.deadline,
        body: hasher.body(envelope.payload, envelope.content_type, envelope.artifact_ref),
        bytes: size(envelope.encoded),
        payload_bytes: size(envelope.payload),
    }
}
