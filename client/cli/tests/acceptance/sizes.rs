//! Payloads from nothing to the limit: what is accepted comes to everyone who asks.

use crate::process::{
    Member, POLICY, Server, TENANT, event, execution, group, make_group, message, publish, put_policy, report, request,
    to_desk, try_make_group, try_publish, words_of,
};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tonic::Code;
use weir_proto::v1::{self, ExecutionState, FinalState, GroupSettings};

const MIB: usize = 1 << 20;
/// The largest limit a policy may have.
const LARGEST: usize = 15 * MIB;

/// A file for `weirctl pub` with a payload of each size, each in a task of its own.
fn file_of(folder: &Path, sizes: &[usize]) -> PathBuf {
    let mut lines = String::new();
    for (n, size) in sizes.iter().enumerate() {
        let payload = base64_of(*size);
        let line = format!(
            r#"{{"channel":"acme:desk","agent_id":"desk","task_id":"t{n}","message_id":"{n} of {size}","type":"event","payload_base64":"{payload}"}}"#
        );
        writeln!(lines, "{line}").unwrap();
    }
    let file = folder.join(format!("{} lines", sizes.len()));
    fs::write(&file, lines).unwrap();
    file
}

/// So many zero bytes.
fn base64_of(size: usize) -> String {
    let padding = (3 - size % 3) % 3;
    let mut text = "A".repeat(size.div_ceil(3) * 4 - padding);
    text.push_str(&"=".repeat(padding));
    text
}

/// The sizes that a new group of the policy is handed through `weirctl sub`.
fn sizes_read(server: &Server, policy: &str, group: &str) -> Vec<usize> {
    let words = ["sub", "--policy", policy, "--group", group, "--scope", TENANT, "--idle-exit", "0s"];
    let size = |line: &Value| {
        let text = line["payload_base64"].as_str().unwrap();
        text.len() / 4 * 3 - text.bytes().filter(|byte| *byte == b'=').count()
    };
    let mut sizes: Vec<_> = server.lines(&words).iter().map(size).collect();
    sizes.sort_unstable();
    sizes
}

#[test]
fn s15_a_payload_over_the_limit_is_refused_at_once_and_nothing_else_suffers() {
    let mut server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let file = file_of(folder.path(), &[0, 1, MIB - 1, MIB, MIB + 1, 2]);
    let begun = Instant::now();
    let output = server.weirctl(&["pub", "--policy", POLICY, "--file", file.to_str().unwrap()]);
    assert!(begun.elapsed() < Duration::from_secs(5), "it is not tried again: {:?}", begun.elapsed());
    assert_eq!(output.status.code(), Some(1));
    let (counts, words) = (String::from_utf8(output.stdout.clone()).unwrap(), words_of(&output));
    assert_eq!(counts.trim(), r#"{"stored":5,"duplicates":0,"rejected":1}"#, "{words}");
    assert!(words.contains("line 5") && words.contains(&MIB.to_string()), "line and limit are named: {words}");
    assert!(words.contains("payload"), "and so is the field: {words}");
    assert_eq!(sizes_read(&server, POLICY, "before"), [0, 1, 2, MIB - 1, MIB]);
    server.crash_and_start();
    assert_eq!(sizes_read(&server, POLICY, "after"), [0, 1, 2, MIB - 1, MIB]);
}

async fn with_large_payloads() -> Server {
    let server = Server::start(&[]);
    let policy = v1::Policy { name: "large".into(), payload_bytes_max: LARGEST as u64, ..Default::default() };
    put_policy(&server, policy).await;
    server
}

fn large(task: &str, id: &str, size: usize) -> v1::PublishRequest {
    let message = v1::Message { payload: vec![0; size].into(), ..event(task, id) };
    v1::PublishRequest { policy: "large".into(), ..to_desk(vec![message]) }
}

#[tokio::test]
async fn s15_the_largest_payloads_reach_every_client_alone_and_together() {
    let mut server = with_large_payloads().await;
    let folder = tempfile::tempdir().unwrap();
    let mut sizes = [[MIB; 10].as_slice(), &[4 * MIB - 1, 4 * MIB, 4 * MIB + 1, LARGEST]].concat();
    let file = file_of(folder.path(), &sizes);
    let mut counts = server.lines(&["pub", "--policy", "large", "--file", file.to_str().unwrap()]);
    assert_eq!(counts.pop().unwrap()["stored"], sizes.len());
    let over = try_publish(&server, large("t", "over", LARGEST + 1)).await.unwrap_err();
    assert_eq!(over.code(), Code::InvalidArgument, "{over:?}");
    assert!(over.message().contains(&LARGEST.to_string()), "{over:?}");
    sizes.sort_unstable();
    for restart in [false, true] {
        if restart {
            server.crash_and_start();
        }
        assert_eq!(sizes_read(&server, "large", &format!("weirctl {restart}")), sizes);
        let g = v1::GroupRef { policy: "large".into(), ..group(&format!("raw {restart}")) };
        try_make_group(&server, g.clone(), GroupSettings::default()).await.unwrap();
        let read = Member::new(&server, &g, "raw").drain().await;
        let mut read: Vec<_> = read.iter().map(|(message, _)| message.payload.len()).collect();
        read.sort_unstable();
        assert_eq!(read, sizes);
    }
}

/// Ordinary gRPC clients take answers of up to 4 MiB. What they ask without naming a size has to fit.
async fn comes_to_an_ordinary_client(server: &Server, policy: &str, messages: u64) {
    let g = v1::GroupRef { policy: policy.into(), ..group("ordinary") };
    try_make_group(server, g.clone(), GroupSettings::default()).await.unwrap();
    let mut member = Member::new(server, &g, "ordinary");
    let mut stub = member.stub();
    let mut came = 0;
    while came < messages {
        let answer = stub.fetch(member.asking(1000, 1_000)).await.expect("the answer fits an ordinary client");
        let deliveries = answer.into_inner().deliveries;
        assert!(!deliveries.is_empty(), "{came} of {messages}");
        for delivery in &deliveries {
            member.done(delivery).await;
        }
        came += deliveries.len() as u64;
    }
}

#[tokio::test]
async fn s15_ten_of_one_mebibyte_come_to_a_client_with_default_settings() {
    let server = Server::start(&[]);
    for n in 0..10 {
        let message = v1::Message { payload: vec![0; MIB].into(), ..event(&format!("t{n}"), "m") };
        publish(&server, vec![message]).await;
    }
    comes_to_an_ordinary_client(&server, POLICY, 10).await;
}

#[tokio::test]
async fn s15_a_thousand_of_four_kibibytes_come_to_a_client_with_default_settings() {
    let server = Server::start(&[]);
    for batch in 0..4 {
        let of = |n: u32| v1::Message { payload: vec![0; 4160].into(), ..event(&format!("t{n}"), "m") };
        publish(&server, (batch * 300..batch * 300 + 300).map(of).collect()).await;
    }
    comes_to_an_ordinary_client(&server, POLICY, 1200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s15_large_payloads_delay_other_tasks_by_less_than_a_second() {
    let server = with_large_payloads().await;
    let g = make_group(&server, "g").await;
    let mut member = Member::new(&server, &g, "m");
    let requests: Vec<_> = (0..8).map(|n| large("large", &format!("m{n}"), LARGEST)).collect();
    let mut sending = tokio::spawn({
        let wire = server.wire();
        async move {
            let mut stub =
                v1::publish_service_client::PublishServiceClient::new(wire).max_encoding_message_size(32 << 20);
            for request in requests {
                stub.publish(request).await.unwrap();
            }
        }
    });
    let mut rounds = 0;
    while !sending.is_finished() || rounds == 0 {
        let begun = Instant::now();
        publish(&server, vec![event("small", &format!("m{rounds}"))]).await;
        let delivery = member.fetch(1, 1_000).await.remove(0);
        member.done(&delivery).await;
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
        rounds += 1;
    }
    (&mut sending).await.unwrap();
}

#[tokio::test]
async fn s15_an_execution_whose_report_was_too_large_is_finished_by_a_shorter_one() {
    let mut server = Server::start(&[]);
    publish(&server, vec![request("t", "m", "x")]).await;
    let of =
        |size: usize| v1::Message { payload: vec![0; size].into(), ..report("t", "r", "x", FinalState::Completed) };
    for restart in [false, true] {
        if restart {
            server.crash_and_start();
        }
        let refused = try_publish(&server, to_desk(vec![of(MIB + 1)])).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
        assert_eq!(execution(&server, "x").await.state(), ExecutionState::Requested);
    }
    publish(&server, vec![of(MIB)]).await;
    assert_eq!(execution(&server, "x").await.state(), ExecutionState::Completed);
    let g = make_group(&server, "g").await;
    let read = Member::new(&server, &g, "m").drain().await;
    assert_eq!(read.len(), 2);
    assert_eq!(message(&read[1].1).payload.len(), MIB);
}
