//! The `weir` binary as a process: ports, signals, exit codes, and what survives it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should say where")]

mod process;

use process::{Server, event, fetch, group, publish, session, task_request};
use std::time::Duration;
use weir_proto::v1::{self, begin_response};

#[tokio::test]
async fn a_port_that_is_taken_ends_the_start_before_the_data_folder_is_touched() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let (code, words) = Server::refused(&data, &["--listen", &address]);
    assert_eq!(code, 1, "{words}");
    assert!(words.contains(&address), "{words}");
    assert!(!data.exists());
}

#[tokio::test]
async fn what_was_confirmed_survives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]).await;
    server.make_group("workers").await;
    publish(&server, vec![event("t1", "m1"), event("t2", "m2")]).await.unwrap();
    server.kill();

    let server = Server::start(folder.path(), &[]).await;
    let fetched = server.consuming().fetch(fetch(session(1, group("workers")), 10, 10_000)).await.unwrap().into_inner();
    assert_eq!(fetched.deliveries.len(), 2);
    let repeat = publish(&server, vec![event("t1", "m1")]).await.unwrap();
    assert!(matches!(repeat.results[0].outcome, Some(v1::publish_result::Outcome::Duplicate(_))), "{repeat:?}");
    server.kill();
}

#[tokio::test]
async fn s21_a_drain_ends_with_its_limit_although_a_begun_lease_is_out_and_nothing_is_parked() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--drain-limit-ms", "300"]).await;
    server.make_group("workers").await;
    publish(&server, vec![task_request("t1", "m1", "x1")]).await.unwrap();
    let me = session(1, group("workers"));
    let mut client = server.consuming();
    let fetched = client.fetch(fetch(me.clone(), 1, 10_000)).await.unwrap().into_inner();
    let (epoch, offset) = (fetched.deliveries[0].epoch, fetched.deliveries[0].offset);
    let mine = v1::Session { held: None, ..me };
    let begin = v1::BeginRequest { session: Some(mine.clone()), epoch, offset };
    let begun = client.begin(begin).await.unwrap().into_inner().result;
    let Some(begin_response::Result::Granted(granted)) = begun else { panic!("{begun:?}") };
    server.signal("TERM");
    let ended = tokio::time::timeout(Duration::from_millis(300) + Duration::from_secs(1), server.ended());
    assert_eq!(ended.await.expect("the process outlived its drain limit by more than a second"), 0);

    let server = Server::start(folder.path(), &[]).await;
    let complete = v1::CompleteRequest {
        session: Some(mine),
        epoch,
        offset,
        execution_id: "x1".into(),
        final_state: v1::FinalState::Completed.into(),
        artifact_ref: "s3://receipts/1".into(),
        fencing_token: granted.fencing_token,
        ..Default::default()
    };
    let completed = server.consuming().complete(complete).await.unwrap().into_inner();
    assert!(matches!(completed.result, Some(v1::complete_response::Result::Accepted(_))), "{completed:?}");
    server.kill();
}

#[tokio::test]
async fn a_second_signal_ends_a_drain_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--drain-limit-ms", "60000"]).await;
    server.make_group("workers").await;
    publish(&server, vec![event("t1", "m1")]).await.unwrap();
    server.consuming().fetch(fetch(session(1, group("workers")), 1, 10_000)).await.unwrap();
    server.signal("INT");
    server.until("weir_serving 0").await;
    server.signal("INT");
    assert_eq!(server.ended().await, 130);
}
