//! From what a handler said to how the lease ends: plain rules, without a call.

use crate::options::millis;
use crate::outcome::{HandlerError, Outcome, Report};
use std::time::Duration;
use weir_proto::v1::SettleOutcome;

/// What the broker keeps of a reason.
const REASON_BYTES_MAX: usize = 512;
/// Longest delay a retry may ask for: 7 days.
const DELAY_MAX: Duration = Duration::from_secs(604_800);

/// How the work on a message ended.
#[derive(Debug)]
pub(crate) enum Worked {
    /// The handler returned.
    Returned(Result<Outcome, HandlerError>),
    /// The handler panicked.
    Panicked(String),
    /// The handler was given up because this process stops.
    Abandoned,
}

/// How a lease ends.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ending {
    /// By a report on what was begun.
    Report(Box<Report>),
    /// By a settle.
    Settle(Settle),
}

/// A settle, but for whose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settle {
    pub(crate) outcome: SettleOutcome,
    pub(crate) delay_ms: u64,
    pub(crate) reason: String,
    pub(crate) not_executed: bool,
}

impl Settle {
    fn new(outcome: SettleOutcome, reason: impl Into<String>) -> Self {
        let mut reason = reason.into();
        reason.truncate(reason.floor_char_boundary(REASON_BYTES_MAX));
        Self { outcome, delay_ms: 0, reason, not_executed: false }
    }

    /// Dealt with.
    pub(crate) fn done() -> Self {
        Self::new(SettleOutcome::Done, "")
    }

    /// Given back, not counted.
    pub(crate) fn release(reason: impl Into<String>) -> Self {
        Self::new(SettleOutcome::Release, reason)
    }

    /// Again after `delay`.
    pub(crate) fn retry(delay: Duration, reason: impl Into<String>) -> Self {
        let delay_ms = millis(delay.min(DELAY_MAX));
        Self { delay_ms, ..Self::new(SettleOutcome::Retry, reason) }
    }

    /// Held until someone knows.
    pub(crate) fn unknown(reason: impl Into<String>) -> Self {
        Self::new(SettleOutcome::Unknown, reason)
    }

    /// With the word that nothing was executed, which withdraws a begin.
    pub(crate) fn not_executed(self) -> Self {
        Self { not_executed: true, ..self }
    }
}

impl From<Settle> for Ending {
    fn from(settle: Settle) -> Self {
        Self::Settle(settle)
    }
}

impl Ending {
    /// How the lease ends. `begun`: the execution was begun before the handler ran. `usual` is the delay of a retry whose
    /// handler set none.
    pub(crate) fn of(worked: Worked, begun: bool, usual: Duration) -> Self {
        let fault = |reason: String| match begun {
            true => Settle::unknown(reason),
            false => Settle::retry(usual, reason),
        };
        let settle = match worked {
            Worked::Returned(Ok(Outcome::Report(report))) if begun => return Self::Report(report),
            Worked::Returned(Ok(outcome)) => of_outcome(outcome, fault, usual),
            Worked::Returned(Err(HandlerError::NotExecuted { reason, delay })) => {
                let settle = Settle::retry(delay, reason);
                if begun { settle.not_executed() } else { settle }
            }
            Worked::Returned(Err(HandlerError::Released { reason })) => {
                let settle = Settle::release(reason);
                if begun { settle.not_executed() } else { settle }
            }
            Worked::Returned(Err(HandlerError::Failed { reason })) => fault(reason),
            Worked::Panicked(reason) => fault(format!("the handler panicked: {reason}")),
            Worked::Abandoned if begun => Settle::unknown("the worker stopped before its handler ended"),
            Worked::Abandoned => Settle::release("the consumer stopped before its handler ended"),
        };
        settle.into()
    }
}

fn of_outcome(outcome: Outcome, fault: impl FnOnce(String) -> Settle, usual: Duration) -> Settle {
    match outcome {
        Outcome::Report(report) if !report.has_messages() => Settle::done(),
        Outcome::Report(_) => {
            Settle::new(SettleOutcome::Reject, "its handler reported, with messages, an execution that was not begun")
        }
        Outcome::Done => Settle::done(),
        Outcome::Release => Settle::release(""),
        Outcome::Retry { delay, reason } => Settle::retry(delay.unwrap_or(usual), reason),
        Outcome::Reject { reason } => Settle::new(SettleOutcome::Reject, reason),
        Outcome::Unknown { reason } => fault(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_proto::v1::Message;

    const USUAL: Duration = Duration::from_millis(700);

    fn settle(worked: Worked, begun: bool) -> Settle {
        match Ending::of(worked, begun, USUAL) {
            Ending::Settle(settle) => settle,
            Ending::Report(report) => panic!("{report:?}"),
        }
    }

    fn failed(error: HandlerError) -> Worked {
        Worked::Returned(Err(error))
    }

    #[test]
    fn an_error_after_a_begin_is_unknown_and_without_one_a_retry() {
        for worked in [|| failed(HandlerError::failed("no")), || Worked::Panicked("no".into())] {
            let (begun, unbegun) = (settle(worked(), true), settle(worked(), false));
            assert_eq!((begun.outcome, begun.not_executed), (SettleOutcome::Unknown, false));
            assert_eq!((unbegun.outcome, unbegun.delay_ms), (SettleOutcome::Retry, 700));
        }
    }

    #[test]
    fn who_vouches_that_nothing_was_executed_withdraws_the_begin() {
        let again = settle(failed(HandlerError::not_executed("closed", USUAL)), true);
        let back = settle(failed(HandlerError::released("closed")), true);

        assert_eq!((again.outcome, again.not_executed), (SettleOutcome::Retry, true));
        assert_eq!((back.outcome, back.not_executed), (SettleOutcome::Release, true));
        assert!(!settle(failed(HandlerError::not_executed("closed", USUAL)), false).not_executed);
    }

    #[test]
    fn a_report_ends_what_was_begun_and_nothing_else_is_lost_with_it() {
        let plain = || Report::completed("a");
        let carries = || plain().with_result(Message::default());
        let returned = |report: Report| Worked::Returned(Ok(report.into()));

        assert_eq!(Ending::of(returned(carries()), true, USUAL), Ending::Report(Box::new(carries())));
        assert_eq!(settle(returned(plain()), false).outcome, SettleOutcome::Done);
        assert_eq!(settle(returned(carries()), false).outcome, SettleOutcome::Reject);
    }

    #[test]
    fn what_a_stop_gives_up_is_unknown_if_begun_and_else_given_back() {
        assert_eq!(settle(Worked::Abandoned, true).outcome, SettleOutcome::Unknown);
        assert_eq!(settle(Worked::Abandoned, false).outcome, SettleOutcome::Release);
    }

    #[test]
    fn reasons_and_delays_keep_to_their_limits() {
        let delay = Some(Duration::from_secs(u64::MAX));
        let reason = "ü".repeat(300);
        let settle = settle(Worked::Returned(Ok(Outcome::Retry { delay, reason })), false);

        assert_eq!(settle.reason, "ü".repeat(256));
        assert_eq!(settle.delay_ms, 604_800_000);
    }
}
