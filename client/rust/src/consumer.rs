//! What a worker and a subscriber have in common: one session that fetches, hands messages to a handler, and settles.
//!
//! One fetch is in flight at a time, for as many messages as there are free places, and says which leases this process
//! really works on. Each message is a job of its own; since the broker leases one message of a task at a time, a task's
//! messages are worked on one after the other.

mod act;
mod begin;
mod enter;
mod report;

use crate::backoff::Backoff;
use crate::connect::Client;
use crate::ending::Settle;
use crate::error::ClientError;
use crate::heartbeat::Heartbeat;
use crate::job::Handler;
use crate::lease::Lease;
use crate::options::{ConsumerOptions, millis};
use crate::session::{Session, says_stale};
use crate::settler::{Settled, Settler};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use weir_proto::v1::{AlreadyFinal, Delivery, ErrorReason, FetchRequest, FetchResponse, LeaveRequest, SettleOutcome};

/// How long handlers have, once their tokens have fired at the end of a stop, before they are given up.
const GRACE: Duration = Duration::from_secs(2);
/// How long the last calls of a stop may take, and then the leave.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// Told of a request that is not worked on because its execution has ended before.
pub(crate) type OnAlreadyFinal = Box<dyn Fn(&Delivery, &AlreadyFinal) + Send + Sync>;

/// What differs between a worker and a subscriber.
pub(crate) enum Role {
    /// Begins requests, and leaves replays alone.
    Works(Option<OnAlreadyFinal>),
    /// Begins nothing, and sees all.
    Watches,
}

/// A consumer that does not run yet.
pub(crate) struct Setup {
    pub(crate) client: Client,
    pub(crate) options: ConsumerOptions,
    pub(crate) role: Role,
    pub(crate) handler: Handler,
    pub(crate) stop: CancellationToken,
}

/// A consumer that runs.
struct Consumer {
    client: Client,
    session: Arc<Session>,
    settler: Settler,
    options: ConsumerOptions,
    role: Role,
    handler: Handler,
}

impl Setup {
    /// Fetches until told to stop, or until the broker refuses for good; then ends in order.
    pub(crate) async fn run(self) -> Result<(), ClientError> {
        self.options.validate()?;
        let begins = matches!(self.role, Role::Works(_));
        match enter::enter(&self.client, &self.options, begins, &self.stop).await {
            Err(_) if self.stop.is_cancelled() => return Ok(()),
            entered => entered?,
        }
        let session = Arc::new(Session::new(&self.options));
        // Whatever becomes of this future, nothing of it asks the broker for ever.
        let _closed = session.end.closed.clone().drop_guard();
        let heartbeat = Heartbeat::start(Arc::clone(&session), self.client.settings().clone(), &self.options)?;
        let consumer = Arc::new(Consumer {
            settler: Settler::start(Arc::clone(&session), self.client.clone()),
            client: self.client,
            session,
            options: self.options,
            role: self.role,
            handler: self.handler,
        });
        let mut jobs = JoinSet::new();
        let end = tokio::select! {
            error = consumer.fetch_on(&mut jobs) => Err(error),
            () = self.stop.cancelled() => Ok(()),
        };
        consumer.close(jobs).await;
        drop(heartbeat);
        end
    }
}

impl Consumer {
    async fn fetch_on(self: &Arc<Self>, jobs: &mut JoinSet<()>) -> ClientError {
        let places = Arc::new(Semaphore::new(self.options.concurrency));
        let mut pause = Backoff::new(self.client.settings().backoff);
        loop {
            // Waits for a first free place; the semaphore is never closed.
            drop(places.acquire().await);
            while jobs.try_join_next().is_some() {}
            let (id, asked) = (self.session.id(), Instant::now());
            match self.fetch(places.available_permits()).await {
                Ok(response) => {
                    let idle = response.deliveries.is_empty() && asked.elapsed() < self.options.fetch_wait / 2;
                    self.session.leases.hear(&response.held.unwrap_or_default());
                    self.session.hear(response.notices);
                    for delivery in response.deliveries {
                        self.take(delivery, &places, jobs);
                    }
                    if !idle {
                        pause.reset();
                        continue;
                    }
                }
                Err(error) if says_stale(&error) => {
                    tracing::warn!(%error, "the session is over");
                    if let Err(error) = self.session.is_stale(id, error) {
                        return error;
                    }
                }
                Err(error) => return error,
            }
            // Nothing came, and no wait kept this loop from turning.
            sleep(pause.next(None)).await;
        }
    }

    /// Asks for messages until the broker answers. Each attempt says anew what is held.
    async fn fetch(&self, free: usize) -> Result<FetchResponse, ClientError> {
        let mut patience = self.client.patience(None, CancellationToken::new());
        patience.attempt += self.options.fetch_wait;
        let max_messages = u32::try_from(free).unwrap_or(u32::MAX).clamp(1, self.options.fetch_messages);
        let fetch = || {
            let request = FetchRequest {
                session: Some(self.session.wire(Some(self.session.held()))),
                max_messages,
                max_bytes: self.options.fetch_bytes,
                wait_ms: millis(self.options.fetch_wait),
                lease_ms: self.options.lease_ms,
            };
            let mut service = self.client.consume_service();
            async move { service.fetch(request).await }
        };
        patience.call(fetch).await
    }

    /// Makes a job of a delivery. From here to the job's end the lease is in the table.
    fn take(self: &Arc<Self>, delivery: Delivery, places: &Arc<Semaphore>, jobs: &mut JoinSet<()>) {
        if delivery.message.is_none() {
            // Not held, so that the next fetch gives it back.
            tracing::error!(epoch = delivery.epoch, offset = delivery.offset, "a delivery without a message");
            return;
        }
        let lease = self.session.leases.enter(&delivery, &self.session.end.stopping);
        let (consumer, place) = (Arc::clone(self), Arc::clone(places).try_acquire_owned());
        jobs.spawn(async move {
            let held = InHand { session: &consumer.session, lease };
            consumer.work(&held.lease, delivery).await;
            drop((held, place));
        });
    }

    async fn settle(&self, lease: &Arc<Lease>, settle: Settle) {
        if lease.is_lost() {
            tracing::debug!(epoch = lease.epoch(), offset = lease.offset, "not settled: the lease is over");
            return;
        }
        let gives_back = matches!(settle.outcome, SettleOutcome::Retry | SettleOutcome::Release);
        let reason = settle.reason.clone();
        match self.settler.settle(lease, settle).await {
            Settled::Refused(error) if gives_back && error.reason == ErrorReason::ExecutionBegun => {
                // Begun, unsafe to repeat, and nobody vouches that nothing was executed.
                let answer = self.settler.settle(lease, Settle::unknown(reason)).await;
                self.hear_settled(lease, answer);
            }
            settled => self.hear_settled(lease, settled),
        }
    }

    fn hear_settled(&self, lease: &Lease, settled: Settled) {
        let (epoch, offset) = (lease.epoch(), lease.offset);
        match settled {
            Settled::Taken => {}
            Settled::LeaseLost => {
                tracing::info!(epoch, offset, "settled too late: the lease was over");
                self.session.leases.lose(lease);
            }
            Settled::Refused(error) => {
                tracing::error!(epoch, offset, %error, "settle refused; the next fetch gives the lease back");
            }
            Settled::Unanswered => tracing::warn!(epoch, offset, "not settled before the session was closed"),
        }
    }

    /// Lets jobs end within the limit, gives up what still runs, and leaves.
    async fn close(&self, mut jobs: JoinSet<()>) {
        let end = &self.session.end;
        if !ended(&mut jobs, self.options.drain).await {
            end.stopping.cancel();
            if !ended(&mut jobs, GRACE).await {
                end.abandoned.cancel();
                ended(&mut jobs, CLOSE_LIMIT).await;
            }
        }
        end.closed.cancel();
        let until = Instant::now() + CLOSE_LIMIT;
        let leave = || {
            let request = LeaveRequest { session: Some(self.session.wire(None)) };
            let mut service = self.client.consume_service();
            async move { service.leave(request).await }
        };
        if let Err(error) = self.client.patience(Some(until), CancellationToken::new()).call(leave).await {
            tracing::warn!(%error, "left without a word; the session ends by its timeout");
        }
    }
}

/// A lease in the table, for as long as its job lasts, however that ends.
struct InHand<'a> {
    session: &'a Session,
    lease: Arc<Lease>,
}

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        self.session.leases.leave(&self.lease);
    }
}

/// Whether all jobs ended within the limit.
async fn ended(jobs: &mut JoinSet<()>, limit: Duration) -> bool {
    let all = async { while jobs.join_next().await.is_some() {} };
    timeout(limit, all).await.is_ok()
}

#[cfg(test)]
mod tests;
