//! What holds of the reader for any bytes: it and prost agree. See `crate::fuzzing`.
#![allow(clippy::expect_used, reason = "a check says what broke by panicking")]

use super::{Effect, Envelope, FinalState, Texts, UnixMillis};
use crate::model::limits::{ATTRIBUTES_MAX, COMPATIBLE_WITH_MAX, INVALIDATES_MAX, RECIPIENTS_MAX};
use prost::Message as _;
use weir_proto::v1;

/// What is accepted decodes, to equal values. What decodes is accepted when a careful producer writes it, to equal values,
/// if its enum numbers are known and its lists within bounds; and else it is refused.
pub(crate) fn message(bytes: &[u8]) {
    let decoded = v1::Message::decode(bytes);
    if let Ok(read) = Envelope::parse(bytes) {
        assert_same(&read, decoded.as_ref().expect("what is accepted decodes"));
    }
    if let Ok(message) = decoded {
        let written = message.encode_to_vec();
        let read = Envelope::parse(&written);
        assert_eq!(read.is_ok(), is_within_bounds(&message), "{:?}", read.err());
        if let Ok(read) = read {
            assert_same(&read, &message);
        }
    }
}

fn is_within_bounds(message: &v1::Message) -> bool {
    let fits = |count: usize, max: u32| count <= max as usize;
    let recipient_fits = |to: &v1::Recipient| (0..=3).contains(&to.mode) && fits(to.agent_ids.len(), RECIPIENTS_MAX);
    (0..=5).contains(&message.final_state)
        && (0..=3).contains(&message.effect)
        && fits(message.compatible_with.len(), COMPATIBLE_WITH_MAX)
        && fits(message.invalidates_message_ids.len(), INVALIDATES_MAX)
        && fits(message.attributes.len(), ATTRIBUTES_MAX)
        && message.recipient.as_ref().is_none_or(recipient_fits)
}

/// Fails unless both say the same.
pub(super) fn assert_same(read: &Envelope<'_>, decoded: &v1::Message) {
    let state = |state: Option<FinalState>| state.map_or("UNSPECIFIED", FinalState::name);
    let texts = |texts: &Texts<'_>| texts.iter().map(str::to_owned).collect::<Vec<_>>();
    let unix_ms = |moment: Option<UnixMillis>| moment.unwrap_or_default().get();
    let again = v1::Message {
        message_id: read.message_id.into(),
        task_id: read.task_id.into(),
        agent_id: read.agent_id.into(),
        execution_id: read.execution_id.into(),
        context_id: read.context_id.into(),
        tool_call_id: read.tool_call_id.into(),
        ticket_id: read.ticket_id.into(),
        idempotency_key: read.idempotency_key.into(),
        on_behalf_of: read.on_behalf_of.into(),
        r#type: read.kind.into(),
        intent: read.intent.into(),
        schema: read.schema.into(),
        compatible_with: texts(&read.compatible_with),
        final_state: v1::FinalState::from_str_name(&format!("FINAL_STATE_{}", state(read.final_state)))
            .expect("a state of the protos")
            .into(),
        artifact_ref: read.artifact_ref.into(),
        effect: match read.effect {
            Effect::Unspecified => v1::Effect::Unspecified,
            Effect::None => v1::Effect::None,
            Effect::Idempotent => v1::Effect::Idempotent,
            Effect::Unsafe => v1::Effect::Unsafe,
        }
        .into(),
        retry_budget: read.retry_budget,
        fencing_token: read.fencing_token.unwrap_or_default().get(),
        sender_role: read.sender_role.into(),
        recipient: read
            .recipient
            .map(|recipient| v1::Recipient { mode: recipient.mode as i32, agent_ids: texts(&recipient.agent_ids) }),
        trace_id: read.trace_id.into(),
        traceparent: read.traceparent.into(),
        tracestate: read.tracestate.into(),
        parent_message_id: read.parent_message_id.into(),
        step_id: read.step_id.into(),
        invalidates_message_ids: texts(&read.invalidates_message_ids),
        visibility: read.visibility.into(),
        sensitivity: read.sensitivity.into(),
        ttl_ms: read.ttl_ms,
        not_before_unix_ms: unix_ms(read.not_before),
        deadline_unix_ms: unix_ms(read.deadline),
        requires_response: read.requires_response,
        created_at_unix_ms: unix_ms(read.created_at),
        content_type: read.content_type.into(),
        attributes: read.attributes.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        payload: read.payload.to_vec().into(),
    };
    assert_eq!(&again, decoded);
    assert_eq!(read.attributes.len(), decoded.attributes.len());
    assert_eq!(read.compatible_with.len(), decoded.compatible_with.len());
}
