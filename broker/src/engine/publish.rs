//! Publish (design, section 6): everything is checked before anything is stored. Names, fields and sizes were checked
//! where the message was read ([`super::head_of`]); what needs the broker's memory is checked here, in the design's order.

use super::Engine;
use super::command::{HeadedMessage, Turn};
use super::head::MessageHead;
use super::pressure::RETRY_AFTER_MS;
use crate::journal::entry::{Entry, PairHash, TaskHash};
use crate::model::{
    ChannelNo, ChannelRef, Duplicate, DuplicateKind, ExecutionState, FinalState, Level, Offset, PolicyNo,
    PublishResult, Published, Reason, Refusal, UnixMillis, policy::ChannelPolicy,
};
use std::collections::HashMap;
use std::sync::Arc;

/// What is to happen with one message.
enum Plan {
    /// Store it, as the n-th of this publish.
    Store(u64),
    /// It repeats a stored message.
    Repeat(Box<Duplicate>),
    /// It repeats the n-th message of this very publish.
    RepeatOfNew { kind: DuplicateKind, nth: u64, first: Arc<MessageHead> },
}

/// Identities of messages earlier in the same publish.
#[derive(Default)]
struct Earlier {
    ids: HashMap<(TaskHash, u128), (u64, Arc<MessageHead>)>,
    pairs: HashMap<PairHash, (u64, Arc<MessageHead>)>,
    stored: u64,
}

/// A publish that passed all checks.
pub(super) struct Admitted {
    policy: PolicyNo,
    channel: ChannelRef,
    no: Option<ChannelNo>,
    plans: Vec<Plan>,
    messages: Vec<HeadedMessage>,
}

impl Engine {
    pub(super) fn publish(
        &mut self,
        now: UnixMillis,
        channel: ChannelRef,
        messages: Vec<HeadedMessage>,
        turn: &mut Turn,
    ) -> Result<Published, Refusal> {
        self.policy_of(&channel)?;
        self.note_fenced(now, &channel, &messages, turn)?;
        let admitted = self.admit_publish(now, channel, messages, true)?;
        Ok(self.store(now, admitted, turn))
    }

    /// Checks a publish against memory. Changes nothing. `limited`: depth counts (it does not for follow-ups).
    pub(super) fn admit_publish(
        &self,
        now: UnixMillis,
        channel: ChannelRef,
        messages: Vec<HeadedMessage>,
        limited: bool,
    ) -> Result<Admitted, Refusal> {
        let (policy_no, policy) = self.policy_of(&channel)?;
        let no = self.memory.channel_no(policy_no, &channel.tenant, &channel.agent);
        let mut earlier = Earlier::default();
        let mut plans = Vec::with_capacity(messages.len());
        let mut needing_room = 0;
        for (i, (_, head)) in messages.iter().enumerate() {
            if u64::from(head.payload_bytes) > policy.payload_bytes_max {
                return Err(Refusal {
                    field: format!("messages[{i}].payload"),
                    ..Refusal::new(
                        Reason::TooLarge,
                        format!(
                            "at most {} bytes in policy {}; put the body elsewhere and name it in artifact_ref",
                            policy.payload_bytes_max, policy.name
                        ),
                    )
                }
                .with("limit", policy.payload_bytes_max));
            }
            let plan = self.plan(&channel, policy_no, no, head, &mut earlier);
            if matches!(plan, Plan::Store(_)) {
                self.check_new(now, i, policy, &channel, head)?;
                needing_room += u64::from(!self.finishes(&channel, head));
            }
            plans.push(plan);
        }
        if limited && let (Some(limit), true) = (policy.max_depth, needing_room > 0) {
            let depth = self.pressure(policy_no, policy, &channel).depth;
            // Before the first group reads the channel nothing presses, so the channel may be new here.
            let pressed = !self.memory.groups_reading(policy_no, &channel.tenant, &channel.agent).is_empty();
            if pressed && depth + needing_room > limit {
                return Err(Refusal::new(
                    Reason::DepthExceeded,
                    format!("{channel} holds {depth} messages of at most {limit}; its consumers have to catch up"),
                )
                .with("depth", depth)
                .with("limit", limit)
                .retry_after(RETRY_AFTER_MS));
            }
        }
        Ok(Admitted { policy: policy_no, channel, no, plans, messages })
    }

    /// Stores an admitted publish and answers it.
    pub(super) fn store(&mut self, now: UnixMillis, admitted: Admitted, turn: &mut Turn) -> Published {
        let Admitted { policy, channel, no, plans, messages } = admitted;
        let stores = plans.iter().any(|plan| matches!(plan, Plan::Store(_)));
        let no = match no {
            Some(no) => no,
            None => {
                let no = self.memory.counters.channel.next();
                if stores {
                    let (tenant, agent) = (channel.tenant.clone(), channel.agent.clone());
                    self.emit(turn, Entry::ChannelMade { no, policy, tenant, agent, at: now });
                }
                no
            }
        };
        let first = self.memory.channels.get(&no).map_or(Offset(0), |row| row.head);
        let mut stored = Vec::new();
        let mut results = Vec::with_capacity(plans.len());
        let mut repeats = Vec::new();
        for (plan, (bytes, head)) in plans.into_iter().zip(messages) {
            match plan {
                Plan::Store(nth) => {
                    results.push(PublishResult::Stored(Offset(first.get() + nth)));
                    stored.push((bytes, head));
                }
                Plan::Repeat(duplicate) => {
                    repeats.push((results.len(), head, duplicate.kind, duplicate.payload_matches));
                    results.push(PublishResult::Duplicate(duplicate));
                }
                Plan::RepeatOfNew { kind, nth, first: other } => {
                    let payload_matches = other.body == head.body;
                    repeats.push((results.len(), Arc::clone(&head), kind, payload_matches));
                    results.push(PublishResult::Duplicate(Box::new(Duplicate {
                        kind,
                        channel: channel.clone(),
                        offset: Offset(first.get() + nth),
                        retained: true,
                        message_id: other.message_id.to_string(),
                        first_seen: now,
                        payload_matches,
                        execution: None,
                    })));
                }
            }
        }
        let finished: Vec<_> = stored
            .iter()
            .filter(|(_, head)| head.final_state.is_some())
            .filter_map(|(_, head)| head.execution(self.memory.hasher, &channel.tenant))
            .collect();
        if !stored.is_empty() {
            self.emit_published(turn, no, now, stored);
        }
        for (at, head, kind, payload_matches) in repeats {
            self.note_repeat(now, &channel, policy, &head, kind, payload_matches, turn);
            if let (Some(PublishResult::Duplicate(duplicate)), Some(id)) =
                (results.get_mut(at), head.execution_id.as_deref())
            {
                let execution = self.memory.hasher.execution(&channel.tenant, id);
                duplicate.execution = self.execution_picture(execution).map(Box::new);
            }
        }
        for execution in finished {
            self.execution_moved(now, execution, turn);
        }
        let pressure = match self.memory.policies.get(&policy) {
            Some(row) => self.pressure(policy, &row.policy, &channel),
            None => super::pressure::Pressure { depth: 0, limit: None, level: Level::Ok },
        };
        Published {
            results,
            depth: pressure.depth,
            limit: pressure.limit,
            level: pressure.level,
            retry_after_ms: pressure.retry_after_ms(),
        }
    }

    /// The policy of a channel, whose key must fit the policy's template.
    pub(super) fn policy_of(&self, channel: &ChannelRef) -> Result<(PolicyNo, &ChannelPolicy), Refusal> {
        let (no, row) = self.memory.policy(&channel.policy).ok_or_else(|| Refusal {
            field: "policy".to_owned(),
            ..Refusal::new(Reason::NotFound, format!("there is no channel policy {:?}", channel.policy))
        })?;
        row.policy.key.check_agent(&channel.agent).map_err(|rule| Refusal::invalid("agent_id", rule))?;
        Ok((no, &row.policy))
    }

    fn plan(
        &self,
        channel: &ChannelRef,
        policy: PolicyNo,
        no: Option<ChannelNo>,
        head: &Arc<MessageHead>,
        earlier: &mut Earlier,
    ) -> Plan {
        if let Some(no) = no
            && let Some(first) = self.memory.tasks.get(&(no, head.task)).and_then(|task| task.by_id(head.id))
        {
            return Plan::Repeat(Box::new(Duplicate {
                kind: DuplicateKind::MessageId,
                channel: channel.clone(),
                offset: first.offset,
                retained: true,
                message_id: head.message_id.to_string(),
                first_seen: first.at,
                payload_matches: first.body == head.body,
                execution: None,
            }));
        }
        if let Some((nth, first)) = earlier.ids.get(&(head.task, head.id)) {
            return Plan::RepeatOfNew { kind: DuplicateKind::MessageId, nth: *nth, first: Arc::clone(first) };
        }
        let pair = self.pair_of(channel, policy, head);
        if let Some(pair) = pair {
            if let Some(row) = self.memory.pairs.get(&pair) {
                return Plan::Repeat(Box::new(Duplicate {
                    kind: DuplicateKind::Pair,
                    channel: self.channel_ref(row.channel).unwrap_or_else(|| channel.clone()),
                    offset: row.offset,
                    retained: true,
                    message_id: row.message_id.clone(),
                    first_seen: row.first_seen,
                    payload_matches: row.body == head.body,
                    execution: None,
                }));
            }
            if let Some((nth, first)) = earlier.pairs.get(&pair) {
                return Plan::RepeatOfNew { kind: DuplicateKind::Pair, nth: *nth, first: Arc::clone(first) };
            }
        }
        let nth = earlier.stored;
        earlier.stored += 1;
        earlier.ids.insert((head.task, head.id), (nth, Arc::clone(head)));
        if let Some(pair) = pair {
            earlier.pairs.insert(pair, (nth, Arc::clone(head)));
        }
        Plan::Store(nth)
    }

    fn pair_of(&self, channel: &ChannelRef, policy: PolicyNo, head: &MessageHead) -> Option<PairHash> {
        let state = head.final_state?;
        let id = head.execution_id.as_deref()?;
        Some(self.memory.hasher.pair(&channel.tenant, policy, id, state))
    }

    /// Rules for a message that is to be stored.
    fn check_new(
        &self,
        now: UnixMillis,
        i: usize,
        policy: &ChannelPolicy,
        channel: &ChannelRef,
        head: &MessageHead,
    ) -> Result<(), Refusal> {
        if policy.require_artifact && head.final_state == Some(FinalState::Completed) && head.artifact_ref.is_empty() {
            return Err(Refusal::invalid(
                format!("messages[{i}].artifact_ref"),
                format!("policy {} takes COMPLETED only with an artifact_ref", policy.name),
            ));
        }
        if head.final_state.is_none()
            && let Some(deadline) = head.deadline
            && deadline <= now
        {
            return Err(Refusal {
                field: format!("messages[{i}].deadline_unix_ms"),
                ..Refusal::new(
                    Reason::DeadlinePassed,
                    format!("the deadline {deadline} has passed by {} ms for {channel}", now.since(deadline)),
                )
            });
        }
        Ok(())
    }

    /// Finishing work needs no place: the first definite final state of an execution that the ledger holds open.
    fn finishes(&self, channel: &ChannelRef, head: &MessageHead) -> bool {
        let Some(state) = head.final_state else { return false };
        let Some(execution) = head.execution(self.memory.hasher, &channel.tenant) else { return false };
        self.memory.executions.get(&execution).is_some_and(|row| match row.state {
            ExecutionState::Requested => row.request.is_some(),
            ExecutionState::Begun => true,
            ExecutionState::Unknown => state.is_definite(),
            _ => false,
        })
    }

    /// A report that names a begin must hold the standing one. Its refusal is kept as evidence.
    fn note_fenced(
        &mut self,
        now: UnixMillis,
        channel: &ChannelRef,
        messages: &[HeadedMessage],
        turn: &mut Turn,
    ) -> Result<(), Refusal> {
        let Some((policy, _)) = self.memory.policy(&channel.policy) else { return Ok(()) };
        for (i, (_, head)) in messages.iter().enumerate() {
            let (Some(token), Some(state)) = (head.fencing_token, head.final_state) else { continue };
            let Some(execution) = head.execution(self.memory.hasher, &channel.tenant) else { continue };
            let repeat = self.pair_of(channel, policy, head).is_some_and(|pair| self.memory.pairs.get(&pair).is_some());
            let standing =
                self.memory.executions.get(&execution).and_then(|row| row.begin.as_ref()).map(|begin| begin.token);
            if repeat || standing == Some(token) {
                continue;
            }
            if self.memory.executions.get(&execution).is_some() {
                let text = format!("{} reported {} with token {token}", head.agent_id, state.name());
                self.emit(turn, Entry::ReportFenced { execution, state, text, at: now });
            }
            return Err(Refusal {
                field: format!("messages[{i}].fencing_token"),
                ..Refusal::new(Reason::Fenced, "the begin of this token does not stand")
            });
        }
        Ok(())
    }

    /// A repeat leaves its mark in the ledger, not in the channel.
    #[expect(clippy::too_many_arguments, reason = "all of one repeat")]
    fn note_repeat(
        &mut self,
        now: UnixMillis,
        channel: &ChannelRef,
        policy: PolicyNo,
        head: &MessageHead,
        kind: DuplicateKind,
        payload_matches: bool,
        turn: &mut Turn,
    ) {
        let Some(execution) = head.execution(self.memory.hasher, &channel.tenant) else { return };
        let pair = match kind {
            DuplicateKind::Pair => self.pair_of(channel, policy, head),
            DuplicateKind::MessageId => None,
        };
        self.emit(turn, Entry::Repeated { execution, pair, mismatch: !payload_matches, at: now });
    }

    /// The name of a channel in memory.
    pub(super) fn channel_ref(&self, no: ChannelNo) -> Option<ChannelRef> {
        let row = self.memory.channels.get(&no)?;
        let policy = self.memory.policies.get(&row.policy)?;
        Some(ChannelRef { policy: policy.policy.name.clone(), tenant: row.tenant.clone(), agent: row.agent.clone() })
    }
}
