use super::*;

/// A fault as (line, column, key path, part of the message).
type Expected = (usize, usize, &'static str, &'static str);

fn check(text: &str, expected: &[Expected]) {
    let faults = FileConfig::from_text(text).expect_err(text);
    let found: Vec<(usize, usize, &str)> = faults.iter().map(|f| (f.line, f.column, f.key_path.as_str())).collect();
    let places: Vec<(usize, usize, &str)> =
        expected.iter().map(|(line, column, path, _)| (*line, *column, *path)).collect();
    assert_eq!(found, places, "{text}\n{faults:#?}");
    for (fault, (_, _, _, part)) in faults.iter().zip(expected) {
        assert!(fault.message.contains(part), "{:?} is not in {:?}", part, fault.message);
    }
}

/// One channel with these fields; they start at column 31 of line 1.
fn channel(fields: &str) -> String {
    format!("internal_plane: [{{channel: a, {fields}}}]")
}

#[test]
fn each_rule_of_a_channel_names_its_place() {
    let table: &[(&str, &[Expected])] = &[
        ("retention: 24", &[(1, 31, "internal_plane[0].retention", "did you mean `retention_h`?")]),
        ("colour: red", &[(1, 31, "internal_plane[0].colour", "known here: channel, semantic, key")]),
        (
            "replay: true, replay: true",
            &[(1, 45, "internal_plane[0].replay", "given twice; the first stands in line 1")],
        ),
        (
            "retention_h: '24'",
            &[(1, 44, "internal_plane[0].retention_h", "found the text \"24\": take the quotes away")],
        ),
        (
            "retention_h: 1.5",
            &[(1, 44, "internal_plane[0].retention_h", "expected a whole number from 1 to 87600, found `1.5`")],
        ),
        ("retention_h: 0", &[(1, 44, "internal_plane[0].retention_h", "0 is out of bounds: from 1 to 87600")]),
        ("retention_h: -1", &[(1, 44, "internal_plane[0].retention_h", "expected a whole number")]),
        ("retention_h: 99999999999999999999999", &[(1, 44, "internal_plane[0].retention_h", "out of bounds")]),
        ("retention_h: [1]", &[(1, 44, "internal_plane[0].retention_h", "found a list")]),
        ("retention_h: ", &[(1, 31, "internal_plane[0].retention_h", "found nothing")]),
        ("replay: yes", &[(1, 39, "internal_plane[0].replay", "expected true or false, found `yes`")]),
        ("require_artifact: 'true'", &[(1, 49, "internal_plane[0].require_artifact", "take the quotes away")]),
        ("semantic: S1", &[(1, 41, "internal_plane[0].semantic", "S1 (request-response)")]),
        ("semantic: S2", &[(1, 41, "internal_plane[0].semantic", "S2 (stream)")]),
        ("semantic: S3", &[(1, 41, "internal_plane[0].semantic", "S3 (task handle)")]),
        ("semantic: S9", &[(1, 41, "internal_plane[0].semantic", "`S9` is no semantic")]),
        (
            "key: '{agent_id}'",
            &[(1, 36, "internal_plane[0].key", "has no {tenant}: every channel belongs to one tenant")],
        ),
        ("key: '{tenant}:{task_id}'", &[(1, 36, "internal_plane[0].key", "a task needs no channel of its own")]),
        ("key: '{agent_id}:{tenant}'", &[(1, 36, "internal_plane[0].key", "is none that weir knows")]),
        ("key: {tenant}", &[(1, 36, "internal_plane[0].key", "expected a template in quotes")]),
        ("backpressure: block", &[(1, 45, "internal_plane[0].backpressure", "expected `depth_alert_N`")]),
        ("backpressure: depth_alert_0", &[(1, 45, "internal_plane[0].backpressure", "0 is out of bounds")]),
        ("backpressure: depth_alert_", &[(1, 45, "internal_plane[0].backpressure", "expected a whole number")]),
        (
            "dedup_on: [context_id]",
            &[(1, 41, "internal_plane[0].dedup_on", "by [execution_id, final_state] only for now")],
        ),
        ("dedup_on: [execution_id]", &[(1, 41, "internal_plane[0].dedup_on", "only for now")]),
        ("dedup_on: execution_id", &[(1, 41, "internal_plane[0].dedup_on", "expected the list")]),
        (
            "dedup_on: [execution_id, [final_state]]",
            &[(1, 56, "internal_plane[0].dedup_on", "expected a field's name, found a list")],
        ),
        (
            "payload_bytes_max: 15728641",
            &[(1, 50, "internal_plane[0].payload_bytes_max", "out of bounds: from 1 to 15728640")],
        ),
        ("max_depth: 0", &[(1, 42, "internal_plane[0].max_depth", "out of bounds")]),
        ("remember_h: 23", &[(1, 43, "internal_plane[0].remember_h", "less than the retention of 24 h")]),
        (
            "remember_h: 30, retention_h: 31",
            &[(1, 43, "internal_plane[0].remember_h", "less than the retention of 31 h")],
        ),
        (
            "max_depth: 9, backpressure: depth_alert_10",
            &[(1, 42, "internal_plane[0].max_depth", "refused at 9, before the alert at 10")],
        ),
    ];
    for (fields, expected) in table {
        check(&channel(fields), expected);
    }
}

#[test]
fn names_are_there_once_and_well_formed() {
    check("internal_plane:\n  - { replay: true }\n", &[(2, 5, "internal_plane[0]", "`channel` is missing")]);
    check("internal_plane: [{channel: A b}]", &[(1, 28, "internal_plane[0].channel", "not `A b`")]);
    check("internal_plane: [{channel: }]", &[(1, 19, "internal_plane[0].channel", "expected a name, found nothing")]);
    check(
        "internal_plane: [{channel: unknown_executions}]",
        &[(1, 28, "internal_plane[0].channel", "weir keeps this one itself")],
    );
    check(
        "internal_plane:\n  - channel: a\n  - channel: b\n  - channel: a\n",
        &[(4, 14, "internal_plane[2].channel", "`a` is declared twice; the first stands in line 2")],
    );
}

#[test]
fn sections_have_their_shape_and_their_place() {
    let table: &[(&str, &[Expected])] = &[
        ("just words", &[(1, 1, "", "expected a mapping, found `just words`")]),
        ("[a]", &[(1, 1, "", "expected a mapping, found a list")]),
        ("intern_plane: []", &[(1, 1, "intern_plane", "did you mean `internal_plane`?")]),
        ("internal_plane:", &[(1, 1, "internal_plane", "expected a list of channels")]),
        ("internal_plane: []", &[(1, 17, "internal_plane", "declares no channel")]),
        ("internal_plane: { channel: a }", &[(1, 17, "internal_plane", "expected a list of channels")]),
        ("internal_plane: [a]", &[(1, 18, "internal_plane[0]", "expected a mapping, found `a`")]),
        ("communication_patterns: 1", &[(1, 25, "communication_patterns", "expected a mapping, found `1`")]),
        (
            "internal_plane: [{channel: a}]\ncommunication_patterns:\n  internal_plane: [{channel: b}]\n",
            &[(
                3,
                3,
                "communication_patterns.internal_plane",
                "given twice; the first stands in line 1 as internal_plane",
            )],
        ),
        ("communication_patterns:\n  broker: {}\n", &[(2, 3, "communication_patterns.broker", "unknown field")]),
        ("broker: []", &[(1, 9, "broker", "expected a mapping, found a list")]),
    ];
    for (text, expected) in table {
        check(text, expected);
    }
}

#[test]
fn a_contract_other_than_the_one_weir_keeps_is_refused() {
    let table: &[(&str, &[Expected])] = &[
        (
            "contract: { ordering: global }",
            &[(1, 23, "contract.ordering", "weir keeps `same_task_ordered` and no other")],
        ),
        ("contract: { delivery: exactly_once }", &[(1, 23, "contract.delivery", "`at_least_once + receiver_dedup`")]),
        ("contract: { delivery: at_least_once }", &[(1, 23, "contract.delivery", "`at_least_once + receiver_dedup`")]),
        ("contract: { resumption: }", &[(1, 13, "contract.resumption", "found nothing")]),
        ("contract: { order: x }", &[(1, 13, "contract.order", "did you mean `ordering`?")]),
        ("contract: { id: { agent_id, task_id } }", &[(1, 13, "contract.id", "`message_id` is missing")]),
        (
            "contract: { id: { agent_id, task_id: 1, message_id, extra } }",
            &[
                (1, 38, "contract.id.task_id", "expected no value, found `1`"),
                (1, 53, "contract.id.extra", "unknown field"),
            ],
        ),
        ("contract: { id: [agent_id] }", &[(1, 17, "contract.id", "expected a mapping, found a list")]),
        (
            "communication_patterns:\n  contract: { ordering: none }",
            &[(2, 25, "communication_patterns.contract.ordering", "weir keeps")],
        ),
    ];
    for (text, expected) in table {
        check(text, expected);
    }
    let reordered =
        "contract: { delivery: receiver_dedup+at_least_once, resumption: handle_query + stream_checkpoint }";
    FileConfig::from_text(reordered).unwrap();
}

#[test]
fn settings_of_the_server_have_types_bounds_and_fit_each_other() {
    let table: &[(&str, &[Expected])] = &[
        (
            "broker: { data_dir: 7 }",
            &[(1, 21, "broker.data_dir", "found the number `7`; as a text it stands in quotes")],
        ),
        ("broker: { data_dir: true }", &[(1, 21, "broker.data_dir", "found `true`; as a text it stands in quotes")]),
        (
            "broker: { sync: sometimes }",
            &[(1, 17, "broker.sync", "expected `always` or `interval`, found `sometimes`")],
        ),
        ("broker: { sync: interval, interval_ms: 1001 }", &[(1, 40, "broker.interval_ms", "from 1 to 1000")]),
        ("broker: { interval_ms: 10 }", &[(1, 11, "broker.interval_ms", "without `sync: interval`")]),
        ("broker: { sync: always, interval_ms: 10 }", &[(1, 25, "broker.interval_ms", "contradiction")]),
        ("broker: { insecure: 'true' }", &[(1, 21, "broker.insecure", "take the quotes away")]),
        ("broker: { listen: localhost:7447 }", &[(1, 19, "broker.listen", "for localhost write 127.0.0.1")]),
        ("broker: { listen: ':7447' }", &[(1, 19, "broker.listen", "for all addresses write 0.0.0.0")]),
        ("broker: { listen: 7447 }", &[(1, 19, "broker.listen", "expected an IP address and a port")]),
        (
            "broker: { listen: 127.0.0.1:1, http_listen: 127.0.0.1:1 }",
            &[(1, 45, "broker.http_listen", "`listen` asks for 127.0.0.1:1 too")],
        ),
        ("broker: { data_dir: '' }", &[(1, 21, "broker.data_dir", "expected a path")]),
        ("broker: { data_dir: }", &[(1, 11, "broker.data_dir", "found nothing")]),
        ("broker: { segment_mib: 39 }", &[(1, 24, "broker.segment_mib", "from 40 to 1024")]),
        ("broker: { session_timeout: 1 }", &[(1, 11, "broker.session_timeout", "did you mean `session_timeout_ms`?")]),
    ];
    for (text, expected) in table {
        check(text, expected);
    }
}

#[test]
fn yaml_that_is_none_or_more_than_weir_reads_is_refused_where_it_stands() {
    let table: &[(&str, &[Expected])] = &[
        ("broker: {\n  sync: always\n", &[(3, 1, "", "not valid YAML: ")]),
        ("broker: {\r\n  sync: always", &[(2, 15, "", "not valid YAML: ")]),
        ("?\r#", &[(2, 2, "", "unknown field")]),
        ("\u{feff}broker: {", &[(1, 10, "", "not valid YAML: ")]),
        ("broker: &b { sync: always }", &[(1, 9, "", "anchors")]),
        ("broker: !x { sync: always }", &[(1, 9, "", "tags")]),
        ("broker: { sync: &s always, data_dir: *s }", &[(1, 17, "", "anchors"), (1, 38, "", "aliases")]),
        (
            "capability_plane: &c {}\nbroker: *c\ncontract: { capability_plane: &d {} }\n",
            &[(2, 9, "", "aliases"), (3, 13, "contract.capability_plane", "unknown field"), (3, 31, "", "anchors")],
        ),
        ("*b : {}", &[(1, 1, "", "not valid YAML")]),
        ("broker: {}\n---\nbroker: {}\n", &[(2, 1, "", "a second document")]),
        ("[a]: b", &[(1, 1, "", "a key has to be a word, not a list")]),
    ];
    for (text, expected) in table {
        check(text, expected);
    }
    check(&"[".repeat(100), &[(1, 33, "", "nested deeper than 32 levels")]);
    let left_alone = format!("capability_plane: {}", "[".repeat(100));
    check(&left_alone, &[(1, 50, "", "nested deeper than 32 levels")]);
    check(&" ".repeat(1024 * 1024 + 1), &[(1, 1, "", "at most 1048576 (1 MiB)")]);
}

#[test]
fn all_faults_of_a_file_are_told_at_once_in_its_order() {
    check(
        "
communication_patterns:
  internal_plane:
    - { channel: task_events, semantic: S1, key: \"{agent_id}\", retention_h: day }
    - { channel: task_events, retain: 1 }
  contract:
    delivery: exactly_once
broker:
  listne: 127.0.0.1:1
  max_attempts: 0
",
        &[
            (4, 41, "communication_patterns.internal_plane[0].semantic", "S1"),
            (4, 50, "communication_patterns.internal_plane[0].key", "{tenant}"),
            (4, 77, "communication_patterns.internal_plane[0].retention_h", "`day`"),
            (5, 18, "communication_patterns.internal_plane[1].channel", "declared twice"),
            (5, 31, "communication_patterns.internal_plane[1].retain", "unknown field"),
            (7, 15, "communication_patterns.contract.delivery", "no other"),
            (9, 3, "broker.listne", "did you mean `listen`?"),
            (10, 17, "broker.max_attempts", "out of bounds"),
        ],
    );
}

#[test]
fn a_flood_of_faults_is_cut_and_counted() {
    let lines: String = (0..1_500).map(|n| format!("k{n}: 1\n")).collect();
    let faults = FileConfig::from_text(&lines).unwrap_err();
    assert_eq!(faults.len(), 1_001);
    assert_eq!(faults.last().unwrap().message, "and 500 more faults in this file");
}

#[test]
fn a_file_that_is_no_text_says_where() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.yaml");
    std::fs::write(&path, b"broker:\n  sync: \xff").unwrap();
    let error = FileConfig::from_file(&path).unwrap_err();
    assert!(error.to_string().ends_with("c.yaml:2:9: not valid UTF-8 from here on"), "{error}");
}
