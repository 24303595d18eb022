//! A group in memory: its books, its cursors, and its partitions.
//!
//! A group is *tracked* while it has sessions: then its whole backlog is in memory, as offsets. Otherwise only partitions
//! in an unusual state are ([`DeliveryRow`]), and a publish adds nothing to memory.

use super::ReadyQueue;
use crate::engine::cache::Generation;
use crate::journal::entry::TaskHash;
use crate::model::{ChannelNo, Offset, SessionId, UnixMillis};
use crate::state::rows::{CursorRow, DeliveryRow, DeliveryState, GroupRow};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// One unsettled message of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) struct Pending {
    pub(in crate::engine) offset: Offset,
    pub(in crate::engine) at: UnixMillis,
}

/// One task in one channel, as a group sees it.
#[derive(Debug, Default)]
pub(in crate::engine) struct Partition {
    /// Unsettled messages in order; complete only where the group's backlog is loaded.
    pub(in crate::engine) pending: VecDeque<Pending>,
    /// State of the first of them, unless untouched.
    pub(in crate::engine) delivery: Option<DeliveryRow>,
    /// Served it last.
    pub(in crate::engine) affinity: Option<SessionId>,
    /// A checkpoint has written its delivery row.
    pub(super) stored: bool,
    pub(super) changed_in: Generation,
}

impl Partition {
    /// Whether its first message could be granted.
    pub(in crate::engine) fn is_ready(&self) -> bool {
        !self.pending.is_empty() && self.delivery.as_ref().is_none_or(|d| d.state == DeliveryState::Ready)
    }

    /// State of its first message.
    pub(in crate::engine) fn head(&self) -> Option<DeliveryRow> {
        self.delivery.clone().or_else(|| self.pending.front().map(|first| DeliveryRow::untouched(first.offset)))
    }
}

/// How much of a channel's backlog is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::engine) enum Loaded {
    /// Nothing.
    Nothing,
    /// Tasks up to this hash.
    Through(TaskHash),
    /// All.
    All,
}

/// One channel, as a group sees it.
#[derive(Debug)]
pub(in crate::engine) struct GroupChannel {
    pub(in crate::engine) row: CursorRow,
    pub(in crate::engine) loaded: Loaded,
    /// The channel's tenant, whose turn it takes.
    pub(in crate::engine) tenant: Arc<str>,
    /// A checkpoint has written its row.
    pub(super) stored: bool,
    pub(super) changed_in: Generation,
}

/// How far the search for a tracked group's backlog has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::engine) struct Scan {
    /// Channel names up to this one have been listed (policy's own range).
    pub(in crate::engine) names_after: Option<(String, String)>,
    /// All names have been listed.
    pub(in crate::engine) names_done: bool,
    /// Listed channels whose backlog is still to be loaded, ascending by name.
    pub(in crate::engine) waiting: VecDeque<ChannelNo>,
    /// The channel being loaded.
    pub(in crate::engine) current: Option<ChannelNo>,
    /// Listed, and not yet begun to load.
    pub(in crate::engine) listed: BTreeSet<ChannelNo>,
}

impl Scan {
    /// Whether the whole backlog has been found.
    pub(in crate::engine) fn is_done(&self) -> bool {
        self.names_done && self.waiting.is_empty() && self.current.is_none()
    }

    /// Whether the channel of this name has been listed, or would have been.
    pub(in crate::engine) fn has_passed(&self, tenant: &str, agent: &str) -> bool {
        self.names_done || self.names_after.as_ref().is_some_and(|(t, a)| (tenant, agent) <= (t.as_str(), a.as_str()))
    }
}

/// Partitions by what their first message is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::engine) struct Tallies {
    pub(in crate::engine) in_flight: u64,
    pub(in crate::engine) delayed: u64,
    pub(in crate::engine) held: u64,
    pub(in crate::engine) parked: u64,
}

impl Tallies {
    pub(super) fn count(&mut self, state: &DeliveryState, by: i64) {
        let tally = match state {
            DeliveryState::Ready => return,
            DeliveryState::Leased(_) => &mut self.in_flight,
            DeliveryState::Delayed { .. } => &mut self.delayed,
            DeliveryState::Held { .. } => &mut self.held,
            DeliveryState::Parked { .. } => &mut self.parked,
        };
        *tally = tally.saturating_add_signed(by);
    }
}

/// A group in memory.
#[derive(Debug)]
pub(in crate::engine) struct GroupMemory {
    pub(in crate::engine) row: GroupRow,
    pub(in crate::engine) sessions: BTreeSet<SessionId>,
    pub(in crate::engine) channels: HashMap<ChannelNo, GroupChannel>,
    pub(in crate::engine) partitions: BTreeMap<(ChannelNo, TaskHash), Partition>,
    pub(in crate::engine) parked_in: HashMap<ChannelNo, u64>,
    pub(in crate::engine) tallies: Tallies,
    pub(in crate::engine) ready: ReadyQueue,
    /// Partitions that wait for rows which their next grant needs.
    pub(in crate::engine) fetching: HashSet<(ChannelNo, TaskHash)>,
    /// `Some` while the group is tracked.
    pub(in crate::engine) scan: Option<Scan>,
}

impl GroupMemory {
    pub(super) fn new(row: GroupRow) -> Self {
        Self {
            row,
            sessions: BTreeSet::new(),
            channels: HashMap::new(),
            partitions: BTreeMap::new(),
            parked_in: HashMap::new(),
            tallies: Tallies::default(),
            ready: ReadyQueue::default(),
            fetching: HashSet::new(),
            scan: None,
        }
    }

    /// Whether the partition's first message could be looked at now.
    pub(super) fn is_ready(&self, channel: ChannelNo, task: TaskHash) -> bool {
        !self.fetching.contains(&(channel, task))
            && self.partitions.get(&(channel, task)).is_some_and(Partition::is_ready)
    }

    /// Unsettled messages that are neither in flight, delayed, held nor parked.
    pub(in crate::engine) fn waiting(&self) -> u64 {
        let counts = &self.row.counts;
        let through = counts.settled_total() + counts.gone_total();
        let t = &self.tallies;
        counts.offered.saturating_sub(through + t.in_flight + t.delayed + t.held + t.parked)
    }

    /// Whether a message of this task that is published now belongs into memory.
    pub(super) fn takes_in(&self, channel: ChannelNo, task: TaskHash) -> bool {
        self.scan.is_some()
            && self.channels.get(&channel).is_some_and(|c| match c.loaded {
                Loaded::Nothing => false,
                Loaded::Through(hash) => task <= hash,
                Loaded::All => true,
            })
    }

    /// Starts or stops keeping the whole backlog in memory, as sessions come and go.
    pub(super) fn track(&mut self) {
        if self.sessions.is_empty() {
            self.scan = None;
            self.ready = ReadyQueue::default();
            self.fetching = HashSet::new();
            for channel in self.channels.values_mut() {
                channel.loaded = Loaded::Nothing;
            }
            self.partitions.retain(|_, partition| {
                partition.pending.clear();
                partition.delivery.is_some() || partition.stored || partition.changed_in > 0
            });
        } else if self.scan.is_none() {
            self.scan = Some(Scan::default());
        }
    }
}
