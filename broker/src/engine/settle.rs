//! Settle and extend (design, section 8): each answer is for one {epoch, offset}; a stale lease changes nothing.

use super::Engine;
use super::command::Turn;
use super::lease::{ATTEMPTS_EXHAUSTED, LiveLease};
use crate::journal::entry::{Entry, ExecutionHash, HoldCause, LeaseEnd};
use crate::model::{
    EndedAs, LeaseRef, Outcome, Reason, Refusal, SessionRef, Settle, SettleResult, UnixMillis, UnknownReason,
};

/// Bytes of a reason that are kept.
const REASON_BYTES_MAX: usize = 512;
/// Longest delay of a retry: 7 days.
const DELAY_MS_MAX: u64 = 7 * 24 * 60 * 60 * 1000;

impl Engine {
    pub(super) fn settle(
        &mut self,
        now: UnixMillis,
        session: &SessionRef,
        settle: &Settle,
        turn: &mut Turn,
    ) -> SettleResult {
        let live = match self.held_lease(session, settle.lease) {
            Ok(live) => live,
            Err(answer) => return answer,
        };
        match self.settle_live(now, &live, settle, turn) {
            Ok(()) => SettleResult::Ok,
            Err(refusal) => SettleResult::Refused(refusal),
        }
    }

    /// The live lease of this name if the session holds it in the group it names, else what a settle of it is answered.
    pub(super) fn held_lease(&self, session: &SessionRef, lease: LeaseRef) -> Result<LiveLease, SettleResult> {
        if let Some(live) = self.memory.lease(lease.epoch)
            && live.lease.session == session.id
            && live.offset() == lease.offset
            && self.is_group(live.key.group, &session.group)
        {
            return Ok(live);
        }
        match self.memory.ended(lease.epoch) {
            Some(record) if record.offset == lease.offset && self.is_group(record.group, &session.group) => {
                Err(SettleResult::AlreadySettled(record.answer))
            }
            _ => Err(SettleResult::LeaseLost),
        }
    }

    fn settle_live(
        &mut self,
        now: UnixMillis,
        live: &LiveLease,
        settle: &Settle,
        turn: &mut Turn,
    ) -> Result<(), Refusal> {
        let open = self.open_begin(live);
        match &settle.outcome {
            Outcome::Done => {
                if let Some(execution) = open {
                    let text = "settled DONE after a begin, without a result".to_owned();
                    let reason = UnknownReason::NoResult;
                    self.emit(turn, Entry::BecameUnknown { execution, reason, text, at: now });
                }
                self.end_lease(now, live, LeaseEnd::Done, EndedAs::Done, turn);
            }
            Outcome::Release => {
                self.withdraw(now, live, open, settle.not_executed, turn)?;
                self.end_lease(now, live, LeaseEnd::Released, EndedAs::Released, turn);
            }
            Outcome::Retry { delay_ms, reason } => {
                if *delay_ms > DELAY_MS_MAX {
                    return Err(Refusal::invalid("delay_ms", format!("at most {DELAY_MS_MAX}")));
                }
                self.withdraw(now, live, open, settle.not_executed, turn)?;
                let end = if self.memory.is_last_attempt(live.key, &live.delivery) {
                    self.exhausted(now, live.lease.execution, live.delivery.lease_lost > 0, turn);
                    LeaseEnd::Parked { failed: true, lost: false, reason: exhausted_because(reason) }
                } else {
                    let until = now.plus(*delay_ms);
                    let goes = self.goes_meanwhile(live).unwrap_or(until);
                    LeaseEnd::Failed { until: until.min(goes), reason: kept(reason) }
                };
                self.end_lease(now, live, end, EndedAs::Retried, turn);
            }
            Outcome::Reject { reason } => {
                if settle.not_executed {
                    self.withdraw(now, live, open, true, turn)?;
                } else if let Some(execution) = open {
                    let text = format!("set aside after a begin: {}", kept(reason));
                    self.emit(turn, Entry::BecameUnknown { execution, reason: UnknownReason::Rejected, text, at: now });
                }
                let end = LeaseEnd::Parked { failed: false, lost: false, reason: kept(reason) };
                self.end_lease(now, live, end, EndedAs::Rejected, turn);
            }
            Outcome::Unknown { reason } => {
                let Some(execution) = self.standing_begin(live) else {
                    return Err(Refusal::invalid("outcome", "UNKNOWN is for the holder of the standing begin"));
                };
                if open.is_none() {
                    return Err(Refusal::invalid("outcome", "the execution has a definite state; settle it DONE"));
                }
                self.emit(
                    turn,
                    Entry::BecameUnknown { execution, reason: UnknownReason::Reported, text: kept(reason), at: now },
                );
                let end = LeaseEnd::Held { cause: HoldCause::Unknown, execution, lost: false };
                self.end_lease(now, live, end, EndedAs::Unknown, turn);
            }
        }
        Ok(())
    }

    /// The execution begun under this lease, whose begin stands.
    pub(super) fn standing_begin(&self, live: &LiveLease) -> Option<ExecutionHash> {
        let token = live.lease.begun?;
        let execution = live.lease.execution?;
        let begin = self.memory.executions.get(&execution)?.begin.as_ref()?;
        (begin.token == token).then_some(execution)
    }

    /// The same, while it has no definite state.
    fn open_begin(&self, live: &LiveLease) -> Option<ExecutionHash> {
        let execution = self.standing_begin(live)?;
        self.memory.executions.get(&execution)?.state.definite().is_none().then_some(execution)
    }

    /// When a message that is tried again later has to be looked at though its delay is not over.
    fn goes_meanwhile(&self, live: &LiveLease) -> Option<UnixMillis> {
        let head = self.memory.heads.get(&(live.key.channel, live.offset()))?;
        let tenant = &self.memory.channels.get(&live.key.channel)?.tenant;
        let row = head.execution(self.memory.hasher, tenant).and_then(|x| self.memory.executions.get(&x));
        let begun = head.is_request && row.is_some_and(|row| row.begin.is_some());
        // Its deadline ends what was begun; for those who only watch that is none of theirs.
        let concerns = !begun || live.lease.execution.is_some();
        self.goes(live, !begun).filter(|_| concerns).map(|(at, _)| at)
    }

    /// RETRY and RELEASE after a begin: of an unsafe execution only with the word that nothing happened.
    fn withdraw(
        &mut self,
        now: UnixMillis,
        live: &LiveLease,
        open: Option<ExecutionHash>,
        not_executed: bool,
        turn: &mut Turn,
    ) -> Result<(), Refusal> {
        let Some(execution) = open else { return Ok(()) };
        if not_executed {
            self.emit(turn, Entry::BeginWithdrawn { execution, at: now });
        } else if self.memory.is_open_and_unsafe(&live.lease).is_some() {
            return Err(Refusal::new(
                Reason::ExecutionBegun,
                "the execution has begun and its effect is unsafe: say not_executed, or settle it UNKNOWN",
            ));
        }
        Ok(())
    }

    /// A lease with its own duration goes on for `lease_ms` from now.
    pub(super) fn extend(
        &mut self,
        now: UnixMillis,
        session: &SessionRef,
        lease: LeaseRef,
        lease_ms: u64,
        turn: &mut Turn,
    ) -> SettleResult {
        let live = match self.held_lease(session, lease) {
            Ok(live) => live,
            Err(answer) => return answer,
        };
        if live.lease.expires.is_none() {
            return SettleResult::Ok;
        }
        let until = now.plus(lease_ms);
        self.emit(turn, Entry::LeaseExtended { partition: live.key, epoch: lease.epoch, until });
        SettleResult::Ok
    }
}

/// At most so much of a reason is kept, cut at a character.
pub(super) fn kept(reason: &str) -> String {
    let mut end = reason.len().min(REASON_BYTES_MAX);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    reason.get(..end).unwrap_or_default().to_owned()
}

fn exhausted_because(reason: &str) -> String {
    if reason.is_empty() { ATTEMPTS_EXHAUSTED.to_owned() } else { kept(&format!("{ATTEMPTS_EXHAUSTED}: {reason}")) }
}
