//! The messages of a pattern, one after the other.

use super::pattern::{Order, Pattern};
use bytes::Bytes;
use prost::Message as _;
use rand::rngs::SmallRng;
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use weir_proto::v1::{FinalState, Message};

/// Where random channels and payloads start from, so that every run has the same.
const SEED: u64 = 0x7765_6972;
/// Any moment will do: it is carried, not judged.
const CREATED_UNIX_MS: u64 = 1_796_000_000_000;

/// Makes encoded messages, each with an id of its own.
pub(super) struct Maker {
    payload: usize,
    tasks: u64,
    order: Order,
    executions: bool,
    random: SmallRng,
    /// Batches made.
    batches: u64,
    /// Messages made.
    messages: u64,
    /// Messages made for each channel.
    heads: Vec<u64>,
}

impl Maker {
    pub(super) fn new(pattern: &Pattern, payload: usize) -> Self {
        Self {
            payload,
            tasks: pattern.tasks,
            order: pattern.order,
            executions: pattern.executions,
            random: SmallRng::seed_from_u64(SEED),
            batches: 0,
            messages: 0,
            heads: vec![0; usize::try_from(pattern.channels).unwrap_or(usize::MAX)],
        }
    }

    /// The next channel's agent and messages for it.
    pub(super) fn next_batch(&mut self, count: usize) -> (String, Vec<Bytes>) {
        let channels = self.heads.len() as u64;
        let channel = match self.order {
            Order::Turns => self.batches % channels,
            Order::Random => self.random.random_range(0..channels),
        };
        self.batches += 1;
        let messages = (0..count).map(|_| self.next_message(channel)).collect();
        (format!("desk-{channel:07}"), messages)
    }

    fn next_message(&mut self, channel: u64) -> Bytes {
        let mut place = 0;
        if let Some(head) = usize::try_from(channel).ok().and_then(|channel| self.heads.get_mut(channel)) {
            place = *head;
            *head += 1;
        }
        let mut payload = vec![0; self.payload];
        self.random.fill_bytes(&mut payload);
        let mut message = Message {
            // As long as the ids that are usual: 26 characters.
            message_id: format!("m{:025}", self.messages),
            agent_id: "worker-7".to_owned(),
            r#type: "event".to_owned(),
            created_at_unix_ms: CREATED_UNIX_MS + self.messages,
            payload: payload.into(),
            ..Message::default()
        };
        self.messages += 1;
        let turn = if self.executions { place / 2 } else { place };
        message.task_id = format!("order-{channel:07}-{:04}", turn % self.tasks);
        if self.executions {
            message.execution_id = format!("{}/{turn}", message.task_id);
            if place.is_multiple_of(2) {
                message.r#type = "task.request".to_owned();
            } else {
                message.r#type = "task.result".to_owned();
                message.final_state = FinalState::Completed.into();
                message.artifact_ref = format!("receipt:{turn}");
            }
        }
        message.encode_to_vec().into()
    }
}
