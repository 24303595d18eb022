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

/// When to try again on a full disk, in milliseconds.
const STORAGE_RETRY_AFTER_MS: u64 = 1_000;

/// Where a message came from, for the path of a field that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The n-th message of a publish.
    Message(usize),
    /// The n-th follow-up of a complete.
    FollowUp(usize),
    /// Composed by weir.
    Own,
}

impl Place {
    fn field(self, name: &str) -> String {
        match self {
            Self::Message(i) => format!("messages[{i}].{name}"),
            Self::FollowUp(i) => format!("publishes[{i}].message.{name}"),
            Self::Own => name.to_owned(),
        }
    }
}

/// A channel that admitted messages go to.
struct Target {
    policy: PolicyNo,
    channel: ChannelRef,
    no: Option<ChannelNo>,
    /// Messages to be stored in it.
    stores: u64,
}

/// A message that will be stored: the n-th of its target.
#[derive(Clone)]
struct New {
    target: usize,
    nth: u64,
    head: Arc<MessageHead>,
}

/// What is to happen with one message.
enum Plan {
    /// Store it, as the n-th of its target.
    Store(u64),
    /// It repeats a stored message.
    Repeat(Box<Duplicate>),
    /// It repeats an earlier message of this very admission.
    RepeatOfNew(DuplicateKind, New),
}

struct Planned {
    target: usize,
    message: HeadedMessage,
    plan: Plan,
}

/// Messages that passed all checks, over any channels of one tenant, and are stored together. Each is checked against
/// memory and against those admitted before it.
#[derive(Default)]
pub(super) struct Admitted {
    targets: Vec<Target>,
    planned: Vec<Planned>,
    ids: HashMap<(usize, TaskHash, u128), New>,
    pairs: HashMap<PairHash, New>,
}

impl Admitted {
    fn target(&mut self, policy: PolicyNo, channel: &ChannelRef, no: Option<ChannelNo>) -> usize {
        let known = self.targets.iter().position(|target| target.channel == *channel);
        known.unwrap_or_else(|| {
            self.targets.push(Target { policy, channel: channel.clone(), no, stores: 0 });
            self.targets.len() - 1
        })
    }
}

impl Engine {
    pub(super) fn publish(
        &mut self,
        now: UnixMillis,
        channel: ChannelRef,
        messages: Vec<HeadedMessage>,
        turn: &mut Turn,
    ) -> Result<Published, Refusal> {
        let (policy_no, _) = self.policy_of(&channel)?;
        for (i, (_, head)) in messages.iter().enumerate() {
            self.refuse_fenced(now, Place::Message(i), &channel, head, turn)?;
        }
        let mut admitted = Admitted::default();
        let mut needing_room = 0;
        for (i, message) in messages.into_iter().enumerate() {
            needing_room += u64::from(self.admit_message(&mut admitted, now, Place::Message(i), &channel, message)?);
        }
        if needing_room > 0 {
            self.refuse_without_storage()?;
            self.refuse_beyond_depth(&channel, needing_room)?;
        }
        let results = self.store(now, admitted, turn);
        let pressure = match self.memory.policies.get(&policy_no) {
            Some(row) => self.pressure(policy_no, &row.policy, &channel),
            None => super::pressure::Pressure { depth: 0, limit: None, level: Level::Ok },
        };
        Ok(Published {
            results,
            depth: pressure.depth,
            limit: pressure.limit,
            level: pressure.level,
            retry_after_ms: pressure.retry_after_ms(),
        })
    }

    /// Checks one more message against memory and what was admitted before it. Changes nothing but `admitted`. Whether it
    /// takes room in its channel: a repeat does not, nor does a result that ends what was open.
    pub(super) fn admit_message(
        &self,
        admitted: &mut Admitted,
        now: UnixMillis,
        place: Place,
        channel: &ChannelRef,
        message: HeadedMessage,
    ) -> Result<bool, Refusal> {
        let (policy_no, policy) = self.policy_of(channel)?;
        let head = &message.1;
        if u64::from(head.payload_bytes) > policy.payload_bytes_max {
            let rule = format!(
                "at most {} bytes in policy {}; put the body elsewhere and name it in artifact_ref",
                policy.payload_bytes_max, policy.name
            );
            return Err(Refusal { field: place.field("payload"), ..Refusal::new(Reason::TooLarge, rule) }
                .with("limit", policy.payload_bytes_max));
        }
        let no = self.memory.channel_no(policy_no, &channel.tenant, &channel.agent);
        let target = admitted.target(policy_no, channel, no);
        let plan = self.plan(admitted, place, target, head)?;
        let stored = matches!(plan, Plan::Store(_));
        let needs_room = stored && !self.finishes(channel, head);
        if stored {
            self.check_new(now, place, policy, channel, head)?;
        }
        admitted.planned.push(Planned { target, message, plan });
        Ok(needs_room)
    }

    fn refuse_without_storage(&self) -> Result<(), Refusal> {
        if self.storage_full {
            let rule =
                "the disk of the data folder is full but for what finishing needs; results and settlements go on";
            return Err(Refusal::new(Reason::StorageFull, rule).retry_after(STORAGE_RETRY_AFTER_MS));
        }
        Ok(())
    }

    fn refuse_beyond_depth(&self, channel: &ChannelRef, needing_room: u64) -> Result<(), Refusal> {
        let (policy_no, policy) = self.policy_of(channel)?;
        let Some(limit) = policy.max_depth else { return Ok(()) };
        let depth = self.pressure(policy_no, policy, channel).depth;
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
        Ok(())
    }

    /// Stores what was admitted: one result a message, in order.
    pub(super) fn store(&mut self, now: UnixMillis, admitted: Admitted, turn: &mut Turn) -> Vec<PublishResult> {
        let Admitted { targets, planned, .. } = admitted;
        let mut places = Vec::with_capacity(targets.len());
        for target in &targets {
            places.push(self.place_of(now, target, turn));
        }
        let mut stored: Vec<Vec<HeadedMessage>> = targets.iter().map(|_| Vec::new()).collect();
        let mut results = Vec::with_capacity(planned.len());
        let mut repeats = Vec::new();
        let mut finished = Vec::new();
        for Planned { target, message, plan } in planned {
            let (Some(to), Some((_, first)), Some(new)) =
                (targets.get(target), places.get(target), stored.get_mut(target))
            else {
                continue;
            };
            match plan {
                Plan::Store(nth) => {
                    results.push(PublishResult::Stored(Offset(first.get() + nth)));
                    if message.1.final_state.is_some() {
                        finished.extend(message.1.execution(self.memory.hasher, &to.channel.tenant));
                    }
                    new.push(message);
                }
                Plan::Repeat(duplicate) => {
                    repeats.push((results.len(), target, message.1));
                    results.push(PublishResult::Duplicate(duplicate));
                }
                Plan::RepeatOfNew(kind, other) => {
                    let (Some(other_to), Some((_, other_first))) =
                        (targets.get(other.target), places.get(other.target))
                    else {
                        continue;
                    };
                    results.push(PublishResult::Duplicate(Box::new(Duplicate {
                        kind,
                        channel: other_to.channel.clone(),
                        offset: Offset(other_first.get() + other.nth),
                        retained: true,
                        message_id: other.head.message_id.to_string(),
                        first_seen: now,
                        payload_matches: other.head.body == message.1.body,
                        execution: None,
                    })));
                    repeats.push((results.len() - 1, target, message.1));
                }
            }
        }
        for ((no, _), messages) in places.into_iter().zip(stored) {
            if let Some(no) = no
                && !messages.is_empty()
            {
                self.emit_published(turn, no, now, messages);
            }
        }
        for (at, target, head) in repeats {
            let (Some(to), Some(PublishResult::Duplicate(duplicate))) = (targets.get(target), results.get_mut(at))
            else {
                continue;
            };
            self.note_repeat(now, to, &head, duplicate, turn);
        }
        for execution in finished {
            self.execution_moved(now, execution, turn);
        }
        results
    }

    /// The channel's number, made where messages are to be stored in it, and the offset of the first of them.
    fn place_of(&mut self, now: UnixMillis, target: &Target, turn: &mut Turn) -> (Option<ChannelNo>, Offset) {
        let made = target.no.or_else(|| {
            (target.stores > 0).then(|| {
                let no = self.memory.counters.channel.next();
                let (tenant, agent) = (target.channel.tenant.clone(), target.channel.agent.clone());
                self.emit(turn, Entry::ChannelMade { no, policy: target.policy, tenant, agent, at: now });
                no
            })
        });
        let first = made.and_then(|no| self.memory.channels.get(&no)).map_or(Offset(0), |row| row.head);
        (made, first)
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
        admitted: &mut Admitted,
        place: Place,
        target: usize,
        head: &Arc<MessageHead>,
    ) -> Result<Plan, Refusal> {
        let Some(to) = admitted.targets.get(target) else { return Ok(Plan::Store(0)) };
        let pair = self.pair_of(&to.channel, to.policy, head);
        let known = pair.and_then(|pair| self.memory.pairs.get(&pair));
        let earlier = pair.and_then(|pair| admitted.pairs.get(&pair));
        // An id that is taken must not swallow a report that nobody has: its sender would take it for stored.
        let reports_news = pair.is_some() && known.is_none() && earlier.is_none() && place != Place::Own;
        let taken = |by: &str| {
            let rule = format!("{by} message of this task has it, and that is not this report; give each its own");
            Err(Refusal::invalid(place.field("message_id"), rule))
        };
        let stored = to.no.and_then(|no| self.memory.tasks.get(&(no, head.task))).and_then(|task| task.by_id(head.id));
        if let Some(first) = stored {
            if reports_news {
                return taken("a stored");
            }
            return Ok(Plan::Repeat(Box::new(Duplicate {
                kind: DuplicateKind::MessageId,
                channel: to.channel.clone(),
                offset: first.offset,
                retained: true,
                message_id: head.message_id.to_string(),
                first_seen: first.at,
                payload_matches: first.body == head.body,
                execution: None,
            })));
        }
        if let Some(new) = admitted.ids.get(&(target, head.task, head.id)) {
            if reports_news {
                return taken("an earlier");
            }
            return Ok(Plan::RepeatOfNew(DuplicateKind::MessageId, new.clone()));
        }
        if let Some(row) = known {
            return Ok(Plan::Repeat(Box::new(Duplicate {
                kind: DuplicateKind::Pair,
                channel: self.channel_ref(row.channel).unwrap_or_else(|| to.channel.clone()),
                offset: row.offset,
                retained: true,
                message_id: row.message_id.clone(),
                first_seen: row.first_seen,
                payload_matches: row.body == head.body,
                execution: None,
            })));
        }
        if let Some(new) = earlier {
            return Ok(Plan::RepeatOfNew(DuplicateKind::Pair, new.clone()));
        }
        let Some(to) = admitted.targets.get_mut(target) else { return Ok(Plan::Store(0)) };
        let new = New { target, nth: to.stores, head: Arc::clone(head) };
        to.stores += 1;
        let nth = new.nth;
        if let Some(pair) = pair {
            admitted.pairs.insert(pair, new.clone());
        }
        admitted.ids.insert((target, head.task, head.id), new);
        Ok(Plan::Store(nth))
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
        place: Place,
        policy: &ChannelPolicy,
        channel: &ChannelRef,
        head: &MessageHead,
    ) -> Result<(), Refusal> {
        if policy.require_artifact && head.final_state == Some(FinalState::Completed) && head.artifact_ref.is_empty() {
            return Err(Refusal::invalid(
                place.field("artifact_ref"),
                format!("policy {} takes COMPLETED only with an artifact_ref", policy.name),
            ));
        }
        if head.final_state.is_none()
            && let Some(deadline) = head.deadline
            && deadline <= now
        {
            return Err(Refusal {
                field: place.field("deadline_unix_ms"),
                ..Refusal::new(
                    Reason::DeadlinePassed,
                    format!("the deadline {deadline} has passed by {} ms for {channel}", now.since(deadline)),
                )
            });
        }
        if let Some(not_before) = head.not_before {
            let ends = [
                ("its ttl ends", head.expires(now)),
                ("its deadline passes", head.deadline),
                ("the policy's retention ends", Some(now.plus(policy.retention_ms))),
            ];
            for (what, at) in ends {
                if let Some(at) = at.filter(|at| *at <= not_before) {
                    let rule = format!("{not_before} lies behind the time {what}, {at}: nobody would ever get it");
                    return Err(Refusal::invalid(place.field("not_before_unix_ms"), rule));
                }
            }
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
    pub(super) fn refuse_fenced(
        &mut self,
        now: UnixMillis,
        place: Place,
        channel: &ChannelRef,
        head: &MessageHead,
        turn: &mut Turn,
    ) -> Result<(), Refusal> {
        let (policy, _) = self.policy_of(channel)?;
        let (Some(token), Some(state)) = (head.fencing_token, head.final_state) else { return Ok(()) };
        let Some(execution) = head.execution(self.memory.hasher, &channel.tenant) else { return Ok(()) };
        let repeat = self.pair_of(channel, policy, head).is_some_and(|pair| self.memory.pairs.get(&pair).is_some());
        let row = self.memory.executions.get(&execution);
        let stands = row.and_then(|row| row.begin.as_ref()).is_some_and(|begin| begin.token == token);
        if repeat || stands {
            return Ok(());
        }
        if row.is_some() {
            let text = format!("{} reported {} with token {token}", head.agent_id, state.name());
            self.emit(turn, Entry::ReportFenced { execution, state, text, at: now });
        }
        let rule = "the begin of this token does not stand";
        Err(Refusal { field: place.field("fencing_token"), ..Refusal::new(Reason::Fenced, rule) })
    }

    /// A repeat leaves its mark in the ledger, not in the channel.
    fn note_repeat(
        &mut self,
        now: UnixMillis,
        to: &Target,
        head: &MessageHead,
        duplicate: &mut Duplicate,
        turn: &mut Turn,
    ) {
        let Some(execution) = head.execution(self.memory.hasher, &to.channel.tenant) else { return };
        let pair = match duplicate.kind {
            DuplicateKind::Pair => self.pair_of(&to.channel, to.policy, head),
            DuplicateKind::MessageId => None,
        };
        self.emit(turn, Entry::Repeated { execution, pair, mismatch: !duplicate.payload_matches, at: now });
        duplicate.execution = self.execution_picture(execution).map(Box::new);
    }

    /// The name of a channel in memory.
    pub(super) fn channel_ref(&self, no: ChannelNo) -> Option<ChannelRef> {
        let row = self.memory.channels.get(&no)?;
        let policy = self.memory.policies.get(&row.policy)?;
        Some(ChannelRef { policy: policy.policy.name.clone(), tenant: row.tenant.clone(), agent: row.agent.clone() })
    }
}
