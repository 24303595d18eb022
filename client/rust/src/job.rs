//! One message in a handler's hands.

use crate::lease::{CancelCause, Lease};
use crate::outcome::{HandlerError, Outcome};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use weir_proto::v1::{Delivery, FinalState, Message};

/// One message, under a lease, with all that is known of it.
#[derive(Clone, Debug)]
pub struct Job {
    /// The message, and what the broker says with it: channel, offset, attempts, the ledger's hint, gaps.
    pub delivery: Delivery,
    /// The token of the begin; `None` where nothing was begun. Show it to whatever can refuse an older one.
    pub fencing_token: Option<u64>,
    /// Fires when the work should stop; [`cancel_cause`](Self::cancel_cause) says why.
    pub cancel: CancellationToken,
    deadline: Option<Instant>,
    lease: Arc<Lease>,
}

impl Job {
    pub(crate) fn new(delivery: Delivery, fencing_token: Option<u64>, lease: Arc<Lease>) -> Self {
        let left = delivery.time_left_ms.map(Duration::from_millis);
        let deadline = left.and_then(|left| lease.since.checked_add(left));
        Self { delivery, fencing_token, cancel: lease.cancel.clone(), deadline, lease }
    }

    /// The message, as it was published.
    #[must_use]
    pub fn message(&self) -> &Message {
        message_of(&self.delivery)
    }

    /// Which attempt this is, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.delivery.attempt
    }

    /// Whether the message was handed out before and comes again by a replay. Nothing may be acted on then.
    #[must_use]
    pub fn is_replay(&self) -> bool {
        self.delivery.replay
    }

    /// Time left until the message's deadline, zero once it has passed; `None` without a deadline.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Why the token fired; `None` while it has not.
    #[must_use]
    pub fn cancel_cause(&self) -> Option<CancelCause> {
        self.lease.cause()
    }
}

/// The message of a delivery. Every delivery has one; an empty one stands in where a broker breaks that.
pub(crate) fn message_of(delivery: &Delivery) -> &Message {
    static NONE: OnceLock<Message> = OnceLock::new();
    delivery.message.as_ref().unwrap_or_else(|| NONE.get_or_init(Message::default))
}

/// A request names an execution, reports no final state, and is of a type that asks.
pub(crate) fn is_request(message: &Message) -> bool {
    let kind = message.r#type.as_str();
    let own = kind.strip_prefix("x.").and_then(|rest| rest.strip_suffix(".request"));
    let asks = matches!(kind, "task.request" | "action.preview") || own.is_some_and(|name| !name.is_empty());
    asks && !message.execution_id.is_empty() && message.final_state == i32::from(FinalState::Unspecified)
}

/// What a handler gives back.
pub(crate) type Handled = Pin<Box<dyn Future<Output = Result<Outcome, HandlerError>> + Send>>;
/// A handler, as it is kept.
pub(crate) type Handler = Arc<dyn Fn(Job) -> Handled + Send + Sync>;

/// Keeps a function as a handler.
pub(crate) fn handler<F, Work>(function: F) -> Handler
where
    F: Fn(Job) -> Work + Send + Sync + 'static,
    Work: Future<Output = Result<Outcome, HandlerError>> + Send + 'static,
{
    Arc::new(move |job| Box::pin(function(job)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: &str) -> Message {
        Message { r#type: kind.into(), execution_id: "x1".into(), ..Default::default() }
    }

    #[test]
    fn only_what_asks_for_an_execution_is_a_request() {
        for kind in ["task.request", "action.preview", "x.refund.request", "x.a.b.request"] {
            assert!(is_request(&message(kind)), "{kind}");
            assert!(!is_request(&Message { execution_id: String::new(), ..message(kind) }));
            let report = Message { final_state: FinalState::Unknown.into(), ..message(kind) };
            assert!(!is_request(&report));
        }
        for kind in ["", "event", "task.result", "x.request", "x..request", "x.refund", "y.refund.request"] {
            assert!(!is_request(&message(kind)), "{kind}");
        }
    }
}
