//! Acceptance scenarios through gRPC, against the `weir` binary, before and after a kill and restart. Time is the test
//! clock's.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should say where")]

mod process;

use process::{Server, event, fetch, group, publish, session, settlement, task_request};
use std::path::Path;
use tonic::Code;
use tonic_types::StatusExt as _;
use weir_proto::test::test_clock_service_client::TestClockServiceClient;
use weir_proto::test::{AdvanceRequest, NowRequest};
use weir_proto::v1::channel_service_client::ChannelServiceClient;
use weir_proto::v1::execution_service_client::ExecutionServiceClient;
use weir_proto::v1::group_service_client::GroupServiceClient;
use weir_proto::v1::publish_result::Outcome;
use weir_proto::v1::publish_service_client::PublishServiceClient;
use weir_proto::v1::{self, SettleOutcome, begin_response, complete_response, settle_result};

const TENANT: &str = "acme";

/// Kills the server and starts it on the same folder, its clock where it was: the clock of a new process starts at wall
/// time, so it is moved on as far as the old one was ahead.
async fn crash(server: Server, folder: &Path) -> Server {
    let mut clock = TestClockServiceClient::new(server.wire());
    let before = clock.now(NowRequest::default()).await.unwrap().into_inner().now_unix_ms;
    server.kill();
    let server = Server::start(folder, &[]).await;
    let mut clock = TestClockServiceClient::new(server.wire());
    let after = clock.now(NowRequest::default()).await.unwrap().into_inner().now_unix_ms;
    clock.advance(AdvanceRequest { millis: before.saturating_sub(after) }).await.unwrap();
    server
}

async fn advance(server: &Server, millis: u64) {
    TestClockServiceClient::new(server.wire()).advance(AdvanceRequest { millis }).await.unwrap();
}

/// The session as it speaks between fetches: it says nothing of what it holds.
fn quiet(session: v1::Session) -> v1::Session {
    v1::Session { held: None, ..session }
}

async fn take(server: &Server, session: &v1::Session, max: u32, lease_ms: u64) -> Vec<v1::Delivery> {
    let request = v1::FetchRequest { lease_ms, ..fetch(session.clone(), max, 0) };
    server.consuming().fetch(request).await.unwrap().into_inner().deliveries
}

async fn settle(server: &Server, session: &v1::Session, settlement: v1::Settlement) -> settle_result::Result {
    let request = v1::SettleRequest { session: Some(quiet(session.clone())), settlements: vec![settlement] };
    let mut answer = server.consuming().settle(request).await.unwrap().into_inner();
    answer.results.remove(0).result.unwrap()
}

async fn begin(server: &Server, session: &v1::Session, delivery: &v1::Delivery) -> begin_response::Result {
    let request =
        v1::BeginRequest { session: Some(quiet(session.clone())), epoch: delivery.epoch, offset: delivery.offset };
    server.consuming().begin(request).await.unwrap().into_inner().result.unwrap()
}

async fn complete(
    server: &Server,
    session: &v1::Session,
    delivery: &v1::Delivery,
    execution: &str,
    token: u64,
) -> complete_response::Result {
    let request = v1::CompleteRequest {
        session: Some(quiet(session.clone())),
        epoch: delivery.epoch,
        offset: delivery.offset,
        tenant: TENANT.into(),
        execution_id: execution.into(),
        final_state: v1::FinalState::Completed.into(),
        artifact_ref: "receipt:1".into(),
        fencing_token: token,
        ..Default::default()
    };
    server.consuming().complete(request).await.unwrap().into_inner().result.unwrap()
}

async fn explain(server: &Server, execution: &str) -> v1::ExplainExecutionResponse {
    let request = v1::ExplainExecutionRequest { tenant: TENANT.into(), execution_id: execution.into() };
    ExecutionServiceClient::new(server.wire()).explain_execution(request).await.unwrap().into_inner()
}

async fn group_now(server: &Server, name: &str) -> v1::Group {
    let request = v1::GetGroupRequest { group: Some(group(name)) };
    GroupServiceClient::new(server.wire()).get_group(request).await.unwrap().into_inner().group.unwrap()
}

fn retry(delivery: &v1::Delivery, delay_ms: u64) -> v1::Settlement {
    v1::Settlement { delay_ms, ..settlement(delivery, SettleOutcome::Retry) }
}

#[tokio::test]
async fn s02_a_stale_lease_changes_nothing_before_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), &[]).await;
    server.make_group("g").await;
    publish(&server, vec![event("t1", "x1")]).await.unwrap();
    let (a, b) = (session(1, group("g")), session(2, group("g")));
    let b = v1::Session { session_timeout_ms: 600_000, ..b };
    let la = take(&server, &a, 1, 10_000).await.remove(0);
    advance(&server, 11_000).await;
    let lb = take(&server, &b, 1, 0).await.remove(0);
    assert_eq!((la.attempt, lb.attempt), (1, 2));
    assert!(matches!(settle(&server, &b, retry(&lb, 60_000)).await, settle_result::Result::Ok(_)));
    for restart in [false, true] {
        if restart {
            server = crash(server, folder.path()).await;
        }
        for stale in [retry(&la, 1), settlement(&la, SettleOutcome::Done), settlement(&la, SettleOutcome::Release)] {
            let answer = settle(&server, &a, stale).await;
            assert!(matches!(answer, settle_result::Result::LeaseLost(_)), "{answer:?}");
        }
        let now = group_now(&server, "g").await;
        assert_eq!((now.depth, now.delayed), (1, 1));
    }
    advance(&server, 59_000).await;
    assert!(take(&server, &b, 1, 0).await.is_empty(), "the delay is unchanged");
    advance(&server, 1_000).await;
    let third = take(&server, &b, 1, 0).await.remove(0);
    assert_eq!(third.attempt, 3);
    let done = settlement(&third, SettleOutcome::Done);
    assert!(matches!(settle(&server, &b, done.clone()).await, settle_result::Result::Ok(_)));
    server = crash(server, folder.path()).await;
    let stale = settlement(&la, SettleOutcome::Done);
    assert!(matches!(settle(&server, &a, stale).await, settle_result::Result::LeaseLost(_)));
    assert!(matches!(settle(&server, &b, done).await, settle_result::Result::AlreadySettled(_)));
    assert_eq!(group_now(&server, "g").await.depth, 0);
    server.kill();
}

/// Names of S-14 and whether they may be a tenant or agent, and whether they may be an opaque name.
fn odd_names() -> Vec<(String, bool, bool)> {
    let mut names: Vec<(String, bool, bool)> = [
        ("a:b", false, true),
        (":b", false, true),
        ("a:", false, true),
        ("", false, false),
        ("*", false, true),
        (">", false, true),
        ("a.b", true, true),
        ("a/b", false, true),
        ("../x", false, true),
        ("a b", false, true),
        ("%2F", false, true),
        ("Bot", true, true),
        ("bot", true, true),
        ("caf\u{e9}", false, true),
        ("cafe\u{301}", false, true),
        ("a\0b", false, false),
        ("a\nb", false, false),
        ("~mine", false, true),
    ]
    .into_iter()
    .map(|(name, agent, opaque)| (name.to_owned(), agent, opaque))
    .collect();
    names.push(("n".repeat(128), true, true));
    names.push(("n".repeat(255), false, true));
    names.push(("n".repeat(256), false, true));
    names.push(("n".repeat(10 * 1024), false, false));
    names
}

/// The verdict of a call: fine, or refused as an invalid argument that names a field and a rule.
fn verdict<T: std::fmt::Debug>(answer: Result<T, tonic::Status>, allowed: bool, what: &str) -> bool {
    match answer {
        Ok(_) => {
            assert!(allowed, "{what} was taken");
            true
        }
        Err(status) if status.code() == Code::NotFound => {
            assert!(allowed, "{what} should be refused as an argument, not looked up");
            true
        }
        Err(status) => {
            assert!(!allowed, "{what}: {status:?}");
            assert_eq!(status.code(), Code::InvalidArgument, "{what}: {status:?}");
            let violations = status.get_details_bad_request().unwrap().field_violations;
            assert!(!violations[0].field.is_empty() && !violations[0].description.is_empty(), "{what}");
            false
        }
    }
}

#[tokio::test]
async fn s14_names_are_opaque_and_one_verdict_holds_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), &[]).await;
    server.make_group("all").await;
    let mut stored = Vec::new();
    for (name, as_agent, as_opaque) in odd_names() {
        let shown: String = name.chars().take(20).collect();
        let mut channels = ChannelServiceClient::new(server.wire());
        let mut publishing = PublishServiceClient::new(server.wire());
        for (tenant, agent) in [(name.as_str(), "desk"), (TENANT, name.as_str())] {
            // An empty agent breaks the policy's template, an empty tenant the rule for tenants: refused both.
            let request = v1::PublishRequest {
                policy: "task_events".into(),
                tenant: tenant.into(),
                agent_id: agent.into(),
                messages: vec![event("t", "m")],
            };
            verdict(publishing.publish(request).await, as_agent, &format!("publish to {shown:?}"));
            let request =
                v1::GetChannelRequest { policy: "task_events".into(), tenant: tenant.into(), agent_id: agent.into() };
            verdict(channels.get_channel(request).await, as_agent, &format!("get channel {shown:?}"));
        }
        let message = v1::Message { execution_id: "x".into(), ..event(&name, "m") };
        if verdict(publish(&server, vec![message]).await, as_opaque, &format!("task {shown:?}")) {
            stored.push(name.clone());
        }
        // An empty execution id means that the message has none.
        let message = v1::Message { execution_id: name.clone(), ..event("executions", &format!("e {}", stored.len())) };
        verdict(publish(&server, vec![message]).await, as_opaque || name.is_empty(), &format!("execution {shown:?}"));
        let request = v1::GetExecutionRequest { tenant: TENANT.into(), execution_id: name.clone() };
        let found = ExecutionServiceClient::new(server.wire()).get_execution(request).await;
        verdict(found, as_opaque, &format!("get execution {shown:?}"));
        let mut groups = GroupServiceClient::new(server.wire());
        let request = v1::CreateGroupRequest { group: Some(group(&name)), settings: None };
        verdict(groups.create_group(request).await, as_opaque, &format!("group {shown:?}"));
        let member = v1::Session { member: name.clone(), ..session(77, group("all")) };
        let beat = v1::HeartbeatRequest { session: Some(member.clone()), held: None };
        let joined = verdict(server.consuming().heartbeat(beat).await, as_opaque, &format!("member {shown:?}"));
        verdict(server.consuming().fetch(fetch(member.clone(), 1, 0)).await, as_opaque, &format!("fetch {shown:?}"));
        if joined {
            let leave = v1::LeaveRequest { session: Some(quiet(member)) };
            server.consuming().leave(leave).await.unwrap();
        }
    }
    for restart in [false, true] {
        if restart {
            server = crash(server, folder.path()).await;
        }
        let name = if restart { "after" } else { "before" };
        server.make_group(name).await;
        let me = session(if restart { 3 } else { 4 }, group(name));
        let mut seen = Vec::new();
        loop {
            let got = take(&server, &me, 100, 0).await;
            if got.is_empty() {
                break;
            }
            for delivery in got {
                let message = delivery.message.clone().unwrap();
                if message.execution_id == "x" {
                    seen.push(message.task_id);
                }
                settle(&server, &me, settlement(&delivery, SettleOutcome::Done)).await;
            }
        }
        seen.sort();
        let mut expected = stored.clone();
        expected.sort();
        assert_eq!(seen, expected, "each accepted name comes back byte for byte, once; no name is a pattern");
    }
    let inside = std::fs::read_dir(folder.path()).unwrap().count();
    assert!(inside <= 4, "no name became a file");
    server.kill();
}

#[tokio::test]
async fn s15_what_is_accepted_can_be_fetched() {
    const MIB: usize = 1024 * 1024;
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), &[]).await;
    let policy = v1::Policy {
        name: "large".into(),
        payload_bytes_max: 15 * MIB as u64,
        ..ChannelServiceClient::new(server.wire())
            .get_policy(v1::GetPolicyRequest { name: "events".into() })
            .await
            .unwrap()
            .into_inner()
            .policy
            .unwrap()
    };
    ChannelServiceClient::new(server.wire()).put_policy(v1::PutPolicyRequest { policy: Some(policy) }).await.unwrap();
    let of = |name: &str| v1::GroupRef { policy: "large".into(), ..group(name) };
    let request = v1::CreateGroupRequest { group: Some(of("g")), settings: None };
    GroupServiceClient::new(server.wire()).create_group(request).await.unwrap();
    let send = async |server: &Server, task: &str, bytes: usize, n: usize| {
        let messages = (0..n)
            .map(|i| v1::Message { payload: vec![7; bytes].into(), ..event(task, &format!("{bytes}-{i}")) })
            .collect();
        let request =
            v1::PublishRequest { policy: "large".into(), tenant: TENANT.into(), agent_id: "desk".into(), messages };
        PublishServiceClient::new(server.wire()).publish(request).await
    };
    let sizes = [0, 1, 4 * MIB - 1, 4 * MIB + 1, 15 * MIB];
    for (i, size) in sizes.into_iter().enumerate() {
        send(&server, &format!("alone {i}"), size, 1).await.unwrap();
    }
    let over = send(&server, "over", 15 * MIB + 1, 1).await.unwrap_err();
    assert_eq!(over.code(), Code::InvalidArgument, "{over:?}");
    assert!(over.message().contains(&(15 * MIB).to_string()), "the limit is named: {over:?}");
    for i in 0..10 {
        send(&server, &format!("ten {i}"), MIB, 1).await.unwrap();
    }
    for restart in [false, true] {
        if restart {
            server = crash(server, folder.path()).await;
        }
        let name = if restart { "after" } else { "g" };
        let request = v1::CreateGroupRequest { group: Some(of(name)), settings: None };
        GroupServiceClient::new(server.wire()).create_group(request).await.unwrap();
        let me = session(if restart { 6 } else { 5 }, of(name));
        let mut got = Vec::new();
        let mut client = server.consuming().max_decoding_message_size(32 * MIB);
        loop {
            let answer = client.fetch(fetch(me.clone(), 10, 0)).await.unwrap().into_inner();
            if answer.deliveries.is_empty() {
                break;
            }
            for delivery in answer.deliveries {
                got.push(delivery.message.clone().unwrap().payload.len());
                settle(&server, &me, settlement(&delivery, SettleOutcome::Done)).await;
            }
        }
        got.sort_unstable();
        let mut expected: Vec<_> = sizes.into_iter().chain([MIB; 10]).collect();
        expected.sort_unstable();
        assert_eq!(got, expected, "an answer is cut by bytes, not failed");
    }
    // A report that is too long can be finished by a shorter one.
    publish(&server, vec![task_request("t", "m", "x")]).await.unwrap();
    let report = |bytes: usize| v1::Message {
        r#type: "task.result".into(),
        execution_id: "x".into(),
        final_state: v1::FinalState::Completed.into(),
        payload: vec![1; bytes].into(),
        ..event("t", "report")
    };
    assert_eq!(publish(&server, vec![report(MIB + 1)]).await.unwrap_err().code(), Code::InvalidArgument);
    publish(&server, vec![report(10)]).await.unwrap();
    assert_eq!(explain(&server, "x").await.execution.unwrap().state(), v1::ExecutionState::Completed);
    server.kill();
}

/// A worker begins x1 of task t1 and dies; t2 goes on.
async fn dead_worker(server: &Server) -> (v1::Session, v1::Delivery, u64) {
    let settings = v1::GroupSettings { executes: Some(true), ..Default::default() };
    let request = v1::CreateGroupRequest { group: Some(group("workers")), settings: Some(settings) };
    GroupServiceClient::new(server.wire()).create_group(request).await.unwrap();
    publish(server, vec![task_request("t1", "m1", "x1"), event("t1", "m2"), event("t2", "n1")]).await.unwrap();
    let dead = session(9, group("workers"));
    let delivery = take(server, &dead, 1, 0).await.remove(0);
    assert_eq!(delivery.message.clone().unwrap().task_id, "t1");
    let begin_response::Result::Granted(granted) = begin(server, &dead, &delivery).await else {
        panic!("not granted");
    };
    (dead, delivery, granted.fencing_token)
}

#[tokio::test]
async fn an_execution_whose_worker_died_after_begin_is_unknown_until_its_late_result() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), &[]).await;
    let (dead, delivery, token) = dead_worker(&server).await;
    for restart in [false, true] {
        if restart {
            server = crash(server, folder.path()).await;
        }
        advance(&server, 31_000).await;
        let story = explain(&server, "x1").await;
        assert_eq!(story.verdict(), v1::Verdict::EffectUnknown, "{story:?}");
        let execution = story.execution.clone().unwrap();
        assert_eq!(execution.state(), v1::ExecutionState::Unknown);
        assert_eq!(execution.deliveries.len(), 1);
        assert!(story.story.iter().any(|line| line.text.contains("member 9")), "{story:?}");
        assert_eq!(group_now(&server, "workers").await.held, 1);
    }
    let next = v1::Session { session_timeout_ms: 600_000, ..session(10, group("workers")) };
    let got = take(&server, &next, 10, 0).await;
    assert_eq!(got.len(), 1, "its task is held, the other goes on");
    assert_eq!(got[0].message.clone().unwrap().task_id, "t2");
    let complete_response::Result::Accepted(accepted) = complete(&server, &dead, &delivery, "x1", token).await else {
        panic!("the late result of the standing begin counts");
    };
    assert!(accepted.late);
    let story = explain(&server, "x1").await;
    assert_eq!(story.verdict(), v1::Verdict::EffectOnce, "{story:?}");
    let held = v1::Held { epochs: got.iter().map(|d| d.epoch).collect() };
    let next = v1::Session { held: Some(held), ..next };
    let rest = take(&server, &next, 10, 0).await;
    assert_eq!(rest[0].message.clone().unwrap().message_id, "m2", "its task goes on behind the settled request");
    server.kill();
}

#[tokio::test]
async fn not_executed_withdraws_the_begin_and_fences_its_holder() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), &[]).await;
    let (dead, delivery, token) = dead_worker(&server).await;
    advance(&server, 31_000).await;
    let request = v1::ResolveExecutionRequest {
        tenant: TENANT.into(),
        execution_id: "x1".into(),
        resolution: v1::Resolution::NotExecuted.into(),
        evidence: "the provider knows nothing of it".into(),
        by: "ops".into(),
        ..Default::default()
    };
    ExecutionServiceClient::new(server.wire()).resolve_execution(request).await.unwrap();
    server = crash(server, folder.path()).await;
    let next = v1::Session { session_timeout_ms: 600_000, ..session(10, group("workers")) };
    let mut got = take(&server, &next, 10, 0).await;
    let held = v1::Held { epochs: got.iter().map(|d| d.epoch).collect() };
    got.extend(take(&server, &v1::Session { held: Some(held), ..next.clone() }, 10, 0).await);
    let again = got.iter().find(|d| d.message.as_ref().unwrap().message_id == "m1").expect("a new attempt");
    assert_eq!(again.attempt, 2);
    let stale = complete(&server, &dead, &delivery, "x1", token).await;
    assert!(matches!(stale, complete_response::Result::Fenced(_)), "{stale:?}");
    let begin_response::Result::Granted(granted) = begin(&server, &next, again).await else { panic!("not granted") };
    assert!(granted.fencing_token > token);
    server.kill();
}

#[tokio::test]
async fn s07_two_concurrent_publishes_of_one_pair_store_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), &[]).await;
    for round in 0..20 {
        let report = |id: &str| v1::Message {
            r#type: "task.result".into(),
            execution_id: format!("x{round}"),
            final_state: v1::FinalState::Completed.into(),
            ..event("t", &format!("{id} {round}"))
        };
        let (a, b) = tokio::join!(publish(&server, vec![report("a")]), publish(&server, vec![report("b")]));
        let place = |answer: Result<v1::PublishResponse, tonic::Status>| match answer.unwrap().results.remove(0).outcome
        {
            Some(Outcome::Stored(stored)) => (stored.offset, true),
            Some(Outcome::Duplicate(duplicate)) => (duplicate.offset, false),
            None => panic!("no outcome"),
        };
        let (a, b) = (place(a), place(b));
        assert_eq!(a.0, b.0, "both answers name its place");
        assert!(a.1 != b.1, "one is stored, one is a duplicate");
        if round % 7 == 6 {
            server = crash(server, folder.path()).await;
            let again = place(publish(&server, vec![report("c")]).await);
            assert_eq!(again, (a.0, false), "the same after a restart");
        }
    }
    server.kill();
}
