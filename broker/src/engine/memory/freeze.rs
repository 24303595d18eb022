//! Checkpoints: what changed since the last one, as rows to write; and letting go of what nobody needs.

use super::{Counters, Memory};
use crate::engine::cache::{Change, Generation};
use crate::engine::row_key::{DirtyKey, RowKey};
use crate::model::{Lsn, UnixMillis};
use crate::state::Family;
use crate::state::rows::{self, RowError, TaskRow};
use serde::Serialize;

/// How long the end of a lease is remembered at least (design, section 8).
const SETTLES_REMEMBERED_MS: u64 = 10 * 60 * 1000;

/// The net rows of a checkpoint.
#[derive(Debug)]
pub(crate) struct Frozen {
    /// Hand it back to `Engine::checkpoint_finished`.
    pub(crate) generation: Generation,
    /// The rows are those of this frame.
    pub(crate) lsn: Lsn,
    pub(crate) time: UnixMillis,
    pub(crate) counters: Counters,
    pub(crate) puts: Vec<(Family, Vec<u8>, Vec<u8>)>,
    pub(crate) deletes: Vec<(Family, Vec<u8>)>,
}

impl Frozen {
    fn put(&mut self, family: Family, key: Vec<u8>, row: &impl Serialize) -> Result<(), RowError> {
        self.puts.push((family, key, rows::encode(row)?));
        Ok(())
    }

    fn delete(&mut self, family: Family, key: Vec<u8>) -> Result<(), RowError> {
        self.deletes.push((family, key));
        Ok(())
    }

    fn change<R: Serialize>(&mut self, family: Family, key: Vec<u8>, change: Change<'_, R>) -> Result<(), RowError> {
        match change {
            Change::Put(row) => self.put(family, key, row)?,
            Change::Delete => self.deletes.push((family, key)),
            Change::Nothing => {}
        }
        Ok(())
    }
}

impl Memory {
    /// Rows that a checkpoint would write.
    pub(in crate::engine) fn dirty_rows(&self) -> usize {
        self.dirty.len() + self.dirty_small.len()
    }

    /// Takes all changes so far as the rows of one checkpoint. They stay in memory until it is finished.
    pub(in crate::engine) fn freeze(&mut self) -> Result<Frozen, RowError> {
        self.forget_settles();
        let mut frozen = Frozen {
            generation: self.generation,
            lsn: self.lsn,
            time: self.time,
            counters: self.counters,
            puts: Vec::with_capacity(self.dirty_rows()),
            deletes: Vec::new(),
        };
        self.generation += 1;
        let cached = std::mem::take(&mut self.dirty);
        let small = std::mem::take(&mut self.dirty_small);
        for key in cached.into_iter().chain(small) {
            self.freeze_one(&mut frozen, key)?;
        }
        Ok(frozen)
    }

    fn freeze_one(&mut self, frozen: &mut Frozen, key: DirtyKey) -> Result<(), RowError> {
        match key {
            DirtyKey::Policy(no) => match self.policies.get(&no) {
                Some(row) => frozen.put(Family::Policies, rows::policy_key(no), row),
                None => frozen.delete(Family::Policies, rows::policy_key(no)),
            },
            DirtyKey::Group(no) => match self.groups.get(&no) {
                Some(group) => frozen.put(Family::Groups, rows::group_key(no), &group.row),
                None => frozen.delete(Family::Groups, rows::group_key(no)),
            },
            DirtyKey::Session(id) => match self.sessions.get(&id) {
                Some(session) => frozen.put(Family::Sessions, rows::session_key(id), &session.row),
                None => frozen.delete(Family::Sessions, rows::session_key(id)),
            },
            DirtyKey::Delivery(key) => {
                let Some(group) = self.groups.get_mut(&key.group) else { return Ok(()) };
                let Some(partition) = group.partitions.get_mut(&(key.channel, key.task)) else { return Ok(()) };
                let stored = std::mem::replace(&mut partition.stored, partition.delivery.is_some());
                match &partition.delivery {
                    Some(row) => frozen.put(Family::Deliveries, rows::delivery_key(key), row)?,
                    None if stored => frozen.deletes.push((Family::Deliveries, rows::delivery_key(key))),
                    None => {}
                }
                if partition.delivery.is_none() && partition.pending.is_empty() {
                    group.partitions.remove(&(key.channel, key.task));
                }
                Ok(())
            }
            DirtyKey::Cached(key) => self.freeze_cached(frozen, key),
        }
    }

    fn freeze_cached(&mut self, frozen: &mut Frozen, key: RowKey) -> Result<(), RowError> {
        match key {
            RowKey::ChannelName(policy, tenant, agent) => {
                let row_key = rows::channel_name_key(policy, &tenant, &agent);
                if let Change::Put(no) = self.names.freeze(&(policy, tenant, agent)) {
                    frozen.puts.push((Family::ChannelNames, row_key, no.get().to_be_bytes().to_vec()));
                }
                Ok(())
            }
            RowKey::Channel(no) => frozen.change(Family::Channels, rows::channel_key(no), self.channels.freeze(&no)),
            RowKey::Task(channel, hash) => {
                if let Some(task) = self.tasks.get_mut(&(channel, hash)) {
                    let news = task.messages.get(task.frozen..).unwrap_or_default();
                    if let Some(first) = news.first() {
                        let row = TaskRow { task_id: task.task_id.to_string(), messages: news.to_vec() };
                        frozen.put(Family::Tasks, rows::task_key(channel, hash, first.offset), &row)?;
                    }
                    task.frozen = task.messages.len();
                }
                Ok(())
            }
            RowKey::Pair(pair) => frozen.change(Family::Dedup, rows::pair_key(pair), self.pairs.freeze(&pair)),
            RowKey::Execution(execution) => {
                let change = self.executions.freeze(&execution);
                frozen.change(Family::Executions, rows::execution_key(execution), change)
            }
            RowKey::Cursor(group, channel) => {
                let Some(cursor) = self.groups.get_mut(&group).and_then(|g| g.channels.get_mut(&channel)) else {
                    return Ok(());
                };
                cursor.stored = true;
                frozen.put(Family::Cursors, rows::cursor_key(group, channel), &cursor.row)
            }
            RowKey::Settles(block) => {
                frozen.change(Family::Settles, rows::settles_key(block), self.settles.freeze(&block))
            }
            RowKey::Totals(policy, tenant) => {
                let row_key = rows::totals_key(policy, &tenant);
                frozen.change(Family::Totals, row_key, self.totals.freeze(&(policy, tenant)))
            }
            RowKey::Head(..) => Ok(()),
        }
    }

    /// The rows of this checkpoint are durable: what changed before it may leave memory again.
    pub(in crate::engine) fn checkpoint_finished(&mut self, generation: Generation) {
        self.finished = self.finished.max(generation);
        let finished = self.finished;
        self.unsaved_tasks.retain(|_, changed| *changed > finished);
        self.unsaved_names.retain(|_, changed| *changed > finished);
        self.unsaved_executions.retain(|_, changed| *changed > finished);
    }

    /// Whether there are so many more rows than the limits allow that they should go before the next checkpoint.
    pub(in crate::engine) fn is_crowded(&self) -> bool {
        self.names.is_crowded()
            || self.channels.is_crowded()
            || self.tasks.is_crowded()
            || self.pairs.is_crowded()
            || self.settles.is_crowded()
            || self.totals.is_crowded()
            || self.heads.is_crowded()
            || self.executions.is_crowded()
    }

    /// Lets go of rows that nothing needs, where there are more than the limits allow.
    pub(in crate::engine) fn sweep(&mut self) {
        let finished = self.finished;
        let groups = &self.groups;
        let in_use = |channel: &crate::model::ChannelNo| groups.values().any(|g| g.channels.contains_key(channel));
        self.names.sweep(finished, |_, _| false);
        self.channels.sweep(finished, |no, _| in_use(no));
        self.tasks.sweep(finished, |_, _| false);
        self.pairs.sweep(finished, |_, _| false);
        self.settles.sweep(finished, |_, _| false);
        self.totals.sweep(finished, |_, _| false);
        self.heads.sweep(u64::MAX, |_, _| false);
        self.executions.sweep(finished, |_, row| row.is_some_and(|r| r.begin.as_ref().is_some_and(|b| b.live)));
        let channels = &self.channels;
        for group in self.groups.values_mut() {
            let used: std::collections::HashSet<_> = if group.channels.len() > CURSORS_KEPT {
                group.partitions.keys().map(|(channel, _)| *channel).collect()
            } else {
                continue;
            };
            group.channels.retain(|no, channel| {
                let caught_up = channels.get(no).is_some_and(|row| channel.row.unsettled(row.head) == 0);
                channel.changed_in > finished || used.contains(no) || (group.scan.is_some() && !caught_up)
            });
        }
    }

    fn forget_settles(&mut self) {
        while let Some(block) = self.settle_blocks.first_entry()
            && self.time.since(*block.get()) > SETTLES_REMEMBERED_MS
        {
            let (block, _) = block.remove_entry();
            let fresh = self.settles.remove(block, self.generation);
            self.mark_cached(fresh, || RowKey::Settles(block));
        }
    }
}

/// A group lets go of cursors beyond this many.
const CURSORS_KEPT: usize = 10_000;
