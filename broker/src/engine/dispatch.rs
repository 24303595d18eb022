//! Dispatch: in the turn that made a partition ready, its next message goes to a member with room, so that the grant
//! shares that turn's sync. All grants of a turn to one session are one entry.

use super::Engine;
use super::command::{DeliveryMeta, Out, Reply, Turn};
use super::compose::OwnMessage;
use super::head::MessageHead;
use super::live::{Credit, SEARCH_GRACE_MS, Weight};
use super::row_key::RowKey;
use super::want::Want;
use crate::journal::entry::{Entry, ExecutionHash, Grant, HoldCause, PartitionKey, Passed, TaskHash};
use crate::model::limits::HELD_MAX;
use crate::model::{
    ChannelNo, ExecutionHint, ExecutionState, GoneCause, GroupNo, SessionId, SettledCause, UnixMillis, UnknownReason,
    Waiting,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Partitions looked at in one turn, over all groups; the rest waits for the next.
const LOOKED_AT_MAX: usize = 4096;

/// What the next message of a partition comes to.
enum Next {
    /// Hand it out.
    Grant { head: Arc<MessageHead>, execution: Option<ExecutionHash>, weight: Weight },
    /// Rows are missing.
    Fetch(RowKey),
    /// It leaves, or waits: these entries say so.
    Step(Vec<Entry>),
    /// Its deadline passed before anybody began: the entries, and weir's note in the task.
    Expire { entries: Vec<Entry>, note: Option<(ChannelNo, Arc<MessageHead>)> },
}

/// Grants to one session in this turn.
#[derive(Default)]
struct Hand {
    grants: Vec<(Grant, Arc<MessageHead>)>,
}

impl Engine {
    /// Hands out what is ready, in all groups.
    pub(super) fn dispatch(&mut self, now: UnixMillis, turn: &mut Turn) {
        // A search goes on by itself as its pages come; after a restart this is what begins it.
        let tracked: Vec<_> = self.memory.tracked.iter().copied().collect();
        tracked.iter().for_each(|no| self.search_backlog(*no, turn));
        let mut left = LOOKED_AT_MAX;
        for no in tracked {
            self.dispatch_group(now, no, &mut left, turn);
        }
        self.more_to_dispatch = left == 0;
        self.answer_fetches(now, turn);
    }

    fn dispatch_group(&mut self, now: UnixMillis, no: GroupNo, left: &mut usize, turn: &mut Turn) {
        if self.draining {
            return;
        }
        let mut hands: BTreeMap<SessionId, Hand> = BTreeMap::new();
        let mut epoch = self.memory.counters.epoch;
        let mut window = self.window_left(no);
        let mut back = Vec::new();
        while *left > 0 && window > 0 && self.live.has_roomy(no) {
            let Some(key) = self.memory.pop_ready(no) else { break };
            *left -= 1;
            match self.next(now, key) {
                Next::Fetch(row) => {
                    self.memory.set_fetching(key, true);
                    self.waiting_for.entry(row.clone()).or_default().push(key);
                    self.want(turn, Want::Row(row));
                }
                Next::Step(entries) => {
                    entries.into_iter().for_each(|entry| self.emit(turn, entry));
                    self.memory.push_ready(key);
                }
                Next::Expire { entries, note } => {
                    entries.into_iter().for_each(|entry| self.emit(turn, entry));
                    if let Some((channel, head)) = note {
                        self.note_timed_out(now, channel, &head, turn);
                    }
                    self.memory.push_ready(key);
                    epoch = epoch.max(self.memory.counters.epoch);
                }
                Next::Grant { head, execution, weight } => {
                    let first_of = |id: &SessionId, hands: &BTreeMap<SessionId, Hand>| !hands.contains_key(id);
                    let Some(session) = self.choose(no, key, weight, |id| first_of(id, &hands)) else {
                        back.push(key);
                        // Somebody has room for a smaller message; look at no more than a few.
                        if back.len() > 16 {
                            break;
                        }
                        continue;
                    };
                    let Some(offset) = self.memory.partition(key).and_then(|p| p.pending.front()).map(|p| p.offset)
                    else {
                        continue;
                    };
                    epoch = epoch.next();
                    window -= 1;
                    self.live.change(session, |live| live.charge(weight));
                    let grant = Grant { channel: key.channel, task: key.task, offset, epoch, execution };
                    hands.entry(session).or_default().grants.push((grant, head));
                }
            }
        }
        back.into_iter().for_each(|key| self.memory.push_ready(key));
        for (session, hand) in hands {
            self.hand_out(now, no, session, hand, turn);
        }
    }

    /// What the partition's first message comes to, from memory alone.
    fn next(&self, now: UnixMillis, key: PartitionKey) -> Next {
        let Some(group) = self.memory.groups.get(&key.group) else { return Next::Step(Vec::new()) };
        let Some(first) = group.partitions.get(&(key.channel, key.task)).and_then(|p| p.pending.front().copied())
        else {
            return Next::Step(Vec::new());
        };
        let offset = first.offset;
        let Some(channel) = self.memory.channels.get(&key.channel) else {
            return Next::Fetch(RowKey::Channel(key.channel));
        };
        let Some(head) = self.memory.heads.get(&(key.channel, offset)) else {
            return Next::Fetch(RowKey::Head(key.channel, offset));
        };
        let execution = head.execution(self.memory.hasher, &channel.tenant);
        let row = match execution {
            Some(execution) => match self.memory.executions.get(&execution) {
                Some(row) => Some(row),
                None => return Next::Fetch(RowKey::Execution(execution)),
            },
            None => None,
        };
        let passed = |how| Entry::HeadPassed { partition: key, offset, how, at: now };
        // What is begun is a request; whatever else names its execution keeps its own time.
        let unbegun = !head.is_request || row.is_none_or(|row| row.begin.is_none());
        let expired = head
            .is_request
            .then_some(execution)
            .flatten()
            .map(|execution| Entry::ExecutionExpired { execution, at: now });
        if head.expires(first.at).is_some_and(|at| at <= now) && unbegun {
            let entries = std::iter::once(passed(Passed::Gone(GoneCause::Ttl))).chain(expired).collect();
            return Next::Expire { entries, note: None };
        }
        if head.final_state.is_none() && head.deadline.is_some_and(|at| at <= now) && unbegun {
            let waits = row.is_some_and(|row| row.state == ExecutionState::Requested);
            let noted = head.is_request && waits;
            if let Some(missing) = noted.then(|| self.missing_for_note(key.channel, head.task)).flatten() {
                return Next::Fetch(missing);
            }
            let note = noted.then_some(key.channel);
            let entries = std::iter::once(passed(Passed::Gone(GoneCause::Deadline))).chain(expired).collect();
            return Next::Expire { entries, note: note.map(|channel| (channel, Arc::clone(head))) };
        }
        let spec = &group.row.spec;
        // Begun and given back, and its time is over: nobody knows what the effect came to, so nobody tries again.
        if let (Some(execution), Some(row)) = (execution, row)
            && spec.executes
            && head.is_request
            && head.deadline.is_some_and(|at| at <= now)
            && row.state == ExecutionState::Begun
            && !row.begin.as_ref().is_some_and(|begin| begin.live)
        {
            let (reason, text) = (UnknownReason::Deadline, "its deadline passed after a begin".to_owned());
            return Next::Step(vec![
                Entry::BecameUnknown { execution, reason, text, at: now },
                Entry::HeadHeld { partition: key, offset, cause: HoldCause::Unknown, execution, at: now },
            ]);
        }
        if let Some(until) = head.not_before.filter(|at| *at > now) {
            let goes = head.goes(first.at, true).filter(|_| unbegun).map_or(until, |(at, _)| at);
            return Next::Step(vec![Entry::HeadDelayed { partition: key, offset, until: until.min(goes) }]);
        }
        let definite = row.is_some_and(|row| row.state.definite().is_some());
        if spec.executes && spec.skip_if_final && head.is_request && definite {
            return Next::Step(vec![passed(Passed::Settled(SettledCause::SkippedFinal))]);
        }
        let execution = execution.filter(|_| spec.executes && head.is_request);
        let product = row.map_or(0, |row| row.artifact_ref.len() as u64);
        Next::Grant { head: Arc::clone(head), execution, weight: Weight { message: u64::from(head.bytes), product } }
    }

    /// The member for this partition: the one that served it last if it has room, else the least loaded.
    fn choose(
        &mut self,
        no: GroupNo,
        key: PartitionKey,
        weight: Weight,
        first: impl Fn(&SessionId) -> bool,
    ) -> Option<SessionId> {
        let affinity = self.memory.partition(key).and_then(|p| p.affinity);
        if let Some(id) = affinity.filter(|id| self.has_room(no, *id, weight, first(id))) {
            return Some(id);
        }
        let candidates = self.live.candidates(no);
        candidates.into_iter().filter(|id| self.has_room(no, *id, weight, first(id))).min_by_key(|id| {
            let leases = self.memory.sessions.get(id).map_or(0, |s| s.leases.len() as u64);
            let room = self.live.get(*id).map_or(0, |live| live.credit.messages);
            (leases, std::cmp::Reverse(room))
        })
    }

    fn has_room(&self, no: GroupNo, id: SessionId, weight: Weight, first: bool) -> bool {
        self.live.get(id).is_some_and(|live| live.group == no && live.has_room(weight, first))
            && self.memory.sessions.get(&id).is_some_and(|session| session.leases.len() < HELD_MAX)
    }

    fn window_left(&self, no: GroupNo) -> u64 {
        self.memory.groups.get(&no).map_or(0, |group| match group.row.spec.window {
            0 => u64::MAX,
            window => u64::from(window).saturating_sub(group.tallies.in_flight),
        })
    }

    fn hand_out(&mut self, now: UnixMillis, no: GroupNo, session: SessionId, hand: Hand, turn: &mut Turn) {
        let lease_ms = self.live.get(session).map_or(0, |live| live.lease_ms);
        let grants: Vec<_> = hand.grants.iter().map(|(grant, _)| *grant).collect();
        self.emit(turn, Entry::Granted { group: no, session, lease_ms, at: now, grants });
        let deliveries: Vec<_> =
            hand.grants.into_iter().filter_map(|(grant, head)| self.delivery(now, no, &grant, &head)).collect();
        if self.live.get(session).is_some_and(|live| live.stream.is_some()) {
            turn.outs.push(Out::Deliver(session, deliveries));
        } else {
            self.answer_fetch(session, deliveries, None, turn);
        }
    }

    fn delivery(&self, now: UnixMillis, no: GroupNo, grant: &Grant, head: &MessageHead) -> Option<DeliveryMeta> {
        let key = PartitionKey { group: no, channel: grant.channel, task: grant.task };
        let partition = self.memory.partition(key)?;
        let row = partition.delivery.as_ref()?;
        let channel = self.channel_ref(grant.channel)?;
        let execution = head
            .execution(self.memory.hasher, &channel.tenant)
            .and_then(|execution| self.memory.executions.get(&execution))
            .map(|row| ExecutionHint { state: row.state, artifact_ref: row.artifact_ref.clone(), since: row.since });
        Some(DeliveryMeta {
            no: grant.channel,
            channel,
            offset: grant.offset,
            task_id: Arc::clone(&head.task_id),
            epoch: grant.epoch,
            attempt: row.attempt(),
            acquired: row.acquired,
            failed: row.failed,
            lease_lost: row.lease_lost,
            published_at: partition.pending.front().map_or(now, |first| first.at),
            lease_expires: row.lease().and_then(|lease| lease.expires),
            time_left_ms: head.deadline.map(|deadline| deadline.since(now)),
            execution,
            skipped: Vec::new(),
        })
    }

    /// Ends the session's fetch, if it waits in one.
    pub(super) fn answer_fetch(
        &mut self,
        session: SessionId,
        deliveries: Vec<DeliveryMeta>,
        waiting: Option<Waiting>,
        turn: &mut Turn,
    ) {
        let answered = self.live.change(session, |live| {
            let fetch = live.fetch.take()?;
            live.credit = Credit::default();
            Some((fetch, std::mem::take(&mut live.notices)))
        });
        if let Some((fetch, notices)) = answered.flatten() {
            let reply = Reply::Fetched { deliveries, waiting, held: fetch.held, notices };
            turn.outs.push(Out::Reply(fetch.ticket, reply));
        }
    }

    /// Fetches whose wait is over, and those that asked not to wait.
    pub(super) fn answer_fetches(&mut self, now: UnixMillis, turn: &mut Turn) {
        let mut ids = self.live.due(now);
        ids.extend(self.live.overdue());
        for id in ids {
            let Some(until) = self.live.get(id).and_then(|live| live.fetch.as_ref()).map(|fetch| fetch.until) else {
                continue;
            };
            if until > now {
                continue;
            }
            // While the backlog is still being found nobody can say that there is nothing.
            if self.is_searching(id) && !self.draining && until.plus(SEARCH_GRACE_MS) > now {
                self.live.change(id, |live| live.fetch.as_mut().map(|fetch| fetch.overdue = true));
            } else {
                let waiting = self.waiting_reason(id);
                self.answer_fetch(id, Vec::new(), Some(waiting), turn);
            }
            self.live.reset_timer(id);
        }
    }

    fn is_searching(&self, id: SessionId) -> bool {
        let group = self.live.get(id).and_then(|live| self.memory.groups.get(&live.group));
        group.is_some_and(|group| group.scan.as_ref().is_some_and(|scan| !scan.is_done()) || !group.fetching.is_empty())
    }

    /// A row that storing a message of weir's own in this channel and task touches, and that is not in memory.
    pub(super) fn missing_for_note(&self, no: ChannelNo, task: TaskHash) -> Option<RowKey> {
        let Some(row) = self.memory.channels.get(&no) else { return Some(RowKey::Channel(no)) };
        if !self.memory.tasks.holds(&(no, task)) {
            return Some(RowKey::Task(no, task));
        }
        if !self.memory.totals.holds(&(row.policy, row.tenant.clone())) {
            return Some(RowKey::Totals(row.policy, row.tenant.clone()));
        }
        self.memory
            .groups_reading(row.policy, &row.tenant, &row.agent)
            .into_iter()
            .find(|group| self.memory.groups.get(group).is_some_and(|g| !g.channels.contains_key(&no)))
            .map(|group| RowKey::Cursor(group, no))
    }

    /// A note in the task that its request's deadline passed.
    pub(super) fn note_timed_out(&mut self, now: UnixMillis, no: ChannelNo, head: &MessageHead, turn: &mut Turn) {
        let own = OwnMessage {
            message_id: OwnMessage::id("timed_out", &head.message_id, None),
            task_id: &head.task_id,
            execution_id: head.execution_id.as_deref().unwrap_or_default(),
            kind: "event",
            intent: "task.timed_out",
            created_at: now,
            ..OwnMessage::default()
        };
        let message = own.compose(self.memory.hasher);
        let known = self.memory.tasks.get(&(no, message.1.task)).is_some_and(|task| task.by_id(message.1.id).is_some());
        if !known {
            self.emit_published(turn, no, now, vec![message]);
        }
    }
}
