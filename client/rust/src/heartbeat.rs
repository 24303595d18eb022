//! Heartbeats on a thread and a connection of their own, so that no handler, however it blocks, stops them.

use crate::connect::Settings;
use crate::error::ClientError;
use crate::holding::Holding;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use weir_proto::v1;

/// Longest time between two heartbeats.
const INTERVAL_MAX: Duration = Duration::from_secs(5);
/// The broker's session timeout where the caller names none.
const TIMEOUT_DEFAULT_MS: u64 = 30_000;

/// The thread; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Heartbeat {
    /// Starts it. `lease_ms` 0: leases live as long as the session and need no extending.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub(crate) fn start(
        settings: Settings,
        session: v1::Session,
        lease_ms: u64,
        holding: Holding,
    ) -> Result<Self, ClientError> {
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let thread = std::thread::Builder::new()
            .name("weir-heartbeat".to_owned())
            .spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                match runtime {
                    Ok(runtime) => runtime.block_on(beat(&settings, &session, lease_ms, &holding, &stopped)),
                    Err(error) => tracing::error!(%error, "no runtime for heartbeats"),
                }
            })
            .map_err(|error| ClientError::no_thread(&error))?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the heartbeat thread ended by a panic");
        }
    }
}

/// A third of the shorter of session and lease, at most [`INTERVAL_MAX`].
fn interval(session: &v1::Session, lease_ms: u64) -> Duration {
    let timeout_ms = if session.session_timeout_ms == 0 { TIMEOUT_DEFAULT_MS } else { session.session_timeout_ms };
    let shortest = if lease_ms == 0 { timeout_ms } else { timeout_ms.min(lease_ms) };
    Duration::from_millis(shortest / 3).min(INTERVAL_MAX)
}

async fn beat(settings: &Settings, session: &v1::Session, lease_ms: u64, holding: &Holding, stop: &CancellationToken) {
    let client = settings.connect();
    let mut consume = client.consume_service();
    let every = interval(session, lease_ms);
    while !stop.is_cancelled() {
        // The list ends nothing here: it is asked which of it are over.
        let listing = v1::Session { held: Some(holding.list()), ..session.clone() };
        let request = v1::HeartbeatRequest { session: Some(listing), held: None };
        let one = async {
            match consume.heartbeat(request).await {
                Ok(answer) => {
                    let answer = answer.into_inner();
                    holding.answered(answer.held);
                    holding.noticed(answer.notices);
                }
                Err(status) => tracing::debug!(%status, "a heartbeat was not answered; the next one follows"),
            }
            let extensions = if lease_ms == 0 { Vec::new() } else { holding.extensions(lease_ms) };
            if !extensions.is_empty() {
                let request = v1::ExtendRequest { session: Some(session.clone()), extensions };
                match consume.extend(request).await {
                    Ok(answer) => {
                        for result in answer.into_inner().results {
                            if let Some(v1::extend_result::Result::LeaseLost(_)) = result.result {
                                holding.lost(result.epoch);
                            }
                        }
                    }
                    Err(status) => tracing::debug!(%status, "an extension was not answered; the next one follows"),
                }
            }
        };
        // A call that hangs must not cost the next beat.
        let _ = tokio::time::timeout(every, one).await;
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(every) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beat_comes_three_times_in_the_shorter_of_session_and_lease() {
        let of = |timeout_ms, lease_ms| {
            interval(&v1::Session { session_timeout_ms: timeout_ms, ..Default::default() }, lease_ms)
        };
        assert_eq!(of(0, 0), Duration::from_secs(5), "a third of 30 s, but at most 5 s");
        assert_eq!(of(3_000, 0), Duration::from_secs(1));
        assert_eq!(of(30_000, 1_500), Duration::from_millis(500));
    }
}
