//! The fields of an input line, one by one.

use crate::ndjson::{FieldFault, compact, value};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use weir_proto::v1::Message;

/// Content type of a `payload`, unless the line names another.
const JSON: &str = "application/json";

/// What a line says, field by field.
#[derive(Debug, Default)]
pub(super) struct LineFields {
    /// The line's own channel, unchecked.
    pub(super) channel: Option<String>,
    /// The owner of that channel, unchecked.
    pub(super) tenant: Option<String>,
    payload: Option<Vec<u8>>,
    payload_base64: Option<Vec<u8>>,
    message: Message,
    seen: Vec<String>,
}

impl LineFields {
    /// Takes one field.
    pub(super) fn set(&mut self, name: &str, raw: &RawValue) -> Result<(), FieldFault> {
        if self.seen.iter().any(|seen| seen == name) {
            return Err(FieldFault::new(name, "stands twice"));
        }
        self.seen.push(name.to_owned());
        if raw.get() == "null" && name != "payload" {
            return if is_known(name) { Ok(()) } else { Err(unknown(name)) };
        }
        if name == "recipient" {
            self.message.recipient = Some(value::recipient(raw)?);
            return Ok(());
        }
        self.set_plain(name, raw).map_err(|reason| FieldFault::new(name, reason))
    }

    fn set_plain(&mut self, name: &str, raw: &RawValue) -> Result<(), String> {
        let message = &mut self.message;
        if let Some(place) = text_field(message, name) {
            *place = value::text(raw)?;
            return Ok(());
        }
        match name {
            "channel" => self.channel = Some(value::text(raw)?),
            "tenant" => self.tenant = Some(value::text(raw)?),
            "payload" => self.payload = Some(compact(raw.get()).into_bytes()),
            "payload_base64" => self.payload_base64 = Some(base64(raw)?),
            "final_state" => message.final_state = value::final_state(raw)?,
            "effect" => message.effect = value::effect(raw)?,
            "retry_budget" => message.retry_budget = Some(value::small_number(raw)?),
            "fencing_token" => message.fencing_token = value::number(raw)?,
            "compatible_with" => message.compatible_with = value::texts(raw)?,
            "invalidates_message_ids" => message.invalidates_message_ids = value::texts(raw)?,
            "ttl_ms" => message.ttl_ms = value::number(raw)?,
            "not_before_unix_ms" => message.not_before_unix_ms = value::number(raw)?,
            "deadline_unix_ms" => message.deadline_unix_ms = value::number(raw)?,
            "requires_response" => message.requires_response = value::truth(raw)?,
            "created_at_unix_ms" => message.created_at_unix_ms = value::number(raw)?,
            "attributes" => message.attributes = value::pairs(raw)?,
            _ => return Err(NOT_KNOWN.to_owned()),
        }
        Ok(())
    }

    /// The message the fields make.
    pub(super) fn into_message(mut self) -> Result<Message, FieldFault> {
        match (self.payload, self.payload_base64) {
            (Some(_), Some(_)) => {
                return Err(FieldFault::new("payload_base64", "stands beside payload"));
            }
            (Some(json), None) => {
                self.message.payload = json.into();
                if self.message.content_type.is_empty() {
                    JSON.clone_into(&mut self.message.content_type);
                }
            }
            (None, Some(body)) => self.message.payload = body.into(),
            (None, None) => {}
        }
        Ok(self.message)
    }
}

const NOT_KNOWN: &str = "is not known";

fn unknown(name: &str) -> FieldFault {
    FieldFault::new(name, NOT_KNOWN)
}

fn base64(raw: &RawValue) -> Result<Vec<u8>, String> {
    let text = value::text(raw)?;
    STANDARD.decode(text).map_err(|error| format!("must be base64 with padding ({error})"))
}

/// Where the text field of that name lies in a message; `None` for every other name.
fn text_field<'a>(message: &'a mut Message, name: &str) -> Option<&'a mut String> {
    Some(match name {
        "message_id" => &mut message.message_id,
        "task_id" => &mut message.task_id,
        "agent_id" => &mut message.agent_id,
        "execution_id" => &mut message.execution_id,
        "context_id" => &mut message.context_id,
        "tool_call_id" => &mut message.tool_call_id,
        "ticket_id" => &mut message.ticket_id,
        "idempotency_key" => &mut message.idempotency_key,
        "on_behalf_of" => &mut message.on_behalf_of,
        "type" => &mut message.r#type,
        "intent" => &mut message.intent,
        "schema" => &mut message.schema,
        "artifact_ref" => &mut message.artifact_ref,
        "sender_role" => &mut message.sender_role,
        "trace_id" => &mut message.trace_id,
        "traceparent" => &mut message.traceparent,
        "tracestate" => &mut message.tracestate,
        "parent_message_id" => &mut message.parent_message_id,
        "step_id" => &mut message.step_id,
        "visibility" => &mut message.visibility,
        "sensitivity" => &mut message.sensitivity,
        "content_type" => &mut message.content_type,
        _ => return None,
    })
}

fn is_known(name: &str) -> bool {
    const OTHERS: [&str; 16] = [
        "attributes",
        "channel",
        "compatible_with",
        "created_at_unix_ms",
        "deadline_unix_ms",
        "effect",
        "fencing_token",
        "final_state",
        "invalidates_message_ids",
        "not_before_unix_ms",
        "payload_base64",
        "recipient",
        "requires_response",
        "retry_budget",
        "tenant",
        "ttl_ms",
    ];
    OTHERS.contains(&name) || text_field(&mut Message::default(), name).is_some()
}
