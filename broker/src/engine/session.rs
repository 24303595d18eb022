//! Sessions: joining, being alive, leaving, and the `held` list that serves reconnect, restart and abandoned fetches
//! alike (design, section 8).

use super::Engine;
use super::command::{Out, Reply, Ticket, Turn};
use super::live::{Credit, Live, WaitingFetch};
use crate::journal::entry::{Entry, LeaseEnd};
use crate::model::{
    EndedAs, Epoch, FetchLimits, GroupNo, HeldAnswer, Notice, Reason, Refusal, SessionId, SessionRef, UnixMillis,
    Waiting,
};
use std::collections::BTreeSet;

/// Sessions a group may have.
const SESSIONS_PER_GROUP_MAX: usize = 10_000;

impl Engine {
    pub(super) fn fetch(
        &mut self,
        now: UnixMillis,
        ticket: Ticket,
        session: &SessionRef,
        limits: FetchLimits,
        turn: &mut Turn,
    ) -> Result<Option<Reply>, Refusal> {
        self.refuse_when_draining()?;
        self.join(now, session, turn)?;
        let held = self.settle_held(now, session, turn);
        let Some(live) = self.live.get_mut(&session.id) else { return Err(stale()) };
        // One fetch at a time: the caller of an earlier one has given it up.
        if let Some(earlier) = live.fetch.take() {
            let reply = Reply::Fetched {
                deliveries: Vec::new(),
                waiting: Some(Waiting::AllLeased),
                held: earlier.held,
                notices: Vec::new(),
            };
            turn.outs.push(Out::Reply(earlier.ticket, reply));
        }
        live.lease_ms = limits.lease_ms;
        live.credit = Credit::of_fetch(&limits, &held);
        live.fetch = Some(WaitingFetch { ticket, until: now.plus(limits.wait_ms), held });
        Ok(None)
    }

    pub(super) fn cancel_fetch(&mut self, session: SessionId, ticket: Ticket) {
        if let Some(live) = self.live.get_mut(&session)
            && live.fetch.as_ref().is_some_and(|fetch| fetch.ticket == ticket)
        {
            live.fetch = None;
            live.credit = Credit::default();
        }
    }

    pub(super) fn attach(
        &mut self,
        now: UnixMillis,
        ticket: Ticket,
        session: &SessionRef,
        lease_ms: u64,
        turn: &mut Turn,
    ) -> Result<Reply, Refusal> {
        self.refuse_when_draining()?;
        self.join(now, session, turn)?;
        let held = self.settle_held(now, session, turn);
        let Some(live) = self.live.get_mut(&session.id) else { return Err(stale()) };
        live.stream = Some(ticket);
        live.lease_ms = lease_ms;
        live.credit = Credit::default();
        Ok(self.joined(now, session.id, held))
    }

    pub(super) fn detach(&mut self, session: SessionId, ticket: Ticket) {
        if let Some(live) = self.live.get_mut(&session)
            && live.stream == Some(ticket)
        {
            live.stream = None;
            live.credit = Credit::default();
        }
    }

    pub(super) fn credit(&mut self, session: SessionId, messages: u32, bytes: u64) {
        if let Some(live) = self.live.get_mut(&session) {
            live.credit.messages = live.credit.messages.saturating_add(messages);
            live.credit.bytes = live.credit.bytes.saturating_add(bytes);
        }
    }

    /// A heartbeat ends no lease: deliveries may be on their way that its sender cannot know of yet. It says which of the
    /// listed leases are over.
    pub(super) fn heartbeat(
        &mut self,
        now: UnixMillis,
        session: &SessionRef,
        turn: &mut Turn,
    ) -> Result<Reply, Refusal> {
        if self.draining && !self.memory.sessions.contains_key(&session.id) {
            self.refuse_when_draining()?;
        }
        self.join(now, session, turn)?;
        let mut held = HeldAnswer::default();
        for epoch in session.held.iter().flatten() {
            if self.memory.lease(*epoch).is_some_and(|live| live.lease.session == session.id) {
                held.kept.push((*epoch, *epoch));
            } else {
                held.lost.push(*epoch);
            }
        }
        Ok(self.joined(now, session.id, held))
    }

    pub(super) fn leave(&mut self, now: UnixMillis, session: &SessionRef, turn: &mut Turn) {
        if self.memory.sessions.contains_key(&session.id) {
            self.end_session(now, session.id, false, turn);
        }
    }

    /// Ends a session and its leases. `lost`: by silence, so that each lease counts as an attempt.
    pub(super) fn end_session(&mut self, now: UnixMillis, id: SessionId, lost: bool, turn: &mut Turn) {
        let epochs: Vec<_> =
            self.memory.sessions.get(&id).map(|s| s.leases.iter().copied().collect()).unwrap_or_default();
        for epoch in epochs {
            if let Some(live) = self.memory.lease(epoch) {
                self.lose(now, &live, lost, turn);
            }
        }
        self.emit(turn, Entry::SessionEnded { id });
        if let Some(live) = self.live.remove(&id)
            && let Some(fetch) = live.fetch
        {
            turn.outs.push(Out::Reply(fetch.ticket, Reply::Refused(stale())));
        }
    }

    /// The session is alive; the first word of it joins.
    fn join(&mut self, now: UnixMillis, session: &SessionRef, turn: &mut Turn) -> Result<(), Refusal> {
        let no = self.group_no(&session.group)?;
        if let Some(known) = self.memory.sessions.get(&session.id) {
            if known.row.group != no {
                return Err(Refusal::invalid("session.group", "this session belongs to another group"));
            }
            if let Some(live) = self.live.get_mut(&session.id) {
                live.last_seen = now;
            }
            return Ok(());
        }
        let crowd = self.memory.groups.get(&no).map_or(0, |group| group.sessions.len());
        if crowd >= SESSIONS_PER_GROUP_MAX {
            return Err(Refusal::new(
                Reason::Overloaded,
                format!("a group has at most {SESSIONS_PER_GROUP_MAX} sessions"),
            ));
        }
        let timeout_ms = if session.timeout_ms == 0 { self.settings.session_timeout_ms } else { session.timeout_ms };
        self.emit(
            turn,
            Entry::SessionJoined {
                id: session.id,
                group: no,
                member: session.member.clone(),
                instance: session.instance.clone(),
                timeout_ms,
                at: now,
            },
        );
        self.live.insert(session.id, Live::seen(now));
        self.take_over(now, no, session, turn);
        self.search_backlog(no, turn);
        Ok(())
    }

    /// A newer session of the same static member: it takes what it holds along, the rest is over, the older one ends.
    fn take_over(&mut self, now: UnixMillis, no: GroupNo, session: &SessionRef, turn: &mut Turn) {
        if session.instance.is_empty() {
            return;
        }
        let older: Vec<_> = self
            .memory
            .groups
            .get(&no)
            .into_iter()
            .flat_map(|group| group.sessions.iter().copied())
            .filter(|id| *id != session.id)
            .filter(|id| self.memory.sessions.get(id).is_some_and(|s| s.row.instance == session.instance))
            .collect();
        for id in older {
            for epoch in session.held.iter().flatten() {
                if let Some(live) = self.memory.lease(*epoch).filter(|live| live.lease.session == id) {
                    let to = self.memory.counters.epoch.next();
                    let entry = Entry::LeaseMoved { partition: live.key, from: *epoch, to, session: session.id };
                    self.emit(turn, entry);
                    if let Some(kept) = self.live.get_mut(&session.id) {
                        kept.moved.push((*epoch, to));
                    }
                }
            }
            self.notify(id, Notice::Waiting(Waiting::AllLeased), turn);
            self.end_session(now, id, false, turn);
        }
    }

    /// Ends the session's leases that are not in its own list, and says which of the list are over.
    fn settle_held(&mut self, now: UnixMillis, session: &SessionRef, turn: &mut Turn) -> HeldAnswer {
        let Some(listed) = &session.held else { return HeldAnswer::default() };
        let moved = self.live.get_mut(&session.id).map(|live| std::mem::take(&mut live.moved)).unwrap_or_default();
        let mut answer = HeldAnswer::default();
        let mut stays: BTreeSet<Epoch> = BTreeSet::new();
        for epoch in listed {
            let now_is = moved.iter().find(|(from, _)| from == epoch).map_or(*epoch, |(_, to)| *to);
            if self.memory.lease(now_is).is_some_and(|live| live.lease.session == session.id) {
                answer.kept.push((*epoch, now_is));
                stays.insert(now_is);
            } else {
                answer.lost.push(*epoch);
            }
        }
        let over: Vec<_> = self
            .memory
            .sessions
            .get(&session.id)
            .map(|s| s.leases.difference(&stays).copied().collect())
            .unwrap_or_default();
        for epoch in over {
            let Some(live) = self.memory.lease(epoch) else { continue };
            if self.memory.is_open_and_unsafe(&live.lease).is_some() {
                self.lose(now, &live, false, turn);
            } else {
                self.end_lease(now, &live, LeaseEnd::Released, EndedAs::Lost, turn);
            }
        }
        answer
    }

    fn joined(&mut self, now: UnixMillis, id: SessionId, held: HeldAnswer) -> Reply {
        let timeout_ms = self.memory.sessions.get(&id).map_or(0, |s| s.row.timeout_ms);
        let notices = self.live.get_mut(&id).map(|live| std::mem::take(&mut live.notices)).unwrap_or_default();
        Reply::Joined { timeout_ms, expires: now.plus(timeout_ms), held, notices }
    }

    pub(super) fn refuse_when_draining(&self) -> Result<(), Refusal> {
        if self.draining {
            return Err(
                Refusal::new(Reason::Draining, "the broker is draining; it takes only results").retry_after(1000)
            );
        }
        Ok(())
    }

    pub(super) fn group_no(&self, group: &crate::model::GroupRef) -> Result<GroupNo, Refusal> {
        self.memory
            .group_by_name
            .get(group)
            .copied()
            .ok_or_else(|| Refusal::new(Reason::NotFound, format!("there is no group {group}")))
    }

    /// The session spoke, by whatever call.
    pub(super) fn seen(&mut self, now: UnixMillis, session: SessionId) {
        if let Some(live) = self.live.get_mut(&session) {
            live.last_seen = now;
        }
    }
}

fn stale() -> Refusal {
    Refusal::new(Reason::StaleSession, "the session is over; join again with the leases still held")
}
