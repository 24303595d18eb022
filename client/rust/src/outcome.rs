//! What a handler says became of a message.

use std::fmt;
use std::time::Duration;
use weir_proto::v1::{ChannelRef, FinalState, FollowUp, Message};

/// What became of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The begun execution has ended, and this is how. A message that was not begun is done with it; but set aside for an
    /// operator if the report comes with messages, since those are stored only together with an execution's end.
    Report(Box<Report>),
    /// Dealt with. For what was begun prefer a report: a bare done leaves its execution UNKNOWN, for want of a result.
    Done,
    /// Give it back at once, without counting an attempt.
    Release,
    /// It failed and should come again. What was begun and is unsafe to repeat is held as UNKNOWN instead, unless the
    /// handler vouches with [`HandlerError::NotExecuted`] that nothing was executed.
    Retry {
        /// Time before it comes again, at most 7 days; `None` leaves it to [`retry`](crate::ConsumerOptions::retry).
        delay: Option<Duration>,
        /// Why, for people.
        reason: String,
    },
    /// Never again: set it, and its task with it, aside for an operator.
    Reject {
        /// Why, for people.
        reason: String,
    },
    /// Nobody knows whether it was done: hold it until someone does. What was not begun comes again instead.
    Unknown {
        /// Why, for people.
        reason: String,
    },
}

impl Outcome {
    /// The begun execution was done, and its product lies at `artifact_ref`.
    #[must_use]
    pub fn completed(artifact_ref: impl Into<String>) -> Self {
        Report::completed(artifact_ref).into()
    }

    /// The begun execution was tried and did not succeed. That ends it: a retry is a new execution.
    #[must_use]
    pub fn failed() -> Self {
        Report::failed().into()
    }

    /// The begun execution was called off.
    #[must_use]
    pub fn canceled() -> Self {
        Report::canceled().into()
    }

    /// The begun execution was refused.
    #[must_use]
    pub fn rejected() -> Self {
        Report::rejected().into()
    }

    /// Dealt with a message that asks for nothing.
    #[must_use]
    pub const fn done() -> Self {
        Self::Done
    }
}

/// How a begun execution ended: a definite state, its product, and what follows from it, stored in one step.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a report counts once it is returned"]
pub struct Report {
    pub(crate) final_state: FinalState,
    pub(crate) artifact_ref: String,
    pub(crate) result: Option<Message>,
    pub(crate) follow_ups: Vec<FollowUp>,
}

impl Report {
    fn of(final_state: FinalState, artifact_ref: String) -> Self {
        Self { final_state, artifact_ref, result: None, follow_ups: Vec::new() }
    }

    /// Whether it comes with messages to store.
    pub(crate) fn has_messages(&self) -> bool {
        self.result.is_some() || !self.follow_ups.is_empty()
    }

    /// It was done, and its product lies at `artifact_ref`, at most 2,048 bytes; empty if there is none.
    pub fn completed(artifact_ref: impl Into<String>) -> Self {
        Self::of(FinalState::Completed, artifact_ref.into())
    }

    /// It was tried and did not succeed. That ends the execution: a retry is a new one.
    pub fn failed() -> Self {
        Self::of(FinalState::Failed, String::new())
    }

    /// It was called off.
    pub fn canceled() -> Self {
        Self::of(FinalState::Canceled, String::new())
    }

    /// It was refused.
    pub fn rejected() -> Self {
        Self::of(FinalState::Rejected, String::new())
    }

    /// Stores `message` as the result, in the request's channel. It needs a message id and an agent id; task, execution,
    /// state and product are filled in. Without a result of its own the broker writes one.
    pub fn with_result(mut self, message: Message) -> Self {
        self.result = Some(message);
        self
    }

    /// Stores one more message in the same step, in any channel of the same tenant; at most 16 with the result.
    pub fn with_follow_up(mut self, channel: ChannelRef, message: Message) -> Self {
        self.follow_ups.push(FollowUp {
            policy: channel.policy,
            tenant: channel.tenant,
            agent_id: channel.agent_id,
            message: Some(message),
        });
        self
    }
}

impl From<Report> for Outcome {
    fn from(report: Report) -> Self {
        Self::Report(Box::new(report))
    }
}

/// Why a handler gave up.
///
/// Any error turns into [`Failed`](Self::Failed) with `?`. After a begin that means UNKNOWN: an error alone does not say
/// whether the effect happened. A panic counts as `Failed` too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandlerError {
    /// The handler vouches that nothing was executed: a begin is withdrawn, the attempt counts as failed, and the message
    /// comes again.
    NotExecuted {
        /// Why, for people.
        reason: String,
        /// Time before it comes again, at most 7 days.
        delay: Duration,
    },
    /// The handler vouches that nothing was executed and that this is not the message's fault: a begin is withdrawn, and
    /// the message is given back at once, without counting an attempt.
    Released {
        /// Why, for people.
        reason: String,
    },
    /// It failed, and how far it came is not said. What was begun is UNKNOWN; what was not comes again.
    Failed {
        /// Why, for people.
        reason: String,
    },
}

impl HandlerError {
    /// Nothing was executed, for certain; again after `delay`.
    pub fn not_executed(reason: impl fmt::Display, delay: Duration) -> Self {
        Self::NotExecuted { reason: reason.to_string(), delay }
    }

    /// Nothing was executed, and that is not the message's fault.
    pub fn released(reason: impl fmt::Display) -> Self {
        Self::Released { reason: reason.to_string() }
    }

    /// It failed, and how far it came is not said.
    pub fn failed(reason: impl fmt::Display) -> Self {
        Self::Failed { reason: reason.to_string() }
    }
}

// No `std::error::Error` for this type: it would forbid the conversion from every other error.
impl<E: std::error::Error> From<E> for HandlerError {
    fn from(error: E) -> Self {
        Self::failed(error)
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotExecuted { reason, .. } => write!(f, "not executed: {reason}"),
            Self::Released { reason } => write!(f, "not executed, given back: {reason}"),
            Self::Failed { reason } => write!(f, "failed: {reason}"),
        }
    }
}
