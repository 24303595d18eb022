//! What a server says of itself, and what it refuses to start with.

use crate::process::{Server, event, gauge, get, make_group, publish, to_desk, try_publish, weir_to_its_end, words_of};
use std::fs;
use std::process::Output;
use weir_proto::v1::PublishRequest;

/// As people write it.
const PLANES: &str = r#"
communication_patterns:
  internal_plane:
    - { channel: task_events, semantic: S4, key: "{tenant}:{agent_id}", retention_h: 24, replay: true, backpressure: depth_alert_10000 }
    - { channel: refund_events, semantic: S4, key: "{tenant}:{agent_id}", replay: true, retention_h: 24, dedup_on: [execution_id, final_state] }
  contract:
    id: { agent_id, task_id, message_id }
    ordering: same_task_ordered
    delivery: at_least_once + receiver_dedup
    resumption: stream_checkpoint + handle_query
  capability_plane:
    - { anything: [of, another, plane] }
"#;

fn health(server: &Server) -> Output {
    weir_to_its_end(&["health", "--http", &server.http])
}

#[tokio::test]
async fn a_server_is_alive_and_ready_until_it_stops_and_its_gauges_follow_what_happens() {
    let mut server = Server::start(&[]);
    for restart in [false, true] {
        if restart {
            assert_eq!(
                {
                    server.terminate();
                    server.ended()
                },
                Some(0)
            );
            assert_eq!(health(&server).status.code(), Some(1), "nobody is there");
            server.start_again();
        }
        assert_eq!((get(&server, "/healthz").0, get(&server, "/readyz").0), (200, 200));
        assert_eq!(get(&server, "/nothing-here").0, 404);
        let healthy = health(&server);
        assert!(healthy.status.success(), "{}", words_of(&healthy));
        assert!(String::from_utf8_lossy(&healthy.stdout).contains("ready"));
        assert_eq!((gauge(&server, "weir_serving"), gauge(&server, "weir_failed")), (Some(1), Some(0)));
        let series = "weir_group_depth{tenant=\"acme\",policy=\"task_events\",group=\"g\"}";
        if !restart {
            assert_eq!(gauge(&server, series), None, "no group, no series");
            make_group(&server, "g").await;
            assert_eq!(gauge(&server, series), Some(0));
            publish(&server, vec![event("t", "m")]).await;
        }
        assert_eq!(gauge(&server, series), Some(1));
    }
}

#[tokio::test]
async fn the_yaml_people_write_is_checked_and_served_as_it_stands() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("planes.yaml");
    fs::write(&file, PLANES).unwrap();
    let file = file.to_str().unwrap();
    let checked = weir_to_its_end(&["check-config", file]);
    let (out, aside) = (String::from_utf8(checked.stdout.clone()).unwrap(), words_of(&checked));
    assert!(checked.status.success(), "{out}{aside}");
    assert!(out.lines().any(|line| line.starts_with("refund_events")), "{out}");
    assert!(aside.contains("capability_plane"), "it says what it leaves alone: {aside}");

    let mut server = Server::start(&["--config", file]);
    for restart in [false, true] {
        if restart {
            server.crash_and_start();
        }
        let refund = event("t", &format!("m {restart}"));
        let refund = PublishRequest { policy: "refund_events".into(), ..to_desk(vec![refund]) };
        try_publish(&server, refund).await.unwrap();
        let policy = server.json(&["policy", "get", "refund_events"]);
        assert_eq!(policy["owned_by_file"], true, "{policy}");
    }
}

#[test]
fn all_faults_of_a_file_are_told_with_their_places_by_check_and_by_serve() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("faulty.yaml");
    fs::write(
        &file,
        PLANES.replace("S4, key", "S2, key").replace("retention_h: 24, dedup_on", "retenshun_h: 24, dedup_on"),
    )
    .unwrap();
    let path = file.to_str().unwrap();
    let data = folder.path().join("data");
    for arguments in [&["check-config", path][..], &["serve", "--config", path, "--data-dir", data.to_str().unwrap()]] {
        let refused = weir_to_its_end(arguments);
        let words = String::from_utf8(refused.stdout.clone()).unwrap() + &words_of(&refused);
        assert_eq!(refused.status.code(), Some(1), "{words}");
        for place in [":4:", ":5:", "semantic", "retenshun_h"] {
            assert!(words.contains(place), "{arguments:?} does not say {place}: {words}");
        }
    }
    assert!(!data.exists(), "a server that does not start leaves nothing behind");
}

#[test]
fn an_address_that_others_reach_is_refused_without_the_word_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    for port in ["--listen", "--http-listen"] {
        let other = if port == "--listen" { "--http-listen" } else { "--listen" };
        let data = data.to_str().unwrap();
        let refused = weir_to_its_end(&["serve", "--data-dir", data, port, "0.0.0.0:0", other, "127.0.0.1:0"]);
        let words = words_of(&refused);
        assert_eq!(refused.status.code(), Some(1), "{words}");
        assert!(words.contains("0.0.0.0:0") && words.contains("insecure"), "{words}");
    }
    assert!(!data.exists());
    let server = Server::start(&["--insecure"]);
    assert_eq!(get(&server, "/readyz").0, 200, "the word does no harm on loopback");
}
