//! Puts messages into channels: batched, in order per channel, repeated until the broker has answered.
//!
//! Each channel with unanswered messages has one lane, and a lane has one call in flight: what arrives meanwhile makes the
//! next batch, so load makes its own batches and the order stays. A channel without messages costs nothing.
//!
//! A message is encoded once, when it is handed over. A repeat after a broken connection sends the same bytes under the
//! same id, so that the broker answers it as a duplicate if the first one came through.

mod deliver;
mod lane;
mod options;

pub use options::PublisherOptions;

use crate::connect::Client;
use crate::error::ClientError;
use bytes::Bytes;
use lane::{Item, Lanes};
use prost::Message as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, timeout_at};
use tonic::transport::Channel;
use weir_proto::server::publish_service_client::PublishServiceClient;
use weir_proto::v1::publish_result::Outcome;
use weir_proto::v1::{ChannelRef, Message, PublishLevel};

/// Most bytes of a payload that any policy admits.
const PAYLOAD_BYTES_MAX: usize = 15 << 20;
/// Most bytes of one encoded message: a request of 16 MiB, less what stands around the message in it.
const MESSAGE_BYTES_MAX: usize = (16 << 20) - (4 << 10);

/// What became of one message.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// It was stored, or known already.
    pub outcome: Outcome,
    /// How full the channel was after its batch.
    pub level: PublishLevel,
    /// Messages the channel's slowest group had still to settle.
    pub depth: u64,
    /// The depth at which publishes are refused; 0 means no limit.
    pub limit: u64,
}

impl Published {
    /// Place of the message in its channel; of the first one, if this was a repeat.
    #[must_use]
    pub fn offset(&self) -> u64 {
        match &self.outcome {
            Outcome::Stored(stored) => stored.offset,
            Outcome::Duplicate(first) => first.offset,
        }
    }

    /// Whether the broker knew it already and stored nothing.
    #[must_use]
    pub fn is_duplicate(&self) -> bool {
        matches!(self.outcome, Outcome::Duplicate(_))
    }
}

/// Publishes to any number of channels of one broker; clones share its lanes and bounds.
///
/// Dropping it ends nothing: what was handed over is sent, or refused when its time is over.
#[derive(Clone, Debug)]
pub struct Publisher {
    shared: Arc<Shared>,
}

/// What the handle and the lanes share.
#[derive(Debug)]
struct Shared {
    service: PublishServiceClient<Channel>,
    client: Client,
    options: PublisherOptions,
    lanes: Lanes,
    /// Bytes of messages that may still be taken.
    room: Arc<Semaphore>,
    /// Calls that may still be made.
    calls: Semaphore,
}

/// A message that was handed over and is not answered yet.
#[derive(Debug)]
#[must_use = "what became of the message shows only here"]
pub struct Pending {
    answer: oneshot::Receiver<Result<Published, ClientError>>,
    until: Instant,
    given: Duration,
}

impl Pending {
    /// Waits for what became of the message, no longer than its time lasts. Not to wait for it is no way to call it back.
    ///
    /// # Errors
    /// Why it was refused. `may_have_applied` says that it may be stored all the same: publish it again under the same id
    /// to find out.
    pub async fn wait(self) -> Result<Published, ClientError> {
        match timeout_at(self.until, self.answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(ClientError::stopped("the publisher's runtime ended").after(true)),
            Err(_) => Err(ClientError::unanswered(self.given)),
        }
    }
}

impl Client {
    /// A publisher over this client's connection.
    ///
    /// ```no_run
    /// # async fn demo(client: weir_client::Client) -> Result<(), weir_client::ClientError> {
    /// use weir_client::PublisherOptions;
    /// use weir_client::v1::{ChannelRef, Message};
    ///
    /// let publisher = client.publisher(PublisherOptions::default())?;
    /// let desk = ChannelRef { policy: "task_events".into(), tenant: "acme".into(), agent_id: "desk".into() };
    /// let message = Message {
    ///     message_id: "m1".into(),
    ///     task_id: "refund 7".into(),
    ///     agent_id: "desk".into(),
    ///     r#type: "event".into(),
    ///     ..Default::default()
    /// };
    /// let published = publisher.publish(&desk, &message).await?;
    /// println!("at offset {}", published.offset());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if an option is out of its bounds.
    pub fn publisher(&self, options: PublisherOptions) -> Result<Publisher, ClientError> {
        options.validate()?;
        Ok(Publisher {
            shared: Arc::new(Shared {
                service: self.encoded_publish_service(),
                client: self.clone(),
                lanes: Lanes::default(),
                room: Arc::new(Semaphore::new(options.bytes_in_flight)),
                calls: Semaphore::new(options.calls_in_flight),
                options,
            }),
        })
    }
}

impl Publisher {
    /// Publishes one message and waits for what became of it, for at most
    /// [`delivery_timeout`](PublisherOptions::delivery_timeout).
    ///
    /// # Errors
    /// As [`Pending::wait`].
    pub async fn publish(&self, channel: &ChannelRef, message: &Message) -> Result<Published, ClientError> {
        self.send(channel, message).await?.wait().await
    }

    /// As [`publish`](Self::publish), with a time of its own.
    ///
    /// # Errors
    /// As [`Pending::wait`].
    pub async fn publish_within(
        &self,
        channel: &ChannelRef,
        message: &Message,
        limit: Duration,
    ) -> Result<Published, ClientError> {
        self.send_within(channel, message, limit).await?.wait().await
    }

    /// Hands one message over, waiting only for room. Messages that are handed to one channel one after the other are
    /// stored in that order, but for those that are refused.
    ///
    /// # Errors
    /// `TOO_LARGE` for a message no broker takes; the last refusal, if the channel takes none within the message's time.
    pub async fn send(&self, channel: &ChannelRef, message: &Message) -> Result<Pending, ClientError> {
        self.send_within(channel, message, self.shared.options.delivery_timeout).await
    }

    /// As [`send`](Self::send), with a time of its own, which begins now.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn send_within(
        &self,
        channel: &ChannelRef,
        message: &Message,
        limit: Duration,
    ) -> Result<Pending, ClientError> {
        let until = Instant::now() + limit;
        let message = encode(message)?;
        let room = self.shared.options.room_for(message.len());
        let room = match timeout_at(until, Arc::clone(&self.shared.room).acquire_many_owned(room)).await {
            Ok(Ok(room)) => room,
            Ok(Err(_)) => return Err(ClientError::stopped("the publisher is closed")),
            Err(_) => return Err(ClientError::out_of_time()),
        };
        let (answer, receiver) = oneshot::channel();
        let item = Item { message, until, may_have_applied: false, answer, _room: room };
        if self.shared.lanes.enter(channel, item, &self.shared.options)? {
            tokio::spawn(deliver::run(Arc::clone(&self.shared), channel.clone()));
        }
        Ok(Pending { answer: receiver, until, given: limit })
    }

    /// Waits until all that was handed over before is answered.
    pub async fn flush(&self) {
        let all = self.shared.options.room_for(self.shared.options.bytes_in_flight);
        // The room is never closed: an error cannot come, and would mean that nothing is left to wait for.
        let _all = self.shared.room.acquire_many(all).await;
    }
}

/// The bytes of a message, if any broker would take as many.
fn encode(message: &Message) -> Result<Bytes, ClientError> {
    if message.payload.len() > PAYLOAD_BYTES_MAX {
        let error = ClientError::too_large("message.payload", message.payload.len(), PAYLOAD_BYTES_MAX);
        return Err(error);
    }
    let bytes = message.encoded_len();
    if bytes > MESSAGE_BYTES_MAX {
        return Err(ClientError::too_large("message", bytes, MESSAGE_BYTES_MAX));
    }
    Ok(message.encode_to_vec().into())
}

#[cfg(test)]
mod tests;
