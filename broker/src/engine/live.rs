//! What is known of a session only while the process lives.

use super::command::Ticket;
use crate::model::limits::{DELIVERY_BYTES_MAX, HELD_EPOCH_BYTES_MAX};
use crate::model::{FetchLimits, GroupNo, HeldAnswer, Notice, UnixMillis};

/// Notices kept for a session that fetches; later ones push out the oldest.
const NOTICES_MAX: usize = 64;

/// How much longer than asked a fetch waits while the group's backlog is still being found.
pub(super) const SEARCH_GRACE_MS: u64 = 5_000;

/// A fetch that waits for a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WaitingFetch {
    pub(super) ticket: Ticket,
    pub(super) until: UnixMillis,
    pub(super) held: HeldAnswer,
    /// It has waited enough, and waits on only because its group's backlog is still being found.
    pub(super) overdue: bool,
}

/// How much a session may be handed now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Credit {
    pub(super) messages: u32,
    pub(super) bytes: u64,
}

impl Credit {
    /// What a fetch leaves for messages: its answer also says what became of the epochs held.
    pub(super) fn of_fetch(limits: &FetchLimits, held: &HeldAnswer) -> Self {
        let epochs = (held.kept.len() + held.lost.len()) as u64;
        let bytes = limits.max_bytes.saturating_sub(epochs * HELD_EPOCH_BYTES_MAX);
        Self { messages: limits.max_messages, bytes }
    }
}

/// What a message to be handed out weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Weight {
    /// Its bytes, as they were published.
    pub(super) message: u64,
    /// Bytes of the name of its execution's product, which is told beside it.
    pub(super) product: u64,
}

/// A session's liveness, credit and waiting fetch.
#[derive(Clone, Debug, Default)]
pub(super) struct Live {
    pub(super) group: GroupNo,
    /// Silence after which it is lost.
    pub(super) timeout_ms: u64,
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
    pub(super) fn joined(now: UnixMillis, group: GroupNo, timeout_ms: u64) -> Self {
        Self { group, timeout_ms, last_seen: now, ..Self::default() }
    }

    /// When it is silent for too long, or its fetch has waited enough.
    pub(super) fn due(&self) -> UnixMillis {
        let silent = self.silent_at();
        let Some(fetch) = &self.fetch else { return silent };
        silent.min(if fetch.overdue { fetch.until.plus(SEARCH_GRACE_MS) } else { fetch.until })
    }

    /// When it is lost unless it speaks.
    pub(super) const fn silent_at(&self) -> UnixMillis {
        self.last_seen.plus(self.timeout_ms)
    }

    /// Keeps a notice until the session next asks.
    pub(super) fn notify(&mut self, notice: Notice) {
        if self.notices.len() == NOTICES_MAX {
            self.notices.remove(0);
        }
        self.notices.push(notice);
    }

    /// Whether it may be handed anything: it has somewhere to put it, and credit.
    pub(super) const fn is_roomy(&self) -> bool {
        let takes = match self.stream {
            Some(_) => self.credit.bytes > 0,
            None => self.fetch.is_some(),
        };
        takes && self.credit.messages > 0
    }

    /// Whether a message of that weight may be handed to it; `first`: it would be the first of a fetch's answer, which
    /// always fits.
    pub(super) const fn has_room(&self, weight: Weight, first: bool) -> bool {
        self.is_roomy() && (self.stream.is_some() || first || self.credit.bytes >= self.cost(weight))
    }

    /// A message of that weight is handed to it.
    pub(super) const fn charge(&mut self, weight: Weight) {
        self.credit.bytes = self.credit.bytes.saturating_sub(self.cost(weight));
        self.credit.messages = self.credit.messages.saturating_sub(1);
    }

    /// What a message takes of its bytes. A stream's credit counts messages alone, as the member that gives it does; a
    /// fetch names the size of its whole answer.
    const fn cost(&self, weight: Weight) -> u64 {
        match self.stream {
            Some(_) => weight.message,
            None => weight.message + weight.product + DELIVERY_BYTES_MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Epoch;

    const WEIGHT: Weight = Weight { message: 100, product: 20 };
    const WHOLE: u64 = 120 + DELIVERY_BYTES_MAX;

    fn live(bytes: u64, stream: Option<Ticket>) -> Live {
        let fetch = WaitingFetch { ticket: 2, until: UnixMillis(9), held: HeldAnswer::default(), overdue: false };
        let fetch = stream.is_none().then_some(fetch);
        Live { credit: Credit { messages: 2, bytes }, stream, fetch, ..Live::default() }
    }

    #[test]
    fn s15_a_fetch_pays_for_all_that_its_answer_says_and_the_first_message_always_fits() {
        assert!(live(0, None).has_room(WEIGHT, true));
        assert!(!live(WHOLE - 1, None).has_room(WEIGHT, false));
        let mut fetching = live(WHOLE, None);
        assert!(fetching.has_room(WEIGHT, false));
        fetching.charge(WEIGHT);
        assert_eq!(fetching.credit, Credit { messages: 1, bytes: 0 });
    }

    #[test]
    fn a_stream_pays_for_messages_alone_as_its_member_counts_them() {
        let mut streaming = live(100, Some(1));
        assert!(streaming.has_room(WEIGHT, false));
        streaming.charge(WEIGHT);
        assert_eq!(streaming.credit, Credit { messages: 1, bytes: 0 });
        assert!(!streaming.has_room(WEIGHT, true), "nothing comes where no bytes are left");
        assert!(live(1, Some(1)).has_room(WEIGHT, false), "a large message passes while any are left");
    }

    #[test]
    fn whoever_has_neither_a_stream_nor_a_fetch_is_handed_nothing() {
        let silent = Live { credit: Credit { messages: 2, bytes: 1000 }, ..Live::default() };
        assert!(!silent.has_room(WEIGHT, true));
    }

    #[test]
    fn what_is_said_of_held_epochs_leaves_less_for_messages() {
        let limits = FetchLimits { max_messages: 7, max_bytes: 1000, wait_ms: 0, lease_ms: 0 };
        let held = HeldAnswer { kept: vec![(Epoch(1), Epoch(1))], lost: vec![Epoch(2)] };
        let credit = Credit::of_fetch(&limits, &held);
        assert_eq!(credit, Credit { messages: 7, bytes: 1000 - 2 * HELD_EPOCH_BYTES_MAX });
    }
}
