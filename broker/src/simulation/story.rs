//! What clients do, at random.

use super::books::{Acts, At, Books, Sent};
use crate::broker::Broker;
use crate::clock::ManualClock;
use crate::model::{
    BeginResult, ChannelRef, Complete, CompleteResult, Delivery, FetchLimits, FinalState, GroupRef, GroupSpec,
    LeaseRef, Outcome, Publish, PublishResult, Published, Refusal, Selector, SessionId, SessionRef, Settle,
    SettleResult, Start,
};
use bytes::Bytes;
use prost::Message as _;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use weir_proto::v1::{Effect, FinalState as Wire, Message};

pub(super) const TENANT: &str = "acme";
pub(super) const AGENTS: [&str; 2] = ["desk", "bank"];
pub(super) const WORKERS: &str = "workers";
const TASKS: u64 = 5;

pub(super) fn channel(agent: &str) -> ChannelRef {
    ChannelRef { policy: "task_events".to_owned(), tenant: TENANT.to_owned(), agent: agent.to_owned() }
}

pub(super) fn group(name: &str) -> GroupRef {
    GroupRef { scope: TENANT.to_owned(), policy: "task_events".to_owned(), name: name.to_owned() }
}

/// A group over all channels of the tenant, from the first message on.
pub(super) fn over_all(name: &str, executes: bool) -> GroupSpec {
    GroupSpec {
        name: group(name),
        selector: Selector::Tenant(TENANT.to_owned()),
        start: Start::Earliest,
        executes,
        skip_if_final: false,
        pressure: executes,
        window: 0,
        // Nothing is parked in these stories.
        max_attempts: 1_000,
    }
}

pub(super) fn session(id: u128, group_name: &str) -> SessionRef {
    SessionRef {
        id: SessionId(id),
        group: group(group_name),
        member: format!("member-{id}"),
        instance: String::new(),
        timeout_ms: 10_000,
        held: None,
    }
}

pub(super) fn lease(delivery: &Delivery) -> LeaseRef {
    LeaseRef { epoch: delivery.epoch, offset: delivery.offset }
}

pub(super) fn at(delivery: &Delivery) -> At {
    (delivery.channel.agent.clone(), delivery.offset)
}

/// Fetches what is there. Loading may be under way, so nothing means little.
pub(super) async fn fetch(broker: &Broker, session: &SessionRef, max: u32) -> Result<Vec<Delivery>, Refusal> {
    let limits = FetchLimits { max_messages: max, max_bytes: 0, wait_ms: 0, lease_ms: 0 };
    Ok(broker.fetch(session.clone(), limits).await?.deliveries)
}

/// Settles one lease as done; whether that was taken.
pub(super) async fn done(broker: &Broker, session: &SessionRef, delivery: &Delivery) -> Result<bool, Refusal> {
    let settle = Settle { lease: lease(delivery), outcome: Outcome::Done, not_executed: false };
    Ok(broker.settle(session.clone(), vec![settle]).await?.remove(0) == SettleResult::Ok)
}

/// Clients of one broker.
pub(super) struct Story {
    rng: StdRng,
    clock: ManualClock,
}

impl Story {
    pub(super) fn new(seed: u64, clock: ManualClock) -> Self {
        Self { rng: StdRng::seed_from_u64(seed ^ 0x570_2135), clock }
    }

    /// Tells so many steps, or until the broker refuses for good. `life` names the sessions.
    pub(super) async fn tell(&mut self, broker: &Broker, books: &mut Books, life: u64, steps: u32) {
        if broker.create_group(over_all(WORKERS, true)).await.is_err() {
            return;
        }
        let sessions = [1, 2].map(|member| session(u128::from(life * 10 + member), WORKERS));
        for _ in 0..steps {
            let who = &sessions[self.rng.random_range(0..sessions.len())];
            let told = match self.rng.random_range(0..10) {
                0..4 => self.publish(broker, books).await,
                4..8 => self.work(broker, books, who).await,
                8 => self.read(broker, books).await,
                _ => {
                    self.clock.advance(self.rng.random_range(100..6_000));
                    Ok(())
                }
            };
            if told.is_err_and(|refusal| refusal.reason.may_have_applied()) {
                return;
            }
        }
    }

    /// A few publishes at once, each of a few messages of one channel.
    async fn publish(&mut self, broker: &Broker, books: &mut Books) -> Result<(), Refusal> {
        let mut calls = Vec::new();
        for _ in 0..self.rng.random_range(1..4) {
            let agent = AGENTS[self.rng.random_range(0..AGENTS.len())];
            let ids: Vec<String> = (0..self.rng.random_range(1..4)).map(|_| self.draft(books, agent)).collect();
            let messages: Vec<Bytes> = ids.iter().map(|id| books.sent[id].bytes.clone()).collect();
            let (broker, publish) = (broker.clone(), Publish { channel: channel(agent), messages });
            calls.push((ids, tokio::spawn(async move { broker.publish(publish).await })));
        }
        let mut last = Ok(());
        for (ids, call) in calls {
            match call.await.expect("a call") {
                Ok(Published { results, .. }) => note(books, &ids, results),
                Err(refusal) => last = Err(refusal),
            }
        }
        last
    }

    /// Writes a message, or takes one that was sent before, and returns its id.
    fn draft(&mut self, books: &mut Books, agent: &str) -> String {
        let earlier: Vec<&String> =
            books.sent.iter().filter(|(_, sent)| sent.agent == agent).map(|(id, _)| id).collect();
        if !earlier.is_empty() && self.rng.random_bool(0.2) {
            return earlier[self.rng.random_range(0..earlier.len())].clone();
        }
        let count = books.next();
        let (id, task) = (format!("m{count}"), self.rng.random_range(0..TASKS));
        let mut message = Message {
            message_id: id.clone(),
            task_id: format!("t{task}"),
            agent_id: "desk".to_owned(),
            r#type: "event".to_owned(),
            payload: vec![b'p'; self.rng.random_range(0..400)].into(),
            ..Message::default()
        };
        let mut execution = None;
        match self.rng.random_range(0..3) {
            0 => {
                message.r#type = "task.request".to_owned();
                message.execution_id = format!("x{count}");
                message.effect = if self.rng.random_bool(0.7) { Effect::Unsafe } else { Effect::Idempotent }.into();
                execution = Some((message.execution_id.clone(), false));
            }
            1 if !books.executions.is_empty() && self.rng.random_bool(0.4) => {
                let nth = self.rng.random_range(0..books.executions.len());
                let (reported, acts) = books.executions.iter_mut().nth(nth).expect("one of them");
                acts.reported = true;
                message.r#type = "task.result".to_owned();
                message.execution_id.clone_from(reported);
                message.final_state = Wire::Completed.into();
                execution = Some((reported.clone(), true));
            }
            _ => {}
        }
        if let Some((execution, false)) = &execution {
            books.executions.insert(execution.clone(), Acts::default());
        }
        let sent = Sent { agent: agent.to_owned(), bytes: message.encode_to_vec().into(), execution, place: None };
        books.sent.insert(id.clone(), sent);
        id
    }

    /// A member fetches and does something with what it gets.
    async fn work(&mut self, broker: &Broker, books: &mut Books, who: &SessionRef) -> Result<(), Refusal> {
        for delivery in fetch(broker, who, 4).await? {
            let place = at(&delivery);
            assert!(!books.done.contains(&place), "{place:?} was settled and comes again");
            books.epoch(delivery.epoch);
            books.show(place.clone(), delivery.message.clone());
            let message = Message::decode(delivery.message.clone()).expect("a message as it was sent");
            if let Some(hint) = &delivery.execution {
                books.state(&message.execution_id, hint.state);
            }
            match self.rng.random_range(0..8) {
                0 => {}
                1 => self.give_back(broker, who, &delivery).await?,
                2..5 if message.r#type == "task.request" => self.act(broker, books, who, &delivery, &message).await?,
                _ => {
                    books.done_sent.insert(place.clone());
                    if done(broker, who, &delivery).await? {
                        books.done.insert(place);
                    }
                }
            }
        }
        Ok(())
    }

    async fn give_back(&mut self, broker: &Broker, who: &SessionRef, delivery: &Delivery) -> Result<(), Refusal> {
        let retry = Outcome::Retry { delay_ms: self.rng.random_range(0..3_000), reason: "later".to_owned() };
        let outcome = if self.rng.random_bool(0.5) { Outcome::Release } else { retry };
        let settle = Settle { lease: lease(delivery), outcome, not_executed: false };
        broker.settle(who.clone(), vec![settle]).await.map(drop)
    }

    /// Begins, and then completes, gives up, or leaves it at that.
    async fn act(
        &mut self,
        broker: &Broker,
        books: &mut Books,
        who: &SessionRef,
        delivery: &Delivery,
        message: &Message,
    ) -> Result<(), Refusal> {
        let execution = &message.execution_id;
        let BeginResult::Ok { fencing_token } = broker.begin(who.clone(), lease(delivery)).await? else {
            return Ok(());
        };
        books.epoch(fencing_token);
        books.executions.entry(execution.clone()).or_default().begun = true;
        match self.rng.random_range(0..4) {
            0 => Ok(()),
            1 => {
                let outcome = Outcome::Unknown { reason: "lost sight of it".to_owned() };
                let settle = Settle { lease: lease(delivery), outcome, not_executed: false };
                broker.settle(who.clone(), vec![settle]).await.map(drop)
            }
            _ => {
                books.executions.entry(execution.clone()).or_default().reported = true;
                books.done_sent.insert(at(delivery));
                let complete = Complete {
                    lease: lease(delivery),
                    tenant: TENANT.to_owned(),
                    execution_id: execution.clone(),
                    fencing_token,
                    final_state: FinalState::Completed,
                    artifact_ref: "receipt".to_owned(),
                    publishes: Vec::new(),
                };
                if let CompleteResult::Accepted { .. } = broker.complete(who.clone(), complete).await? {
                    books.executions.entry(execution.clone()).or_default().completed = true;
                    books.done.insert(at(delivery));
                }
                Ok(())
            }
        }
    }

    /// Somebody looks.
    async fn read(&mut self, broker: &Broker, books: &mut Books) -> Result<(), Refusal> {
        let agent = AGENTS[self.rng.random_range(0..AGENTS.len())];
        if let Ok(info) = broker.channel(channel(agent)).await {
            let end = books.ends.entry(agent.to_owned()).or_default();
            *end = (*end).max(info.head);
        }
        if !books.executions.is_empty() {
            let nth = self.rng.random_range(0..books.executions.len());
            let execution = books.executions.keys().nth(nth).cloned().expect("one of them");
            if let Ok(found) = broker.execution(TENANT, &execution).await {
                books.state(&execution, found.state);
            }
        }
        broker.status().await.map(drop)
    }
}

/// Notes what a publish was answered.
pub(super) fn note(books: &mut Books, ids: &[String], results: Vec<PublishResult>) {
    for (id, result) in ids.iter().zip(results) {
        match result {
            PublishResult::Stored(offset) => {
                let agent = books.sent[id].agent.clone();
                books.place(id, (agent, offset));
            }
            // A repeat of another report of the same end: that one's place is told, and it may be one nobody heard of.
            PublishResult::Duplicate(first) if first.message_id == *id => {
                books.place(id, (first.channel.agent, first.offset));
            }
            PublishResult::Duplicate(_) => {
                if let Some((execution, true)) = books.sent[id].execution.clone() {
                    books.executions.entry(execution).or_default().completed = true;
                }
            }
        }
    }
}
