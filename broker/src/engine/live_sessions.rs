//! All live sessions, with who is due next and who has room, so that no turn looks at every session.

use super::live::Live;
use crate::model::{GroupNo, SessionId, UnixMillis};
use std::collections::{BTreeSet, HashMap};
use std::ops::Bound::{Excluded, Unbounded};

/// Sessions with room that are looked at for one message; where there are more, they take turns.
const CANDIDATES_MAX: usize = 64;

/// A session, and where it stands in the indexes.
#[derive(Debug)]
struct Entry {
    live: Live,
    /// Its place among the timers: never later than it is due, but perhaps earlier, so that a word from it costs no move.
    timer: UnixMillis,
    roomy: bool,
    overdue: bool,
}

/// Sessions of one group that have credit.
#[derive(Debug, Default)]
struct Roomy {
    ids: BTreeSet<SessionId>,
    /// The last one looked at, where not all fit one look.
    last: Option<SessionId>,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct LiveSessions {
    entries: HashMap<SessionId, Entry>,
    timers: BTreeSet<(UnixMillis, SessionId)>,
    roomy: HashMap<GroupNo, Roomy>,
    /// Sessions whose fetch has waited enough, but whose group's backlog is still being found.
    overdue: BTreeSet<SessionId>,
}

impl LiveSessions {
    pub(super) fn get(&self, id: SessionId) -> Option<&Live> {
        self.entries.get(&id).map(|entry| &entry.live)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = SessionId> {
        self.entries.keys().copied()
    }

    pub(super) fn waiting_fetches(&self) -> u64 {
        self.entries.values().filter(|entry| entry.live.fetch.is_some()).count() as u64
    }

    /// A session that was not there before.
    pub(super) fn insert(&mut self, id: SessionId, live: Live) {
        let timer = live.due();
        self.timers.insert((timer, id));
        self.entries.insert(id, Entry { live, timer, roomy: false, overdue: false });
        self.change(id, |_| ());
    }

    pub(super) fn remove(&mut self, id: SessionId) -> Option<Live> {
        let entry = self.entries.remove(&id)?;
        self.timers.remove(&(entry.timer, id));
        self.overdue.remove(&id);
        if entry.roomy {
            self.set_roomy(entry.live.group, id, false);
        }
        Some(entry.live)
    }

    /// Changes a session, and its place in the indexes with it.
    pub(super) fn change<R>(&mut self, id: SessionId, change: impl FnOnce(&mut Live) -> R) -> Option<R> {
        let entry = self.entries.get_mut(&id)?;
        let result = change(&mut entry.live);
        let due = entry.live.due();
        if due < entry.timer {
            self.timers.remove(&(entry.timer, id));
            self.timers.insert((due, id));
            entry.timer = due;
        }
        let overdue = entry.live.fetch.as_ref().is_some_and(|fetch| fetch.overdue);
        if overdue != std::mem::replace(&mut entry.overdue, overdue) {
            if overdue {
                self.overdue.insert(id)
            } else {
                self.overdue.remove(&id)
            };
        }
        let (group, roomy) = (entry.live.group, entry.live.is_roomy());
        if roomy != std::mem::replace(&mut entry.roomy, roomy) {
            self.set_roomy(group, id, roomy);
        }
        Some(result)
    }

    /// The session's timer rang: it is put where the session is really due.
    pub(super) fn reset_timer(&mut self, id: SessionId) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let due = entry.live.due();
        if due != entry.timer {
            self.timers.remove(&(entry.timer, id));
            self.timers.insert((due, id));
            entry.timer = due;
        }
    }

    /// No session is due before this.
    pub(super) fn first_due(&self) -> Option<UnixMillis> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Sessions whose timer has rung by `now`, earliest first; whoever is not really due has it reset.
    pub(super) fn due(&mut self, now: UnixMillis) -> Vec<SessionId> {
        let rung: Vec<_> = self.timers.iter().take_while(|(at, _)| *at <= now).map(|(_, id)| *id).collect();
        rung.iter().for_each(|id| self.reset_timer(*id));
        rung.into_iter().filter(|id| self.get(*id).is_some_and(|live| live.due() <= now)).collect()
    }

    /// Sessions whose fetch is answered as soon as the search for their group's backlog is over.
    pub(super) fn overdue(&self) -> Vec<SessionId> {
        self.overdue.iter().copied().collect()
    }

    /// Whether any session of the group has credit.
    pub(super) fn has_roomy(&self, group: GroupNo) -> bool {
        self.roomy.contains_key(&group)
    }

    /// Sessions of the group with credit to choose among.
    pub(super) fn candidates(&mut self, group: GroupNo) -> Vec<SessionId> {
        let Some(roomy) = self.roomy.get_mut(&group) else { return Vec::new() };
        if roomy.ids.len() <= CANDIDATES_MAX {
            return roomy.ids.iter().copied().collect();
        }
        let after = roomy.last.map_or(Unbounded, Excluded);
        let turn = roomy.ids.range((after, Unbounded)).chain(roomy.ids.iter());
        let candidates: Vec<_> = turn.copied().take(CANDIDATES_MAX).collect();
        roomy.last = candidates.last().copied();
        candidates
    }

    fn set_roomy(&mut self, group: GroupNo, id: SessionId, roomy: bool) {
        let of_group = self.roomy.entry(group).or_default();
        if roomy {
            of_group.ids.insert(id);
        } else {
            of_group.ids.remove(&id);
        }
        if of_group.ids.is_empty() {
            self.roomy.remove(&group);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::live::{Credit, WaitingFetch};
    use crate::model::HeldAnswer;

    const GROUP: GroupNo = GroupNo(1);

    fn sessions(count: u128) -> LiveSessions {
        let mut sessions = LiveSessions::default();
        for id in 0..count {
            sessions.insert(SessionId(id), Live::joined(UnixMillis(0), GROUP, 100));
        }
        sessions
    }

    #[test]
    fn a_word_moves_the_end_of_a_session_and_no_other() {
        let mut sessions = sessions(2);
        sessions.change(SessionId(0), |live| live.last_seen = UnixMillis(50));
        assert_eq!(sessions.due(UnixMillis(100)), vec![SessionId(1)]);
        sessions.remove(SessionId(1));
        assert_eq!(sessions.first_due(), Some(UnixMillis(150)));
        assert_eq!(sessions.due(UnixMillis(149)), vec![]);
        assert_eq!(sessions.due(UnixMillis(150)), vec![SessionId(0)]);
    }

    #[test]
    fn a_fetch_is_due_when_its_wait_is_over_and_no_later_for_being_searched_for() {
        let mut sessions = sessions(1);
        let fetch = WaitingFetch { ticket: 1, until: UnixMillis(20), held: HeldAnswer::default(), overdue: false };
        sessions.change(SessionId(0), |live| live.fetch = Some(fetch));
        assert_eq!(sessions.first_due(), Some(UnixMillis(20)));
        sessions.change(SessionId(0), |live| live.fetch.as_mut().unwrap().overdue = true);
        assert_eq!(sessions.due(UnixMillis(99)), vec![]);
        assert_eq!(sessions.overdue(), vec![SessionId(0)]);
        sessions.change(SessionId(0), |live| live.fetch = None);
        assert_eq!(sessions.overdue(), vec![]);
        assert_eq!(sessions.due(UnixMillis(100)), vec![SessionId(0)], "it is silent");
    }

    #[test]
    fn sessions_with_room_take_turns_where_there_are_many() {
        let mut sessions = sessions(100);
        assert!(!sessions.has_roomy(GROUP));
        for id in 0..100 {
            sessions.change(SessionId(id), |live| {
                live.stream = Some(1);
                live.credit = Credit { messages: 1, bytes: 1 };
            });
        }
        let first = sessions.candidates(GROUP);
        let second = sessions.candidates(GROUP);
        assert_eq!((first.len(), second.len()), (CANDIDATES_MAX, CANDIDATES_MAX));
        let all: BTreeSet<_> = first.into_iter().chain(second).collect();
        assert_eq!(all.len(), 100);
        for id in 0..100 {
            sessions.change(SessionId(id), |live| live.credit = Credit::default());
        }
        assert!(!sessions.has_roomy(GROUP) && sessions.candidates(GROUP).is_empty());
    }
}
