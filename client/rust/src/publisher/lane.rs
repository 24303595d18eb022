//! What waits for its turn, one queue a channel.

use super::{Published, PublisherOptions};
use crate::error::ClientError;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tokio::sync::{Notify, OwnedSemaphorePermit, oneshot};
use tokio::time::Instant;
use weir_proto::v1::ChannelRef;

/// Bytes that a message in a request takes beside its own.
const FRAMING_BYTES: usize = 6;

/// One message that is not answered yet.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) message: Bytes,
    pub(super) until: Instant,
    /// An attempt that carried it may have been applied.
    pub(super) may_have_applied: bool,
    pub(super) answer: oneshot::Sender<Result<Published, ClientError>>,
    /// Its share of the room, given back with the answer.
    pub(super) _room: OwnedSemaphorePermit,
}

impl Item {
    /// Answers the message. Nobody may be waiting for it any more, which is no fault.
    pub(super) fn answer(self, answer: Result<Published, ClientError>) {
        let _ = self.answer.send(answer);
    }

    /// Refuses the message. Whether it may be stored all the same depends on its own attempts alone.
    pub(super) fn refuse(self, error: &ClientError) {
        let error = ClientError { may_have_applied: self.may_have_applied, ..error.clone() };
        self.answer(Err(error));
    }
}

/// The queues of all channels that have something to send. The lock guards look-ups only.
#[derive(Debug, Default)]
pub(super) struct Lanes(Mutex<HashMap<ChannelRef, Lane>>);

#[derive(Debug, Default)]
struct Lane {
    queue: VecDeque<Item>,
    bytes: usize,
    /// While the channel refuses: until when nothing is tried, and why.
    refusing: Option<(Instant, ClientError)>,
    /// Fires when a batch is full.
    full: Arc<Notify>,
}

impl Lane {
    fn is_full(&self, options: &PublisherOptions) -> bool {
        self.queue.len() >= options.batch_messages || self.bytes >= options.batch_bytes
    }

    fn pop(&mut self) -> Option<Item> {
        let item = self.queue.pop_front()?;
        self.bytes -= item.message.len() + FRAMING_BYTES;
        Some(item)
    }
}

impl Lanes {
    /// Puts a message at the end of its channel's queue. True if the channel had none, so that its lane must be started.
    ///
    /// # Errors
    /// The channel's refusal, if the message's time is over before the channel is tried again.
    pub(super) fn enter(
        &self,
        channel: &ChannelRef,
        item: Item,
        options: &PublisherOptions,
    ) -> Result<bool, ClientError> {
        let mut lanes = self.0.lock();
        let known = lanes.contains_key(channel);
        let lane = lanes.entry(channel.clone()).or_default();
        if let Some((again, error)) = &lane.refusing
            && item.until <= *again
        {
            return Err(ClientError { may_have_applied: false, ..error.clone() });
        }
        lane.bytes += item.message.len() + FRAMING_BYTES;
        lane.queue.push_back(item);
        if lane.is_full(options) {
            lane.full.notify_one();
        }
        Ok(!known)
    }

    /// What fires when the channel has a full batch; `None` if it has one already.
    pub(super) fn filling(&self, channel: &ChannelRef, options: &PublisherOptions) -> Option<Arc<Notify>> {
        let lanes = self.0.lock();
        let lane = lanes.get(channel)?;
        (!lane.is_full(options)).then(|| Arc::clone(&lane.full))
    }

    /// The channel's next batch, never more than the bounds say, but at least one message. `None` ends the lane.
    pub(super) fn take(&self, channel: &ChannelRef, options: &PublisherOptions) -> Option<VecDeque<Item>> {
        let mut lanes = self.0.lock();
        let lane = lanes.get_mut(channel)?;
        let Some(first) = lane.pop() else {
            lanes.remove(channel);
            return None;
        };
        let mut bytes = first.message.len() + FRAMING_BYTES;
        let mut batch = VecDeque::from([first]);
        while batch.len() < options.batch_messages
            && let Some(next) = lane.queue.front()
        {
            bytes += next.message.len() + FRAMING_BYTES;
            if bytes > options.batch_bytes {
                break;
            }
            batch.extend(lane.pop());
        }
        Some(batch)
    }

    /// The channel refuses until `again`: takes out what cannot wait so long, now and from messages to come.
    pub(super) fn refuse_until(&self, channel: &ChannelRef, again: Instant, error: &ClientError) -> Vec<Item> {
        let mut lanes = self.0.lock();
        let Some(lane) = lanes.get_mut(channel) else {
            return Vec::new();
        };
        lane.refusing = Some((again, error.clone()));
        let mut over = Vec::new();
        for _ in 0..lane.queue.len() {
            let Some(item) = lane.pop() else { break };
            if item.until <= again {
                over.push(item);
            } else {
                lane.bytes += item.message.len() + FRAMING_BYTES;
                lane.queue.push_back(item);
            }
        }
        over
    }

    /// The channel is tried again.
    pub(super) fn refuse_no_more(&self, channel: &ChannelRef) {
        if let Some(lane) = self.0.lock().get_mut(channel) {
            lane.refusing = None;
        }
    }
}
