//! The end of a lease that its holder did not settle: lost, withdrawn, or not in the holder's own list.

use super::Engine;
use super::command::Turn;
use super::memory::Memory;
use crate::journal::entry::{Entry, ExecutionHash, HoldCause, LeaseEnd, PartitionKey};
use crate::model::{EndedAs, Epoch, LeaseRef, Notice, Offset, SessionId, UnixMillis, UnknownReason};
use crate::state::rows::{DeliveryRow, LeaseRow};

/// A live lease with the state of its message.
#[derive(Clone, Debug)]
pub(super) struct LiveLease {
    pub(super) key: PartitionKey,
    pub(super) delivery: DeliveryRow,
    pub(super) lease: LeaseRow,
}

impl LiveLease {
    pub(super) const fn offset(&self) -> Offset {
        self.delivery.offset
    }
}

/// Words for a message that ran out of attempts; part of the stable output.
pub(super) const ATTEMPTS_EXHAUSTED: &str = "attempts exhausted";

impl Memory {
    /// The live lease of this epoch.
    pub(super) fn lease(&self, epoch: Epoch) -> Option<LiveLease> {
        let key = *self.leases.get(&epoch)?;
        let delivery = self.partition(key)?.delivery.clone()?;
        let lease = delivery.lease()?.clone();
        Some(LiveLease { key, delivery, lease })
    }

    /// Whether the begin made under this lease stands, and its effect is one that must not be repeated blindly, and
    /// nobody knows yet how it ended.
    pub(super) fn is_open_and_unsafe(&self, lease: &LeaseRow) -> Option<ExecutionHash> {
        let execution = lease.execution?;
        let token = lease.begun?;
        let row = self.executions.get(&execution)?;
        let stands = row.begin.as_ref().is_some_and(|begin| begin.token == token);
        (stands && row.effect.is_unsafe() && row.state.definite().is_none()).then_some(execution)
    }

    fn max_attempts(&self, key: PartitionKey) -> u32 {
        self.groups.get(&key.group).map_or(u32::MAX, |group| group.row.spec.max_attempts)
    }

    /// Whether one more failed or lost attempt is the last.
    pub(super) fn is_last_attempt(&self, key: PartitionKey, delivery: &DeliveryRow) -> bool {
        delivery.attempt() >= self.max_attempts(key)
    }
}

impl Engine {
    /// Ends a lease that is lost. `counts`: as an attempt (a lease that its holder never knew of does not).
    pub(super) fn lose(&mut self, now: UnixMillis, live: &LiveLease, counts: bool, turn: &mut Turn) {
        let LiveLease { key, delivery, lease } = live;
        let end = if let Some(execution) = self.memory.is_open_and_unsafe(lease) {
            let who = self.memory.sessions.get(&lease.session).map(|s| s.row.member.clone()).unwrap_or_default();
            self.emit(
                turn,
                Entry::BecameUnknown {
                    execution,
                    reason: UnknownReason::LeaseLost,
                    text: format!("{who} had begun and lost its lease"),
                    at: now,
                },
            );
            LeaseEnd::Held { cause: HoldCause::Unknown, execution, lost: counts }
        } else if counts && self.memory.is_last_attempt(*key, delivery) {
            self.exhausted(now, lease.execution, true, turn);
            LeaseEnd::Parked { failed: false, lost: true, reason: ATTEMPTS_EXHAUSTED.to_owned() }
        } else if counts {
            LeaseEnd::Lost
        } else {
            LeaseEnd::Released
        };
        self.end_lease(now, live, end, EndedAs::Lost, turn);
        self.notify(lease.session, Notice::Revoked(LeaseRef { epoch: lease.epoch, offset: delivery.offset }), turn);
    }

    /// Attempts ran out. If one was lost, nobody began and nobody reported, nobody knows what became of it.
    pub(super) fn exhausted(&mut self, now: UnixMillis, execution: Option<ExecutionHash>, lost: bool, turn: &mut Turn) {
        let Some(execution) = execution.filter(|_| lost) else { return };
        let open = self
            .memory
            .executions
            .get(&execution)
            .is_some_and(|row| row.begin.is_none() && row.state.definite().is_none());
        if open {
            self.emit(
                turn,
                Entry::BecameUnknown {
                    execution,
                    reason: UnknownReason::AttemptsExhausted,
                    text: "attempts ran out, and at least one was lost".to_owned(),
                    at: now,
                },
            );
        }
    }

    /// Ends a lease, and frees whoever waited for its execution if that lets them.
    pub(super) fn end_lease(
        &mut self,
        now: UnixMillis,
        live: &LiveLease,
        end: LeaseEnd,
        answer: EndedAs,
        turn: &mut Turn,
    ) {
        let partition = live.key;
        let (epoch, offset) = (live.lease.epoch, live.delivery.offset);
        self.emit(turn, Entry::LeaseEnded { partition, epoch, offset, end, answer, at: now });
        if let Some(execution) = live.lease.execution {
            self.execution_moved(now, execution, turn);
        }
    }

    /// Tells a session something: on its stream, or with its next answer.
    pub(super) fn notify(&mut self, session: SessionId, notice: Notice, turn: &mut Turn) {
        match self.live.get(session).map(|live| live.stream.is_some()) {
            Some(true) => turn.outs.push(super::Out::Notice(session, notice)),
            Some(false) => self.live.change(session, |live| live.notify(notice)).unwrap_or_default(),
            None => {}
        }
    }
}
