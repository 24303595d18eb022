//! Rows coming in from state: at open, on demand, and as pages of a tracked group's backlog.

use super::{GroupChannel, Loaded, Memory, Pending, SessionMemory, TaskMemory};
use crate::engine::row_key::RowKey;
use crate::engine::want::{Loaded as Row, TaskPage};
use crate::journal::entry::{PartitionKey, TaskHash};
use crate::model::{ChannelNo, GroupNo, Offset, PolicyNo, Start, UnixMillis};
use crate::state::rows::{self, CursorRow, DeliveryRow, GroupRow, PolicyRow, RowError, SessionRow, TaskRow};
use std::collections::VecDeque;
use std::sync::Arc;

/// The rows that are always in memory, as found at open.
#[derive(Debug, Default)]
pub(crate) struct Resident {
    pub(crate) policies: Vec<(PolicyNo, PolicyRow)>,
    pub(crate) groups: Vec<(GroupNo, GroupRow)>,
    pub(crate) sessions: Vec<(crate::model::SessionId, SessionRow)>,
    pub(crate) deliveries: Vec<(PartitionKey, DeliveryRow)>,
    /// Blocks of ended leases that are stored.
    pub(crate) settle_blocks: Vec<(u64, UnixMillis)>,
}

impl Memory {
    /// Takes in what is always in memory. Called once, before anything else.
    pub(in crate::engine) fn restore(&mut self, resident: Resident) {
        for (no, row) in resident.policies {
            self.policy_by_name.insert(row.policy.name.clone(), no);
            self.policies.insert(no, row);
        }
        for (no, row) in resident.groups {
            self.insert_group(no, row);
        }
        for (id, row) in resident.sessions {
            if let Some(group) = self.groups.get_mut(&row.group) {
                group.sessions.insert(id);
                group.track();
                self.tracked.insert(row.group);
            }
            self.sessions.insert(id, SessionMemory { row, leases: Default::default() });
        }
        for (key, row) in resident.deliveries {
            if let Some(group) = self.groups.get_mut(&key.group) {
                let partition = group.partitions.entry((key.channel, key.task)).or_default();
                partition.stored = true;
                partition.delivery = Some(row.clone());
                self.link(key, &row);
            }
        }
        self.settle_blocks.extend(resident.settle_blocks);
    }

    /// Takes in a row that was asked for. A row that is in memory already is newer and stays.
    pub(in crate::engine) fn admit(&mut self, key: RowKey, row: Row) -> Result<(), RowError> {
        match (key, row) {
            (RowKey::ChannelName(policy, tenant, agent), Row::Value(value)) => {
                let no = match value {
                    Some(bytes) => Some(ChannelNo(u64::from_be_bytes(
                        bytes.as_ref().try_into().map_err(|_| RowError("channel number of odd size".to_owned()))?,
                    ))),
                    None => None,
                };
                self.names.admit((policy, tenant, agent), no);
            }
            (RowKey::Channel(no), Row::Value(value)) => self.channels.admit(no, decoded(value)?),
            (RowKey::Pair(pair), Row::Value(value)) => self.pairs.admit(pair, decoded(value)?),
            (RowKey::Execution(execution), Row::Value(value)) => self.executions.admit(execution, decoded(value)?),
            (RowKey::Settles(block), Row::Value(value)) => self.settles.admit(block, decoded(value)?),
            (RowKey::Totals(policy, tenant), Row::Value(value)) => {
                self.totals.admit((policy, tenant), decoded(value)?);
            }
            (RowKey::Cursor(group, channel), Row::Value(value)) => {
                self.admit_cursor(group, channel, decoded(value)?);
            }
            (RowKey::Task(channel, task), Row::Parts(parts)) => {
                let mut memory: Option<TaskMemory> = None;
                for part in parts {
                    let row: TaskRow = rows::decode(&part)?;
                    let task = memory.get_or_insert_default();
                    task.task_id = row.task_id.into();
                    row.messages.into_iter().for_each(|m| task.push(m));
                }
                if let Some(task) = &mut memory {
                    task.frozen = task.messages.len();
                }
                self.tasks.admit((channel, task), memory);
            }
            (RowKey::Head(channel, offset), Row::Head(head)) => self.heads.admit_late((channel, offset), head),
            // Calls about its lease need not wait for it. Whoever would hand it out asks again.
            (RowKey::Head(channel, offset), Row::Unreadable(_)) => self.heads.admit((channel, offset), None),
            (key, _) => return Err(RowError(format!("a row of another kind came for {key:?}"))),
        }
        Ok(())
    }

    /// Takes in a group's cursor of a channel, whose own row is in memory.
    pub(super) fn admit_cursor(&mut self, no: GroupNo, channel: ChannelNo, row: Option<CursorRow>) {
        let (Some(group), Some(channel_row)) = (self.groups.get_mut(&no), self.channels.get(&channel)) else { return };
        if group.channels.contains_key(&channel) {
            return;
        }
        let stored = row.is_some();
        let row = row.unwrap_or_else(|| {
            CursorRow::starting_at(match group.row.spec.start {
                Start::Earliest => Offset(0),
                Start::Offset(offset) => offset,
                Start::Latest => channel_row.head_at(group.row.made_lsn),
            })
        });
        let nothing_behind = row.unsettled(channel_row.head) == 0;
        let loaded = match &mut group.scan {
            // A channel without backlog that the search has passed, or need not visit, is loaded as it stands.
            Some(scan) if scan.has_passed(&channel_row.tenant, &channel_row.agent) || channel_row.head == Offset(0) => {
                if scan.listed.contains(&channel) {
                    Loaded::Nothing
                } else if nothing_behind {
                    Loaded::All
                } else {
                    scan.listed.insert(channel);
                    scan.waiting.push_back(channel);
                    Loaded::Nothing
                }
            }
            _ => Loaded::Nothing,
        };
        let tenant = Arc::from(channel_row.tenant.as_str());
        group.channels.insert(channel, GroupChannel { row, loaded, tenant, stored, changed_in: 0 });
    }

    /// Channel names in state from `after` on, and those that no checkpoint has yet; ascending.
    pub(in crate::engine) fn unsaved_names_between(
        &self,
        policy: PolicyNo,
        after: Option<&(String, String)>,
        through: Option<&(String, String)>,
    ) -> Vec<(String, String, ChannelNo)> {
        let from = (policy, after.map_or(String::new(), |a| a.0.clone()), after.map_or(String::new(), |a| a.1.clone()));
        self.unsaved_names
            .range(from..)
            .take_while(|((p, t, a), _)| *p == policy && through.is_none_or(|(tt, ta)| (t, a) <= (tt, ta)))
            .filter(|((_, t, a), _)| after.is_none_or(|(at, aa)| (t, a) > (at, aa)))
            .filter_map(|(name, _)| self.names.get(name).map(|no| (name.1.clone(), name.2.clone(), *no)))
            .collect()
    }

    /// The search for the group's backlog has listed these channels, up to `through` (`None`: all).
    pub(in crate::engine) fn names_listed(
        &mut self,
        no: GroupNo,
        names: Vec<(String, String, ChannelNo)>,
        through: Option<(String, String)>,
    ) {
        let Some(group) = self.groups.get_mut(&no) else { return };
        let Some(scan) = &mut group.scan else { return };
        for (tenant, agent, channel) in names {
            let loaded = group.channels.get(&channel).is_some_and(|c| c.loaded == Loaded::All);
            if group.row.spec.selector.selects(&tenant, &agent) && !loaded && scan.listed.insert(channel) {
                scan.waiting.push_back(channel);
            }
        }
        match through {
            Some(name) => scan.names_after = Some(name),
            None => scan.names_done = true,
        }
    }

    /// The next listed channel, to be loaded.
    pub(in crate::engine) fn next_listed(&mut self, no: GroupNo) -> Option<ChannelNo> {
        let scan = self.groups.get_mut(&no)?.scan.as_mut()?;
        if scan.current.is_none() {
            scan.current = scan.waiting.pop_front();
        }
        scan.current
    }

    /// Takes in a page of a channel's tasks for a tracked group. Tasks in memory are newer than the page.
    pub(in crate::engine) fn admit_backlog(&mut self, no: GroupNo, channel: ChannelNo, page: TaskPage) {
        let after = page.after;
        let through = page.through;
        let mut tasks = page.tasks;
        let low = after.map_or(0, |hash| hash.saturating_add(1));
        let high = through.unwrap_or(TaskHash::MAX);
        for (&(_, hash), _) in self.unsaved_tasks.range((channel, low)..=(channel, high)) {
            if let Some(task) = self.tasks.get(&(channel, hash)) {
                tasks.insert(hash, task.messages.clone());
            }
        }
        let Some(group) = self.groups.get_mut(&no) else { return };
        let Some(group_channel) = group.channels.get_mut(&channel) else { return };
        let mut found: Vec<(Offset, TaskHash)> = Vec::new();
        for (hash, messages) in tasks {
            let pending: VecDeque<_> = messages
                .iter()
                .filter(|m| !group_channel.row.is_through(m.offset))
                .map(|m| Pending { offset: m.offset, at: m.at })
                .collect();
            let Some(first) = pending.front().map(|first| first.offset) else { continue };
            group.partitions.entry((channel, hash)).or_default().pending = pending;
            found.push((first, hash));
        }
        // Oldest first, as they would stand had the group been there all along.
        found.sort_unstable();
        group_channel.loaded = through.map_or(Loaded::All, Loaded::Through);
        let tenant = Arc::clone(&group_channel.tenant);
        for (_, hash) in found {
            if group.is_ready(channel, hash) {
                group.ready.push(&tenant, channel, hash);
            }
        }
        if through.is_none() {
            self.channel_loaded(no, channel);
        }
    }

    /// Nothing (more) of this channel is to be loaded for the group.
    pub(in crate::engine) fn channel_loaded(&mut self, no: GroupNo, channel: ChannelNo) {
        let Some(group) = self.groups.get_mut(&no) else { return };
        if let Some(group_channel) = group.channels.get_mut(&channel) {
            group_channel.loaded = Loaded::All;
        }
        if let Some(scan) = &mut group.scan {
            scan.listed.remove(&channel);
            if scan.current == Some(channel) {
                scan.current = None;
            }
        }
    }

    /// The rows that the partition's next grant needs are (not) being fetched.
    pub(in crate::engine) fn set_fetching(&mut self, key: PartitionKey, fetching: bool) {
        let Some(group) = self.groups.get_mut(&key.group) else { return };
        if fetching {
            group.fetching.insert((key.channel, key.task));
            return;
        }
        group.fetching.remove(&(key.channel, key.task));
        if group.is_ready(key.channel, key.task)
            && group.scan.is_some()
            && let Some(channel) = group.channels.get(&key.channel)
        {
            group.ready.push(&channel.tenant, key.channel, key.task);
        }
    }

    /// The next ready partition of the group, if any still is.
    pub(in crate::engine) fn pop_ready(&mut self, no: GroupNo) -> Option<PartitionKey> {
        let group = self.groups.get_mut(&no)?;
        while let Some((channel, task)) = group.ready.pop() {
            if group.is_ready(channel, task) {
                return Some(PartitionKey { group: no, channel, task });
            }
        }
        None
    }

    /// Gives a popped partition its turn back.
    pub(in crate::engine) fn push_ready(&mut self, key: PartitionKey) {
        self.set_fetching(key, false);
    }
}

fn decoded<R: serde::de::DeserializeOwned>(value: Option<bytes::Bytes>) -> Result<Option<R>, RowError> {
    value.map(|bytes| rows::decode(&bytes)).transpose()
}
