use super::*;
use crate::model::policy::{ChannelPolicy, HOUR_MS, KeyTemplate, PolicyOwner};

#[test]
fn the_example_of_the_design_loads_as_it_stands() {
    let config = FileConfig::from_text(EXAMPLE).unwrap();
    let owned = |name: &str| ChannelPolicy { owner: PolicyOwner::File, ..ChannelPolicy::named(name) };
    assert_eq!(config.policies, [owned("task_events"), owned("refund_events")]);
    assert_eq!(config.settings, Overrides::default());
    assert_eq!(config.notes, []);
}

#[test]
fn the_internal_plane_may_stand_at_the_root() {
    let body = EXAMPLE.strip_prefix("communication_patterns:\n").unwrap();
    let root: String = body.lines().map(|line| format!("{}\n", &line[2..])).collect();
    assert_eq!(FileConfig::from_text(&root), FileConfig::from_text(EXAMPLE));
}

#[test]
fn every_field_of_a_channel_reaches_its_policy() {
    let text = "
internal_plane:
  - channel: orders
    semantic: S4
    key: '{tenant}'
    retention_h: 200
    replay: false
    backpressure: depth_alert_50
    dedup_on: [final_state, execution_id]
    max_depth: 60
    require_artifact: true
    remember_h: 300
    payload_bytes_max: 1024
";
    let expected = ChannelPolicy {
        name: "orders".to_owned(),
        key: KeyTemplate::Tenant,
        retention_ms: 200 * HOUR_MS,
        replay: false,
        depth_alert: 50,
        max_depth: Some(60),
        require_artifact: true,
        remember_ms: 300 * HOUR_MS,
        payload_bytes_max: 1024,
        owner: PolicyOwner::File,
    };
    assert_eq!(FileConfig::from_text(text).unwrap().policies, [expected]);
}

#[test]
fn executions_are_remembered_as_long_as_messages_are_kept_where_nothing_else_is_said() {
    let config = FileConfig::from_text("internal_plane: [{ channel: a, retention_h: 1000 }]").unwrap();
    assert_eq!(config.policies[0].remember_ms, 1000 * HOUR_MS);
}

#[test]
fn the_defaults_that_are_told_are_those_of_the_model() {
    let named = ChannelPolicy { owner: PolicyOwner::File, ..ChannelPolicy::named("a") };
    let fields: Vec<String> =
        CHANNEL_FIELDS.iter().filter_map(|field| Some(format!("{}: {}", field.key, field.default_text()?))).collect();
    let text = format!("internal_plane: [{{ channel: a, {} }}]", fields.join(", "));
    assert_eq!(FileConfig::from_text(&text).unwrap().policies, [named]);
}

#[test]
fn every_setting_of_the_server_may_stand_in_the_file_at_its_default() {
    let lines: String = SETTINGS.iter().map(|s| format!("  {}: {}\n", s.key, s.default_text())).collect();
    let text = format!("broker:\n{lines}").replace("sync: always", "sync: interval");
    let settings = FileConfig::from_text(&text).unwrap().settings;
    for setting in SETTINGS {
        let mut alone = Overrides::default();
        setting.put(&setting.default_text().replace("always", "interval"), &mut alone).unwrap();
        assert_eq!(alone.clone().over(settings.clone()), settings, "{}", setting.key);
        assert_ne!(alone, Overrides::default(), "{}", setting.key);
    }
}

#[test]
fn other_planes_are_left_alone_with_a_word_whatever_they_hold() {
    let text = "
capability_plane: { tools: [a, b], tools: again }
communication_patterns:
  collaboration_plane:
    - anything
  internal_plane: [{ channel: a }]
";
    let notes = FileConfig::from_text(text).unwrap().notes;
    let places: Vec<(usize, usize, &str)> =
        notes.iter().map(|n| (n.0.line, n.0.column, n.0.key_path.as_str())).collect();
    assert_eq!(places, [(2, 1, "capability_plane"), (4, 3, "communication_patterns.collaboration_plane")]);
    assert!(notes[0].to_string().contains("left alone"));

    let text = "
communication_patterns:
  capability_plane:
    base: &base { timeout: 5 }
    tool: !remote { <<: *base, ? [a, b] : c, {{ name }}: d }
    *base : e
  internal_plane: [{ channel: a }]
collaboration_plane: &all [*base, *all]
";
    let config = FileConfig::from_text(text).unwrap();
    assert_eq!((config.policies.len(), config.notes.len()), (1, 2));
}

#[test]
fn nothing_written_is_no_file_at_all() {
    for text in ["", "\n\n", "# only words\n", "---\n", "~", "\u{feff}", "broker:\n", "communication_patterns:\n"] {
        assert_eq!(FileConfig::from_text(text), Ok(FileConfig::default()), "{text:?}");
    }
}

#[test]
fn the_reference_in_the_folder_is_the_one_the_declarations_make() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/CONFIG.md");
    if std::env::var_os("WEIR_WRITE_REFERENCE").is_some() {
        std::fs::write(path, reference()).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap();
    assert!(kept == reference(), "CONFIG.md is behind: run this test with WEIR_WRITE_REFERENCE=1");
}
