//! What holds of the reader of configuration files for any text. See `crate::fuzzing`.
#![allow(clippy::expect_used, reason = "a check says what broke by panicking")]

use super::settings::SyncMode;
use super::{ConfigFault, FileConfig, Overrides, Settings};
use crate::model::policy::{ChannelPolicy, HOUR_MS};
use serde_json::{Map, Value, json};

/// Every fault names a place in the text, in order. A file that is taken holds policies that are valid, resolves to
/// settings, and says the same when it is written out in full.
pub(crate) fn file(text: &str) {
    match FileConfig::from_text(text) {
        Ok(config) => taken(config),
        Err(faults) => told(&faults, text),
    }
}

fn told(faults: &[ConfigFault], text: &str) {
    assert!(!faults.is_empty());
    assert!(faults.is_sorted_by_key(|fault| (fault.line, fault.column)));
    // A carriage return alone ends a line too, and the end of the text may be a line of its own.
    let lines = text.split(['\n', '\r']).count();
    for fault in faults {
        assert!((1..=lines).contains(&fault.line) && fault.column >= 1, "{fault}");
        assert!(!fault.message.is_empty());
        assert!(fault.to_string().ends_with(&fault.message));
    }
}

fn taken(config: FileConfig) {
    for policy in &config.policies {
        policy.validate().expect("a policy that is taken is valid");
    }
    let written = written(&config).to_string();
    let again = FileConfig::from_text(&written).expect("what was read can be written and read");
    assert_eq!((&again.settings, &again.policies), (&config.settings, &config.policies), "{written}");
    let resolve = |file| Settings::resolve(Overrides::default(), Overrides::default(), file);
    assert_eq!(resolve(again), resolve(config));
}

/// The file with everything it says written out. JSON is YAML.
fn written(config: &FileConfig) -> Value {
    let channels: Vec<Value> = config.policies.iter().map(channel).collect();
    let mut file = Map::from_iter([("broker".to_owned(), broker(&config.settings))]);
    if !channels.is_empty() {
        file.insert("internal_plane".to_owned(), channels.into());
    }
    file.into()
}

fn channel(policy: &ChannelPolicy) -> Value {
    let mut channel = json!({
        "channel": policy.name,
        "key": policy.key.text(),
        "retention_h": policy.retention_ms / HOUR_MS,
        "replay": policy.replay,
        "require_artifact": policy.require_artifact,
        "remember_h": policy.remember_ms / HOUR_MS,
        "payload_bytes_max": policy.payload_bytes_max,
    });
    if let Some(max_depth) = policy.max_depth {
        channel["max_depth"] = max_depth.into();
    }
    // An alert above `max_depth` is one that was not written: it contradicts nobody at its default only.
    if policy.max_depth.is_none_or(|max_depth| policy.depth_alert <= max_depth) {
        channel["backpressure"] = format!("depth_alert_{}", policy.depth_alert).into();
    }
    channel
}

fn broker(settings: &Overrides) -> Value {
    let given: [(&str, Option<Value>); 12] = [
        ("data_dir", settings.data_dir.as_deref().map(|dir| dir.to_str().expect("it came from text").into())),
        ("listen", settings.listen.map(|address| address.to_string().into())),
        ("http_listen", settings.http_listen.map(|address| address.to_string().into())),
        ("insecure", settings.insecure.map(Value::from)),
        ("sync", settings.sync.map(|sync| SyncMode::text(sync).into())),
        ("interval_ms", settings.interval_ms.map(Value::from)),
        ("segment_mib", settings.segment_mib.map(Value::from)),
        ("checkpoint_mib", settings.checkpoint_mib.map(Value::from)),
        ("fail_grace_ms", settings.fail_grace_ms.map(Value::from)),
        ("session_timeout_ms", settings.session_timeout_ms.map(Value::from)),
        ("max_attempts", settings.max_attempts.map(Value::from)),
        ("drain_limit_ms", settings.drain_limit_ms.map(Value::from)),
    ];
    given.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect::<Map<_, _>>().into()
}
