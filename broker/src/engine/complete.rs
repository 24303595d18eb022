//! Complete: settle, outcome and follow-ups in one frame; also late, while its begin still stands (design, section 7).

use super::Engine;
use super::command::Turn;
use super::compose::OwnMessage;
use super::head::MessageHead;
use super::lease::LiveLease;
use super::publish::{Admitted, Place};
use crate::journal::entry::{Entry, ExecutionHash, LeaseEnd, Passed};
use crate::model::{
    ChannelRef, Complete, CompleteResult, EndedAs, FinalState, Offset, Refusal, SessionRef, SettledCause, UnixMillis,
};
use crate::state::rows::{BeginRow, DeliveryState, ExecutionRow};
use std::sync::Arc;

/// Follow-ups a Complete may carry.
const FOLLOW_UPS_MAX: usize = 16;

impl Engine {
    /// Its repeat takes the same path as the first: what is stored is found again, and nothing happens twice.
    pub(super) fn complete(
        &mut self,
        now: UnixMillis,
        session: &SessionRef,
        complete: &Complete,
        heads: &[Arc<MessageHead>],
        turn: &mut Turn,
    ) -> Result<CompleteResult, Refusal> {
        if !complete.final_state.is_definite() {
            return Err(Refusal::invalid(
                "final_state",
                "complete takes definite states only; settle it UNKNOWN instead",
            ));
        }
        if complete.publishes.len() > FOLLOW_UPS_MAX {
            return Err(Refusal::invalid("publishes", format!("at most {FOLLOW_UPS_MAX} follow-ups")));
        }
        let execution = self.memory.hasher.execution(&complete.tenant, &complete.execution_id);
        let live = self.held_lease(session, complete.lease).ok();
        if let Some(live) = &live {
            check_own(live, execution)?;
        }
        let Some(row) = self.memory.executions.get(&execution) else { return Ok(CompleteResult::LeaseLost) };
        if row.begins == 0 {
            return match live {
                Some(_) => Err(Refusal::invalid("fencing_token", "begin first: nobody has begun this execution")),
                None => Ok(CompleteResult::LeaseLost),
            };
        }
        let Some(begin) = row.begin.clone().filter(|begin| begin.token == complete.fencing_token) else {
            let text = format!("token {} does not stand", complete.fencing_token);
            self.emit(turn, Entry::ReportFenced { execution, state: complete.final_state, text, at: now });
            return Ok(CompleteResult::Fenced);
        };
        // Another lease carries the begin on, or the caller never had anything to do with it.
        if live.is_none() && (begin.live || !self.is_group(begin.partition.group, &session.group)) {
            return Ok(CompleteResult::LeaseLost);
        }
        let repeat = live.is_none() && self.completed_before(complete, row);
        let Some(own) = self.channel_ref(begin.partition.channel) else { return Ok(CompleteResult::LeaseLost) };
        let first = self.pair_place(&own, complete);

        // Everything is checked before anything is done.
        for (i, ((channel, _), head)) in complete.publishes.iter().zip(heads).enumerate() {
            self.refuse_fenced(now, Place::FollowUp(i), channel, head, turn)?;
        }
        let admitted = self.admit_complete(now, complete, heads, &own)?;

        let late = live.is_none() && !repeat;
        match &live {
            // Whoever waits for the execution learns of it below, once it has its state.
            Some(live) => {
                let (partition, epoch, offset) = (live.key, live.lease.epoch, live.offset());
                let (end, answer) = (LeaseEnd::Done, EndedAs::Done);
                self.emit(turn, Entry::LeaseEnded { partition, epoch, offset, end, answer, at: now });
            }
            None => self.settle_late(now, begin.partition, begin.offset, turn),
        }
        let results = self.store(now, admitted, turn);
        if late {
            self.note_late(now, execution, &begin, complete, turn);
        }
        self.execution_moved(now, execution, turn);
        let contradiction = self.memory.executions.get(&execution).is_some_and(|row| row.contradiction);
        Ok(CompleteResult::Accepted { late, duplicate: first, contradiction, results })
    }

    /// Whether this very lease was settled DONE and the execution ended as it says: only then was it heard before. A
    /// bare DONE is no result.
    fn completed_before(&self, complete: &Complete, row: &ExecutionRow) -> bool {
        let record = self.memory.ended(complete.lease.epoch);
        record.is_some_and(|record| record.offset == complete.lease.offset && record.answer == EndedAs::Done)
            && row.state.definite() == Some(complete.final_state)
    }

    /// Where the pair of this complete is stored, if it is.
    fn pair_place(&self, own: &ChannelRef, complete: &Complete) -> Option<(ChannelRef, Offset)> {
        let (policy, _) = self.memory.policy(&own.policy)?;
        let pair = self.memory.hasher.pair(&complete.tenant, policy, &complete.execution_id, complete.final_state);
        let row = self.memory.pairs.get(&pair)?;
        Some((self.channel_ref(row.channel)?, row.offset))
    }

    /// The messages of a complete, checked: the follow-ups, and weir's own result where nothing carries the pair.
    fn admit_complete(
        &self,
        now: UnixMillis,
        complete: &Complete,
        heads: &[Arc<MessageHead>],
        own: &ChannelRef,
    ) -> Result<Admitted, Refusal> {
        let mut admitted = Admitted::default();
        let mut carried = false;
        for (i, ((channel, bytes), head)) in complete.publishes.iter().zip(heads).enumerate() {
            let place = Place::FollowUp(i);
            if channel.tenant != complete.tenant {
                let rule = "follow-ups stay within the tenant of the execution";
                return Err(Refusal::invalid(format!("publishes[{i}].tenant"), rule));
            }
            let reported = head.final_state.filter(|_| head.execution_id.as_deref() == Some(&complete.execution_id));
            if let Some(other) = reported.filter(|state| *state != complete.final_state) {
                return Err(Refusal::invalid(
                    format!("publishes[{i}].message.final_state"),
                    format!("{} contradicts this complete's {}", other.name(), complete.final_state.name()),
                ));
            }
            carried |= reported.is_some() && channel.policy == own.policy;
            self.admit_message(&mut admitted, now, place, channel, (bytes.clone(), Arc::clone(head)))?;
        }
        if carried || self.pair_place(own, complete).is_some() {
            return Ok(admitted);
        }
        let (_, spec) = self.policy_of(own)?;
        if spec.require_artifact && complete.final_state == FinalState::Completed && complete.artifact_ref.is_empty() {
            let rule = format!("policy {} takes COMPLETED only with an artifact_ref", spec.name);
            return Err(Refusal::invalid("artifact_ref", rule));
        }
        let execution = self.memory.hasher.execution(&complete.tenant, &complete.execution_id);
        let task_id = self.memory.executions.get(&execution).map(|row| row.task_id.clone()).unwrap_or_default();
        let result = OwnMessage {
            message_id: OwnMessage::id("result", &complete.execution_id, Some(complete.final_state)),
            task_id: &task_id,
            execution_id: &complete.execution_id,
            kind: "task.result",
            intent: "execution.completed",
            final_state: Some(complete.final_state),
            artifact_ref: &complete.artifact_ref,
            fencing_token: Some(complete.fencing_token),
            created_at: now,
            attributes: &[],
        };
        self.admit_message(&mut admitted, now, Place::Own, own, result.compose(self.memory.hasher))?;
        Ok(admitted)
    }

    fn note_late(
        &mut self,
        now: UnixMillis,
        execution: ExecutionHash,
        begin: &BeginRow,
        complete: &Complete,
        turn: &mut Turn,
    ) {
        let text = format!("{} reported {} after its lease was over", begin.member, complete.final_state.name());
        self.emit(
            turn,
            Entry::Reported {
                execution,
                state: complete.final_state,
                artifact_ref: complete.artifact_ref.clone(),
                late: true,
                text,
                at: now,
            },
        );
    }

    /// A late result settles its message, unless that is in somebody's hands again.
    fn settle_late(
        &mut self,
        now: UnixMillis,
        partition: crate::journal::entry::PartitionKey,
        offset: Offset,
        turn: &mut Turn,
    ) {
        let Some(p) = self.memory.partition(partition) else { return };
        let at_head = p.head().is_some_and(|head| head.offset == offset);
        let leased = p.delivery.as_ref().is_some_and(|d| matches!(d.state, DeliveryState::Leased(_)));
        if at_head && !leased {
            let how = Passed::Settled(SettledCause::Done);
            self.emit(turn, Entry::HeadPassed { partition, offset, how, at: now });
        }
    }
}

/// A complete under a live lease ends the execution that lease is on.
fn check_own(live: &LiveLease, execution: ExecutionHash) -> Result<(), Refusal> {
    match live.lease.execution {
        Some(own) if own == execution => Ok(()),
        Some(_) => Err(Refusal::invalid("execution_id", "the lease is on the request of another execution")),
        None => Err(Refusal::invalid("epoch", "the message under this lease asks for no execution: settle it")),
    }
}
