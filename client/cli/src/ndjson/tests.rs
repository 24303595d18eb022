#![allow(clippy::unwrap_used)]
use super::*;
use weir_proto::v1::{Effect, FinalState, RecipientMode};

const SAID: &str = r#"{"channel": "airline-0:desk", "tenant": "airline-0", "agent_id": "desk", "task_id": "t-1",
    "message_id": "t-1-001", "trace_id": "f08", "type": "event", "intent": "customer_said",
    "payload": {"content": "Hi!  Paris, \"please\".", "b": 1.0, "a": 18446744073709551616},
    "created_at_unix_ms": 1716120001700}"#;

fn read(line: &str) -> Result<(ChannelKey, Message), FieldFault> {
    Rules::default().read(line.as_bytes())
}

fn fault(line: &str) -> FieldFault {
    read(line).unwrap_err()
}

/// A line that is well, with `more` behind it.
fn with(more: &str) -> String {
    format!(r#"{{"channel":"a:b","agent_id":"b","task_id":"t","message_id":"m","type":"event"{more}}}"#)
}

#[test]
fn a_line_becomes_a_message() {
    let (channel, message) = read(SAID).unwrap();
    assert_eq!(channel, ChannelKey::new("airline-0", "desk"));
    assert_eq!(message.message_id, "t-1-001");
    assert_eq!(message.r#type, "event");
    assert_eq!(message.created_at_unix_ms, 1_716_120_001_700);
    assert_eq!(message.content_type, "application/json");
    assert_eq!(message.payload, r#"{"content":"Hi!  Paris, \"please\".","b":1.0,"a":18446744073709551616}"#.as_bytes());
}

#[test]
fn states_and_effects_go_by_name_with_or_without_prefix() {
    for state in ["FAILED", "FINAL_STATE_FAILED"] {
        let line = with(&format!(r#","execution_id":"x","final_state":"{state}""#));
        assert_eq!(read(&line).unwrap().1.final_state(), FinalState::Failed);
    }
    for effect in ["EFFECT_UNSAFE", "UNSAFE"] {
        let line = with(&format!(r#","effect":"{effect}""#));
        assert_eq!(read(&line).unwrap().1.effect(), Effect::Unsafe);
    }
    let wrong = fault(&with(r#","effect":"DANGEROUS""#));
    assert_eq!(wrong, FieldFault::new("effect", "must be one of NONE, IDEMPOTENT, UNSAFE"));
    assert_eq!(fault(&with(r#","final_state":1"#)).field, "final_state");
    assert_eq!(fault(&with(r#","final_state":"failed""#)).field, "final_state");
}

#[test]
fn all_kinds_of_fields_are_taken() {
    let line = with(
        r#","retry_budget":0,"ttl_ms":5,"requires_response":true,"attributes":{"k":"v"},"compatible_with":["s1"],
        "recipient":{"mode":"DIRECT","agent_ids":["x"]},"fencing_token":18446744073709551615,"content_type":"x/y+json",
        "payload":[1]"#,
    );
    let (_, message) = read(&line).unwrap();
    assert_eq!(message.retry_budget, Some(0));
    assert_eq!(message.fencing_token, u64::MAX);
    assert_eq!(message.attributes["k"], "v");
    assert_eq!(message.content_type, "x/y+json");
    assert_eq!(message.recipient.unwrap().mode(), RecipientMode::Direct);
}

#[test]
fn a_field_nobody_knows_is_refused_by_name() {
    assert_eq!(fault(&with(r#","task":"t""#)), FieldFault::new("task", "is not known"));
    assert_eq!(fault(&with(r#","x_mine":null"#)), FieldFault::new("x_mine", "is not known"));
    let line = with(r#","recipient":{"mode":"DIRECT","who":"x"}"#);
    assert_eq!(fault(&line), FieldFault::new("recipient.who", "is not known"));
}

#[test]
fn a_field_that_stands_twice_is_refused() {
    assert_eq!(fault(&with(r#","task_id":"other""#)), FieldFault::new("task_id", "stands twice"));
}

#[test]
fn what_a_message_needs_is_asked_for() {
    for field in ["message_id", "task_id", "agent_id", "type"] {
        let line = with("").replace(&format!("\"{field}\""), "\"intent\"");
        assert_eq!(fault(&line), FieldFault::new(field, "is required"), "{line}");
    }
    assert_eq!(fault(&with(r#","final_state":"FAILED""#)).field, "execution_id");
}

#[test]
fn null_counts_as_left_out_but_for_a_payload() {
    let (_, message) = read(&with(r#","execution_id":null,"final_state":null"#)).unwrap();
    assert_eq!(message.execution_id, "");
    assert!(message.payload.is_empty());
    let (_, message) = read(&with(r#","payload":null"#)).unwrap();
    assert_eq!(message.payload, "null");
}

#[test]
fn a_body_that_is_no_json_comes_as_base64() {
    let (_, message) = read(&with(r#","payload_base64":"AAH/""#)).unwrap();
    assert_eq!(message.payload, vec![0, 1, 255]);
    assert_eq!(message.content_type, "");
    assert_eq!(fault(&with(r#","payload_base64":"AAH""#)).field, "payload_base64");
    assert_eq!(fault(&with(r#","payload_base64":"","payload":1"#)).field, "payload_base64");
}

#[test]
fn the_channel_is_named_and_strict() {
    let missing = r#"{"agent_id":"b","task_id":"t","message_id":"m","type":"event"}"#;
    assert_eq!(fault(missing).field, "channel");
    assert_eq!(fault(&with("").replace("a:b", "a:*")).field, "channel");
    assert_eq!(fault(&with(r#","tenant":"c""#)).field, "tenant");
}

#[test]
fn a_channel_for_all_lines_outweighs_what_a_line_says() {
    let rules = Rules { channel: Some(ChannelKey::new("c", "d")), fresh_ids: false };
    let (channel, message) = rules.read(with(r#","tenant":"a""#).as_bytes()).unwrap();
    assert_eq!(channel, ChannelKey::new("c", "d"));
    assert_eq!(message.agent_id, "b");
}

#[test]
fn fresh_ids_replace_those_of_the_lines() {
    let rules = Rules { channel: None, fresh_ids: true };
    let ids = [1, 2].map(|_| rules.read(with("").as_bytes()).unwrap().1.message_id);
    assert_ne!(ids[0], ids[1]);
    assert!(ids.iter().all(|id| id.len() == 32));
}

#[test]
fn a_line_that_is_no_object_is_refused_as_a_whole() {
    for line in ["", "[]", "7", "{", "{}{}", "\"x\"", "{\"a\":}"] {
        assert_eq!(fault(line).field, "", "{line}");
    }
    assert_eq!(Rules::default().read(b"\"\xff\"").unwrap_err().reason, "is not UTF-8");
}

#[test]
fn every_line_of_the_traces_is_taken_where_they_are_at_hand() {
    let Some(path) = std::env::var_os("WEIR_TRACES") else {
        return;
    };
    let traces = std::fs::read_to_string(path).unwrap();
    let mut finals = 0;
    for line in traces.lines() {
        let (channel, message) = read(line).unwrap();
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        let payload: serde_json::Value = serde_json::from_slice(&message.payload).unwrap();
        assert_eq!(value["channel"], channel.to_string());
        assert_eq!(value["payload"], payload);
        finals += u64::from(message.final_state != 0);
    }
    assert_eq!(traces.lines().count(), 5_108);
    assert_eq!(finals, 1_164);
}
