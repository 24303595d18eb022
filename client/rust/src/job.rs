//! What a handler is given, and what it gives back.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use weir_proto::v1;

/// One message in a handler's hands.
#[derive(Clone, Debug)]
pub struct Job {
    /// The message, and what the broker says with it.
    pub delivery: v1::Delivery,
    /// The token of the begin, where this handler was told to act. Pass it on to whatever can check it.
    pub fencing_token: Option<u64>,
    /// Fires when the lease is lost, or the execution ended elsewhere: stop working.
    pub cancel: CancellationToken,
}

impl Job {
    /// The message.
    #[must_use]
    pub fn message(&self) -> &v1::Message {
        // A delivery always holds its message; an empty one stands in where a broker breaks that.
        static NONE: std::sync::OnceLock<v1::Message> = std::sync::OnceLock::new();
        self.delivery.message.as_ref().unwrap_or_else(|| NONE.get_or_init(v1::Message::default))
    }

    /// Time until the message's deadline, as of the delivery; `None` if it has none.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        self.delivery.time_left_ms.map(Duration::from_millis)
    }
}

/// How a handler ended well.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// How a begun execution ended; a message that is no request is simply done.
    pub final_state: v1::FinalState,
    /// What it produced. COMPLETED without it is flagged, or refused where the policy asks for it.
    pub artifact_ref: String,
    /// Follow-ups, stored with the outcome or not at all; at most 16.
    pub publishes: Vec<v1::FollowUp>,
}

impl Outcome {
    /// COMPLETED, with this product.
    #[must_use]
    pub fn completed(artifact_ref: impl Into<String>) -> Self {
        Self { final_state: v1::FinalState::Completed, artifact_ref: artifact_ref.into(), ..Self::default() }
    }

    /// FAILED: known to have ended without success. It is not tried again; a retry is a new execution.
    #[must_use]
    pub fn failed() -> Self {
        Self { final_state: v1::FinalState::Failed, ..Self::default() }
    }

    /// REJECTED: not taken on.
    #[must_use]
    pub fn rejected() -> Self {
        Self { final_state: v1::FinalState::Rejected, ..Self::default() }
    }

    /// Done with a message that asks for nothing.
    #[must_use]
    pub fn done() -> Self {
        Self { final_state: v1::FinalState::Completed, ..Self::default() }
    }

    /// The same with a follow-up.
    #[must_use]
    pub fn and_publish(mut self, follow_up: v1::FollowUp) -> Self {
        self.publishes.push(follow_up);
        self
    }
}

/// How a handler did not end well.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandlerError {
    /// Nothing happened, for certain: the begin is withdrawn and the message comes again after `delay`.
    #[error("not executed: {reason}")]
    NotExecuted {
        /// For the record.
        reason: String,
        /// Before the next attempt.
        delay: Duration,
    },
    /// Anything else. After a begin nobody knows whether the effect happened: the execution becomes UNKNOWN and its task
    /// waits. Without a begin the message comes again.
    #[error("{0}")]
    Failed(String),
}

impl HandlerError {
    /// Nothing happened, for certain; try again after `delay`.
    pub fn not_executed(reason: impl Into<String>, delay: Duration) -> Self {
        Self::NotExecuted { reason: reason.into(), delay }
    }

    /// It failed; after a begin nobody knows how far it came.
    pub fn failed(reason: impl std::fmt::Display) -> Self {
        Self::Failed(reason.to_string())
    }
}

/// A handler, as it is kept.
pub(crate) type Handler =
    Arc<dyn Fn(Job) -> Pin<Box<dyn Future<Output = Result<Outcome, HandlerError>> + Send>> + Send + Sync>;

/// Keeps a function as a handler.
pub(crate) fn handler<F, Ends>(function: F) -> Handler
where
    F: Fn(Job) -> Ends + Send + Sync + 'static,
    Ends: Future<Output = Result<Outcome, HandlerError>> + Send + 'static,
{
    Arc::new(move |job| Box::pin(function(job)))
}
