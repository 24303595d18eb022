//! Begin and resolve, and what the ledger's moves set free (design, section 7).

use super::Engine;
use super::command::Turn;
use super::compose::OwnMessage;
use super::lease::{ATTEMPTS_EXHAUSTED, LiveLease};
use crate::journal::entry::{Entry, ExecutionHash, HoldCause, LeaseEnd};
use crate::model::{
    BeginResult, EndedAs, Execution, ExecutionState, FinalState, GoneCause, LeaseRef, Notice, Reason, Refusal, Resolve,
    SessionRef, UnixMillis, UnknownReason,
};
use crate::state::rows::DeliveryState;

impl Engine {
    pub(super) fn begin(
        &mut self,
        now: UnixMillis,
        session: &SessionRef,
        lease: LeaseRef,
        turn: &mut Turn,
    ) -> Result<BeginResult, Refusal> {
        let Ok(live) = self.held_lease(session, lease) else { return Ok(BeginResult::LeaseLost) };
        let executes = self.memory.groups.get(&live.key.group).is_some_and(|group| group.row.spec.executes);
        if !executes {
            return Err(Refusal::invalid("group", "members of a group that does not execute cannot begin"));
        }
        let Some(execution) = live.lease.execution else {
            return Err(Refusal::invalid("epoch", "only a request can be begun; this message asks for no execution"));
        };
        let Some(row) = self.memory.executions.get(&execution) else { return Ok(BeginResult::LeaseLost) };
        if let Some(state) = row.state.definite() {
            let report = row.report.and_then(|(no, offset)| Some((self.channel_ref(no)?, offset)));
            return Ok(BeginResult::AlreadyFinal { state, artifact_ref: row.artifact_ref.clone(), report });
        }
        if let Some(token) = live.lease.begun {
            return Ok(BeginResult::Ok { fencing_token: token });
        }
        // Only what nobody began can go: a begun one is under a lease, or held.
        if row.begin.is_none()
            && let Some((_, cause)) = self.goes(&live, true).filter(|(at, _)| *at <= now)
        {
            self.emit(turn, Entry::ExecutionExpired { execution, at: now });
            self.end_lease(now, &live, LeaseEnd::Gone { cause }, EndedAs::Lost, turn);
            if cause == GoneCause::Deadline {
                self.note_timeout_of(now, &live, turn);
            }
            return Ok(BeginResult::Expired);
        }
        let begin = row.begin.clone();
        if row.state == ExecutionState::Unknown {
            let answer = BeginResult::HeldUnknown {
                since: row.since,
                reason: row.unknown_reason.unwrap_or(UnknownReason::Reported),
            };
            let end = LeaseEnd::Held { cause: HoldCause::Unknown, execution, lost: false };
            self.end_lease(now, &live, end, EndedAs::Lost, turn);
            return Ok(answer);
        }
        if let Some(begin) = begin.filter(|begin| begin.live) {
            let group = self.memory.groups.get(&begin.partition.group).map(|group| group.row.spec.name.clone());
            let Some(group) = group else { return Ok(BeginResult::LeaseLost) };
            let end = LeaseEnd::Held { cause: HoldCause::InProgress, execution, lost: false };
            self.end_lease(now, &live, end, EndedAs::Lost, turn);
            return Ok(BeginResult::InProgress { group, since: begin.at });
        }
        let token = self.memory.counters.epoch.next();
        let (effect, deadline) = self
            .memory
            .heads
            .get(&(live.key.channel, lease.offset))
            .map_or_else(Default::default, |head| (head.effect, head.deadline));
        self.emit(
            turn,
            Entry::Begun {
                execution,
                partition: live.key,
                offset: lease.offset,
                epoch: lease.epoch,
                token,
                effect,
                at: now,
                deadline,
            },
        );
        Ok(BeginResult::Ok { fencing_token: token })
    }

    /// When the leased message goes by itself. Its lease protects it until then and longer, but nothing begins any more.
    pub(super) fn goes(&self, live: &LiveLease, unbegun: bool) -> Option<(UnixMillis, GoneCause)> {
        let head = self.memory.heads.get(&(live.key.channel, live.offset()))?;
        let at = self.memory.partition(live.key)?.pending.front().map(|first| first.at);
        let at = at.or_else(|| {
            let task = self.memory.tasks.get(&(live.key.channel, live.key.task))?;
            task.messages.iter().find(|m| m.offset == live.offset()).map(|m| m.at)
        })?;
        head.goes(at, unbegun)
    }

    fn note_timeout_of(&mut self, now: UnixMillis, live: &LiveLease, turn: &mut Turn) {
        let head = self.memory.heads.get(&(live.key.channel, live.offset())).cloned();
        if let Some(head) = head {
            self.note_timed_out(now, live.key.channel, &head, turn);
        }
    }

    /// After anything that moved an execution: whoever waits for it goes on if it lets them, and a holder whose execution
    /// ended elsewhere is told.
    pub(super) fn execution_moved(&mut self, now: UnixMillis, execution: ExecutionHash, turn: &mut Turn) {
        let Some(row) = self.memory.executions.get(&execution) else { return };
        let definite = row.state.definite();
        let holder = row.begin.as_ref().filter(|begin| begin.live).map(|begin| (begin.epoch, begin.offset));
        if let (Some(state), Some((epoch, offset))) = (definite, holder)
            && let Some(live) = self.memory.lease(epoch)
        {
            let lease = LeaseRef { epoch, offset };
            self.notify(live.lease.session, Notice::Cancelled { lease, state: Some(state) }, turn);
        }
        let free =
            definite.is_some()
                || self.memory.executions.get(&execution).is_some_and(|row| {
                    row.state != ExecutionState::Unknown && !row.begin.as_ref().is_some_and(|b| b.live)
                });
        if !free {
            return;
        }
        let waiting: Vec<_> = self.memory.holds.get(&execution).into_iter().flatten().copied().collect();
        for partition in waiting {
            let Some(delivery) = self.memory.partition(partition).and_then(|p| p.delivery.as_ref()) else { continue };
            if !matches!(delivery.state, DeliveryState::Held { .. }) {
                continue;
            }
            let offset = delivery.offset;
            let max = self.memory.groups.get(&partition.group).map_or(u32::MAX, |g| g.row.spec.max_attempts);
            if definite.is_none() && delivery.attempt() > max {
                let reason = ATTEMPTS_EXHAUSTED.to_owned();
                self.emit(turn, Entry::HeadParked { partition, offset, reason, at: now });
            } else {
                self.emit(turn, Entry::HeadFreed { partition, offset });
            }
        }
    }

    pub(super) fn resolve(
        &mut self,
        now: UnixMillis,
        resolve: &Resolve,
        turn: &mut Turn,
    ) -> Result<Execution, Refusal> {
        let execution = self.memory.hasher.execution(&resolve.tenant, &resolve.execution_id);
        let Some(row) = self.memory.executions.get(&execution) else {
            return Err(unknown_execution(&resolve.tenant, &resolve.execution_id));
        };
        if resolve.evidence.trim().is_empty() {
            return Err(Refusal::invalid("evidence", "say how this is known; it is kept in the ledger"));
        }
        if row.state != ExecutionState::Unknown {
            let hint = match row.state.definite() {
                Some(_) => "it has a final state; a contradicting report has to be published",
                None => "it may still come to its end by itself",
            };
            return Err(Refusal::new(
                Reason::NotUnknown,
                format!("execution {} is {}, not UNKNOWN: {hint}", resolve.execution_id, row.state.name()),
            ));
        }
        let (home, task_id) = (row.home, row.task_id.clone());
        let policy = self.memory.channels.get(&home).and_then(|channel| self.memory.policies.get(&channel.policy));
        if let Some(policy) = policy.map(|row| &row.policy).filter(|policy| policy.require_artifact)
            && resolve.state == Some(FinalState::Completed)
            && resolve.artifact_ref.is_empty()
        {
            let rule = format!("policy {} takes COMPLETED only with an artifact_ref", policy.name);
            return Err(Refusal::invalid("artifact_ref", rule));
        }
        self.emit(
            turn,
            Entry::Resolved {
                execution,
                state: resolve.state,
                artifact_ref: resolve.artifact_ref.clone(),
                evidence: super::settle::kept(&resolve.evidence),
                by: super::settle::kept(&resolve.by),
                at: now,
            },
        );
        if let Some(state) = resolve.state
            && let Some(channel) = self.memory.channels.get(&home)
        {
            let (tenant, policy) = (channel.tenant.clone(), channel.policy);
            let pair = self.memory.hasher.pair(&tenant, policy, &resolve.execution_id, state);
            if self.memory.pairs.get(&pair).is_none() {
                let own = OwnMessage {
                    message_id: OwnMessage::id("resolved", &resolve.execution_id, Some(state)),
                    task_id: &task_id,
                    execution_id: &resolve.execution_id,
                    kind: "task.result",
                    intent: "execution.resolved",
                    final_state: Some(state),
                    artifact_ref: &resolve.artifact_ref,
                    fencing_token: None,
                    created_at: now,
                    attributes: &[("evidence", resolve.evidence.as_str()), ("by", resolve.by.as_str())],
                };
                let message = own.compose(self.memory.hasher);
                self.emit_published(turn, home, now, vec![message]);
            }
        }
        self.execution_moved(now, execution, turn);
        self.execution_picture(execution).ok_or_else(|| unknown_execution(&resolve.tenant, &resolve.execution_id))
    }
}

pub(super) fn unknown_execution(tenant: &str, execution_id: &str) -> Refusal {
    Refusal::new(Reason::NotFound, format!("tenant {tenant} has no execution {execution_id}"))
}
