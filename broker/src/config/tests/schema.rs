//! The schema and the reader agree: a small judge of the schema's own vocabulary stands beside the reader.

use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Whether a document satisfies a schema. Knows the keywords the schema uses and refuses all others.
fn satisfies(document: &Value, schema: &Value) -> bool {
    schema.as_object().unwrap().iter().all(|(keyword, rule)| match keyword.as_str() {
        "$schema" | "title" | "description" | "default" => true,
        "type" => match rule {
            Value::Array(kinds) => kinds.iter().any(|kind| is_a(document, kind.as_str().unwrap())),
            kind => is_a(document, kind.as_str().unwrap()),
        },
        "enum" => rule.as_array().unwrap().contains(document),
        "properties" => document.as_object().is_none_or(|fields| {
            fields.iter().all(|(key, value)| rule.get(key).is_none_or(|schema| satisfies(value, schema)))
        }),
        "additionalProperties" => {
            assert_eq!(rule, &json!(false));
            document.as_object().is_none_or(|fields| fields.keys().all(|key| schema["properties"].get(key).is_some()))
        }
        "required" => document
            .as_object()
            .is_none_or(|fields| rule.as_array().unwrap().iter().all(|key| fields.contains_key(key.as_str().unwrap()))),
        "items" => document.as_array().is_none_or(|items| items.iter().all(|item| satisfies(item, rule))),
        "minItems" => document.as_array().is_none_or(|items| items.len() as u64 >= rule.as_u64().unwrap()),
        "maxItems" => document.as_array().is_none_or(|items| items.len() as u64 <= rule.as_u64().unwrap()),
        "uniqueItems" => {
            document.as_array().is_none_or(|items| (1..items.len()).all(|at| !items[..at].contains(&items[at])))
        }
        "minimum" => document.as_f64().is_none_or(|number| number >= rule.as_f64().unwrap()),
        "maximum" => document.as_f64().is_none_or(|number| number <= rule.as_f64().unwrap()),
        "minLength" => document.as_str().is_none_or(|text| text.len() as u64 >= rule.as_u64().unwrap()),
        "maxLength" => document.as_str().is_none_or(|text| text.len() as u64 <= rule.as_u64().unwrap()),
        "pattern" => document.as_str().is_none_or(|text| matches_pattern(text, rule.as_str().unwrap())),
        other => panic!("the schema uses {other}"),
    })
}

fn is_a(document: &Value, kind: &str) -> bool {
    match kind {
        "object" => document.is_object(),
        "array" => document.is_array(),
        "string" => document.is_string(),
        "integer" => document.is_i64() || document.is_u64(),
        "boolean" => document.is_boolean(),
        "null" => document.is_null(),
        other => panic!("the schema uses the type {other}"),
    }
}

/// The two patterns in use.
fn matches_pattern(text: &str, pattern: &str) -> bool {
    match pattern {
        "^[a-z0-9_-]{1,64}$" => {
            (1..=64).contains(&text.len()) && text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'))
        }
        "^depth_alert_0*[1-9][0-9]*$" => text
            .strip_prefix("depth_alert_")
            .is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()) && digits.bytes().any(|b| b != b'0')),
        other => panic!("the schema uses the pattern {other}"),
    }
}

/// JSON is YAML, so one text serves both judges.
fn agree(document: &Value) {
    let read = FileConfig::from_text(&document.to_string());
    assert_eq!(read.is_ok(), satisfies(document, &schema()), "{document}: {read:?}");
}

#[test]
fn the_example_satisfies_the_schema() {
    let id = json!({ "agent_id": null, "task_id": null, "message_id": null });
    agree(&json!({
        "communication_patterns": {
            "internal_plane": [
                { "channel": "task_events", "semantic": "S4", "key": "{tenant}:{agent_id}", "retention_h": 24, "replay": true,
                  "backpressure": "depth_alert_10000" },
                { "channel": "refund_events", "dedup_on": ["execution_id", "final_state"] },
            ],
            "contract": { "id": id, "ordering": "same_task_ordered", "delivery": "at_least_once + receiver_dedup",
                          "resumption": "stream_checkpoint + handle_query" },
            "capability_plane": [1, { "any": "thing" }],
        },
        "broker": { "listen": "127.0.0.1:1" },
    }));
}

#[test]
fn every_field_is_in_the_schema_with_its_meaning_and_every_default_satisfies_its_own() {
    let schema = schema();
    let channel = &schema["properties"]["internal_plane"]["items"]["properties"];
    let broker = &schema["properties"]["broker"]["properties"];
    let declared = CHANNEL_FIELDS.iter().map(|f| (channel, f.key, f.doc));
    for (properties, key, doc) in declared.chain(SETTINGS.iter().map(|s| (broker, s.key, s.doc))) {
        let field = &properties[key];
        assert!(field["description"].as_str().unwrap().starts_with(doc), "{key}");
        if let Some(default) = field.get("default") {
            assert!(satisfies(default, field), "{key}");
        }
    }
    assert_eq!(channel.as_object().unwrap().len(), CHANNEL_FIELDS.len());
    assert_eq!(broker.as_object().unwrap().len(), SETTINGS.len());
}

/// Values near every bound and of every kind.
fn value() -> impl Strategy<Value = Value> {
    let numbers = [0, 1, 39, 40, 999, 1000, 1001, 1024, 1025, 87_600, 87_601, 600_000, 3_600_001, 1_000_000_001];
    let texts =
        ["", "a", "A", "S4", "S1", "{tenant}", "{agent_id}", "depth_alert_7", "depth_alert_0", "always", "interval"];
    prop_oneof![
        prop::sample::select(numbers.to_vec()).prop_map(Value::from),
        prop::sample::select(texts.to_vec()).prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
        Just(json!(-1)),
        Just(json!(1.5)),
        Just(json!([])),
        Just(json!({})),
        Just(json!(["execution_id", "final_state"])),
        Just(json!(["final_state", "execution_id"])),
        Just(json!(["execution_id", "execution_id"])),
    ]
}

proptest! {
    #[test]
    fn the_schema_takes_a_field_of_a_channel_exactly_if_the_reader_does(at in 0..CHANNEL_FIELDS.len(), value in value()) {
        let key = CHANNEL_FIELDS[at].key;
        // The longest memory and no other depth, so that no contradiction, which a schema cannot see, comes about.
        let mut channel = json!({ "channel": "c", "remember_h": 87_600 });
        channel[key] = value;
        if key == "remember_h" {
            channel["retention_h"] = json!(1);
        }
        agree(&json!({ "internal_plane": [channel] }));
    }

    #[test]
    fn the_schema_takes_a_setting_exactly_if_the_reader_does(at in 0..SETTINGS.len(), value in value()) {
        let key = SETTINGS[at].key;
        let mut broker = json!({ "sync": "interval" });
        broker[key] = value.clone();
        // What an address looks like is more than the schema says.
        if !(key.ends_with("listen") && value.is_string()) {
            agree(&json!({ "broker": broker }));
        }
    }

    #[test]
    fn the_schema_takes_a_section_exactly_if_the_reader_does(
        section in prop::sample::select(vec!["internal_plane", "contract", "broker", "communication_patterns", "other"]),
        value in value(),
    ) {
        agree(&json!({ section: value }));
    }
}
