//! Sessions through the handle: fetching, streaming, heartbeats.

use super::answer::chain;
use super::loading::{READ_AGAIN_AFTER, read_message, report_unreadable};
use super::sequencer::Input;
use super::{Broker, check_group, received, unexpected};
use crate::engine::{Command, DeliveryMeta, Reply, Ticket};
use crate::model::{
    ChannelNo, Delivery, FetchLimits, HeldAnswer, LeaseRef, Notice, Offset, Reason, Refusal, SessionId, SessionRef,
    UnixMillis, Waiting, limits,
};
use bytes::Bytes;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// The answer to a fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Messages, each under a lease.
    pub deliveries: Vec<Delivery>,
    /// Why there are none.
    pub waiting: Option<Waiting>,
    /// What the `held` list came to.
    pub held: HeldAnswer,
    /// What the session was to be told since it last asked.
    pub notices: Vec<Notice>,
}

/// The answer to a join or heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// Silence after which the session is lost, in milliseconds.
    pub timeout_ms: u64,
    /// When it is lost unless it is heard of again.
    pub expires: UnixMillis,
    /// What the `held` list came to.
    pub held: HeldAnswer,
    /// What the session was to be told since it last asked.
    pub notices: Vec<Notice>,
}

/// What a session's stream brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// Messages, each under a lease.
    Deliveries(Vec<Delivery>),
    /// Something else it is told.
    Notice(Notice),
}

/// What the sequencer puts into a stream.
#[derive(Debug)]
pub(crate) enum StreamItem {
    Deliver(Vec<DeliveryMeta>),
    Notice(Notice),
}

/// A fetch that ends with its caller: dropping it tells the engine.
struct FetchGuard<'a> {
    broker: &'a Broker,
    session: SessionId,
    ticket: Option<Ticket>,
}

impl Drop for FetchGuard<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.broker.tell(Command::CancelFetch(self.session, ticket));
        }
    }
}

impl Broker {
    /// Hands out messages, or waits for some. Dropping the future gives the wait up, and nothing is handed to it then;
    /// what had been on its way comes back with the session's next fetch, whose `held` list does not name it.
    ///
    /// # Errors
    /// NOT_FOUND for the group, INVALID_ARGUMENT, STALE_SESSION, DRAINING.
    pub async fn fetch(&self, session: SessionRef, fetch: FetchLimits) -> Result<Fetched, Refusal> {
        check_session(&session)?;
        if fetch.max_messages == 0 || fetch.max_messages > limits::FETCH_MESSAGES_MAX {
            return Err(Refusal::invalid("max_messages", format!("1 to {}", limits::FETCH_MESSAGES_MAX)));
        }
        if fetch.wait_ms > limits::FETCH_WAIT_MS_MAX {
            return Err(Refusal::invalid("wait_ms", format!("at most {}", limits::FETCH_WAIT_MS_MAX)));
        }
        check_lease_ms(fetch.lease_ms)?;
        let most = limits::FETCH_BYTES_DEFAULT;
        let max_bytes = if fetch.max_bytes == 0 { most } else { fetch.max_bytes };
        let fetch = FetchLimits { max_bytes, ..fetch };
        let id = session.id;
        let (answer, reply) = oneshot::channel();
        let mut guard = FetchGuard { broker: self, session: id, ticket: None };
        guard.ticket = Some(self.send(Command::Fetch(session, fetch), 0, answer).await?);
        let reply = received(reply.await);
        guard.ticket = None;
        match reply? {
            Reply::Fetched { deliveries, waiting, held, notices } => {
                let found = !deliveries.is_empty();
                let deliveries = self.with_bytes(id, deliveries).await?;
                // All that was found cannot be read, and waits for an operator.
                let waiting = if found && deliveries.is_empty() { Some(Waiting::AllParked) } else { waiting };
                Ok(Fetched { deliveries, waiting, held, notices })
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Says that the session is alive; the first word of a session joins.
    ///
    /// # Errors
    /// NOT_FOUND for the group, INVALID_ARGUMENT.
    pub async fn heartbeat(&self, session: SessionRef) -> Result<Joined, Refusal> {
        check_session(&session)?;
        joined(self.call(Command::Heartbeat(session), 0).await?)
    }

    /// Ends a session; what it held is handed to others.
    ///
    /// # Errors
    /// CLOSED.
    pub async fn leave(&self, session: SessionRef) -> Result<(), Refusal> {
        self.call(Command::Leave(session), 0).await.map(|_| ())
    }

    /// Opens a stream of deliveries for a session, which joins if it is new. Nothing comes before credit is given.
    ///
    /// # Errors
    /// NOT_FOUND for the group, INVALID_ARGUMENT, DRAINING.
    pub async fn consume(&self, session: SessionRef, lease_ms: u64) -> Result<(Joined, ConsumeStream), Refusal> {
        check_session(&session)?;
        check_lease_ms(lease_ms)?;
        let id = session.id;
        let (items, receiver) = mpsc::unbounded_channel();
        let ticket = self.shared.next_ticket();
        let (answer, reply) = oneshot::channel();
        let command = Command::Attach(session, lease_ms);
        self.shared.inbox.send(Input::Attach { ticket, command, items, answer }).map_err(|_| super::closed())?;
        let stream = ConsumeStream { broker: self.clone(), session: id, ticket, receiver, reading: None };
        let joined = joined(received(reply.await)?)?;
        Ok((joined, stream))
    }

    /// Sends a command whose answer nobody waits for.
    pub(super) fn tell(&self, command: Command) {
        let ticket = self.shared.next_ticket();
        // A closed broker has nothing left to be told.
        let _ = self.shared.inbox.send(Input::Call { ticket, command, answer: None, permit: None });
    }

    /// The deliveries with their messages' bytes. Those that cannot be read are set aside, and the others go on.
    async fn with_bytes(&self, session: SessionId, metas: Vec<DeliveryMeta>) -> Result<Vec<Delivery>, Refusal> {
        if metas.is_empty() {
            return Ok(Vec::new());
        }
        let keys: Vec<_> = metas.iter().map(|meta| (meta.no, meta.offset)).collect();
        let tail = self.shared.tail.get_many(&keys);
        let messages: Vec<_> = match tail.into_iter().map(|bytes| bytes.map(Ok)).collect() {
            Some(messages) => messages,
            None => self.read(keys).await?,
        };
        let mut deliveries = Vec::with_capacity(metas.len());
        let mut unreadable = Vec::new();
        for (meta, message) in metas.into_iter().zip(messages) {
            match message {
                Ok(message) => deliveries.push(delivery(meta, message)),
                Err(what) => {
                    report_unreadable(meta.no, meta.offset, &what);
                    unreadable.push((LeaseRef { epoch: meta.epoch, offset: meta.offset }, what));
                }
            }
        }
        if !unreadable.is_empty() {
            self.tell(Command::Unreadable(session, unreadable));
        }
        Ok(deliveries)
    }

    /// The bytes of confirmed messages, or for each what is wrong with it.
    async fn read(&self, keys: Vec<(ChannelNo, Offset)>) -> Result<Vec<Result<Bytes, String>>, Refusal> {
        let reader = Arc::clone(&self.shared.reader);
        let read = move || {
            let mut pauses = READ_AGAIN_AFTER.into_iter();
            // All at once where all is well, one by one to find out what is not.
            match reader.get_many(&keys) {
                Ok(all) if all.iter().all(Option::is_some) => Ok(all.into_iter().flatten().map(Ok).collect()),
                _ => {
                    keys.iter().map(|(channel, offset)| read_message(&reader, *channel, *offset, &mut pauses)).collect()
                }
            }
        };
        tokio::task::spawn_blocking(read)
            .await
            .map_err(|e| Refusal::new(Reason::Closed, e.to_string()))?
            .map_err(|e| Refusal::new(Reason::JournalFailed, chain(&e)))
    }
}

fn delivery(meta: DeliveryMeta, message: Bytes) -> Delivery {
    Delivery {
        channel: meta.channel,
        offset: meta.offset,
        task_id: meta.task_id.to_string(),
        message,
        epoch: meta.epoch,
        attempt: meta.attempt,
        acquired: meta.acquired,
        failed: meta.failed,
        lease_lost: meta.lease_lost,
        published_at: meta.published_at,
        lease_expires: meta.lease_expires,
        time_left_ms: meta.time_left_ms,
        execution: meta.execution,
        skipped: meta.skipped,
    }
}

/// A session's deliveries and notices, as they come. Dropping it ends the stream, not the session.
pub struct ConsumeStream {
    broker: Broker,
    session: SessionId,
    ticket: Ticket,
    receiver: mpsc::UnboundedReceiver<StreamItem>,
    /// Deliveries that have come and whose bytes are being read.
    reading: Option<Reading>,
}

type Reading = Pin<Box<dyn Future<Output = Result<Vec<Delivery>, Refusal>> + Send>>;

impl std::fmt::Debug for ConsumeStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConsumeStream").field("session", &self.session).finish_non_exhaustive()
    }
}

impl ConsumeStream {
    /// The next event; `None` once the broker has ended the stream. Bounded by the credit given. Dropping the future loses
    /// nothing: what had come is the next event of the next call.
    ///
    /// # Errors
    /// CLOSED and JOURNAL_FAILED where the broker goes down while a message is read.
    pub async fn next(&mut self) -> Option<Result<SessionEvent, Refusal>> {
        loop {
            let reading = match &mut self.reading {
                Some(reading) => reading,
                None => match self.receiver.recv().await? {
                    StreamItem::Notice(notice) => return Some(Ok(SessionEvent::Notice(notice))),
                    StreamItem::Deliver(metas) => {
                        let (broker, session) = (self.broker.clone(), self.session);
                        self.reading.insert(Box::pin(async move { broker.with_bytes(session, metas).await }))
                    }
                },
            };
            let deliveries = reading.await;
            self.reading = None;
            if deliveries.as_ref().is_ok_and(Vec::is_empty) {
                continue;
            }
            return Some(deliveries.map(SessionEvent::Deliveries));
        }
    }

    /// Lets the broker send so many more messages and bytes.
    pub fn credit(&self, messages: u32, bytes: u64) {
        self.broker.tell(Command::Credit(self.session, self.ticket, messages, bytes));
    }
}

impl Drop for ConsumeStream {
    fn drop(&mut self) {
        self.broker.tell(Command::Detach(self.session, self.ticket));
    }
}

fn joined(reply: Reply) -> Result<Joined, Refusal> {
    match reply {
        Reply::Joined { timeout_ms, expires, held, notices } => Ok(Joined { timeout_ms, expires, held, notices }),
        other => Err(unexpected(&other)),
    }
}

/// Rules for a session's names and times.
fn check_session(session: &SessionRef) -> Result<(), Refusal> {
    use crate::model::names;
    check_group(&session.group)?;
    names::check_opaque("session.member", &session.member).map_err(Refusal::from)?;
    if !session.instance.is_empty() {
        names::check_opaque("session.instance_id", &session.instance).map_err(Refusal::from)?;
    }
    let (least, most) = (limits::SESSION_TIMEOUT_MS_MIN, limits::SESSION_TIMEOUT_MS_MAX);
    if session.timeout_ms != 0 && !(least..=most).contains(&session.timeout_ms) {
        return Err(Refusal::invalid("session.session_timeout_ms", format!("0, or {least} to {most}")));
    }
    if session.held.as_ref().is_some_and(|held| held.len() > limits::HELD_MAX) {
        return Err(Refusal::invalid("session.held", format!("at most {} epochs", limits::HELD_MAX)));
    }
    Ok(())
}

fn check_lease_ms(lease_ms: u64) -> Result<(), Refusal> {
    if lease_ms > limits::LEASE_MS_MAX {
        return Err(Refusal::invalid("lease_ms", format!("at most {}", limits::LEASE_MS_MAX)));
    }
    Ok(())
}
