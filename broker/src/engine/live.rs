//! What is known of a session only while the process lives.

use super::command::Ticket;
use crate::model::{HeldAnswer, Notice, UnixMillis};

/// Notices kept for a session that fetches; later ones push out the oldest.
const NOTICES_MAX: usize = 64;

/// A fetch that waits for a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WaitingFetch {
    pub(super) ticket: Ticket,
    pub(super) until: UnixMillis,
    pub(super) held: HeldAnswer,
}

/// How much a session may be handed now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Credit {
    pub(super) messages: u32,
    pub(super) bytes: u64,
}

/// A session's liveness, credit and waiting fetch.
#[derive(Clone, Debug, Default)]
pub(super) struct Live {
    pub(super) last_seen: UnixMillis,
    pub(super) credit: Credit,
    /// Duration of the leases it asks for; 0: they live as long as the session.
    pub(super) lease_ms: u64,
    pub(super) fetch: Option<WaitingFetch>,
    /// Its stream, by the ticket it was opened with.
    pub(super) stream: Option<Ticket>,
    pub(super) notices: Vec<Notice>,
    /// Leases it took over when it joined: their epochs before and since.
    pub(super) moved: Vec<(crate::model::Epoch, crate::model::Epoch)>,
}

impl Live {
    pub(super) fn seen(now: UnixMillis) -> Self {
        Self { last_seen: now, ..Self::default() }
    }

    /// Keeps a notice until the session next asks.
    pub(super) fn notify(&mut self, notice: Notice) {
        if self.notices.len() == NOTICES_MAX {
            self.notices.remove(0);
        }
        self.notices.push(notice);
    }

    /// Whether a message of so many bytes may be handed to it.
    pub(super) const fn has_room(&self, bytes: u64, first: bool) -> bool {
        self.credit.messages > 0 && (first || self.credit.bytes >= bytes)
    }
}
