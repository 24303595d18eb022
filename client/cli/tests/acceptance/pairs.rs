//! The pair <execution_id, final_state>, through gRPC.

use crate::process::{
    Member, POLICY, Placed, Server, TENANT, event, execution, group, group_now, make_group, message, placed, publish,
    put_policy, report, to_desk, try_make_group, try_publish,
};
use Placed::{Duplicate, Stored};
use tonic::Code;
use tonic_types::StatusExt as _;
use weir_proto::v1::publish_result::Outcome;
use weir_proto::v1::{self, DuplicateKind, ExecutionState, FinalState, GroupSettings};

/// An event of an execution that goes on.
fn running(task: &str, id: &str, execution: &str) -> v1::Message {
    v1::Message { execution_id: execution.into(), ..event(task, id) }
}

fn with_payload(message: v1::Message, payload: &'static str) -> v1::Message {
    v1::Message { payload: payload.as_bytes().into(), ..message }
}

/// The nine publishes of the scenario and where each has to lie.
fn nine(task: &str) -> Vec<(v1::Message, Placed)> {
    let [x1, x2] = [format!("{task} x1"), format!("{task} x2")];
    let ids: Vec<String> = (0..9).map(|n| format!("m{n}")).collect();
    vec![
        (running(task, &ids[0], &x1), Stored(0)),
        (running(task, &ids[1], &x1), Stored(1)),
        (running(task, &ids[2], &x1), Stored(2)),
        (report(task, &ids[3], &x1, FinalState::Failed), Stored(3)),
        (report(task, &ids[4], &x1, FinalState::Failed), Duplicate(3)),
        (running(task, &ids[5], &x2), Stored(4)),
        (with_payload(report(task, &ids[6], &x2, FinalState::Completed), "first"), Stored(5)),
        (report(task, &ids[7], &x1, FinalState::Failed), Duplicate(3)),
        (with_payload(report(task, &ids[8], &x2, FinalState::Completed), "second"), Duplicate(5)),
    ]
}

async fn the_pair_is_the_identity(restarts: bool) {
    let mut server = Server::start(&[]);
    let g = make_group(&server, "g").await;
    for (n, (message, place)) in nine("t").into_iter().enumerate() {
        let before = group_now(&server, &g).await.depth;
        assert_eq!(publish(&server, vec![message]).await, [place], "the {n}. publish");
        let grown = u64::from(matches!(place, Stored(_)));
        assert_eq!(group_now(&server, &g).await.depth, before + grown, "the {n}. publish");
        if restarts {
            server.crash_and_start();
        }
    }
    let read = Member::new(&server, &g, "reader").drain().await;
    let ids: Vec<_> = read.iter().map(|(message, _)| message.message_id.as_str()).collect();
    assert_eq!(ids, ["m0", "m1", "m2", "m3", "m5", "m6"]);
    assert_eq!(read[5].0.payload, "first", "the first payload stays");
    if restarts {
        server.crash_and_start();
    }
    // After all is settled, from another task, from another agent: the same answer, which names the first one.
    for (task, agent) in [("t", "desk"), ("another task", "desk"), ("t", "another-agent")] {
        let agent_id = agent.to_owned();
        let late = with_payload(report(task, &format!("late {task} {agent}"), "t x2", FinalState::Completed), "third");
        let answer = try_publish(&server, v1::PublishRequest { agent_id, ..to_desk(vec![late]) }).await.unwrap();
        let Some(Outcome::Duplicate(first)) = &answer.results[0].outcome else { panic!("{answer:?}") };
        assert_eq!((first.policy.as_str(), first.tenant.as_str(), first.agent_id.as_str()), (POLICY, TENANT, "desk"));
        assert_eq!((first.offset, first.message_id.as_str(), first.retained), (5, "m6", true));
        assert_eq!((first.kind(), first.payload_matches), (DuplicateKind::ExecutionPair, false));
        assert_eq!(first.execution.as_ref().unwrap().state(), ExecutionState::Completed);
    }
    assert_eq!(group_now(&server, &g).await.depth, 0);
    let (x1, x2) = (execution(&server, "t x1").await, execution(&server, "t x2").await);
    assert_eq!((x1.state(), x1.duplicates, x1.payload_mismatches), (ExecutionState::Failed, 2, 0));
    assert_eq!((x2.state(), x2.duplicates, x2.payload_mismatches), (ExecutionState::Completed, 4, 4));
    // Another tenant's execution of that name is another execution.
    let theirs =
        v1::PublishRequest { tenant: "other".into(), ..to_desk(vec![report("t", "m", "t x2", FinalState::Completed)]) };
    assert_eq!(placed(try_publish(&server, theirs).await.unwrap()), [Stored(0)]);
}

#[tokio::test]
async fn s08_the_pair_is_the_identity_nothing_coarser_or_finer() {
    the_pair_is_the_identity(false).await;
}

#[tokio::test]
async fn s08_the_pair_is_the_identity_with_a_kill_after_each_publish() {
    the_pair_is_the_identity(true).await;
}

#[tokio::test]
async fn s07_a_publish_refused_for_depth_leaves_no_mark() {
    let mut server = Server::start(&[]);
    let policy = v1::Policy { name: "narrow".into(), depth_alert: 1, max_depth: 1, ..Default::default() };
    put_policy(&server, policy).await;
    let narrow = |message| v1::PublishRequest { policy: "narrow".into(), ..to_desk(vec![message]) };
    let g = v1::GroupRef { policy: "narrow".into(), ..group("g") };
    try_make_group(&server, g.clone(), GroupSettings::default()).await.unwrap();
    let completed = |id: &str, execution: &str| narrow(report("t", id, execution, FinalState::Completed));
    assert_eq!(placed(try_publish(&server, completed("m1", "x1")).await.unwrap()), [Stored(0)]);
    for restart in [false, true] {
        if restart {
            server.crash_and_start();
        }
        let full = try_publish(&server, completed("m2", "x2")).await.unwrap_err();
        assert_eq!(full.code(), Code::ResourceExhausted, "{full:?}");
        assert_eq!(full.get_details_error_info().unwrap().reason, "DEPTH_EXCEEDED");
        assert!(full.get_details_retry_info().unwrap().retry_delay.is_some(), "{full:?}");
        assert!(full.metadata().contains_key("grpc-retry-pushback-ms"), "{full:?}");
        let repeat = try_publish(&server, completed("m3", "x1")).await.unwrap();
        assert_eq!(placed(repeat), [Duplicate(0)], "a repeat is answered also when full");
    }
    let mut member = Member::new(&server, &g, "m");
    let first = member.fetch(1, 1_000).await.remove(0);
    member.done(&first).await;
    assert_eq!(placed(try_publish(&server, completed("m2", "x2")).await.unwrap()), [Stored(1)]);
    let second = member.fetch(1, 1_000).await.remove(0);
    assert_eq!(message(&second).execution_id, "x2");
    member.done(&second).await;
    assert_eq!(placed(try_publish(&server, completed("m4", "x2")).await.unwrap()), [Duplicate(1)]);
}
