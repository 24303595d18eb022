//! The file's JSON schema, for editors and for checks before weir is there. Built from the same declarations that the
//! file is read by. It knows shapes and bounds; contradictions between fields are for `weir check-config` to find.

use super::channel::CHANNELS_MAX;
use super::channel_field::{CHANNEL_FIELDS, ChannelField, DEPTH_ALERT_PREFIX, PAIR, SEMANTIC, TEMPLATES, Takes};
use super::contract::{IDS, PROMISES};
use super::planes::{BROKER, CONTRACT, INTERNAL_PLANE, OTHER_PLANES, PATTERNS};
use super::setting::{Kind, PATH_BYTES_MAX, SETTINGS, Setting};
use super::settings::SyncMode;
use crate::model::policy::KeyTemplate;
use serde_json::{Map, Value, json};

/// The JSON schema of the configuration file.
#[must_use]
pub fn schema() -> Value {
    let mut sections = Map::new();
    sections.insert(INTERNAL_PLANE.to_owned(), internal_plane());
    sections.insert(CONTRACT.to_owned(), contract());
    for plane in OTHER_PLANES {
        sections.insert(plane.to_owned(), json!({ "description": "Left alone: weir serves the internal plane." }));
    }
    let mut root = sections.clone();
    let mut patterns = object(sections);
    allow_nothing(&mut patterns);
    root.insert(PATTERNS.to_owned(), patterns);
    root.insert(BROKER.to_owned(), broker());
    let mut schema = object(root);
    allow_nothing(&mut schema);
    put(&mut schema, "$schema", "https://json-schema.org/draft/2020-12/schema");
    put(&mut schema, "title", "weir configuration");
    schema
}

fn internal_plane() -> Value {
    let fields = CHANNEL_FIELDS.iter().map(|field| (field.key.to_owned(), channel_field(field))).collect();
    let mut channel = object(fields);
    put(&mut channel, "required", json!(["channel"]));
    json!({ "type": "array", "minItems": 1, "maxItems": CHANNELS_MAX, "items": channel })
}

fn channel_field(field: &ChannelField) -> Value {
    let mut schema = match field.takes {
        Takes::Name => json!({ "type": "string", "pattern": "^[a-z0-9_-]{1,64}$" }),
        Takes::Semantic => json!({ "enum": [SEMANTIC], "default": SEMANTIC }),
        Takes::Template => {
            let [default, other] = TEMPLATES.map(KeyTemplate::text);
            json!({ "enum": [default, other], "default": default })
        }
        Takes::Count { default, min, max, .. } => {
            let mut count = json!({ "type": "integer", "minimum": min, "maximum": max });
            if let Some(default) = default {
                put(&mut count, "default", default);
            }
            count
        }
        Takes::Truth { default, .. } => json!({ "type": "boolean", "default": default }),
        Takes::DepthAlert => {
            let pattern = format!("^{DEPTH_ALERT_PREFIX}0*[1-9][0-9]*$");
            json!({ "type": "string", "pattern": pattern, "default": field.default_text() })
        }
        Takes::DedupOn => {
            json!({ "type": "array", "items": { "enum": PAIR }, "uniqueItems": true, "minItems": PAIR.len() })
        }
    };
    put(&mut schema, "description", format!("{} Takes {}.", field.doc, field.takes()));
    schema
}

fn contract() -> Value {
    let ids = IDS.map(|id| (id.to_owned(), json!({ "type": "null" }))).into_iter().collect();
    let mut id = object(ids);
    put(&mut id, "required", json!(IDS));
    let mut fields = Map::new();
    fields.insert("id".to_owned(), id);
    for promise in &PROMISES {
        let description = format!("weir keeps this and no other: {}.", promise.why);
        fields.insert(promise.key.to_owned(), json!({ "enum": promise.texts(), "description": description }));
    }
    object(fields)
}

fn broker() -> Value {
    let settings = SETTINGS.iter().map(|setting| (setting.key.to_owned(), server_setting(setting))).collect();
    let mut broker = object(settings);
    allow_nothing(&mut broker);
    put(&mut broker, "description", "Settings of the server. Flags and environment variables come before them.");
    broker
}

fn server_setting(setting: &Setting) -> Value {
    let mut schema = match setting.kind {
        Kind::Path { default, .. } => {
            json!({ "type": "string", "minLength": 1, "maxLength": PATH_BYTES_MAX, "default": default })
        }
        Kind::Address { default, .. } => {
            json!({ "type": "string", "default": default.to_string() })
        }
        Kind::Truth { default, .. } => json!({ "type": "boolean", "default": default }),
        Kind::Sync { default, .. } => json!({ "enum": SyncMode::TEXTS, "default": default.text() }),
        Kind::Count { default, min, max, .. } => {
            json!({ "type": "integer", "minimum": min, "maximum": max, "default": default })
        }
    };
    let description = format!("{} Takes {}. Environment: {}.", setting.doc, setting.takes(), setting.env);
    put(&mut schema, "description", description);
    schema
}

/// A mapping of these fields and no others.
fn object(fields: Map<String, Value>) -> Value {
    json!({ "type": "object", "properties": fields, "additionalProperties": false })
}

/// Lets a mapping be left unwritten: `broker:` alone.
fn allow_nothing(object: &mut Value) {
    put(object, "type", json!(["object", "null"]));
}

fn put(schema: &mut Value, key: &str, value: impl Into<Value>) {
    if let Value::Object(fields) = schema {
        fields.insert(key.to_owned(), value.into());
    }
}
