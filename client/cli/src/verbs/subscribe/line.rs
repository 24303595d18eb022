//! A delivery as a line of JSON.

use crate::enums;
use crate::names::ChannelKey;
use crate::ndjson::compact;
use crate::output::{Map, Tree};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use weir_proto::v1::{Delivery, ExecutionHint, Message, Recipient, Skipped};

/// A delivery with all it says; names as in an input line where there is one.
pub(super) fn of(delivery: Delivery) -> Tree {
    let message = delivery.message.unwrap_or_default();
    let place = Map::new()
        .with("policy", delivery.policy)
        .with("channel", ChannelKey::new(delivery.tenant.clone(), delivery.agent_id).to_string())
        .with("tenant", delivery.tenant)
        .with("offset", delivery.offset);
    let lease = message_names(place, &message)
        .with("attempt", delivery.attempt)
        .with("acquired", delivery.acquired)
        .with("failed", delivery.failed)
        .with("lease_lost", delivery.lease_lost)
        .with("epoch", delivery.epoch)
        .with("published_unix_ms", delivery.published_unix_ms)
        .with_some("lease_expires_unix_ms", Tree::unless_zero(delivery.lease_expires_unix_ms))
        .with_some("time_left_ms", delivery.time_left_ms)
        .with_some("execution", delivery.execution.map(execution))
        .with_some("replay", delivery.replay.then_some(true))
        .with_some("skipped", delivery.skipped.into_iter().map(skipped).collect::<Vec<_>>());
    body(message_rest(lease, &message), &message).done()
}

/// What names a message and says what it is; always there.
fn message_names(record: Map, message: &Message) -> Map {
    record
        .with("agent_id", message.agent_id.as_str())
        .with("task_id", message.task_id.as_str())
        .with("message_id", message.message_id.as_str())
        .with("type", message.r#type.as_str())
        .with("intent", Tree::unless_empty(message.intent.as_str()))
        .with("execution_id", Tree::unless_empty(message.execution_id.as_str()))
        .with("final_state", enums::final_state(message.final_state))
}

/// What else a message says, where it does.
fn message_rest(record: Map, message: &Message) -> Map {
    let text = |value: &str| Tree::unless_empty(value);
    record
        .with_some("artifact_ref", text(&message.artifact_ref))
        .with_some("effect", enums::effect(message.effect))
        .with_some("retry_budget", message.retry_budget)
        .with_some("fencing_token", Tree::unless_zero(message.fencing_token))
        .with_some("context_id", text(&message.context_id))
        .with_some("tool_call_id", text(&message.tool_call_id))
        .with_some("ticket_id", text(&message.ticket_id))
        .with_some("idempotency_key", text(&message.idempotency_key))
        .with_some("on_behalf_of", text(&message.on_behalf_of))
        .with_some("schema", text(&message.schema))
        .with_some("compatible_with", message.compatible_with.clone())
        .with_some("sender_role", text(&message.sender_role))
        .with_some("recipient", message.recipient.clone().map(recipient))
        .with_some("trace_id", text(&message.trace_id))
        .with_some("traceparent", text(&message.traceparent))
        .with_some("tracestate", text(&message.tracestate))
        .with_some("parent_message_id", text(&message.parent_message_id))
        .with_some("step_id", text(&message.step_id))
        .with_some("invalidates_message_ids", message.invalidates_message_ids.clone())
        .with_some("visibility", text(&message.visibility))
        .with_some("sensitivity", text(&message.sensitivity))
        .with_some("ttl_ms", Tree::unless_zero(message.ttl_ms))
        .with_some("not_before_unix_ms", Tree::unless_zero(message.not_before_unix_ms))
        .with_some("deadline_unix_ms", Tree::unless_zero(message.deadline_unix_ms))
        .with_some("requires_response", message.requires_response.then_some(true))
        .with_some("created_at_unix_ms", Tree::unless_zero(message.created_at_unix_ms))
        .with_some("content_type", text(&message.content_type))
        .with_some("attributes", Some(message.attributes.clone()).filter(|pairs| !pairs.is_empty()))
}

/// The body: `payload` if it is JSON, else `payload_base64`.
fn body(record: Map, message: &Message) -> Map {
    let json =
        serde_json::from_slice::<&RawValue>(&message.payload).and_then(|raw| RawValue::from_string(compact(raw.get())));
    match json {
        Ok(json) => record.with("payload", Tree::Raw(json)),
        Err(_) => record.with("payload_base64", STANDARD.encode(&message.payload)),
    }
}

fn execution(hint: ExecutionHint) -> Map {
    Map::new()
        .with("state", enums::execution_state(hint.state))
        .with("artifact_ref", Tree::unless_empty(hint.artifact_ref))
        .with("since_unix_ms", hint.since_unix_ms)
}

fn recipient(recipient: Recipient) -> Map {
    Map::new().with("mode", enums::recipient_mode(recipient.mode)).with("agent_ids", recipient.agent_ids)
}

fn skipped(skipped: Skipped) -> Map {
    Map::new().with("cause", enums::gone_cause(skipped.cause)).with("count", skipped.count)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::ndjson::Rules;

    fn delivery(message: Message) -> Delivery {
        Delivery {
            policy: "task_events".to_owned(),
            tenant: "acme".to_owned(),
            agent_id: "desk".to_owned(),
            offset: 3,
            message: Some(message),
            epoch: 9,
            attempt: 1,
            acquired: 1,
            ..Delivery::default()
        }
    }

    #[test]
    fn a_line_has_the_place_the_names_and_the_body() {
        let message = Message {
            message_id: "m".to_owned(),
            task_id: "t".to_owned(),
            agent_id: "tools".to_owned(),
            r#type: "event".to_owned(),
            payload: "{\n \"b\": 1.0,\n \"a\": []}".into(),
            ..Message::default()
        };
        assert_eq!(
            serde_json::to_string(&of(delivery(message))).unwrap(),
            r#"{"policy":"task_events","channel":"acme:desk","tenant":"acme","offset":3,"agent_id":"tools","task_id":"t","message_id":"m","type":"event","intent":null,"execution_id":null,"final_state":null,"attempt":1,"acquired":1,"failed":0,"lease_lost":0,"epoch":9,"published_unix_ms":0,"payload":{"b":1.0,"a":[]}}"#
        );
    }

    #[test]
    fn a_body_that_is_no_json_is_base64() {
        for (payload, base64) in [(&b"\xff\x00"[..], "/wA="), (b"", ""), (b"hello", "aGVsbG8=")] {
            let message = Message { payload: payload.to_vec().into(), ..Message::default() };
            let line = of(delivery(message));
            assert_eq!(line.at("payload"), &Tree::Null);
            assert_eq!(line.at("payload_base64"), &Tree::from(base64));
        }
    }

    #[test]
    fn what_a_line_says_of_a_message_makes_the_same_message_again() {
        let text = r#"{"channel":"acme:desk","tenant":"acme","agent_id":"tools","task_id":"t","message_id":"m",
            "type":"task.result","intent":"book","execution_id":"x","final_state":"UNKNOWN","effect":"EFFECT_UNSAFE",
            "retry_budget":0,"fencing_token":4,"context_id":"c","compatible_with":["s"],"ttl_ms":5,"attributes":{"k":"v"},
            "recipient":{"mode":"DIRECT","agent_ids":["a"]},"requires_response":true,"payload":[1, 2]}"#;
        let (channel, message) = Rules::default().read(text.as_bytes()).unwrap();
        let line = serde_json::to_string(&of(delivery(message.clone()))).unwrap();
        let mut object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&line).unwrap();
        for ours in ["policy", "offset", "attempt", "acquired", "failed", "lease_lost", "epoch", "published_unix_ms"] {
            object.remove(ours).unwrap();
        }
        let again = Rules::default().read(serde_json::to_string(&object).unwrap().as_bytes()).unwrap();
        assert_eq!(again, (channel, message));
    }
}
