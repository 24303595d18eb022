//! The fields of `weir.v1.Message`: numbers, names, enums. A test holds them against the protos.

use super::super::fault::Rule;
use super::super::{Effect, FinalState, UnixMillis};
use super::wire::Seen;

/// Fields that occur at most once.
pub(super) const SINGULAR: Seen = Seen::set(&[
    1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 18, 24, 25, 26, 27, 28, 32, 33, 40, 41, 42, 43, 44, 52, 53, 54, 55, 56, 57, 58,
    64, 66,
]);

/// The field's name in the protos; `message` for a number the broker does not know.
pub(super) const fn name_of(number: u32) -> &'static str {
    match number {
        1 => "message_id",
        2 => "task_id",
        3 => "agent_id",
        4 => "execution_id",
        5 => "context_id",
        6 => "tool_call_id",
        7 => "ticket_id",
        8 => "idempotency_key",
        9 => "on_behalf_of",
        16 => "type",
        17 => "intent",
        18 => "schema",
        19 => "compatible_with",
        24 => "final_state",
        25 => "artifact_ref",
        26 => "effect",
        27 => "retry_budget",
        28 => "fencing_token",
        32 => "sender_role",
        33 => "recipient",
        40 => "trace_id",
        41 => "traceparent",
        42 => "tracestate",
        43 => "parent_message_id",
        44 => "step_id",
        45 => "invalidates_message_ids",
        52 => "visibility",
        53 => "sensitivity",
        54 => "ttl_ms",
        55 => "not_before_unix_ms",
        56 => "deadline_unix_ms",
        57 => "requires_response",
        58 => "created_at_unix_ms",
        64 => "content_type",
        65 => "attributes",
        66 => "payload",
        _ => "message",
    }
}

pub(super) const fn final_state(number: u64) -> Result<Option<FinalState>, Rule> {
    Ok(Some(match number {
        0 => return Ok(None),
        1 => FinalState::Completed,
        2 => FinalState::Failed,
        3 => FinalState::Canceled,
        4 => FinalState::Rejected,
        5 => FinalState::Unknown,
        _ => return Err(Rule::EnumNumber),
    }))
}

pub(super) const fn effect(number: u64) -> Result<Effect, Rule> {
    Ok(match number {
        0 => Effect::Unspecified,
        1 => Effect::None,
        2 => Effect::Idempotent,
        3 => Effect::Unsafe,
        _ => return Err(Rule::EnumNumber),
    })
}

/// A moment; 0 stands for none.
pub(super) const fn moment(unix_ms: u64) -> Option<UnixMillis> {
    if unix_ms == 0 { None } else { Some(UnixMillis(unix_ms)) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

    use super::*;
    use prost::Message as _;
    use prost_types::FileDescriptorSet;
    use prost_types::field_descriptor_proto::Label;

    #[test]
    fn names_and_singular_fields_are_those_of_the_protos() {
        let set = FileDescriptorSet::decode(weir_proto::FILE_DESCRIPTOR_SET).unwrap();
        let mut messages = set.file.iter().flat_map(|file| &file.message_type);
        let message = messages.find(|message| message.name() == "Message").unwrap();

        for field in &message.field {
            let number = field.number() as u32;
            assert_eq!(name_of(number), field.name());
            let mut twice = Seen::default();
            assert!(twice.note(number, SINGULAR).is_ok());
            assert_eq!(twice.note(number, SINGULAR).is_err(), field.label() != Label::Repeated, "{}", field.name());
        }
        let known = (0..200).filter(|number| name_of(*number) != "message").count();
        assert_eq!(known, message.field.len());
    }
}
