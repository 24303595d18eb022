//! Finding a tracked group's backlog: channel names page by page, then each channel's tasks page by page. Bounded steps,
//! no visit to channels without backlog beyond one cursor.

use super::Engine;
use super::command::Turn;
use super::memory::Loaded;
use super::row_key::RowKey;
use super::want::{Arrival, Loaded as Row, Want};
use crate::model::{GroupNo, Selector, UnixMillis};
use crate::state::rows::RowError;

impl Engine {
    /// Goes on with the search for the group's backlog, as far as memory reaches.
    pub(super) fn search_backlog(&mut self, no: GroupNo, turn: &mut Turn) {
        loop {
            let Some(group) = self.memory.groups.get(&no) else { return };
            let Some(scan) = &group.scan else { return };
            if scan.is_done() {
                return;
            }
            if scan.current.is_none() && scan.waiting.is_empty() {
                let tenant = match &group.row.spec.selector {
                    Selector::Channel { tenant, .. } | Selector::Tenant(tenant) => Some(tenant.clone()),
                    Selector::All => None,
                };
                let (policy, after) = (group.row.policy, scan.names_after.clone());
                let finished = self.memory.finished;
                return self.want(turn, Want::Names { group: no, policy, tenant, after, finished });
            }
            let Some(channel) = self.memory.next_listed(no) else { return };
            for key in [RowKey::Channel(channel), RowKey::Cursor(no, channel)] {
                if !self.memory.knows(&key) {
                    return self.want(turn, Want::Row(key));
                }
            }
            let unsettled = match (self.memory.groups.get(&no), self.memory.channels.get(&channel)) {
                (Some(group), Some(row)) => {
                    group.channels.get(&channel).map_or(0, |cursor| cursor.row.unsettled(row.head))
                }
                _ => 0,
            };
            if unsettled == 0 {
                self.memory.channel_loaded(no, channel);
                continue;
            }
            let after = match self.memory.groups.get(&no).and_then(|g| g.channels.get(&channel)).map(|c| c.loaded) {
                Some(Loaded::Through(task)) => Some(task),
                Some(Loaded::All) => {
                    self.memory.channel_loaded(no, channel);
                    continue;
                }
                Some(Loaded::Nothing) | None => None,
            };
            let finished = self.memory.finished;
            return self.want(turn, Want::Tasks { group: no, channel, after, finished });
        }
    }

    /// Takes in what came, and goes on with whatever waited for it.
    pub(super) fn take_in(&mut self, now: UnixMillis, arrival: Arrival, turn: &mut Turn) -> Result<(), RowError> {
        match arrival {
            Arrival::Row(key, row) => {
                self.wanted.remove(&Want::Row(key.clone()));
                let unreadable = match &row {
                    Row::Unreadable(what) => Some(what.clone()),
                    _ => None,
                };
                self.memory.admit(key.clone(), row)?;
                for partition in self.waiting_for.remove(&key).unwrap_or_default() {
                    self.memory.push_ready(partition);
                    if let (RowKey::Head(_, offset), Some(what)) = (&key, &unreadable) {
                        self.park_unreadable(now, partition, *offset, what, turn);
                    }
                }
                if let RowKey::Channel(_) | RowKey::Cursor(..) = key {
                    let searching: Vec<_> = self.memory.tracked.iter().copied().collect();
                    searching.into_iter().for_each(|no| self.search_backlog(no, turn));
                }
            }
            Arrival::Names { group, policy, after, mut names, through, finished } => {
                let tenant = self.memory.groups.get(&group).and_then(|g| match &g.row.spec.selector {
                    Selector::Channel { tenant, .. } | Selector::Tenant(tenant) => Some(tenant.clone()),
                    Selector::All => None,
                });
                self.wanted.remove(&Want::Names { group, policy, tenant, after: after.clone(), finished });
                let scan = self.memory.groups.get(&group).and_then(|g| g.scan.as_ref());
                let expected = scan.is_some_and(|scan| !scan.names_done && scan.names_after == after);
                // As with tasks, a page read across the end of a checkpoint may lack names.
                if expected && finished == self.memory.finished {
                    let unsaved = self.memory.unsaved_names_between(policy, after.as_ref(), through.as_ref());
                    names.extend(unsaved);
                    names.sort();
                    names.dedup();
                    self.memory.names_listed(group, names, through);
                }
                self.search_backlog(group, turn);
            }
            Arrival::Tasks { group, channel, page, finished } => {
                self.wanted.remove(&Want::Tasks { group, channel, after: page.after, finished });
                let expected = self.memory.groups.get(&group).and_then(|g| g.channels.get(&channel)).is_some_and(|c| {
                    match (c.loaded, page.after) {
                        (Loaded::Nothing, None) => true,
                        (Loaded::Through(task), Some(after)) => task == after,
                        _ => false,
                    }
                });
                // A page read across the end of a checkpoint may lack what that checkpoint let go of: read it again.
                if expected && finished == self.memory.finished {
                    self.memory.admit_backlog(group, channel, page);
                }
                self.search_backlog(group, turn);
            }
        }
        Ok(())
    }
}
