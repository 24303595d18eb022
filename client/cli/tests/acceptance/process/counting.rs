//! Publishers that know what they were told.

use super::{Dice, POLICY, Placed, Server, TENANT, event, placed, report, try_publish};
use std::time::Duration;
use tonic::Code;
use weir_proto::v1::publish_service_client::PublishServiceClient;
use weir_proto::v1::{self, FinalState};

/// A publisher that sends a counter to a channel of its own: batch by batch, in order, and first again what got no answer.
pub(crate) struct Counting {
    channel: u64,
    /// Whether its messages are final states: known by their pair, whatever their ids.
    final_states: bool,
    pub(crate) confirmed: u64,
    /// What was sent last and not answered.
    pub(crate) open: Option<u64>,
    /// Goes into the ids of final states.
    pub(crate) resends: u64,
}

impl Counting {
    /// Every second one sends final states.
    pub(crate) fn new(channel: u64) -> Self {
        Self { channel, final_states: channel % 2 == 1, confirmed: 0, open: None, resends: 0 }
    }

    /// The agent whose channel it is.
    pub(crate) fn agent(&self) -> String {
        format!("counter-{}", self.channel)
    }

    fn message(&self, n: u64) -> v1::Message {
        let task = format!("t{}", n % 7);
        let payload = n.to_string().into_bytes().into();
        if self.final_states {
            let id = format!("m{n}, sent for the {}. time", self.resends);
            let execution = format!("{} {n}", self.agent());
            return v1::Message { payload, ..report(&task, &id, &execution, FinalState::Completed) };
        }
        v1::Message { payload, ..event(&task, &format!("m{n}")) }
    }

    /// Some of its messages.
    pub(crate) fn batch(&self, from: u64, count: u64) -> v1::PublishRequest {
        let messages = (from..from + count).map(|n| self.message(n)).collect();
        v1::PublishRequest { policy: POLICY.into(), tenant: TENANT.into(), agent_id: self.agent(), messages }
    }

    /// Publishes until there is no answer. The counter is the offset, if nothing is lost, doubled or out of order.
    pub(crate) async fn until_it_ends(mut self, wire: tonic::transport::Channel, mut sizes: Dice) -> Self {
        let mut publishing = PublishServiceClient::new(wire);
        loop {
            let (from, count) = (self.confirmed, self.open.unwrap_or_else(|| 1 + sizes.below(8)));
            let again = self.open.replace(count).is_some();
            let answer = match publishing.publish(self.batch(from, count)).await {
                Ok(answer) => answer,
                // A full disk is no end: there may be room soon.
                Err(refused) if refused.code() == Code::ResourceExhausted => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                }
                Err(_) => return self,
            };
            let places = placed(answer.into_inner());
            let (stored, known) = (places[0] == Placed::Stored(from), places[0] == Placed::Duplicate(from));
            assert!(stored || again && known, "{places:?} where the next offset is {from}");
            let expected = (from..from + count).map(|n| if stored { Placed::Stored(n) } else { Placed::Duplicate(n) });
            assert_eq!(places, expected.collect::<Vec<_>>(), "all or none");
            (self.confirmed, self.open) = (from + count, None);
        }
    }

    /// Everything confirmed is sent again: it is all known, where it was.
    pub(crate) async fn everything_again(&mut self, server: &Server) {
        self.resends += 1;
        for from in (0..self.confirmed).step_by(500) {
            let count = (self.confirmed - from).min(500);
            let places = placed(try_publish(server, self.batch(from, count)).await.unwrap());
            assert_eq!(places, (from..from + count).map(Placed::Duplicate).collect::<Vec<_>>(), "{}", self.agent());
        }
    }
}
