//! Which rows a command wants in memory before it is decided, and which a frame's entries want before they are replayed.

use super::command::Command;
use super::head::MessageHead;
use super::memory::Memory;
use super::row_key::RowKey;
use crate::journal::entry::{Entry, PartitionKey};
use crate::model::{ChannelNo, ChannelRef, Epoch, Offset, PolicyNo, Selector};
use crate::state::rows::settles_block;
use std::collections::HashSet;
use std::sync::Arc;

/// Rows named so far that are not in memory.
struct Missing<'a> {
    memory: &'a mut Memory,
    keys: Vec<RowKey>,
    /// The same, for finding: a large publish may name thousands.
    named: HashSet<RowKey>,
}

impl<'a> Missing<'a> {
    fn none(memory: &'a mut Memory) -> Self {
        Self { memory, keys: Vec::new(), named: HashSet::new() }
    }

    fn row(&mut self, key: RowKey) {
        if !self.memory.knows(&key) && self.named.insert(key.clone()) {
            self.keys.push(key);
        }
    }

    /// The channel of this name, if it is in memory and exists. Names what is missing otherwise.
    fn channel(&mut self, policy: PolicyNo, channel: &ChannelRef) -> Option<ChannelNo> {
        self.row(RowKey::ChannelName(policy, channel.tenant.clone(), channel.agent.clone()));
        let no = self.memory.channel_no(policy, &channel.tenant, &channel.agent)?;
        self.row(RowKey::Channel(no));
        self.memory.channels.get(&no).map(|_| no)
    }

    /// What storing messages in a channel touches.
    fn publish<'m>(&mut self, channel: &ChannelRef, heads: impl Iterator<Item = &'m Arc<MessageHead>>) {
        let Some(policy) = self.memory.policy(&channel.policy).map(|(no, _)| no) else { return };
        self.row(RowKey::Totals(policy, channel.tenant.clone()));
        let no = self.channel(policy, channel);
        for head in heads {
            self.message(policy, &channel.tenant, no, head);
        }
        if let Some(no) = no {
            self.readers(policy, channel, no);
        }
    }

    fn readers(&mut self, policy: PolicyNo, channel: &ChannelRef, no: ChannelNo) {
        for group in self.memory.groups_reading(policy, &channel.tenant, &channel.agent) {
            self.row(RowKey::Cursor(group, no));
        }
    }

    /// What storing a message of weir's own touches.
    fn storing(&mut self, no: ChannelNo, task: u128) {
        self.row(RowKey::Channel(no));
        let Some(row) = self.memory.channels.get(&no) else { return };
        let (policy, tenant, agent) = (row.policy, row.tenant.clone(), row.agent.clone());
        self.row(RowKey::Task(no, task));
        self.row(RowKey::Totals(policy, tenant.clone()));
        self.readers(policy, &ChannelRef { policy: String::new(), tenant, agent }, no);
    }

    fn message(&mut self, policy: PolicyNo, tenant: &str, channel: Option<ChannelNo>, head: &MessageHead) {
        if let Some(no) = channel {
            self.row(RowKey::Task(no, head.task));
        }
        if let Some(id) = head.execution_id.as_deref() {
            let execution = self.memory.hasher.execution(tenant, id);
            self.execution(execution);
            if let Some(state) = head.final_state {
                let pair = self.memory.hasher.pair(tenant, policy, id, state);
                self.row(RowKey::Pair(pair));
                if let Some(row) = self.memory.pairs.get(&pair) {
                    let first = row.channel;
                    self.row(RowKey::Channel(first));
                }
            }
        }
    }

    /// An execution, and the channels its picture names.
    fn execution(&mut self, execution: u128) {
        self.row(RowKey::Execution(execution));
        let Some(row) = self.memory.executions.get(&execution) else { return };
        let channels: Vec<_> = [
            Some(row.home),
            row.request.as_ref().map(|r| r.channel),
            row.report.map(|(channel, _)| channel),
            row.begin.as_ref().map(|b| b.partition.channel),
        ]
        .into_iter()
        .flatten()
        .collect();
        channels.into_iter().for_each(|no| self.row(RowKey::Channel(no)));
    }

    /// A lease, live or over.
    fn lease(&mut self, epoch: Epoch) {
        match self.memory.leases.get(&epoch).copied() {
            Some(key) => self.partition(key),
            None => self.row(RowKey::Settles(settles_block(epoch))),
        }
    }

    /// What ending the partition's lease touches.
    fn partition(&mut self, key: PartitionKey) {
        self.row(RowKey::Channel(key.channel));
        if self.memory.channels.get(&key.channel).is_some() {
            self.row(RowKey::Cursor(key.group, key.channel));
        }
        let Some(delivery) = self.memory.partition(key).and_then(|p| p.delivery.as_ref()) else { return };
        let (offset, lease) = (delivery.offset, delivery.lease().cloned());
        self.row(RowKey::Head(key.channel, offset));
        self.execution_of(key.channel, offset);
        if let Some(lease) = lease {
            self.row(RowKey::Settles(settles_block(lease.epoch)));
            if let Some(execution) = lease.execution {
                self.execution(execution);
            }
        }
    }

    /// The execution that a message is about.
    fn execution_of(&mut self, channel: ChannelNo, offset: Offset) {
        let tenant = self.memory.channels.get(&channel).map(|row| row.tenant.clone());
        let Some((tenant, head)) = tenant.zip(self.memory.heads.get(&(channel, offset)).cloned()) else { return };
        if let Some(execution) = head.execution(self.memory.hasher, &tenant) {
            self.row(RowKey::Execution(execution));
        }
    }

    /// What ending the session's other leases touches.
    fn session_leases(&mut self, session: crate::model::SessionId) {
        let epochs: Vec<_> =
            self.memory.sessions.get(&session).map(|s| s.leases.iter().copied().collect()).unwrap_or_default();
        epochs.into_iter().for_each(|epoch| self.lease(epoch));
    }
}

/// Rows that `command` wants in memory and that are not. Asked again until there are none: what one row says may name
/// the next.
pub(super) fn needs(memory: &mut Memory, command: &Command) -> Vec<RowKey> {
    let mut missing = Missing::none(memory);
    match command {
        Command::Publish { channel, messages } => missing.publish(channel, messages.iter().map(|(_, head)| head)),
        Command::CreateGroup(spec) => {
            if let Some(policy) = missing.memory.policy(&spec.name.policy).map(|(no, _)| no) {
                match &spec.selector {
                    Selector::Channel { tenant, agent } => {
                        let channel = ChannelRef {
                            policy: spec.name.policy.clone(),
                            tenant: tenant.clone(),
                            agent: agent.clone(),
                        };
                        missing.channel(policy, &channel);
                    }
                    Selector::Tenant(tenant) => missing.row(RowKey::Totals(policy, tenant.clone())),
                    Selector::All => {}
                }
            }
        }
        Command::Fetch(session, _) | Command::Attach(session, _) | Command::Heartbeat(session) => {
            let mut ids = vec![session.id];
            if !session.instance.is_empty()
                && let Some(no) = missing.memory.group_by_name.get(&session.group)
                && let Some(group) = missing.memory.groups.get(no)
            {
                let same = group
                    .sessions
                    .iter()
                    .filter(|id| missing.memory.sessions.get(id).is_some_and(|s| s.row.instance == session.instance));
                ids.extend(same.copied());
            }
            ids.into_iter().for_each(|id| missing.session_leases(id));
        }
        Command::Leave(session) => missing.session_leases(session.id),
        Command::Extend(_, extensions) => extensions.iter().for_each(|(lease, _)| missing.lease(lease.epoch)),
        Command::Unreadable(_, leases) => leases.iter().for_each(|(lease, _)| missing.lease(lease.epoch)),
        Command::Settle(_, settles) => settles.iter().for_each(|settle| missing.lease(settle.lease.epoch)),
        Command::Begin(_, lease) => {
            missing.lease(lease.epoch);
            // A begin that finds the deadline passed leaves weir's note in the task.
            if let Some(key) = missing.memory.leases.get(&lease.epoch).copied() {
                missing.storing(key.channel, key.task);
            }
        }
        Command::Complete(_, complete, heads) => {
            missing.lease(complete.lease.epoch);
            let execution = missing.memory.hasher.execution(&complete.tenant, &complete.execution_id);
            missing.execution(execution);
            let row = missing.memory.executions.get(&execution);
            if let Some(begin) = row.and_then(|row| row.begin.as_ref()).map(|begin| begin.partition) {
                missing.partition(begin);
            }
            let own = own_channel(missing.memory, execution);
            if let Some((policy, channel)) = own {
                missing.publish(&channel, std::iter::empty());
                let pair =
                    missing.memory.hasher.pair(&complete.tenant, policy, &complete.execution_id, complete.final_state);
                missing.row(RowKey::Pair(pair));
                if let Some(first) = missing.memory.pairs.get(&pair).map(|row| row.channel) {
                    missing.row(RowKey::Channel(first));
                }
                if let Some(no) = missing.channel(policy, &channel) {
                    let task = missing.memory.executions.get(&execution).map(|row| row.task_id.clone());
                    if let Some(task) = task {
                        let hash = missing.memory.hasher.task(&task);
                        missing.row(RowKey::Task(no, hash));
                    }
                }
            }
            for ((channel, _), head) in complete.publishes.iter().zip(heads) {
                missing.publish(channel, std::iter::once(head));
            }
        }
        Command::Resolve(resolve) => {
            let execution = missing.memory.hasher.execution(&resolve.tenant, &resolve.execution_id);
            missing.execution(execution);
            let home = missing.memory.executions.get(&execution).map(|row| (row.home, row.task_id.clone()));
            if let Some((home, task)) = home {
                let hash = missing.memory.hasher.task(&task);
                missing.storing(home, hash);
                let policy = missing.memory.channels.get(&home).map(|row| row.policy);
                if let (Some(state), Some(policy)) = (resolve.state, policy) {
                    let pair = missing.memory.hasher.pair(&resolve.tenant, policy, &resolve.execution_id, state);
                    missing.row(RowKey::Pair(pair));
                }
            }
        }
        Command::GetExecution(tenant, id) | Command::Explain(tenant, id) => {
            let execution = missing.memory.hasher.execution(tenant, id);
            missing.execution(execution);
        }
        Command::GetExecutions(hashes) => hashes.iter().for_each(|hash| missing.execution(*hash)),
        Command::GetChannel(channel) => {
            if let Some(policy) = missing.memory.policy(&channel.policy).map(|(no, _)| no)
                && let Some(no) = missing.channel(policy, channel)
            {
                missing.readers(policy, channel, no);
            }
        }
        Command::GetChannels(numbers) => {
            for no in numbers {
                missing.row(RowKey::Channel(*no));
                let Some(row) = missing.memory.channels.get(no).cloned() else { continue };
                let channel = ChannelRef { policy: String::new(), tenant: row.tenant, agent: row.agent };
                missing.readers(row.policy, &channel, *no);
            }
        }
        Command::ListParked(group) => {
            let parked = super::query::parked_partitions(missing.memory, group);
            for (key, _) in parked {
                missing.row(RowKey::Channel(key.channel));
                missing.row(RowKey::Task(key.channel, key.task));
            }
        }
        Command::Audit(group, channels) => {
            let group = missing.memory.group_by_name.get(group).copied();
            for no in channels {
                missing.row(RowKey::Channel(*no));
                if let Some(group) = group
                    && missing.memory.channels.get(no).is_some()
                {
                    missing.row(RowKey::Cursor(group, *no));
                }
            }
        }
        Command::PutPolicy(_)
        | Command::CancelFetch(..)
        | Command::Detach(..)
        | Command::Credit(..)
        | Command::GetGroup(_)
        | Command::ListGroups(_)
        | Command::ListMembers(_)
        | Command::ListPolicies
        | Command::UnsavedChannels(_)
        | Command::UnsavedExecutions(_)
        | Command::Snapshot
        | Command::Drain => {}
    }
    missing.keys
}

/// The channel a result of this execution goes to: that of its begin.
fn own_channel(memory: &Memory, execution: u128) -> Option<(PolicyNo, ChannelRef)> {
    let begin = memory.executions.get(&execution)?.begin.as_ref()?;
    let channel = memory.channels.get(&begin.partition.channel)?;
    let policy = memory.policies.get(&channel.policy)?;
    let name =
        ChannelRef { policy: policy.policy.name.clone(), tenant: channel.tenant.clone(), agent: channel.agent.clone() };
    Some((channel.policy, name))
}

impl Memory {
    /// Rows that these entries of one frame want in memory before they take effect again.
    pub(super) fn entries_need(&mut self, entries: &[Entry], heads: &[Arc<MessageHead>]) -> Vec<RowKey> {
        let mut heads = heads;
        let mut made = Vec::new();
        let mut missing = Missing::none(self);
        for entry in entries {
            match entry {
                Entry::ChannelMade { no, policy, tenant, agent, .. } => {
                    made.push((*no, *policy, tenant.clone(), agent.clone()));
                }
                Entry::Published { channel, count, .. } => {
                    let (mine, rest) = heads.split_at((*count as usize).min(heads.len()));
                    heads = rest;
                    let fresh = made.iter().find(|(no, ..)| no == channel).cloned();
                    if fresh.is_none() {
                        missing.row(RowKey::Channel(*channel));
                    }
                    let named = fresh.clone().or_else(|| {
                        let row = missing.memory.channels.get(channel)?;
                        Some((*channel, row.policy, row.tenant.clone(), row.agent.clone()))
                    });
                    let Some((_, policy, tenant, agent)) = named else { continue };
                    missing.row(RowKey::Totals(policy, tenant.clone()));
                    for head in mine {
                        missing.message(policy, &tenant, fresh.is_none().then_some(*channel), head);
                    }
                    if fresh.is_none() {
                        let channel_ref = ChannelRef { policy: String::new(), tenant, agent };
                        missing.readers(policy, &channel_ref, *channel);
                    }
                }
                Entry::Repeated { execution, pair, .. } => {
                    missing.row(RowKey::Execution(*execution));
                    if let Some(pair) = pair {
                        missing.row(RowKey::Pair(*pair));
                    }
                }
                Entry::Granted { grants, .. } => {
                    grants.iter().filter_map(|g| g.execution).for_each(|x| missing.row(RowKey::Execution(x)));
                }
                Entry::LeaseEnded { partition, epoch, .. } => {
                    missing.row(RowKey::Settles(settles_block(*epoch)));
                    missing.partition_rows(*partition);
                }
                Entry::LeaseMoved { partition, .. } | Entry::HeadPassed { partition, .. } => {
                    missing.partition_rows(*partition);
                }
                Entry::Begun { execution, .. }
                | Entry::BeginWithdrawn { execution, .. }
                | Entry::BecameUnknown { execution, .. }
                | Entry::Reported { execution, .. }
                | Entry::ReportFenced { execution, .. }
                | Entry::Resolved { execution, .. }
                | Entry::ExecutionExpired { execution, .. } => missing.row(RowKey::Execution(*execution)),
                Entry::PolicyPut { .. }
                | Entry::GroupMade { .. }
                | Entry::SessionJoined { .. }
                | Entry::SessionEnded { .. }
                | Entry::LeaseExtended { .. }
                | Entry::HeadDelayed { .. }
                | Entry::HeadHeld { .. }
                | Entry::HeadFreed { .. }
                | Entry::HeadParked { .. } => {}
            }
        }
        missing.keys
    }
}

impl Missing<'_> {
    /// The rows of a partition that an entry touches (its message's head is not one of them).
    fn partition_rows(&mut self, key: PartitionKey) {
        self.row(RowKey::Channel(key.channel));
        if self.memory.channels.get(&key.channel).is_some() {
            self.row(RowKey::Cursor(key.group, key.channel));
        }
        let lease = self.memory.partition(key).and_then(|p| p.delivery.as_ref()).and_then(|d| d.lease());
        if let Some(execution) = lease.and_then(|lease| lease.execution) {
            self.row(RowKey::Execution(execution));
        }
    }
}
