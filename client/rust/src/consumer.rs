//! One member of a group: fetches, hands to handlers, ends leases. [`Worker`] begins requests before it acts,
//! [`Subscriber`] never does.

mod one;
mod options;
#[cfg(test)]
mod tests;

pub use options::ConsumerOptions;

use crate::connect::Client;
use crate::error::ClientError;
use crate::heartbeat::Heartbeat;
use crate::holding::Holding;
use crate::job::{Handler, HandlerError, Job, Outcome, handler};
use one::Handling;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use weir_proto::v1;

/// How long one fetch waits for a message.
const FETCH_WAIT_MS: u64 = 5_000;

/// A member that acts: for a request it begins, runs the handler, and completes; other messages it hands to the handler
/// and settles. One task's messages come strictly in order, tasks in parallel.
///
/// ```no_run
/// # async fn demo(client: weir_client::Client) -> Result<(), weir_client::ClientError> {
/// use weir_client::{ConsumerOptions, HandlerError, Outcome};
///
/// let options = ConsumerOptions::new("acme", "task_events", "refunders", "worker-1");
/// let worker = client.worker(options, |job| async move {
///     // Pay, with job.message().execution_id as the provider's idempotency key if it takes one.
///     let receipt = pay(&job.message().payload).await.map_err(HandlerError::failed)?;
///     Ok(Outcome::completed(receipt))
/// });
/// worker.run().await
/// # }
/// # async fn pay(_: &[u8]) -> Result<String, std::io::Error> { Ok("receipt".into()) }
/// ```
#[derive(Debug)]
pub struct Worker(Consumer);

/// A member that only watches: it never begins, so no request is ever acted on through it.
#[derive(Debug)]
pub struct Subscriber(Consumer);

impl Client {
    /// A member that acts. `handler` gets every message of the group that this member is handed.
    pub fn worker<F, Ends>(&self, options: ConsumerOptions, function: F) -> Worker
    where
        F: Fn(Job) -> Ends + Send + Sync + 'static,
        Ends: Future<Output = Result<Outcome, HandlerError>> + Send + 'static,
    {
        Worker(Consumer::new(self.clone(), options, handler(function), true))
    }

    /// A member that watches. `handler` gets every message of the group that this member is handed.
    pub fn subscriber<F, Ends>(&self, options: ConsumerOptions, function: F) -> Subscriber
    where
        F: Fn(Job) -> Ends + Send + Sync + 'static,
        Ends: Future<Output = Result<Outcome, HandlerError>> + Send + 'static,
    {
        Subscriber(Consumer::new(self.clone(), options, handler(function), false))
    }
}

macro_rules! member {
    ($name:ident) => {
        impl $name {
            /// Fires to stop it; clones share it.
            #[must_use]
            pub fn stopper(&self) -> CancellationToken {
                self.0.stop.clone()
            }

            /// Runs until it is stopped. Then nothing more is fetched, handlers have the options' `drain` to end, and the
            /// session leaves.
            ///
            /// # Errors
            /// What the broker refuses for good, such as a group that does not exist. Failures that may pass are sat
            /// out, a restart of the broker among them.
            pub async fn run(self) -> Result<(), ClientError> {
                self.0.run().await
            }
        }
    };
}

member!(Worker);
member!(Subscriber);

struct Consumer {
    client: Client,
    options: ConsumerOptions,
    handler: Handler,
    begins: bool,
    stop: CancellationToken,
}

impl std::fmt::Debug for Consumer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Consumer").field("options", &self.options).field("begins", &self.begins).finish_non_exhaustive()
    }
}

impl Consumer {
    fn new(client: Client, options: ConsumerOptions, handler: Handler, begins: bool) -> Self {
        Self { client, options, handler, begins, stop: CancellationToken::new() }
    }

    async fn run(self) -> Result<(), ClientError> {
        let session = self.options.session();
        let holding = Holding::default();
        let heartbeat =
            Heartbeat::start(self.client.settings().clone(), session.clone(), self.options.lease_ms, holding.clone())?;
        let mut handlers = JoinSet::new();
        let outcome = self.fetch_on(&session, &holding, &mut handlers).await;
        let all = async { while handlers.join_next().await.is_some() {} };
        // What does not end in time is left to the broker: its lease ends with the session.
        let _ = tokio::time::timeout(self.options.drain, all).await;
        drop(heartbeat);
        let leave = v1::LeaveRequest { session: Some(session) };
        let _ = self.client.consume_service().leave(leave).await;
        outcome
    }

    async fn fetch_on(
        &self,
        session: &v1::Session,
        holding: &Holding,
        handlers: &mut JoinSet<()>,
    ) -> Result<(), ClientError> {
        let places = Arc::new(Semaphore::new(self.options.concurrency));
        loop {
            while handlers.try_join_next().is_some() {}
            let place = tokio::select! {
                () = self.stop.cancelled() => return Ok(()),
                place = Arc::clone(&places).acquire_owned() => place,
            };
            // The semaphore is never closed.
            let Ok(place) = place else { return Ok(()) };
            let free = places.available_permits() + 1;
            drop(place);
            let fetched = self
                .client
                .patience(None, self.stop.clone())
                .call(|| {
                    // Built anew for each attempt: what is held may have changed since the last.
                    let request = v1::FetchRequest {
                        session: Some(v1::Session { held: Some(holding.list()), ..session.clone() }),
                        max_messages: u32::try_from(free).unwrap_or(u32::MAX).min(self.options.fetch_messages),
                        max_bytes: 0,
                        wait_ms: FETCH_WAIT_MS,
                        lease_ms: self.options.lease_ms,
                    };
                    let mut consume = self.client.consume_service();
                    async move { consume.fetch(request).await }
                })
                .await;
            let fetched = match fetched {
                Ok(fetched) => fetched,
                Err(_) if self.stop.is_cancelled() => return Ok(()),
                // The session was lost meanwhile: the next fetch joins again under the same id.
                Err(error) if error.reason == v1::ErrorReason::StaleSession => continue,
                Err(error) => return Err(error),
            };
            holding.answered(fetched.held);
            holding.noticed(fetched.notices);
            for delivery in fetched.deliveries {
                let cancel = holding.take(delivery.epoch, delivery.offset);
                let Ok(place) = Arc::clone(&places).acquire_owned().await else { return Ok(()) };
                let handling = Handling {
                    client: self.client.clone(),
                    session: session.clone(),
                    holding: holding.clone(),
                    handler: Arc::clone(&self.handler),
                    begins: self.begins,
                    retry_delay: self.options.retry_delay,
                };
                handlers.spawn(async move {
                    handling.run(delivery, cancel).await;
                    drop(place);
                });
            }
        }
    }
}

/// Waits between attempts to end a lease: for as long as its session may live.
const END_PATIENCE: Duration = Duration::from_secs(120);
