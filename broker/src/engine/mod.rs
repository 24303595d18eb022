//! The heart: a plain, synchronous, deterministic value. No I/O, no clock, no task.
//!
//! A turn is `needs` (which rows does this command want in memory?), then deciding (which reads memory), and entries
//! taking effect as they are decided ([`memory`]); then dispatch, in the same turn and frame, hands out what became
//! ready. Liveness of sessions, credit and waiting fetches are volatile: no entry carries them and no restart keeps them.

mod cache;
mod carry_out;
mod command;
mod complete;
mod compose;
mod dispatch;
mod execution;
mod expiry;
mod explain;
mod group;
mod hash;
mod head;
mod head_of;
mod lease;
mod live;
mod live_sessions;
mod memory;
mod needs;
mod pressure;
mod publish;
mod query;
mod row_key;
mod session;
mod settle;
mod track;
mod unreadable;
mod want;

#[cfg(test)]
mod tests;

pub(crate) use command::{Command, DeliveryMeta, Out, Reply, Snapshot, StoredRecord, Ticket, Turn};
pub(crate) use hash::NameHasher;
pub(crate) use head::MessageHead;
pub(crate) use head_of::{admitted_head_of, head_of};
pub(crate) use memory::{CacheLimits, Counters, Frozen, Resident};
pub(crate) use row_key::RowKey;
pub(crate) use want::{Arrival, Loaded, TaskPage, Want};

use crate::journal::entry::Entry;
use crate::model::{ChannelNo, Lsn, Offset, UnixMillis};
use crate::state::rows::RowError;
use bytes::Bytes;
use live::Live;
use live_sessions::LiveSessions;
use memory::Memory;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Settings of the engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EngineSettings {
    /// Silence after which a session is lost, where it names none itself.
    pub(crate) session_timeout_ms: u64,
    /// Rows kept in memory.
    pub(crate) limits: CacheLimits,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Engine {
    memory: Memory,
    settings: EngineSettings,
    live: LiveSessions,
    /// Rows that turns have asked for and that have not come yet.
    wanted: HashSet<Want>,
    /// Partitions to look at again when a row comes.
    waiting_for: HashMap<RowKey, Vec<crate::journal::entry::PartitionKey>>,
    draining: bool,
    storage_full: bool,
    /// The last turn looked at as much as a turn may, and there may be more.
    more_to_dispatch: bool,
}

impl Engine {
    /// An engine as state left it: `resident` rows, numbers given so far, the last frame in state.
    pub(crate) fn new(
        hasher: NameHasher,
        settings: EngineSettings,
        resident: Resident,
        counters: Counters,
        lsn: Lsn,
        time: UnixMillis,
    ) -> Self {
        let mut memory = Memory::new(hasher, settings.limits);
        memory.lsn = lsn;
        memory.time = time;
        memory.counters = counters;
        memory.restore(resident);
        Self {
            memory,
            settings,
            live: LiveSessions::default(),
            wanted: HashSet::new(),
            waiting_for: HashMap::new(),
            draining: false,
            storage_full: false,
            more_to_dispatch: false,
        }
    }

    /// Takes in a row, outside a turn: at recovery, or for a command that named it in `needs`.
    ///
    /// # Errors
    /// [`RowError`] where stored bytes are no such row.
    pub(crate) fn admit(&mut self, key: RowKey, row: Loaded) -> Result<(), RowError> {
        self.memory.admit(key, row)
    }

    /// Rows that a frame's entries want in memory before [`Engine::replay`]; ask again until there are none.
    pub(crate) fn replay_needs(&mut self, entries: &[Entry], heads: &[Arc<MessageHead>]) -> Vec<RowKey> {
        self.memory.entries_need(entries, heads)
    }

    /// Gives a frame found in the journal its effect.
    pub(crate) fn replay(&mut self, lsn: Lsn, entries: &[Entry], heads: &[Arc<MessageHead>]) {
        let mut heads = heads;
        for entry in entries {
            self.memory.apply(lsn, entry, &mut heads);
        }
    }

    /// Recovery is over: every session that is left has a full period of grace from `now`.
    pub(crate) fn start(&mut self, now: UnixMillis) {
        for (id, session) in &self.memory.sessions {
            self.live.insert(*id, Live::joined(now, session.row.group, session.row.timeout_ms));
        }
    }

    /// Rows that `command` wants in memory and that are not. Ask again until there are none.
    pub(crate) fn needs(&mut self, command: &Command) -> Vec<RowKey> {
        needs::needs(&mut self.memory, command)
    }

    /// Whether there is room for new work. Without, only what finishes work is stored.
    pub(crate) const fn set_storage_full(&mut self, full: bool) {
        self.storage_full = full;
    }

    /// Carries out a command whose rows are all in memory. `now` never goes back.
    pub(crate) fn handle(&mut self, now: UnixMillis, ticket: Ticket, command: Command) -> Turn {
        let mut turn = self.turn();
        if let Some(reply) = self.carry_out(now, ticket, command, &mut turn) {
            turn.outs.push(Out::Reply(ticket, reply));
        }
        self.dispatch(now, &mut turn);
        turn
    }

    /// Takes in what an earlier turn wanted.
    ///
    /// # Errors
    /// [`RowError`] where stored bytes are no such row.
    pub(crate) fn arrived(&mut self, now: UnixMillis, arrival: Arrival) -> Result<Turn, RowError> {
        let mut turn = self.turn();
        self.take_in(now, arrival, &mut turn)?;
        self.dispatch(now, &mut turn);
        Ok(turn)
    }

    /// What time alone brings about: sessions and leases that end, delays that are over, fetches that waited enough.
    pub(crate) fn tick(&mut self, now: UnixMillis) -> Turn {
        let mut turn = self.turn();
        self.expire(now, &mut turn);
        self.dispatch(now, &mut turn);
        turn
    }

    /// The last frame that has taken effect.
    pub(crate) fn applied(&self) -> Lsn {
        self.memory.lsn
    }

    /// The latest broker time that any entry carried.
    pub(crate) fn time(&self) -> UnixMillis {
        self.memory.time
    }

    /// Rows that a checkpoint would write.
    pub(crate) fn dirty_rows(&self) -> usize {
        self.memory.dirty_rows()
    }

    /// Takes all changes so far as the rows of one checkpoint.
    ///
    /// # Errors
    /// [`RowError`] where a row cannot be encoded.
    pub(crate) fn freeze(&mut self) -> Result<Frozen, RowError> {
        self.memory.freeze()
    }

    /// The checkpoint of this generation is durable.
    pub(crate) fn checkpoint_finished(&mut self, generation: u64) {
        self.memory.checkpoint_finished(generation);
    }

    /// Whether it is time for [`Engine::sweep`].
    pub(crate) fn is_crowded(&self) -> bool {
        self.memory.is_crowded()
    }

    /// Lets go of rows beyond the limits.
    pub(crate) fn sweep(&mut self) {
        self.memory.sweep();
    }

    fn turn(&self) -> Turn {
        Turn { lsn: self.memory.lsn.next(), ..Turn::default() }
    }

    /// Gives `entry` its effect and puts it into the turn's frame.
    fn emit(&mut self, turn: &mut Turn, entry: Entry) {
        self.memory.apply(turn.lsn, &entry, &mut [].as_slice());
        turn.entries.push(entry);
    }

    /// The same for messages stored in one channel.
    fn emit_published(
        &mut self,
        turn: &mut Turn,
        channel: ChannelNo,
        at: UnixMillis,
        messages: Vec<(Bytes, Arc<MessageHead>)>,
    ) {
        let first = self.memory.channels.get(&channel).map_or(Offset(0), |row| row.head);
        let count = u32::try_from(messages.len()).unwrap_or(u32::MAX);
        let entry = Entry::Published { channel, first, count, at };
        let heads: Vec<_> = messages.iter().map(|(_, head)| Arc::clone(head)).collect();
        self.memory.apply(turn.lsn, &entry, &mut heads.as_slice());
        turn.entries.push(entry);
        turn.records.extend(messages.into_iter().enumerate().map(|(i, (bytes, _))| StoredRecord {
            channel,
            offset: Offset(first.get() + i as u64),
            bytes,
        }));
    }

    /// Asks for something once.
    fn want(&mut self, turn: &mut Turn, want: Want) {
        if self.wanted.insert(want.clone()) {
            turn.wants.push(want);
        }
    }
}
