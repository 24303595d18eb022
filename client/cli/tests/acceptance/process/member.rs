//! A member of a group over unary calls.

use crate::process::{Server, TENANT};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use tonic::Status;
use tonic::transport::Channel;
use weir_proto::v1::consume_service_client::ConsumeServiceClient;
use weir_proto::v1::{self, Delivery, SettleOutcome, begin_response, complete_response, extend_result, settle_result};

/// A member that says in each fetch what it holds. It sends no heartbeats.
#[derive(Clone)]
pub(crate) struct Member {
    wire: Channel,
    session: v1::Session,
    held: BTreeSet<u64>,
    lease_ms: u64,
}

impl Member {
    /// A new session. It joins with its first fetch.
    pub(crate) fn new(server: &Server, group: &v1::GroupRef, name: &str) -> Self {
        let session = v1::Session {
            session_id: rand::random::<[u8; 16]>().to_vec().into(),
            group: Some(group.clone()),
            member: name.into(),
            ..Default::default()
        };
        Self { wire: server.wire(), session, held: BTreeSet::new(), lease_ms: 0 }
    }

    /// The same with another silence after which it is lost.
    pub(crate) fn lost_after(mut self, millis: u64) -> Self {
        self.session.session_timeout_ms = millis;
        self
    }

    /// The same with leases that have an end of their own; 0 means that they live with the session.
    pub(crate) fn leasing_for(mut self, millis: u64) -> Self {
        self.lease_ms = millis;
        self
    }

    /// The same session over another connection.
    pub(crate) fn over(&self, wire: Channel) -> Self {
        Self { wire, ..self.clone() }
    }

    /// The same session over a new connection: where the broker was killed the old one may not know yet that it is cut.
    pub(crate) fn again(&self, server: &Server) -> Self {
        self.over(server.wire())
    }

    /// Takes messages until it has so many, in the order of their offsets.
    pub(crate) async fn gather(&mut self, count: usize, limit: Duration) -> Vec<Delivery> {
        let start = Instant::now();
        let mut all = Vec::new();
        while all.len() < count {
            assert!(start.elapsed() <= limit, "not {count} within {limit:?}: {all:?}");
            all.extend(self.fetch(100, 100).await);
        }
        all.sort_by_key(|delivery| delivery.offset);
        all
    }

    /// Drops all work: its next fetch says that it holds nothing.
    pub(crate) fn drop_work(&mut self) {
        self.held.clear();
    }

    /// The stub it calls through, with the limits every client has.
    pub(crate) fn stub(&self) -> ConsumeServiceClient<Channel> {
        ConsumeServiceClient::new(self.wire.clone())
    }

    /// The session as it speaks between fetches: it says nothing of what it holds.
    pub(crate) fn session(&self) -> Option<v1::Session> {
        Some(self.session.clone())
    }

    /// A fetch, to be sent.
    pub(crate) fn asking(&self, max_messages: u32, wait_ms: u64) -> v1::FetchRequest {
        let held = Some(v1::Held { epochs: self.held.iter().copied().collect() });
        let session = Some(v1::Session { held, ..self.session.clone() });
        v1::FetchRequest { session, max_messages, wait_ms, lease_ms: self.lease_ms, ..Default::default() }
    }

    /// Fetches.
    pub(crate) async fn try_fetch(&mut self, max_messages: u32, wait_ms: u64) -> Result<Vec<Delivery>, Status> {
        let answer = self.stub().max_decoding_message_size(32 << 20).fetch(self.asking(max_messages, wait_ms)).await?;
        let answer = answer.into_inner();
        for lost in answer.held.unwrap_or_default().lost_epochs {
            self.held.remove(&lost);
        }
        self.held.extend(answer.deliveries.iter().map(|delivery| delivery.epoch));
        Ok(answer.deliveries)
    }

    /// Fetches; it must succeed.
    pub(crate) async fn fetch(&mut self, max_messages: u32, wait_ms: u64) -> Vec<Delivery> {
        self.try_fetch(max_messages, wait_ms).await.unwrap()
    }

    /// Fetches one message, again until it comes.
    pub(crate) async fn fetch_one_within(&mut self, limit: Duration) -> Delivery {
        let start = Instant::now();
        loop {
            if let Some(delivery) = self.fetch(1, 100).await.pop() {
                assert!(start.elapsed() <= limit, "it came after {:?}", start.elapsed());
                return delivery;
            }
            assert!(start.elapsed() <= limit, "it did not come within {limit:?}");
        }
    }

    /// Takes and settles all there is; each message with its delivery, in the order they came.
    pub(crate) async fn drain(&mut self) -> Vec<(v1::Message, Delivery)> {
        let mut all = Vec::new();
        loop {
            let deliveries = self.fetch(500, 0).await;
            if deliveries.is_empty() {
                return all;
            }
            for delivery in deliveries {
                self.done(&delivery).await;
                all.push((message(&delivery), delivery));
            }
        }
    }

    /// Sends settlements.
    pub(crate) async fn try_settle(
        &mut self,
        settlements: Vec<v1::Settlement>,
    ) -> Result<Vec<settle_result::Result>, Status> {
        let request = v1::SettleRequest { session: self.session(), settlements };
        let results = self.stub().settle(request).await?.into_inner().results;
        let mut answers = Vec::new();
        for result in results {
            let answer = result.result.expect("a result");
            if !matches!(answer, settle_result::Result::Refused(_)) {
                self.held.remove(&result.epoch);
            }
            answers.push(answer);
        }
        Ok(answers)
    }

    /// Settles one message.
    pub(crate) async fn settle(&mut self, settlement: v1::Settlement) -> settle_result::Result {
        self.try_settle(vec![settlement]).await.unwrap().remove(0)
    }

    /// Settles one message as done; it must be taken.
    pub(crate) async fn done(&mut self, delivery: &Delivery) {
        let answer = self.settle(settlement(delivery, SettleOutcome::Done)).await;
        assert!(matches!(answer, settle_result::Result::Ok(_)), "{answer:?} of {delivery:?}");
    }

    /// Extends a lease that has an end of its own.
    pub(crate) async fn extend(&self, delivery: &Delivery, lease_ms: u64) -> extend_result::Result {
        let extension = v1::Extension { epoch: delivery.epoch, offset: delivery.offset, lease_ms };
        let request = v1::ExtendRequest { session: self.session(), extensions: vec![extension] };
        self.stub().extend(request).await.unwrap().into_inner().results.remove(0).result.unwrap()
    }

    /// Asks for leave to act.
    pub(crate) async fn try_begin(&self, delivery: &Delivery) -> Result<begin_response::Result, Status> {
        let request = v1::BeginRequest { session: self.session(), epoch: delivery.epoch, offset: delivery.offset };
        Ok(self.stub().begin(request).await?.into_inner().result.unwrap())
    }

    /// Begins; it must be granted. The fencing token.
    pub(crate) async fn begin(&self, delivery: &Delivery) -> u64 {
        match self.try_begin(delivery).await.unwrap() {
            begin_response::Result::Granted(granted) => granted.fencing_token,
            other => panic!("not granted: {other:?}"),
        }
    }

    /// Reports that the begun execution is completed.
    pub(crate) async fn complete(&self, delivery: &Delivery, token: u64) -> complete_response::Result {
        let request = v1::CompleteRequest {
            session: self.session(),
            epoch: delivery.epoch,
            offset: delivery.offset,
            tenant: TENANT.into(),
            execution_id: message(delivery).execution_id,
            final_state: v1::FinalState::Completed.into(),
            artifact_ref: "receipt:1".into(),
            fencing_token: token,
            ..Default::default()
        };
        self.stub().complete(request).await.unwrap().into_inner().result.unwrap()
    }
}

/// The message of a delivery.
pub(crate) fn message(delivery: &Delivery) -> v1::Message {
    delivery.message.clone().expect("a message")
}

/// How a delivery's lease is ended.
pub(crate) fn settlement(delivery: &Delivery, outcome: SettleOutcome) -> v1::Settlement {
    v1::Settlement { epoch: delivery.epoch, offset: delivery.offset, outcome: outcome.into(), ..Default::default() }
}

/// A failed attempt that waits before the next.
pub(crate) fn retry(delivery: &Delivery, delay_ms: u64) -> v1::Settlement {
    v1::Settlement { delay_ms, ..settlement(delivery, SettleOutcome::Retry) }
}
