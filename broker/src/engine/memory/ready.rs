//! Ready partitions of a group, in a fair order: tenants take turns, then a tenant's channels, then a channel's tasks.

use crate::journal::entry::TaskHash;
use crate::model::ChannelNo;
use std::collections::{HashMap, HashSet, VecDeque};

/// Turns of one tenant.
#[derive(Debug, Default)]
struct TenantTurns {
    turns: VecDeque<ChannelNo>,
    tasks: HashMap<ChannelNo, VecDeque<TaskHash>>,
}

/// See the module's documentation. A partition is in it at most once.
#[derive(Debug, Default)]
pub(in crate::engine) struct ReadyQueue {
    turns: VecDeque<String>,
    tenants: HashMap<String, TenantTurns>,
    members: HashSet<(ChannelNo, TaskHash)>,
}

impl ReadyQueue {
    pub(in crate::engine) fn len(&self) -> usize {
        self.members.len()
    }

    pub(in crate::engine) fn push(&mut self, tenant: &str, channel: ChannelNo, task: TaskHash) {
        if !self.members.insert((channel, task)) {
            return;
        }
        let turns = match self.tenants.get_mut(tenant) {
            Some(turns) => turns,
            None => {
                self.turns.push_back(tenant.to_owned());
                self.tenants.entry(tenant.to_owned()).or_default()
            }
        };
        let tasks = turns.tasks.entry(channel).or_default();
        if tasks.is_empty() {
            turns.turns.push_back(channel);
        }
        tasks.push_back(task);
    }

    /// The next partition whose turn it is, taken out.
    pub(in crate::engine) fn pop(&mut self) -> Option<(ChannelNo, TaskHash)> {
        let tenant = self.turns.pop_front()?;
        let turns = self.tenants.get_mut(&tenant)?;
        let channel = turns.turns.pop_front()?;
        let tasks = turns.tasks.get_mut(&channel)?;
        let task = tasks.pop_front()?;
        if tasks.is_empty() {
            turns.tasks.remove(&channel);
        } else {
            turns.turns.push_back(channel);
        }
        if turns.turns.is_empty() {
            self.tenants.remove(&tenant);
        } else {
            self.turns.push_back(tenant);
        }
        self.members.remove(&(channel, task));
        Some((channel, task))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_tenant_or_channel_does_not_starve_the_others() {
        let mut queue = ReadyQueue::default();
        for task in 0..100 {
            queue.push("busy", ChannelNo(1), task);
        }
        queue.push("busy", ChannelNo(2), 7);
        queue.push("quiet", ChannelNo(3), 8);
        queue.push("quiet", ChannelNo(3), 8);
        assert_eq!(queue.len(), 102);
        let first: Vec<_> = (0..3).filter_map(|_| queue.pop()).collect();
        assert_eq!(first, vec![(ChannelNo(1), 0), (ChannelNo(3), 8), (ChannelNo(2), 7)]);
        let rest = std::iter::from_fn(|| queue.pop()).count();
        assert_eq!(rest, 99);
        assert_eq!(queue.len(), 0);
    }
}
