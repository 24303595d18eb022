//! The engine's memory: the newest value of every row it holds, and what is derived from them.
//!
//! Durable values change in [`Memory::apply`] alone, live and at recovery alike; deciding code sees `&Memory`. The other
//! ways in are loading ([`load`]), letting go ([`freeze`]) and the ready queues, which are derived and can be rebuilt.

mod apply;
mod freeze;
mod ledger;
mod load;
mod partition;
mod ready;

pub(crate) use freeze::Frozen;
pub(crate) use load::Resident;
pub(super) use partition::{GroupChannel, GroupMemory, Loaded, Partition, Pending};
pub(super) use ready::ReadyQueue;

use super::cache::{Cache, Generation};
use super::hash::NameHasher;
use super::head::MessageHead;
use super::row_key::{DirtyKey, RowKey};
use crate::journal::entry::{ExecutionHash, PairHash, PartitionKey, TaskHash};
use crate::model::{ChannelNo, Epoch, GroupNo, GroupRef, Lsn, Offset, PolicyNo, SessionId, UnixMillis};
use crate::state::rows::{
    ChannelRow, DedupRow, ExecutionRow, PolicyRow, SessionRow, SettleBlockRow, TaskMessage, TotalsRow,
};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// How many rows of each kind stay in memory though nothing needs them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheLimits {
    /// Channels, their names, cursors and tasks.
    pub(crate) channels: usize,
    /// Executions, pairs and blocks of ended leases.
    pub(crate) executions: usize,
    /// Message heads.
    pub(crate) heads: usize,
}

impl Default for CacheLimits {
    fn default() -> Self {
        Self { channels: 100_000, executions: 200_000, heads: 200_000 }
    }
}

/// A task in memory: always with all its messages.
#[derive(Debug, Default)]
pub(super) struct TaskMemory {
    pub(super) task_id: Arc<str>,
    /// Ascending by offset.
    pub(super) messages: Vec<TaskMessage>,
    /// How many of them a checkpoint has taken.
    pub(super) frozen: usize,
    /// By id; kept once the task is too long to search.
    ids: HashMap<u128, usize>,
}

/// Below this many messages a task is searched, not indexed.
const TASK_INDEX_FROM: usize = 32;

impl TaskMemory {
    pub(super) fn by_id(&self, id: u128) -> Option<&TaskMessage> {
        if self.messages.len() < TASK_INDEX_FROM {
            self.messages.iter().find(|m| m.id == id)
        } else {
            self.ids.get(&id).and_then(|&i| self.messages.get(i))
        }
    }

    pub(super) fn push(&mut self, message: TaskMessage) {
        self.messages.push(message);
        if self.messages.len() == TASK_INDEX_FROM {
            self.ids = self.messages.iter().enumerate().map(|(i, m)| (m.id, i)).collect();
        } else if self.messages.len() > TASK_INDEX_FROM {
            self.ids.insert(message.id, self.messages.len() - 1);
        }
    }
}

/// Numbers that are given once and never again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// The last epoch given.
    pub(crate) epoch: Epoch,
    /// The last channel number given.
    pub(crate) channel: ChannelNo,
    /// The last policy number given.
    pub(crate) policy: PolicyNo,
    /// The last group number given.
    pub(crate) group: GroupNo,
}

/// A session and what it holds.
#[derive(Debug)]
pub(super) struct SessionMemory {
    pub(super) row: SessionRow,
    pub(super) leases: BTreeSet<Epoch>,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) hasher: NameHasher,
    /// The last frame applied.
    pub(super) lsn: Lsn,
    /// The latest broker time any entry carried.
    pub(super) time: UnixMillis,
    pub(super) counters: Counters,

    pub(super) policies: BTreeMap<PolicyNo, PolicyRow>,
    pub(super) policy_by_name: HashMap<String, PolicyNo>,
    pub(super) groups: BTreeMap<GroupNo, GroupMemory>,
    /// Groups with sessions.
    pub(super) tracked: BTreeSet<GroupNo>,
    pub(super) group_by_name: HashMap<GroupRef, GroupNo>,
    groups_by_policy: HashMap<PolicyNo, Vec<GroupNo>>,
    pub(super) sessions: HashMap<SessionId, SessionMemory>,
    pub(super) leases: HashMap<Epoch, PartitionKey>,
    /// Partitions that wait for an execution.
    pub(super) holds: HashMap<ExecutionHash, BTreeSet<PartitionKey>>,
    /// When something in a partition is due: a delay or a lease that ends, a begun execution's deadline.
    pub(super) due: BTreeSet<(UnixMillis, PartitionKey)>,
    /// How many executions entered UNKNOWN and left it, since the start of the process.
    pub(super) unknown_entered: u64,
    pub(super) unknown_left: u64,

    pub(super) names: Cache<(PolicyNo, String, String), ChannelNo>,
    pub(super) channels: Cache<ChannelNo, ChannelRow>,
    pub(super) tasks: Cache<(ChannelNo, TaskHash), TaskMemory>,
    pub(super) pairs: Cache<PairHash, DedupRow>,
    pub(super) executions: Cache<ExecutionHash, ExecutionRow>,
    pub(super) settles: Cache<u64, SettleBlockRow>,
    pub(super) totals: Cache<(PolicyNo, String), TotalsRow>,
    pub(super) heads: Cache<(ChannelNo, Offset), Arc<MessageHead>>,

    /// Blocks of ended leases, oldest first.
    settle_blocks: BTreeMap<u64, UnixMillis>,
    /// The checkpoint that present changes will be part of.
    generation: Generation,
    /// The last finished one.
    pub(super) finished: Generation,
    dirty: Vec<DirtyKey>,
    dirty_small: HashSet<DirtyKey>,
    /// Tasks and names that no finished checkpoint has in full: a scan of the store misses them.
    unsaved_tasks: BTreeMap<(ChannelNo, TaskHash), Generation>,
    unsaved_names: BTreeMap<(PolicyNo, String, String), Generation>,
    pub(super) unsaved_executions: BTreeMap<ExecutionHash, Generation>,
}

impl Memory {
    pub(super) fn new(hasher: NameHasher, limits: CacheLimits) -> Self {
        Self {
            hasher,
            lsn: Lsn(0),
            time: UnixMillis(0),
            counters: Counters::default(),
            policies: BTreeMap::new(),
            policy_by_name: HashMap::new(),
            groups: BTreeMap::new(),
            tracked: BTreeSet::new(),
            group_by_name: HashMap::new(),
            groups_by_policy: HashMap::new(),
            sessions: HashMap::new(),
            leases: HashMap::new(),
            holds: HashMap::new(),
            due: BTreeSet::new(),
            unknown_entered: 0,
            unknown_left: 0,
            names: Cache::new(limits.channels),
            channels: Cache::new(limits.channels),
            tasks: Cache::new(limits.channels),
            pairs: Cache::new(limits.executions),
            executions: Cache::new(limits.executions),
            settles: Cache::new(limits.executions / 16),
            totals: Cache::new(limits.channels),
            heads: Cache::new(limits.heads),
            settle_blocks: BTreeMap::new(),
            generation: 1,
            finished: 0,
            dirty: Vec::new(),
            dirty_small: HashSet::new(),
            unsaved_tasks: BTreeMap::new(),
            unsaved_names: BTreeMap::new(),
            unsaved_executions: BTreeMap::new(),
        }
    }

    /// Whether the row, or its absence, is in memory.
    pub(super) fn knows(&mut self, key: &RowKey) -> bool {
        match key {
            RowKey::ChannelName(policy, tenant, agent) => self.names.knows(&(*policy, tenant.clone(), agent.clone())),
            RowKey::Channel(no) => self.channels.knows(no),
            RowKey::Task(channel, task) => self.tasks.knows(&(*channel, *task)),
            RowKey::Pair(pair) => self.pairs.knows(pair),
            RowKey::Execution(execution) => self.executions.knows(execution),
            RowKey::Cursor(group, channel) => {
                self.groups.get(group).is_none_or(|group| group.channels.contains_key(channel))
            }
            RowKey::Settles(block) => self.settles.knows(block),
            RowKey::Totals(policy, tenant) => self.totals.knows(&(*policy, tenant.clone())),
            RowKey::Head(channel, offset) => self.heads.knows(&(*channel, *offset)),
        }
    }

    pub(super) fn policy(&self, name: &str) -> Option<(PolicyNo, &PolicyRow)> {
        let no = *self.policy_by_name.get(name)?;
        Some((no, self.policies.get(&no)?))
    }

    pub(super) fn channel_no(&self, policy: PolicyNo, tenant: &str, agent: &str) -> Option<ChannelNo> {
        self.names.get(&(policy, tenant.to_owned(), agent.to_owned())).copied()
    }

    /// Groups of the policy that read the channel of this key.
    pub(super) fn groups_reading(&self, policy: PolicyNo, tenant: &str, agent: &str) -> Vec<GroupNo> {
        let Some(numbers) = self.groups_by_policy.get(&policy) else { return Vec::new() };
        numbers
            .iter()
            .copied()
            .filter(|no| self.groups.get(no).is_some_and(|g| g.row.spec.selector.selects(tenant, agent)))
            .collect()
    }

    pub(super) fn partition(&self, key: PartitionKey) -> Option<&Partition> {
        self.groups.get(&key.group)?.partitions.get(&(key.channel, key.task))
    }

    /// How the lease of `epoch` ended, if that is in memory.
    pub(super) fn ended(&self, epoch: Epoch) -> Option<&crate::state::rows::SettledRecord> {
        self.settles.get(&crate::state::rows::settles_block(epoch))?.ended.get(&epoch)
    }

    /// Depth of a channel for one group: unsettled and not parked.
    pub(super) fn channel_depth(&self, group: GroupNo, channel: ChannelNo) -> u64 {
        let (Some(group), Some(row)) = (self.groups.get(&group), self.channels.get(&channel)) else { return 0 };
        let Some(cursor) = group.channels.get(&channel) else { return 0 };
        let parked = group.parked_in.get(&channel).copied().unwrap_or_default();
        cursor.row.unsettled(row.head).saturating_sub(parked)
    }
}
