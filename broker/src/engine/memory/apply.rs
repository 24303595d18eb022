//! Entries taking effect: the one place where durable values change.

use super::ledger::Stored;
use super::{GroupMemory, Memory, Pending, SessionMemory};
use crate::engine::head::MessageHead;
use crate::engine::row_key::{DirtyKey, RowKey};
use crate::journal::entry::{Entry, ExecutionHash, LeaseEnd, PartitionKey, Passed};
use crate::model::{
    ChannelNo, EndedAs, Epoch, GroupCounts, GroupNo, Lsn, Offset, PolicyNo, SessionId, Start, UnixMillis, UnknownReason,
};
use crate::state::rows::{
    BeginRow, ChannelRow, DedupRow, DeliveryRecord, DeliveryRow, DeliveryState, ExecutionRow, GroupRow, LeaseRow,
    PolicyRow, REPLACED_MAX, SessionRow, SettledRecord, TaskMessage, settles_block,
};
use std::sync::Arc;

impl Memory {
    /// Gives `entry` of frame `lsn` its effect. `heads` are the heads of the frame's records that no earlier entry of the
    /// frame covered; `Published` takes its share off the front. All rows that `entry_needs` names are in memory.
    pub(in crate::engine) fn apply(&mut self, lsn: Lsn, entry: &Entry, heads: &mut &[Arc<MessageHead>]) {
        self.lsn = lsn;
        match entry {
            Entry::PolicyPut { no, policy } => {
                self.counters.policy = self.counters.policy.max(*no);
                self.policy_by_name.insert(policy.name.clone(), *no);
                match self.policies.get_mut(no) {
                    Some(row) => row.policy = policy.clone(),
                    None => {
                        let row = PolicyRow { policy: policy.clone(), published: 0, last_latest: Lsn(0) };
                        self.policies.insert(*no, row);
                    }
                }
                self.mark(DirtyKey::Policy(*no));
            }
            Entry::ChannelMade { no, policy, tenant, agent, at } => {
                self.channel_made(*no, *policy, tenant, agent, *at);
            }
            Entry::Published { channel, first, count, at } => {
                let count = (*count as usize).min(heads.len());
                let (mine, rest) = heads.split_at(count);
                *heads = rest;
                self.published(lsn, *channel, *first, *at, mine);
            }
            Entry::Repeated { execution, pair, mismatch, at } => {
                self.time = self.time.max(*at);
                self.repeat_about(*execution, *mismatch, *at);
                if let Some(pair) = pair
                    && let Some(row) = self.pair_row(*pair)
                {
                    row.last_seen = *at;
                }
            }
            Entry::GroupMade { no, spec, offered, at } => {
                self.counters.group = self.counters.group.max(*no);
                let Some(policy) = self.policy_by_name.get(&spec.name.policy).copied() else { return };
                let counts = GroupCounts { offered: *offered, ..GroupCounts::default() };
                let row = GroupRow { spec: spec.clone(), policy, made_at: *at, made_lsn: lsn, counts };
                if spec.start == Start::Latest
                    && let Some(row) = self.policies.get_mut(&policy)
                {
                    row.last_latest = lsn;
                    self.mark(DirtyKey::Policy(policy));
                }
                self.insert_group(*no, row);
                self.mark(DirtyKey::Group(*no));
            }
            Entry::SessionJoined { id, group, member, instance, timeout_ms, at } => {
                let row = SessionRow {
                    group: *group,
                    member: member.clone(),
                    instance: instance.clone(),
                    timeout_ms: *timeout_ms,
                    joined_at: *at,
                    replaced: self.replaced_by(*group, instance),
                };
                self.sessions.insert(*id, SessionMemory { row, leases: Default::default() });
                if let Some(memory) = self.groups.get_mut(group) {
                    memory.sessions.insert(*id);
                    memory.track();
                    self.tracked.insert(*group);
                }
                self.mark(DirtyKey::Session(*id));
            }
            Entry::SessionEnded { id } => {
                if let Some(session) = self.sessions.remove(id)
                    && let Some(group) = self.groups.get_mut(&session.row.group)
                {
                    group.sessions.remove(id);
                    group.track();
                    if group.sessions.is_empty() {
                        self.tracked.remove(&session.row.group);
                    }
                }
                self.mark(DirtyKey::Session(*id));
            }
            Entry::Granted { group, session, lease_ms, at, grants } => {
                let expires = (*lease_ms > 0).then(|| at.plus(*lease_ms));
                for grant in grants {
                    let key = PartitionKey { group: *group, channel: grant.channel, task: grant.task };
                    let lease = LeaseRow {
                        epoch: grant.epoch,
                        session: *session,
                        granted_at: *at,
                        expires,
                        execution: grant.execution,
                        begun: None,
                        deadline: None,
                    };
                    self.granted(key, grant.offset, lease);
                }
            }
            Entry::LeaseMoved { partition, from, to, session } => self.lease_moved(*partition, *from, *to, *session),
            Entry::LeaseExtended { partition, epoch, until } => {
                self.change_lease(*partition, *epoch, |lease| lease.expires = Some(*until));
            }
            Entry::LeaseEnded { partition, epoch, offset, end, answer, at } => {
                self.lease_ended(*partition, *epoch, *offset, end, *answer, *at);
            }
            Entry::HeadPassed { partition, offset, how, at } => {
                self.time = self.time.max(*at);
                self.pass(*partition, *offset, *how);
            }
            Entry::HeadDelayed { partition, offset, until } => {
                let row = self.head_row(*partition, *offset);
                self.set_delivery(
                    *partition,
                    Some(DeliveryRow { state: DeliveryState::Delayed { until: *until }, ..row }),
                );
            }
            Entry::HeadHeld { partition, offset, cause, execution, at } => {
                let state = DeliveryState::Held { cause: *cause, execution: *execution, since: *at };
                let row = self.head_row(*partition, *offset);
                self.set_delivery(*partition, Some(DeliveryRow { state, ..row }));
            }
            Entry::HeadParked { partition, offset, reason, at } => {
                let row = self.head_row(*partition, *offset);
                let state = DeliveryState::Parked { since: *at };
                self.set_delivery(*partition, Some(DeliveryRow { state, reason: reason.clone(), ..row }));
            }
            Entry::HeadFreed { partition, offset } => {
                let row = self.head_row(*partition, *offset);
                self.set_delivery(*partition, Some(DeliveryRow { state: DeliveryState::Ready, ..row }));
            }
            Entry::Begun { execution, partition, offset, epoch, token, effect, at, deadline } => {
                self.time = self.time.max(*at);
                self.counters.epoch = self.counters.epoch.max(*token);
                let member = self.member_of(*partition);
                self.change_lease(*partition, *epoch, |lease| {
                    lease.begun = Some(*token);
                    lease.deadline = *deadline;
                });
                let begin = BeginRow {
                    partition: *partition,
                    offset: *offset,
                    member,
                    epoch: *epoch,
                    token: *token,
                    at: *at,
                    live: true,
                };
                self.begun(*execution, begin, *effect);
            }
            Entry::BeginWithdrawn { execution, at } => {
                self.forget_begin_of_lease(*execution);
                self.begin_withdrawn(*execution, *at);
            }
            Entry::BecameUnknown { execution, reason, text, at } => {
                self.time = self.time.max(*at);
                self.became_unknown(*execution, *reason, text, *at);
                if *reason == UnknownReason::Deadline
                    && let Some((partition, epoch)) =
                        self.executions.get(execution).and_then(|e| e.begin.as_ref()).map(|b| (b.partition, b.epoch))
                {
                    self.change_lease(partition, epoch, |lease| lease.deadline = None);
                }
            }
            Entry::Reported { execution, state, artifact_ref, late, text, at } => {
                self.reported(*execution, *state, artifact_ref, *late, text, *at);
            }
            Entry::ReportFenced { execution, state, text, at } => self.report_fenced(*execution, *state, text, *at),
            Entry::Resolved { execution, state, artifact_ref, evidence, by, at } => {
                if state.is_none() {
                    self.forget_begin_of_lease(*execution);
                }
                let text = if by.is_empty() { evidence.clone() } else { format!("{by}: {evidence}") };
                self.resolved(*execution, *state, artifact_ref, text, *at);
            }
            Entry::ExecutionExpired { execution, at } => self.execution_expired(*execution, *at),
        }
    }

    /// Sessions that a new one of this instance takes over from, and those that they took over from.
    fn replaced_by(&self, group: GroupNo, instance: &str) -> Vec<SessionId> {
        if instance.is_empty() {
            return Vec::new();
        }
        let mut replaced = Vec::new();
        for id in self.groups.get(&group).into_iter().flat_map(|group| &group.sessions) {
            if let Some(older) = self.sessions.get(id).filter(|session| session.row.instance == instance) {
                replaced.extend(older.row.replaced.iter().copied());
                replaced.push(*id);
            }
        }
        replaced.split_off(replaced.len().saturating_sub(REPLACED_MAX))
    }

    fn channel_made(&mut self, no: ChannelNo, policy: PolicyNo, tenant: &str, agent: &str, at: UnixMillis) {
        self.counters.channel = self.counters.channel.max(no);
        let generation = self.generation;
        let name = (policy, tenant.to_owned(), agent.to_owned());
        let (slot, first) = self.names.change(name.clone(), generation);
        *slot = Some(no);
        self.unsaved_names.insert(name, generation);
        self.mark_cached(first, || RowKey::ChannelName(policy, tenant.to_owned(), agent.to_owned()));
        let (slot, first) = self.channels.change(no, generation);
        *slot = Some(ChannelRow {
            policy,
            tenant: tenant.to_owned(),
            agent: agent.to_owned(),
            head: Offset(0),
            bytes: 0,
            made_at: at,
            last_publish_at: at,
            last_publish_lsn: Lsn(0),
            latest_marks: Vec::new(),
        });
        self.mark_cached(first, || RowKey::Channel(no));
        // A channel just made is known to every group that reads it, from its first message on: a scan need not find it.
        for group in self.groups_reading(policy, tenant, agent) {
            self.admit_cursor(group, no, None);
        }
    }

    fn published(&mut self, lsn: Lsn, no: ChannelNo, first: Offset, at: UnixMillis, heads: &[Arc<MessageHead>]) {
        self.time = self.time.max(at);
        let generation = self.generation;
        let count = heads.len() as u64;
        let (slot, fresh) = self.channels.change(no, generation);
        let Some(channel) = slot else { return };
        let (policy, tenant, agent) = (channel.policy, channel.tenant.clone(), channel.agent.clone());
        let last_latest = self.policies.get(&policy).map_or(Lsn(0), |p| p.last_latest);
        // Also at a channel's first publish: to a group made before it, all of it is later.
        if channel.last_publish_lsn < last_latest {
            channel.latest_marks.push((last_latest, channel.head));
        }
        channel.head = Offset(first.get() + count);
        channel.bytes += heads.iter().map(|h| u64::from(h.bytes)).sum::<u64>();
        channel.last_publish_at = at;
        channel.last_publish_lsn = lsn;
        self.mark_cached(fresh, || RowKey::Channel(no));

        if let Some(row) = self.policies.get_mut(&policy) {
            row.published += count;
            self.mark(DirtyKey::Policy(policy));
        }
        let (totals, fresh) = self.totals.change((policy, tenant.clone()), generation);
        totals.get_or_insert_default().published += count;
        self.mark_cached(fresh, || RowKey::Totals(policy, tenant.clone()));

        for (i, head) in heads.iter().enumerate() {
            let offset = Offset(first.get() + i as u64);
            self.task_gained(no, offset, at, head);
            if let Some(execution) = head.execution(self.hasher, &tenant) {
                self.message_about(execution, &tenant, head, Stored { channel: no, offset, at });
                if let (Some(state), Some(id)) = (head.final_state, head.execution_id.as_deref()) {
                    let pair = self.hasher.pair(&tenant, policy, id, state);
                    let (slot, fresh) = self.pairs.change(pair, generation);
                    *slot = Some(DedupRow {
                        channel: no,
                        offset,
                        execution,
                        first_seen: at,
                        last_seen: at,
                        body: head.body,
                        message_id: head.message_id.to_string(),
                    });
                    self.mark_cached(fresh, || RowKey::Pair(pair));
                }
            }
            self.heads.admit((no, offset), Some(Arc::clone(head)));
        }
        for group in self.groups_reading(policy, &tenant, &agent) {
            self.group_gained(group, no, first, at, heads, &tenant);
        }
    }

    fn task_gained(&mut self, channel: ChannelNo, offset: Offset, at: UnixMillis, head: &MessageHead) {
        let generation = self.generation;
        let key = (channel, head.task);
        let (slot, fresh) = self.tasks.change(key, generation);
        let task = slot.get_or_insert_default();
        if task.messages.is_empty() {
            task.task_id = Arc::clone(&head.task_id);
        }
        task.push(TaskMessage { offset, id: head.id, body: head.body, at });
        self.unsaved_tasks.insert(key, generation);
        self.mark_cached(fresh, || RowKey::Task(channel, head.task));
    }

    fn group_gained(
        &mut self,
        no: GroupNo,
        channel: ChannelNo,
        first: Offset,
        at: UnixMillis,
        heads: &[Arc<MessageHead>],
        tenant: &str,
    ) {
        let Some(group) = self.groups.get_mut(&no) else { return };
        let start = group.channels.get(&channel).map_or(first, |c| c.row.start);
        for (i, head) in heads.iter().enumerate() {
            let offset = Offset(first.get() + i as u64);
            if offset < start {
                continue;
            }
            group.row.counts.offered += 1;
            if group.takes_in(channel, head.task) {
                let partition = group.partitions.entry((channel, head.task)).or_default();
                partition.pending.push_back(Pending { offset, at });
                if partition.is_ready() && !group.fetching.contains(&(channel, head.task)) {
                    group.ready.push(tenant, channel, head.task);
                }
            }
        }
        self.mark(DirtyKey::Group(no));
    }

    fn granted(&mut self, key: PartitionKey, offset: Offset, lease: LeaseRow) {
        self.time = self.time.max(lease.granted_at);
        self.counters.epoch = self.counters.epoch.max(lease.epoch);
        let mut row = self.head_row(key, offset);
        row.acquired += 1;
        let session = lease.session;
        if let Some(execution) = lease.execution {
            let member = self.sessions.get(&session).map(|s| s.row.member.clone()).unwrap_or_default();
            let record = DeliveryRecord {
                group: key.group,
                member,
                epoch: lease.epoch,
                attempt: row.attempt(),
                at: lease.granted_at,
                begun: false,
                ended: None,
            };
            self.delivered(execution, record);
        }
        if let Some(group) = self.groups.get_mut(&key.group) {
            group.row.counts.delivered += 1;
            group.row.counts.redelivered += u64::from(row.acquired > 1);
            if let Some(partition) = group.partitions.get_mut(&(key.channel, key.task)) {
                partition.affinity = Some(session);
            }
        }
        self.mark(DirtyKey::Group(key.group));
        row.state = DeliveryState::Leased(lease);
        self.set_delivery(key, Some(row));
    }

    fn lease_moved(&mut self, key: PartitionKey, from: Epoch, to: Epoch, session: crate::model::SessionId) {
        self.counters.epoch = self.counters.epoch.max(to);
        let Some(mut row) = self.partition(key).and_then(|p| p.delivery.clone()) else { return };
        let DeliveryState::Leased(lease) = &mut row.state else { return };
        if lease.epoch != from {
            return;
        }
        lease.epoch = to;
        lease.session = session;
        let execution = lease.execution;
        self.set_delivery(key, Some(row));
        if let Some(execution) = execution {
            let member = self.sessions.get(&session).map(|s| s.row.member.clone()).unwrap_or_default();
            self.delivery_moved(execution, from, to, &member);
        }
    }

    fn lease_ended(
        &mut self,
        key: PartitionKey,
        epoch: Epoch,
        offset: Offset,
        end: &LeaseEnd,
        answer: EndedAs,
        at: UnixMillis,
    ) {
        self.time = self.time.max(at);
        let Some(mut row) = self.partition(key).and_then(|p| p.delivery.clone()) else { return };
        let Some(lease) = row.lease().filter(|lease| lease.epoch == epoch) else { return };
        if let Some(execution) = lease.execution {
            self.delivery_ended(execution, epoch, answer, at);
        }
        if answer != EndedAs::Lost {
            let record = SettledRecord { group: key.group, channel: key.channel, offset, answer };
            self.remember_settle(epoch, record, at);
        }
        match end {
            LeaseEnd::Done => return self.pass(key, offset, Passed::Settled(crate::model::SettledCause::Done)),
            LeaseEnd::Gone { cause } => return self.pass(key, offset, Passed::Gone(*cause)),
            LeaseEnd::Released => row.state = DeliveryState::Ready,
            LeaseEnd::Failed { until, reason } => {
                row.failed += 1;
                reason.clone_into(&mut row.reason);
                row.state = if *until > at { DeliveryState::Delayed { until: *until } } else { DeliveryState::Ready };
            }
            LeaseEnd::Lost => {
                row.lease_lost += 1;
                row.state = DeliveryState::Ready;
            }
            LeaseEnd::Parked { failed, lost, reason } => {
                row.failed += u32::from(*failed);
                row.lease_lost += u32::from(*lost);
                reason.clone_into(&mut row.reason);
                row.state = DeliveryState::Parked { since: at };
            }
            LeaseEnd::Held { cause, execution, lost } => {
                row.lease_lost += u32::from(*lost);
                row.state = DeliveryState::Held { cause: *cause, execution: *execution, since: at };
            }
        }
        self.set_delivery(key, Some(row));
    }

    fn remember_settle(&mut self, epoch: Epoch, record: SettledRecord, at: UnixMillis) {
        let block = settles_block(epoch);
        let (slot, fresh) = self.settles.change(block, self.generation);
        let row = slot.get_or_insert_default();
        row.last_at = row.last_at.max(at);
        row.ended.insert(epoch, record);
        let last_at = row.last_at;
        self.settle_blocks.insert(block, last_at);
        self.mark_cached(fresh, || RowKey::Settles(block));
    }

    /// The partition's first message leaves the backlog.
    fn pass(&mut self, key: PartitionKey, offset: Offset, how: Passed) {
        let generation = self.generation;
        let Some(group) = self.groups.get_mut(&key.group) else { return };
        let Some(channel) = group.channels.get_mut(&key.channel) else { return };
        if channel.row.is_through(offset) {
            return;
        }
        channel.row.pass(offset);
        let fresh = channel.changed_in != generation;
        channel.changed_in = generation;
        let counts = &mut group.row.counts;
        let count = match how {
            Passed::Settled(cause) => counts.settled.get_mut(cause as usize),
            Passed::Gone(cause) => counts.gone.get_mut(cause as usize),
        };
        if let Some(count) = count {
            *count += 1;
        }
        if let Some(partition) = group.partitions.get_mut(&(key.channel, key.task))
            && partition.pending.front().is_some_and(|first| first.offset == offset)
        {
            partition.pending.pop_front();
        }
        self.mark_cached(fresh, || RowKey::Cursor(key.group, key.channel));
        self.mark(DirtyKey::Group(key.group));
        self.set_delivery(key, None);
    }

    /// The state of the partition's first message, which is the one at `offset`.
    fn head_row(&self, key: PartitionKey, offset: Offset) -> DeliveryRow {
        self.partition(key)
            .and_then(|p| p.delivery.clone())
            .filter(|row| row.offset == offset)
            .unwrap_or_else(|| DeliveryRow::untouched(offset))
    }

    fn change_lease(&mut self, key: PartitionKey, epoch: Epoch, change: impl FnOnce(&mut LeaseRow)) {
        let Some(mut row) = self.partition(key).and_then(|p| p.delivery.clone()) else { return };
        if let DeliveryState::Leased(lease) = &mut row.state
            && lease.epoch == epoch
        {
            change(lease);
            self.set_delivery(key, Some(row));
        }
    }

    /// The begin that stands will not any more: if its lease lives, that lease has begun nothing.
    fn forget_begin_of_lease(&mut self, execution: ExecutionHash) {
        let begin = self.executions.get(&execution).and_then(|row| row.begin.as_ref());
        if let Some((partition, epoch)) = begin.map(|begin| (begin.partition, begin.epoch)) {
            self.change_lease(partition, epoch, |lease| {
                lease.begun = None;
                lease.deadline = None;
            });
        }
    }

    fn member_of(&self, key: PartitionKey) -> String {
        let session = self.partition(key).and_then(|p| p.delivery.as_ref()).and_then(|d| d.lease()).map(|l| l.session);
        session.and_then(|id| self.sessions.get(&id)).map(|s| s.row.member.clone()).unwrap_or_default()
    }

    /// Puts the partition's first message into another state, with all that hangs on it: tallies, timers, holds, the
    /// table of leases, the ready queue.
    pub(super) fn set_delivery(&mut self, key: PartitionKey, next: Option<DeliveryRow>) {
        let generation = self.generation;
        let Some(group) = self.groups.get_mut(&key.group) else { return };
        let partition = group.partitions.entry((key.channel, key.task)).or_default();
        let previous = std::mem::replace(&mut partition.delivery, next);
        partition.changed_in = generation;
        if partition.is_ready()
            && !group.fetching.contains(&(key.channel, key.task))
            && group.scan.is_some()
            && let Some(channel) = group.channels.get(&key.channel)
        {
            group.ready.push(&channel.tenant, key.channel, key.task);
        }
        let next = partition.delivery.clone();
        if partition.pending.is_empty() && next.is_none() && !partition.stored {
            group.partitions.remove(&(key.channel, key.task));
        }
        if let Some(previous) = &previous {
            self.unlink(key, previous);
        }
        if let Some(next) = &next {
            self.link(key, next);
        }
        self.mark(DirtyKey::Delivery(key));
    }

    fn unlink(&mut self, key: PartitionKey, row: &DeliveryRow) {
        if let Some(at) = due_at(row) {
            self.due.remove(&(at, key));
        }
        if let Some(group) = self.groups.get_mut(&key.group) {
            group.tallies.count(&row.state, -1);
            if let DeliveryState::Parked { .. } = row.state
                && let Some(parked) = group.parked_in.get_mut(&key.channel)
            {
                *parked = parked.saturating_sub(1);
            }
        }
        match &row.state {
            DeliveryState::Leased(lease) => {
                self.leases.remove(&lease.epoch);
                if let Some(session) = self.sessions.get_mut(&lease.session) {
                    session.leases.remove(&lease.epoch);
                }
            }
            DeliveryState::Held { execution, .. } => {
                if let Some(waiting) = self.holds.get_mut(execution) {
                    waiting.remove(&key);
                    if waiting.is_empty() {
                        self.holds.remove(execution);
                    }
                }
            }
            DeliveryState::Ready | DeliveryState::Delayed { .. } | DeliveryState::Parked { .. } => {}
        }
    }

    pub(super) fn link(&mut self, key: PartitionKey, row: &DeliveryRow) {
        if let Some(at) = due_at(row) {
            self.due.insert((at, key));
        }
        if let Some(group) = self.groups.get_mut(&key.group) {
            group.tallies.count(&row.state, 1);
            if let DeliveryState::Parked { .. } = row.state {
                *group.parked_in.entry(key.channel).or_default() += 1;
            }
        }
        match &row.state {
            DeliveryState::Leased(lease) => {
                self.leases.insert(lease.epoch, key);
                if let Some(session) = self.sessions.get_mut(&lease.session) {
                    session.leases.insert(lease.epoch);
                }
            }
            DeliveryState::Held { execution, .. } => {
                self.holds.entry(*execution).or_default().insert(key);
            }
            DeliveryState::Ready | DeliveryState::Delayed { .. } | DeliveryState::Parked { .. } => {}
        }
    }

    pub(super) fn insert_group(&mut self, no: GroupNo, row: GroupRow) {
        self.group_by_name.insert(row.spec.name.clone(), no);
        self.groups_by_policy.entry(row.policy).or_default().push(no);
        self.groups.insert(no, GroupMemory::new(row));
    }

    /// An execution's row, to be changed.
    pub(super) fn execution_row(&mut self, execution: ExecutionHash) -> &mut Option<ExecutionRow> {
        self.unsaved_executions.insert(execution, self.generation);
        let (slot, fresh) = self.executions.change(execution, self.generation);
        if fresh {
            self.dirty.push(DirtyKey::Cached(RowKey::Execution(execution)));
        }
        slot
    }

    fn pair_row(&mut self, pair: u128) -> Option<&mut DedupRow> {
        let (slot, fresh) = self.pairs.change(pair, self.generation);
        if fresh {
            self.dirty.push(DirtyKey::Cached(RowKey::Pair(pair)));
        }
        slot.as_mut()
    }

    fn mark(&mut self, key: DirtyKey) {
        self.dirty_small.insert(key);
    }

    pub(super) fn mark_cached(&mut self, fresh: bool, key: impl FnOnce() -> RowKey) {
        if fresh {
            self.dirty.push(DirtyKey::Cached(key()));
        }
    }
}

/// When something is due for a partition's first message in this state.
fn due_at(row: &DeliveryRow) -> Option<UnixMillis> {
    match &row.state {
        DeliveryState::Leased(lease) => match (lease.expires, lease.deadline) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        },
        DeliveryState::Delayed { until } => Some(*until),
        DeliveryState::Ready | DeliveryState::Held { .. } | DeliveryState::Parked { .. } => None,
    }
}
