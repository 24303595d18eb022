//! What time alone brings about.

use super::Engine;
use super::command::Turn;
use super::row_key::RowKey;
use super::want::Want;
use crate::journal::entry::Entry;
use crate::model::{LeaseRef, Notice, SessionId, UnixMillis, UnknownReason};
use crate::state::rows::DeliveryState;

/// Things that are due and carried out in one turn; the rest follows in the next.
const DUE_MAX: usize = 1024;
/// Entries after which no further session is ended in the same turn.
const ENTRIES_MAX: usize = 4_096;

impl Engine {
    /// When [`Engine::tick`] may have something to do next; never later than that.
    pub(crate) fn next_due(&self) -> Option<UnixMillis> {
        let partitions = self.memory.due.first().map(|(at, _)| *at);
        let at_once = self.more_to_dispatch.then_some(self.memory.time);
        self.live.first_due().into_iter().chain(partitions).chain(at_once).min()
    }

    pub(super) fn expire(&mut self, now: UnixMillis, turn: &mut Turn) {
        let mut silent = self.live.due(now);
        silent.retain(|id| self.live.get(*id).is_some_and(|live| live.silent_at() <= now));
        for id in silent {
            // One frame holds so much; the other sessions follow in the next turn, which is due at once.
            if turn.entries.len() > ENTRIES_MAX {
                return;
            }
            if self.rows_of_session(id, turn) {
                self.end_session(now, id, true, turn);
            }
        }
        let due: Vec<_> =
            self.memory.due.iter().take_while(|(at, _)| *at <= now).map(|(_, key)| *key).take(DUE_MAX).collect();
        for partition in due {
            let Some(row) = self.memory.partition(partition).and_then(|p| p.delivery.clone()) else { continue };
            match &row.state {
                DeliveryState::Delayed { .. } => {
                    self.emit(turn, Entry::HeadFreed { partition, offset: row.offset });
                }
                DeliveryState::Leased(lease) => {
                    let Some(live) = self.memory.lease(lease.epoch) else { continue };
                    if !self.rows_of_lease(lease.epoch, turn) {
                        continue;
                    }
                    if lease.expires.is_some_and(|at| at <= now) {
                        self.lose(now, &live, true, turn);
                    } else if let Some(execution) = lease.execution {
                        let text = "its deadline passed after a begin".to_owned();
                        let reason = UnknownReason::Deadline;
                        self.emit(turn, Entry::BecameUnknown { execution, reason, text, at: now });
                        let lease_ref = LeaseRef { epoch: lease.epoch, offset: row.offset };
                        self.notify(lease.session, Notice::Cancelled { lease: lease_ref, state: None }, turn);
                    }
                }
                DeliveryState::Ready | DeliveryState::Held { .. } | DeliveryState::Parked { .. } => {}
            }
        }
    }

    /// Whether all rows are in memory that the end of the session touches; asks for those that are not.
    fn rows_of_session(&mut self, id: SessionId, turn: &mut Turn) -> bool {
        let epochs: Vec<_> =
            self.memory.sessions.get(&id).map(|s| s.leases.iter().copied().collect()).unwrap_or_default();
        // All are asked for at once, not only the first that is missing.
        let missing = epochs.into_iter().filter(|epoch| !self.rows_of_lease(*epoch, turn)).count();
        missing == 0
    }

    fn rows_of_lease(&mut self, epoch: crate::model::Epoch, turn: &mut Turn) -> bool {
        let Some(execution) = self.memory.lease(epoch).and_then(|live| live.lease.execution) else { return true };
        let key = RowKey::Execution(execution);
        if self.memory.knows(&key) {
            return true;
        }
        self.want(turn, Want::Row(key));
        false
    }
}
