//! Complete: settle, outcome and follow-ups in one frame; also late, while its begin still stands (design, section 7).

use super::Engine;
use super::command::Turn;
use super::compose::OwnMessage;
use super::head::MessageHead;
use super::publish::Admitted;
use crate::journal::entry::{Entry, ExecutionHash, LeaseEnd, Passed};
use crate::model::{
    ChannelRef, Complete, CompleteResult, EndedAs, Offset, Refusal, SessionId, SettleResult, SettledCause, UnixMillis,
};
use crate::state::rows::DeliveryState;
use std::sync::Arc;

/// Follow-ups a Complete may carry.
const FOLLOW_UPS_MAX: usize = 16;

impl Engine {
    pub(super) fn complete(
        &mut self,
        now: UnixMillis,
        session: SessionId,
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
        let live = match self.held_lease(session, complete.lease) {
            Ok(live) => Some(live),
            // Its own repeat: the first one's effect stands, and this says what it was.
            Err(SettleResult::AlreadySettled(EndedAs::Done)) => {
                return Ok(self.repeated(complete, execution));
            }
            Err(_) => None,
        };
        if let Some(live) = &live
            && live.lease.execution.is_some_and(|own| own != execution)
        {
            return Err(Refusal::invalid("execution_id", "the lease is on the request of another execution"));
        }
        let Some(row) = self.memory.executions.get(&execution) else { return Ok(CompleteResult::LeaseLost) };
        let standing = row.begin.as_ref().filter(|begin| begin.token == complete.fencing_token);
        let Some(begin) = standing.cloned() else {
            if live.as_ref().is_some_and(|live| live.lease.begun.is_none()) && row.begins == 0 {
                return Err(Refusal::invalid("fencing_token", "begin first: nobody has begun this execution"));
            }
            let text = format!("token {} does not stand", complete.fencing_token);
            self.emit(turn, Entry::ReportFenced { execution, state: complete.final_state, text, at: now });
            return Ok(CompleteResult::Fenced);
        };
        let before = row.state.definite();
        let own = super::needs::own_channel(&self.memory, complete.lease.epoch, execution).map(|(_, channel)| channel);
        let Some(own) = own else { return Ok(CompleteResult::LeaseLost) };

        // Everything is checked before anything is done.
        let (admitted, first_pair) = self.admit_complete(now, complete, heads, &own)?;

        let late = live.is_none();
        match &live {
            Some(live) => self.end_lease(now, live, LeaseEnd::Done, EndedAs::Done, turn),
            None => self.settle_late(now, begin.partition, begin.offset, turn),
        }
        let mut results = Vec::new();
        for publish in admitted {
            results.extend(self.store(now, publish, turn).results);
        }
        if late || first_pair.is_some() {
            let text = format!("{} reported {} after its lease was over", begin.member, complete.final_state.name());
            self.emit(
                turn,
                Entry::Reported {
                    execution,
                    state: complete.final_state,
                    artifact_ref: complete.artifact_ref.clone(),
                    late,
                    text,
                    at: now,
                },
            );
        }
        self.execution_moved(now, execution, turn);
        Ok(CompleteResult::Accepted {
            late,
            duplicate: first_pair,
            contradiction: before.is_some_and(|state| state != complete.final_state),
            results,
        })
    }

    /// The publishes of a complete, checked: the follow-ups, and weir's own result where none of them carries
    /// the pair. Also the place of the pair, if it was stored before.
    #[expect(clippy::type_complexity, reason = "one use")]
    fn admit_complete(
        &self,
        now: UnixMillis,
        complete: &Complete,
        heads: &[Arc<MessageHead>],
        own: &ChannelRef,
    ) -> Result<(Vec<Admitted>, Option<(ChannelRef, Offset)>), Refusal> {
        let (policy, spec) = self.policy_of(own)?;
        if spec.require_artifact
            && complete.final_state == crate::model::FinalState::Completed
            && complete.artifact_ref.is_empty()
        {
            let rule = format!("policy {} takes COMPLETED only with an artifact_ref", spec.name);
            return Err(Refusal::invalid("artifact_ref", rule));
        }
        let mut admitted = Vec::new();
        let mut carried = false;
        for (i, ((channel, bytes), head)) in complete.publishes.iter().zip(heads).enumerate() {
            let field = format!("publishes[{i}].message");
            if channel.tenant != complete.tenant {
                return Err(Refusal::invalid(field, "follow-ups stay within the tenant of the execution"));
            }
            carried |= head.execution_id.as_deref() == Some(complete.execution_id.as_str())
                && head.final_state == Some(complete.final_state)
                && channel.policy == own.policy;
            let message = vec![(bytes.clone(), Arc::clone(head))];
            let publish = self.admit_publish(now, channel.clone(), message, false).map_err(|refusal| Refusal {
                field: if refusal.field.is_empty() { field.clone() } else { format!("{field}.{}", refusal.field) },
                ..refusal
            })?;
            admitted.push(publish);
        }
        let pair = self.memory.hasher.pair(&complete.tenant, policy, &complete.execution_id, complete.final_state);
        let first = self.memory.pairs.get(&pair).and_then(|row| Some((self.channel_ref(row.channel)?, row.offset)));
        if !carried && first.is_none() {
            let task_id = self
                .memory
                .executions
                .get(&self.memory.hasher.execution(&complete.tenant, &complete.execution_id))
                .map(|row| row.task_id.clone())
                .unwrap_or_default();
            let message = OwnMessage {
                message_id: format!("~weir/result/{}/{}", complete.execution_id, complete.final_state.name()),
                task_id: &task_id,
                execution_id: &complete.execution_id,
                kind: "task.result",
                intent: "execution.completed",
                final_state: Some(complete.final_state),
                artifact_ref: &complete.artifact_ref,
                fencing_token: Some(complete.fencing_token),
                created_at: now,
                attributes: &[],
            }
            .compose(self.memory.hasher);
            admitted.push(self.admit_publish(now, own.clone(), vec![message], false)?);
        }
        Ok((admitted, first))
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

    /// What a complete is answered whose lease it has settled before.
    fn repeated(&self, complete: &Complete, execution: ExecutionHash) -> CompleteResult {
        let row = self.memory.executions.get(&execution);
        let place = row.and_then(|row| row.report).and_then(|(no, offset)| Some((self.channel_ref(no)?, offset)));
        CompleteResult::Accepted {
            late: false,
            duplicate: place,
            contradiction: row.and_then(|row| row.state.definite()).is_some_and(|state| state != complete.final_state),
            results: Vec::new(),
        }
    }
}
