//! Repeats a call until it is answered, or there is no sense in it any more.

use crate::backoff::{Backoff, BackoffBounds};
use crate::error::ClientError;
use std::future::Future;
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tonic::{Response, Status};

/// How long and how often a call is tried.
#[derive(Clone, Debug)]
pub(crate) struct Patience {
    /// Waits between the attempts.
    pub(crate) backoff: BackoffBounds,
    /// Longest wait for one attempt's answer.
    pub(crate) attempt: Duration,
    /// When to give up; `None` means only at `stop`.
    pub(crate) until: Option<Instant>,
    /// Gives up when it fires.
    pub(crate) stop: CancellationToken,
}

impl Patience {
    /// Makes the call until it is answered, refused for good, or patience ends.
    ///
    /// # Errors
    /// The last failure; `may_have_applied` if any attempt may have been. When the wait before the next attempt would
    /// outlast the deadline, it fails at once rather than at the deadline.
    pub(crate) async fn call<T, F, Answer>(&self, mut call: F) -> Result<T, ClientError>
    where
        F: FnMut() -> Answer,
        Answer: Future<Output = Result<Response<T>, Status>>,
    {
        let mut backoff = Backoff::new(self.backoff);
        let mut applied = false;
        loop {
            let limit = self.attempt_limit()?;
            let attempt = tokio::select! {
                () = self.stop.cancelled() => return Err(ClientError::stopped("stopped before an answer came").after(applied)),
                attempt = timeout(limit, call()) => attempt,
            };
            let error = match attempt {
                Ok(Ok(response)) => return Ok(response.into_inner()),
                Ok(Err(status)) => ClientError::from(status),
                Err(_) => ClientError::unanswered(limit),
            };
            applied |= error.may_have_applied;
            let error = error.after(applied);
            if !error.retryable {
                return Err(error);
            }
            let wait = backoff.next(error.retry_after);
            if self.until.is_some_and(|until| Instant::now() + wait >= until) {
                return Err(error);
            }
            tracing::debug!(%error, wait_ms = wait.as_millis(), "call failed, will be repeated");
            tokio::select! {
                () = self.stop.cancelled() => return Err(error),
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    fn attempt_limit(&self) -> Result<Duration, ClientError> {
        let Some(until) = self.until else {
            return Ok(self.attempt);
        };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ClientError::out_of_time());
        }
        Ok(left.min(self.attempt))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn patience(until: Option<Instant>) -> Patience {
        Patience {
            backoff: BackoffBounds { first: Duration::from_millis(1), longest: Duration::from_millis(2) },
            attempt: Duration::from_secs(30),
            until,
            stop: CancellationToken::new(),
        }
    }

    #[tokio::test]
    async fn a_failure_that_may_pass_is_repeated_until_it_has_passed() {
        let calls = Cell::new(0);

        let answer = patience(None)
            .call(async || {
                calls.set(calls.get() + 1);
                if calls.get() < 4 { Err(Status::unavailable("not yet")) } else { Ok(Response::new("here")) }
            })
            .await;

        assert_eq!((answer.unwrap(), calls.get()), ("here", 4));
    }

    #[tokio::test]
    async fn a_refusal_for_good_is_not_repeated() {
        let calls = Cell::new(0);

        let answer: Result<(), _> = patience(None)
            .call(async || {
                calls.set(calls.get() + 1);
                Err(Status::invalid_argument("never"))
            })
            .await;

        assert_eq!((answer.unwrap_err().code, calls.get()), (tonic::Code::InvalidArgument, 1));
    }

    #[tokio::test]
    async fn a_wait_past_the_deadline_is_not_begun() {
        let until = Instant::now() + Duration::from_secs(3600);
        let mut status = Status::resource_exhausted("full");
        status
            .metadata_mut()
            .insert("grpc-retry-pushback-ms", Duration::from_secs(7200).as_millis().to_string().parse().unwrap());

        let answer: Result<(), _> = patience(Some(until)).call(async || Err(status.clone())).await;

        assert_eq!(answer.unwrap_err().code, tonic::Code::ResourceExhausted);
    }

    #[tokio::test]
    async fn a_stop_ends_a_call_that_hangs() {
        let patience = patience(None);
        patience.stop.cancel();

        let answer: Result<(), _> = patience.call(async || std::future::pending().await).await;

        assert_eq!(answer.unwrap_err().code, tonic::Code::Cancelled);
    }
}
