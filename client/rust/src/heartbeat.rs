//! Keeps a session and its leases alive, on a thread of its own with a runtime and a connection of its own, so that no
//! handler, however long it blocks its thread, stops the renewal.
//!
//! A heartbeat says what is held, as a question: it ends no lease, since deliveries may be on their way that this thread
//! does not know of, but it learns which of the list are over. Only so does a process that is too busy to fetch.

use crate::backoff::{Backoff, BackoffBounds};
use crate::connect::{Client, Settings};
use crate::error::ClientError;
use crate::options::ConsumerOptions;
use crate::session::{Session, says_stale};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::{Response, Status};
use weir_proto::v1::{ExtendRequest, Extension, HeartbeatRequest, extend_result};

/// Longest time between two heartbeats.
const INTERVAL_MAX: Duration = Duration::from_secs(5);
/// Most extensions in one call.
const EXTENSIONS_MAX: usize = 1000;
/// Longest wait before the first repeat of a failed renewal.
const FIRST_REPEAT: Duration = Duration::from_millis(100);

/// The running thread; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    _end: DropGuard,
}

impl Heartbeat {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the system has no thread for it.
    pub(crate) fn start(
        session: Arc<Session>,
        settings: Settings,
        options: &ConsumerOptions,
    ) -> Result<Self, ClientError> {
        let no_thread = |error: std::io::Error| ClientError::system(format!("no thread for heartbeats: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(no_thread)?;
        let end = CancellationToken::new();
        let until = end.clone();
        let (interval, lease_ms) = (interval(options.session_timeout_ms, options.lease_ms), options.lease_ms);
        std::thread::Builder::new()
            .name("weir-heartbeat".into())
            .spawn(move || {
                runtime.block_on(async {
                    let renewal = Renewal { session, client: settings.connect(), lease_ms, interval };
                    tokio::select! {
                        () = renewal.run() => {}
                        () = until.cancelled() => {}
                    }
                });
                // Not to wait for a name look-up that hangs.
                runtime.shutdown_background();
            })
            .map_err(no_thread)?;
        Ok(Self { _end: end.drop_guard() })
    }
}

/// How often to renew: a third of what the session or its leases last, and at least every 5 s.
fn interval(session_timeout_ms: u64, lease_ms: u64) -> Duration {
    let shortest = if lease_ms == 0 { session_timeout_ms } else { session_timeout_ms.min(lease_ms) };
    Duration::from_millis(shortest / 3).min(INTERVAL_MAX)
}

struct Renewal {
    session: Arc<Session>,
    client: Client,
    lease_ms: u64,
    interval: Duration,
}

impl Renewal {
    async fn run(&self) {
        let bounds = BackoffBounds { first: FIRST_REPEAT.min(self.interval), longest: self.interval };
        let mut backoff = Backoff::new(bounds);
        let mut due = Instant::now() + self.interval;
        loop {
            sleep_until(due).await;
            due = Instant::now() + self.interval;
            let (heard, extended) = (self.heartbeat().await, self.extend().await);
            match heard.and(extended) {
                Ok(()) => backoff.reset(),
                Err(error) => {
                    tracing::warn!(%error, "renewing the session failed, will be repeated");
                    due = Instant::now() + backoff.next(error.retry_after).min(self.interval);
                }
            }
        }
    }

    async fn heartbeat(&self) -> Result<(), ClientError> {
        let id = self.session.id();
        let request = HeartbeatRequest { session: Some(self.session.wire(Some(self.session.held()))), held: None };
        let mut service = self.client.consume_service();
        match self.answer(service.heartbeat(request)).await {
            Ok(response) => {
                self.session.leases.hear(&response.held.unwrap_or_default());
                self.session.hear(response.notices);
                Ok(())
            }
            // The fetch loop is told the same, and decides whether that is the end.
            Err(error) if says_stale(&error) => self.session.is_stale(id, error),
            Err(error) => Err(error),
        }
    }

    /// Gives leases with a duration of their own that duration again.
    async fn extend(&self) -> Result<(), ClientError> {
        let lease_ms = self.lease_ms;
        if lease_ms == 0 {
            return Ok(());
        }
        for chunk in self.session.leases.all().chunks(EXTENSIONS_MAX) {
            let extension = |(epoch, offset): &(u64, u64)| Extension { epoch: *epoch, offset: *offset, lease_ms };
            let request = ExtendRequest {
                session: Some(self.session.wire(None)),
                extensions: chunk.iter().map(extension).collect(),
            };
            let mut service = self.client.consume_service();
            for result in self.answer(service.extend(request)).await?.results {
                match result.result {
                    Some(extend_result::Result::LeaseLost(_)) => {
                        self.session.leases.lose_epoch(result.epoch, Some(result.offset));
                    }
                    Some(extend_result::Result::Refused(refusal)) => {
                        tracing::warn!(error = %ClientError::from(refusal), "a lease was not extended");
                    }
                    Some(extend_result::Result::Ok(_)) | None => {}
                }
            }
        }
        Ok(())
    }

    /// Waits no longer than the interval: a call that hangs must not keep the next one from being made.
    async fn answer<T>(&self, call: impl Future<Output = Result<Response<T>, Status>>) -> Result<T, ClientError> {
        match timeout(self.interval, call).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => Err(status.into()),
            Err(_) => Err(ClientError::unanswered(self.interval)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_of_the_shortest_life_is_the_interval_and_never_more_than_five_seconds() {
        assert_eq!(interval(30_000, 0), Duration::from_secs(5));
        assert_eq!(interval(9_000, 0), Duration::from_secs(3));
        assert_eq!(interval(30_000, 6_000), Duration::from_secs(2));
        assert_eq!(interval(3_000, 600_000), Duration::from_secs(1));
    }
}
