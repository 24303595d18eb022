//! Which messages may be published: the rules about single messages (design, section 5). Rules that need to know more,
//! such as duplicates, deadlines and depth, are the engine's.

use super::FinalState;
use super::envelope::Envelope;
use super::fault::{FieldFault, Rule};
use super::limits::{
    ARTIFACT_REF_BYTES_MAX, ATTRIBUTE_KEY_BYTES_MAX, ATTRIBUTE_VALUE_BYTES_MAX, ENVELOPE_BYTES_MAX, NAME_BYTES_MAX,
    PAYLOAD_BYTES_DEFAULT, SCHEMA_BYTES_MAX, TEXT_BYTES_MAX, TRACESTATE_BYTES_MAX,
};
use super::names::{WEIR_MESSAGE, check_agent, check_at_most, check_opaque};
use super::policy::ChannelPolicy;

/// What a channel policy asks of each message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// Longest payload, in bytes.
    pub payload_bytes_max: u64,
    /// COMPLETED needs an `artifact_ref`.
    pub require_artifact: bool,
}

impl Default for Admission {
    fn default() -> Self {
        Self { payload_bytes_max: PAYLOAD_BYTES_DEFAULT, require_artifact: false }
    }
}

impl From<&ChannelPolicy> for Admission {
    fn from(policy: &ChannelPolicy) -> Self {
        Self { payload_bytes_max: policy.payload_bytes_max, require_artifact: policy.require_artifact }
    }
}

impl Admission {
    /// Reads one encoded message and checks it.
    ///
    /// # Errors
    /// The first field that is badly encoded or breaks a rule.
    pub fn admit<'a>(&self, encoded: &'a [u8]) -> Result<Envelope<'a>, FieldFault> {
        let envelope = Envelope::parse(encoded)?;
        self.check(&envelope)?;
        Ok(envelope)
    }

    /// Checks a message that was read.
    ///
    /// # Errors
    /// The first field that breaks a rule.
    pub fn check(&self, message: &Envelope<'_>) -> Result<(), FieldFault> {
        check_identity(message)?;
        check_kind(message.kind)?;
        self.check_outcome(message)?;
        check_texts(message)?;
        check_lists(message)?;
        self.check_size(message)
    }

    fn check_outcome(&self, message: &Envelope<'_>) -> Result<(), FieldFault> {
        if message.final_state.is_some() && message.execution_id.is_empty() {
            return Err(Rule::NeedsExecution.broken_by("execution_id"));
        }
        let completed = message.final_state == Some(FinalState::Completed);
        if completed && self.require_artifact && message.artifact_ref.is_empty() {
            return Err(Rule::NeedsArtifact.broken_by("artifact_ref"));
        }
        check_at_most("artifact_ref", message.artifact_ref, ARTIFACT_REF_BYTES_MAX)
    }

    fn check_size(&self, message: &Envelope<'_>) -> Result<(), FieldFault> {
        let payload_bytes = message.payload.len() as u64;
        if payload_bytes > self.payload_bytes_max {
            return Err(Rule::Size(self.payload_bytes_max).broken_by("payload"));
        }
        if (message.encoded.len() as u64).saturating_sub(payload_bytes) > ENVELOPE_BYTES_MAX {
            return Err(Rule::Size(ENVELOPE_BYTES_MAX).broken_by("message"));
        }
        Ok(())
    }
}

fn check_identity(message: &Envelope<'_>) -> Result<(), FieldFault> {
    check_opaque("message_id", message.message_id)?;
    if message.message_id.starts_with(WEIR_MESSAGE) {
        return Err(Rule::Reserved.broken_by("message_id"));
    }
    check_opaque("task_id", message.task_id)?;
    check_agent("agent_id", message.agent_id)?;
    if message.execution_id.is_empty() { Ok(()) } else { check_opaque("execution_id", message.execution_id) }
}

fn check_kind(kind: &str) -> Result<(), FieldFault> {
    check_opaque("type", kind)?;
    match kind {
        "task.request" | "task.result" | "event" | "action.preview" | "action.result" | "approval.decision"
        | "task.cancelled" => Ok(()),
        own if own.strip_prefix("x.").is_some_and(|name| !name.is_empty()) => Ok(()),
        _ => Err(Rule::Type.broken_by("type")),
    }
}

fn check_texts(message: &Envelope<'_>) -> Result<(), FieldFault> {
    let short = [
        ("context_id", message.context_id),
        ("tool_call_id", message.tool_call_id),
        ("ticket_id", message.ticket_id),
        ("idempotency_key", message.idempotency_key),
        ("on_behalf_of", message.on_behalf_of),
        ("intent", message.intent),
        ("sender_role", message.sender_role),
        ("trace_id", message.trace_id),
        ("traceparent", message.traceparent),
        ("parent_message_id", message.parent_message_id),
        ("step_id", message.step_id),
        ("visibility", message.visibility),
        ("sensitivity", message.sensitivity),
        ("content_type", message.content_type),
    ];
    for (field, text) in short {
        check_at_most(field, text, TEXT_BYTES_MAX)?;
    }
    check_at_most("schema", message.schema, SCHEMA_BYTES_MAX)?;
    check_at_most("tracestate", message.tracestate, TRACESTATE_BYTES_MAX)
}

fn check_lists(message: &Envelope<'_>) -> Result<(), FieldFault> {
    for schema in message.compatible_with.iter() {
        check_at_most("compatible_with", schema, SCHEMA_BYTES_MAX)?;
    }
    for id in message.invalidates_message_ids.iter() {
        check_at_most("invalidates_message_ids", id, NAME_BYTES_MAX)?;
    }
    for agent in message.recipient.iter().flat_map(|recipient| recipient.agent_ids.iter()) {
        check_agent("recipient.agent_ids", agent)?;
    }
    for (key, value) in message.attributes.iter() {
        if key.is_empty() {
            return Err(Rule::Required.broken_by("attributes.key"));
        }
        check_at_most("attributes.key", key, ATTRIBUTE_KEY_BYTES_MAX)?;
        check_at_most("attributes.value", value, ATTRIBUTE_VALUE_BYTES_MAX)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Envelope<'static> {
        Envelope { message_id: "m1", task_id: "t1", agent_id: "desk", kind: "task.request", ..Default::default() }
    }

    fn fault(message: &Envelope<'_>) -> Option<FieldFault> {
        Admission::default().check(message).err()
    }

    #[test]
    fn a_message_needs_its_ids_its_sender_and_a_type() {
        assert_eq!(fault(&request()), None);
        let required = |field| Some(Rule::Required.broken_by(field));
        assert_eq!(fault(&Envelope { message_id: "", ..request() }), required("message_id"));
        assert_eq!(fault(&Envelope { task_id: "", ..request() }), required("task_id"));
        assert_eq!(fault(&Envelope { agent_id: "", ..request() }), required("agent_id"));
        assert_eq!(fault(&Envelope { kind: "", ..request() }), required("type"));
    }

    #[test]
    fn a_type_of_ones_own_begins_with_x() {
        assert_eq!(fault(&Envelope { kind: "x.refund", ..request() }), None);
        for kind in ["refund", "x.", "xx.refund", "Event", "task.requests"] {
            assert_eq!(fault(&Envelope { kind, ..request() }), Some(Rule::Type.broken_by("type")), "{kind}");
        }
    }

    #[test]
    fn a_final_state_needs_an_execution() {
        let report = Envelope { kind: "task.result", final_state: Some(FinalState::Failed), ..request() };
        assert_eq!(fault(&report), Some(Rule::NeedsExecution.broken_by("execution_id")));
        assert_eq!(fault(&Envelope { execution_id: "x1", ..report }), None);
    }

    #[test]
    fn completed_needs_an_artifact_where_the_policy_says_so() {
        let strict = Admission { require_artifact: true, ..Default::default() };
        let report = Envelope { execution_id: "x1", final_state: Some(FinalState::Completed), ..request() };
        assert_eq!(strict.check(&report), Err(Rule::NeedsArtifact.broken_by("artifact_ref")));
        assert_eq!(strict.check(&Envelope { artifact_ref: "s3://b/k", ..report }), Ok(()));
        assert_eq!(strict.check(&Envelope { final_state: Some(FinalState::Failed), ..report }), Ok(()));
        assert_eq!(fault(&report), None);
    }

    #[test]
    fn nobody_speaks_for_weir() {
        assert_eq!(fault(&Envelope { agent_id: "~weir", ..request() }), Some(Rule::Reserved.broken_by("agent_id")));
        let own = Envelope { message_id: "~weir/result/x/COMPLETED", ..request() };
        assert_eq!(fault(&own), Some(Rule::Reserved.broken_by("message_id")));
        assert_eq!(fault(&Envelope { message_id: "~mine", ..request() }), None);
    }

    #[test]
    fn a_payload_may_have_as_many_bytes_as_the_policy_says() {
        let small = Admission { payload_bytes_max: 3, ..Default::default() };
        let with = |payload| Envelope { payload, encoded: payload, ..request() };
        assert_eq!(small.check(&with(b"abc")), Ok(()));
        assert_eq!(small.check(&with(b"abcd")), Err(Rule::Size(3).broken_by("payload")));
    }

    #[test]
    fn texts_are_bounded() {
        let long = "a".repeat(257);
        let message = Envelope { intent: &long, ..request() };
        assert_eq!(fault(&message), Some(Rule::Length(256).broken_by("intent")));
    }
}
