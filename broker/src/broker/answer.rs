//! What leaves with a group of frames, held back until the disk has caught up.

use super::consume::StreamItem;
use crate::engine::Reply;
use crate::journal::{JournalError, Waiter};
use crate::model::{Reason, Refusal};
use tokio::sync::{mpsc, oneshot};

/// Where an answer goes.
pub(super) type Answer = oneshot::Sender<Result<Reply, Refusal>>;

/// One thing that leaves.
pub(super) enum Leaving {
    /// To a caller.
    Reply(Answer, Reply),
    /// Into a stream.
    Item(mpsc::UnboundedSender<StreamItem>, StreamItem),
    /// To the sequencer itself: this much is durable.
    Durable(Box<dyn FnOnce() + Send>),
}

/// Everything that leaves with one hand-over.
pub(super) struct Leave(pub(super) Vec<Leaving>);

impl Waiter for Leave {
    fn release(self: Box<Self>, outcome: Result<(), JournalError>) {
        for leaving in self.0 {
            match (leaving, &outcome) {
                // Whoever waited may be gone; that is theirs to be.
                (Leaving::Reply(answer, reply), Ok(())) => drop(answer.send(Ok(reply))),
                (Leaving::Reply(answer, _), Err(error)) => drop(answer.send(Err(failed(error)))),
                (Leaving::Item(stream, item), Ok(())) => drop(stream.send(item)),
                (Leaving::Durable(told), Ok(())) => told(),
                (Leaving::Item(..) | Leaving::Durable(_), Err(_)) => {}
            }
        }
    }
}

/// A write that failed: whether it is on disk only the next recovery knows.
pub(super) fn failed(error: &JournalError) -> Refusal {
    Refusal::new(Reason::JournalFailed, format!("the disk failed: {}", chain(error)))
}

/// An error with its causes.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
