//! The books against what a broker opened anew has.

use super::books::{Acts, At, Books};
use super::story::{AGENTS, TENANT, WORKERS, at, channel, done, fetch, group, over_all, session};
use crate::broker::Broker;
use crate::clock::ManualClock;
use crate::model::{ExecutionState, FinalState, Offset, Reason, Resolve};
use bytes::Bytes;
use prost::Message as _;
use std::collections::BTreeMap;
use weir_proto::v1::Message;

/// Looks without an answer before a test gives up.
const LOOKS_MAX: u32 = 20_000;

/// Compares everything but what the working group has still to do.
pub(super) async fn compare(broker: &Broker, books: &mut Books, name: &str) {
    let mut ends = BTreeMap::new();
    for agent in AGENTS {
        let end = match broker.channel(channel(agent)).await {
            Ok(info) => info.head,
            Err(refusal) if refusal.reason == Reason::NotFound => Offset(0),
            Err(refusal) => panic!("{name}: {refusal}"),
        };
        let shown = books.ends.get(agent).copied().unwrap_or_default();
        assert!(end >= shown, "{name}: {agent} was shown to end at {shown}, it ends at {end}");
        books.ends.insert(agent.to_owned(), end);
        ends.insert(agent.to_owned(), end);
    }
    let stored = read_all(broker, books, &ends, name).await;
    for (id, sent) in &books.sent {
        if let Some(place) = &sent.place {
            assert_eq!(stored.get(place), Some(&sent.bytes), "{name}: {id} was confirmed at {place:?}");
        }
    }
    for (place, bytes) in &books.shown {
        assert_eq!(stored.get(place), Some(bytes), "{name}: {place:?} was shown");
    }
    nothing_is_invented(books, &stored, name);
    for (execution, acts) in books.executions.clone() {
        let found = broker.execution(TENANT, &execution).await;
        match found {
            Ok(found) => books.state(&execution, found.state),
            Err(refusal) => {
                let Acts { begun, completed, .. } = acts;
                assert!(!begun && !completed, "{name}: {execution} was begun or COMPLETED and is: {refusal}");
            }
        }
    }
    for group in broker.groups(TENANT).await.expect("groups") {
        let audit = broker.audit(group.spec.name).await.expect("an audit");
        assert!(audit.balanced, "{name}: {audit:?}");
    }
    // What was shown just now must not vanish either.
    books.shown.extend(stored);
}

/// All messages, as a group that begins with the first ones is handed them.
async fn read_all(
    broker: &Broker,
    books: &mut Books,
    ends: &BTreeMap<String, Offset>,
    name: &str,
) -> BTreeMap<At, Bytes> {
    let reader = format!("reader-{}", books.next());
    broker.create_group(over_all(&reader, false)).await.expect("a group");
    let me = session(u128::from(1_000_000 + books.next()), &reader);
    let due: u64 = ends.values().map(|end| end.get()).sum();
    let mut stored = BTreeMap::new();
    let mut last: BTreeMap<(String, String), Offset> = BTreeMap::new();
    let mut looks = 0;
    while (stored.len() as u64) < due {
        looks += 1;
        assert!(looks < LOOKS_MAX, "{name}: {} of {due} messages were handed out", stored.len());
        for delivery in fetch(broker, &me, 100).await.expect("a fetch") {
            books.epoch(delivery.epoch);
            let before = last.insert((delivery.channel.agent.clone(), delivery.task_id.clone()), delivery.offset);
            assert!(before < Some(delivery.offset), "{name}: {} comes out of order", delivery.task_id);
            assert!(done(broker, &me, &delivery).await.expect("a settle"), "{name}: a live lease is refused");
            let twice = stored.insert(at(&delivery), delivery.message);
            assert!(twice.is_none(), "{name}: delivered twice");
        }
        tokio::task::yield_now().await;
    }
    for (agent, end) in ends {
        let offsets = stored.keys().filter(|(of, _)| of == agent).map(|(_, offset)| offset.get());
        assert!(offsets.eq(0..end.get()), "{name}: {agent} has a hole");
    }
    stored
}

/// Every stored message was sent as it is, once; but for results that weir writes for a Complete.
fn nothing_is_invented(books: &Books, stored: &BTreeMap<At, Bytes>, name: &str) {
    let mut ids = std::collections::BTreeSet::new();
    let mut ends = std::collections::BTreeSet::new();
    for (place, bytes) in stored {
        let message = Message::decode(bytes.clone()).expect("a stored message");
        let id = message.message_id.clone();
        if message.final_state != 0 {
            assert!(ends.insert(message.execution_id.clone()), "{name}: two ends of {}", message.execution_id);
            let acts = books.executions.get(&message.execution_id);
            assert!(acts.is_some_and(|acts| acts.reported), "{name}: {place:?} reports what nobody did");
        }
        match books.sent.get(&id) {
            Some(sent) => {
                assert_eq!((&sent.agent, &sent.bytes), (&place.0, bytes), "{name}: {id} at {place:?}");
                assert!(ids.insert(id), "{name}: {place:?} is stored twice");
            }
            None => assert!(message.agent_id.starts_with('~'), "{name}: {place:?} was never sent: {message:?}"),
        }
    }
}

/// Ends the story: what is UNKNOWN is resolved, what is left is settled, and all that was offered is accounted for.
pub(super) async fn finish(broker: &Broker, books: &mut Books, clock: &ManualClock, name: &str) {
    // Every session of the past is lost by then, every delay over.
    clock.advance(3_600_000);
    broker.create_group(over_all(WORKERS, true)).await.expect("a group");
    let me = session(u128::from(2_000_000 + books.next()), WORKERS);
    let mut looks = 0;
    loop {
        looks += 1;
        let left = broker.group(group(WORKERS)).await.expect("the group");
        assert!(looks < LOOKS_MAX, "{name}: never empty: {left:?}");
        for delivery in fetch(broker, &me, 100).await.expect("a fetch") {
            let place = at(&delivery);
            assert!(!books.done.contains(&place), "{name}: {place:?} was settled and comes again");
            assert!(done(broker, &me, &delivery).await.expect("a settle"), "{name}: a live lease is refused");
        }
        for execution in books.executions.keys() {
            let Ok(found) = broker.execution(TENANT, execution).await else { continue };
            if found.state == ExecutionState::Unknown {
                let resolve = Resolve {
                    tenant: TENANT.to_owned(),
                    execution_id: execution.clone(),
                    state: Some(FinalState::Failed),
                    artifact_ref: String::new(),
                    evidence: "looked".to_owned(),
                    by: "operator".to_owned(),
                };
                broker.resolve(resolve).await.expect("a resolution");
            }
        }
        let audit = broker.audit(group(WORKERS)).await.expect("an audit");
        assert!(audit.balanced, "{name}: {audit:?}");
        if audit.counted_unsettled == 0 {
            break;
        }
        tokio::task::yield_now().await;
    }
}
