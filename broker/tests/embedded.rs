//! weir as a library: open, publish, consume, begin, complete, reopen, without a socket.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use prost::Message as _;
use std::path::Path;
use std::sync::Arc;
use weir_broker::clock::ManualClock;
use weir_broker::model::policy::{ChannelPolicy, KeyTemplate};
use weir_broker::model::{
    BeginResult, ChannelRef, Complete, CompleteResult, Delivery, ExecutionState, FetchLimits, FinalState, GroupRef,
    GroupSpec, LeaseRef, Outcome, Publish, PublishResult, Reason, Selector, SessionId, SessionRef, Settle,
    SettleResult, Start, UnixMillis, Verdict,
};
use weir_broker::{Broker, Health};
use weir_proto::v1::Message;

fn channel() -> ChannelRef {
    ChannelRef { policy: "task_events".to_owned(), tenant: "acme".to_owned(), agent: "desk".to_owned() }
}

fn group() -> GroupRef {
    GroupRef { scope: "acme".to_owned(), policy: "task_events".to_owned(), name: "g".to_owned() }
}

fn session(id: u128) -> SessionRef {
    SessionRef {
        id: SessionId(id),
        group: group(),
        member: format!("member-{id}"),
        instance: String::new(),
        timeout_ms: 10_000,
        held: None,
    }
}

fn message(task: &str, id: &str) -> Message {
    Message {
        message_id: id.to_owned(),
        task_id: task.to_owned(),
        agent_id: "desk".to_owned(),
        r#type: "event".to_owned(),
        payload: id.as_bytes().to_vec().into(),
        ..Message::default()
    }
}

fn request(task: &str, execution: &str) -> Message {
    Message {
        execution_id: execution.to_owned(),
        r#type: "task.request".to_owned(),
        effect: 3,
        ..message(task, &format!("request {execution}"))
    }
}

async fn publish(broker: &Broker, messages: &[Message]) -> Vec<PublishResult> {
    let messages = messages.iter().map(|m| m.encode_to_vec().into()).collect();
    broker.publish(Publish { channel: channel(), messages }).await.unwrap().results
}

async fn create_group(broker: &Broker) {
    let spec = GroupSpec {
        name: group(),
        selector: Selector::Tenant("acme".to_owned()),
        start: Start::Earliest,
        executes: true,
        skip_if_final: false,
        pressure: true,
        window: 0,
        max_attempts: 5,
    };
    broker.create_group(spec).await.unwrap();
}

async fn fetch(broker: &Broker, session: &SessionRef, max: u32) -> Vec<Delivery> {
    let limits = FetchLimits { max_messages: max, max_bytes: 0, wait_ms: 0, lease_ms: 0 };
    broker.fetch(session.clone(), limits).await.unwrap().deliveries
}

fn lease(delivery: &Delivery) -> LeaseRef {
    LeaseRef { epoch: delivery.epoch, offset: delivery.offset }
}

async fn done(broker: &Broker, session: &SessionRef, delivery: &Delivery) -> SettleResult {
    let settle = Settle { lease: lease(delivery), outcome: Outcome::Done, not_executed: false };
    broker.settle(session.clone(), vec![settle]).await.unwrap().remove(0)
}

fn open(folder: &Path, clock: &ManualClock) -> Broker {
    Broker::builder(folder).clock(Arc::new(clock.clone())).segment_bytes(1024 * 1024).spares(1).open().unwrap()
}

#[tokio::test]
async fn a_story_goes_on_over_a_clean_close() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(UnixMillis(1_000_000));
    let broker = open(folder.path(), &clock);
    create_group(&broker).await;
    publish(&broker, &[request("t", "x"), message("u", "1"), message("u", "2")]).await;
    let member = session(1);
    let got = fetch(&broker, &member, 10).await;
    let mine = got.iter().find(|d| d.task_id == "t").unwrap();
    assert_eq!(Message::decode(mine.message.clone()).unwrap(), request("t", "x"), "byte for byte as published");
    let BeginResult::Ok { fencing_token } = broker.begin(member.clone(), lease(mine)).await.unwrap() else { panic!() };
    broker.close().await.unwrap();
    assert_eq!(broker.health(), Health::Closed);
    assert_eq!(broker.status().await.unwrap_err().reason, Reason::Closed);
    drop(broker);

    let broker = open(folder.path(), &clock);
    let complete = Complete {
        lease: lease(mine),
        tenant: "acme".to_owned(),
        execution_id: "x".to_owned(),
        fencing_token,
        final_state: FinalState::Completed,
        artifact_ref: "receipt".to_owned(),
        publishes: Vec::new(),
    };
    let result = broker.complete(member.clone(), complete).await.unwrap();
    assert!(matches!(result, CompleteResult::Accepted { late: false, .. }), "{result:?}");
    let story = broker.explain("acme", "x").await.unwrap();
    assert_eq!((story.execution.state, story.verdict), (ExecutionState::Completed, Verdict::EffectOnce));
    let repeat = publish(&broker, &[request("t", "x")]).await;
    assert!(matches!(&repeat[0], PublishResult::Duplicate(d) if d.offset.get() == 0));
    let audit = broker.audit(group()).await.unwrap();
    assert!(audit.balanced, "{audit:?}");
    broker.close().await.unwrap();
}

#[tokio::test]
async fn a_backlog_is_handed_out_in_order_over_restarts_and_segments() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(UnixMillis(1_000_000));
    let mut broker = open(folder.path(), &clock);
    create_group(&broker).await;
    for round in 0..30 {
        let messages: Vec<_> = (0..20)
            .map(|task| Message {
                payload: vec![7; 5_000].into(),
                ..message(&format!("t{task}"), &format!("{task}-{round}"))
            })
            .collect();
        publish(&broker, &messages).await;
        if round % 10 == 9 {
            broker.close().await.unwrap();
            drop(broker);
            broker = open(folder.path(), &clock);
        }
    }
    let member = SessionRef { timeout_ms: 3_600_000, ..session(1) };
    let mut last = std::collections::HashMap::new();
    let mut count = 0;
    loop {
        let got = fetch(&broker, &member, 100).await;
        if got.is_empty() {
            break;
        }
        for delivery in got {
            assert!(last.insert(delivery.task_id.clone(), delivery.offset) < Some(delivery.offset));
            assert_eq!(done(&broker, &member, &delivery).await, SettleResult::Ok);
            count += 1;
        }
        if count % 300 == 0 {
            broker.close().await.unwrap();
            drop(broker);
            broker = open(folder.path(), &clock);
        }
    }
    assert_eq!(count, 600);
    let audit = broker.audit(group()).await.unwrap();
    assert!(audit.balanced, "{audit:?}");
    assert_eq!(audit.info.counts.settled_total(), 600);
    broker.close().await.unwrap();
}

#[tokio::test]
async fn a_waiting_fetch_gets_what_is_published_and_a_dropped_one_gets_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(UnixMillis(1_000_000));
    let broker = open(folder.path(), &clock);
    create_group(&broker).await;
    let limits = FetchLimits { max_messages: 1, max_bytes: 0, wait_ms: 60_000, lease_ms: 0 };
    let dropped = {
        let broker = broker.clone();
        tokio::spawn(async move { broker.fetch(session(1), limits).await })
    };
    while broker.status().await.unwrap().waiting_fetches == 0 {
        tokio::task::yield_now().await;
    }
    dropped.abort();
    let _ = dropped.await;
    let waiting = {
        let broker = broker.clone();
        tokio::spawn(async move { broker.fetch(session(2), limits).await })
    };
    while broker.status().await.unwrap().sessions < 2 {
        tokio::task::yield_now().await;
    }
    publish(&broker, &[message("t", "1")]).await;
    let fetched = waiting.await.unwrap().unwrap();
    assert_eq!(fetched.deliveries.len(), 1);
    assert_eq!((fetched.deliveries[0].attempt, broker.status().await.unwrap().leases), (1, 1));
    broker.close().await.unwrap();
}

#[tokio::test]
async fn an_open_folder_is_nobody_elses() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(UnixMillis(1_000_000));
    let broker = open(folder.path(), &clock);
    assert!(Broker::builder(folder.path()).open().is_err());
    broker.close().await.unwrap();
    // A handle that is kept keeps nothing but itself.
    let again = open(folder.path(), &clock);
    assert_eq!(broker.audit(group()).await.unwrap_err().reason, Reason::Closed);
    // The last handle that goes closes it at once.
    drop(again);
    open(folder.path(), &clock).close().await.unwrap();
}

#[tokio::test]
async fn a_policy_that_the_folder_cannot_take_is_refused_at_open_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::at(UnixMillis(1_000_000));
    let broker = open(folder.path(), &clock);
    publish(&broker, &[message("t", "1")]).await;
    broker.close().await.unwrap();
    drop(broker);

    let mut policies = ChannelPolicy::built_in();
    policies[0].key = KeyTemplate::Tenant;
    let refused = Broker::builder(folder.path()).policies(policies).open().map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("policy task_events: key: "), "{refused}");

    let broker = open(folder.path(), &clock);
    assert!(matches!(publish(&broker, &[message("t", "1")]).await[0], PublishResult::Duplicate(_)));
    broker.close().await.unwrap();
}
