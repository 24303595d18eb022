//! A message that was confirmed and cannot be read holds back its own partition, and nobody else's: it is set aside where
//! a group reaches it, as an operator sees it, and its execution stays what it is.

use super::Engine;
use super::command::Turn;
use super::settle::kept;
use crate::journal::entry::{Entry, LeaseEnd, PartitionKey};
use crate::model::{EndedAs, LeaseRef, Offset, SessionId, UnixMillis};

impl Engine {
    /// The partition's first message turned out to be unreadable before it was handed out.
    pub(super) fn park_unreadable(
        &mut self,
        now: UnixMillis,
        partition: PartitionKey,
        offset: Offset,
        what: &str,
        turn: &mut Turn,
    ) {
        let Some(found) = self.memory.partition(partition) else { return };
        if found.is_ready() && found.pending.front().is_some_and(|first| first.offset == offset) {
            self.emit(turn, Entry::HeadParked { partition, offset, reason: reason(what), at: now });
        }
    }

    /// Leases of the session whose messages turned out to be unreadable on their way to it. It never got them, so that
    /// none counts as an attempt, and its stream gets their credit back.
    pub(super) fn unreadable(
        &mut self,
        now: UnixMillis,
        session: SessionId,
        leases: &[(LeaseRef, String)],
        turn: &mut Turn,
    ) {
        for (lease, what) in leases {
            let Some(live) = self.memory.lease(lease.epoch) else { continue };
            if live.lease.session != session || live.offset() != lease.offset {
                continue;
            }
            let bytes = self.memory.heads.get(&(live.key.channel, lease.offset)).map_or(0, |head| head.bytes.into());
            let end = LeaseEnd::Parked { failed: false, lost: false, reason: reason(what) };
            self.end_lease(now, &live, end, EndedAs::Lost, turn);
            self.live.change(session, |live| {
                if live.stream.is_some() {
                    live.credit.messages = live.credit.messages.saturating_add(1);
                    live.credit.bytes = live.credit.bytes.saturating_add(bytes);
                }
            });
        }
    }
}

/// Why it was set aside; part of the stable output.
fn reason(what: &str) -> String {
    kept(&format!("data_loss: {what}"))
}
