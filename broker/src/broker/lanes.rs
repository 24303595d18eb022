//! Calls that wait for rows, and those that must not pass them.
//!
//! A call whose rows are missing opens a lane; later calls of the same lane queue behind it, all others pass. So the
//! publishes of one channel, and the calls of one session, are carried out in the order in which they came.

use super::sequencer::Call;
use crate::engine::{Command, RowKey, Ticket};
use crate::model::{ChannelRef, SessionId};
use std::collections::{HashMap, VecDeque};

/// What keeps calls in order among themselves.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Lane {
    Channel(ChannelRef),
    Session(SessionId),
    /// A call of its own.
    Alone(Ticket),
}

impl Lane {
    pub(super) fn of(ticket: Ticket, command: &Command) -> Self {
        match command {
            Command::Publish { channel, .. } => Self::Channel(channel.clone()),
            Command::Fetch(session, _)
            | Command::Attach(session, _)
            | Command::Heartbeat(session)
            | Command::Leave(session)
            | Command::Settle(session, _)
            | Command::Extend(session, _)
            | Command::Begin(session, _)
            | Command::Complete(session, ..) => Self::Session(session.id),
            Command::CancelFetch(session, _)
            | Command::Detach(session, _)
            | Command::Credit(session, ..)
            | Command::Unreadable(session, _) => Self::Session(*session),
            _ => Self::Alone(ticket),
        }
    }
}

/// Lanes with waiting calls.
#[derive(Default)]
pub(super) struct Lanes {
    queues: HashMap<Lane, VecDeque<Call>>,
    /// Lanes whose first call waits for a row.
    waiting: HashMap<RowKey, Vec<Lane>>,
    /// How many rows each of them still waits for.
    missing: HashMap<Lane, usize>,
}

impl Lanes {
    /// Queues the call if its lane is taken; gives it back otherwise.
    pub(super) fn queue(&mut self, lane: &Lane, call: Call) -> Option<Call> {
        match self.queues.get_mut(lane) {
            Some(queue) => {
                queue.push_back(call);
                None
            }
            None => Some(call),
        }
    }

    /// The lane's first call waits for these rows, each named once. Gives back those that nobody has asked for yet.
    pub(super) fn wait(&mut self, lane: Lane, call: Call, keys: Vec<RowKey>) -> Vec<RowKey> {
        self.queues.entry(lane.clone()).or_default().push_front(call);
        self.missing.insert(lane.clone(), keys.len());
        let mut new = Vec::new();
        for key in keys {
            let lanes = self.waiting.entry(key.clone()).or_default();
            if lanes.is_empty() {
                new.push(key);
            }
            lanes.push(lane.clone());
        }
        new
    }

    /// A row came: the lanes whose first call waits for none any more.
    pub(super) fn came(&mut self, key: &RowKey) -> Vec<Lane> {
        let mut lanes = self.waiting.remove(key).unwrap_or_default();
        lanes.retain(|lane| match self.missing.get_mut(lane) {
            Some(missing) if *missing > 1 => {
                *missing -= 1;
                false
            }
            _ => {
                self.missing.remove(lane);
                true
            }
        });
        lanes
    }

    /// The lane's first call, taken out. An empty lane is closed.
    pub(super) fn next(&mut self, lane: &Lane) -> Option<Call> {
        let queue = self.queues.get_mut(lane)?;
        let call = queue.pop_front();
        if call.is_none() {
            self.queues.remove(lane);
        }
        call
    }

    /// All waiting calls, when the broker ends.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Call> {
        self.waiting.clear();
        self.missing.clear();
        std::mem::take(&mut self.queues).into_values().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ChannelNo;

    fn call(ticket: Ticket) -> Call {
        Call { ticket, command: Command::ListPolicies, answer: None, permit: None }
    }

    #[test]
    fn a_lane_goes_on_when_its_last_row_has_come_and_asks_for_none_twice() {
        let [first, second, third] = [1, 2, 3].map(|no| RowKey::Channel(ChannelNo(no)));
        let mut lanes = Lanes::default();
        assert_eq!(
            lanes.wait(Lane::Alone(1), call(1), vec![first.clone(), second.clone()]),
            [first.clone(), second.clone()]
        );
        assert_eq!(
            lanes.wait(Lane::Alone(2), call(2), vec![second.clone(), third.clone()]).as_slice(),
            [&third].map(RowKey::clone)
        );
        assert_eq!(lanes.came(&second), []);
        assert_eq!(lanes.came(&first), [Lane::Alone(1)]);
        assert_eq!(lanes.came(&third), [Lane::Alone(2)]);
        assert_eq!(lanes.next(&Lane::Alone(1)).unwrap().ticket, 1);
        assert!(lanes.next(&Lane::Alone(1)).is_none());
    }
}
