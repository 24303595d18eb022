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
        // One fetch at a time, and no stream beside it: whoever used an earlier one has given it up.
        let earlier = self.live.change(session.id, |live| {
            let earlier = (live.fetch.take(), live.stream.take());
            live.lease_ms = limits.lease_ms;
            live.credit = Credit::of_fetch(&limits, &held);
            live.fetch = Some(WaitingFetch { ticket, until: now.plus(limits.wait_ms), held, overdue: false });
            earlier
        });
        let (fetch, stream) = earlier.ok_or_else(stale)?;
        give_up(fetch, turn);
        turn.outs.extend(stream.map(|ticket| Out::StreamOver(session.id, ticket)));
        Ok(None)
    }

    pub(super) fn cancel_fetch(&mut self, session: SessionId, ticket: Ticket) {
        self.live.change(session, |live| {
            if live.fetch.as_ref().is_some_and(|fetch| fetch.ticket == ticket) {
                live.fetch = None;
                live.credit = Credit::default();
            }
        });
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
        let fetch = self.live.change(session.id, |live| {
            live.stream = Some(ticket);
            live.lease_ms = lease_ms;
            live.credit = Credit::default();
            live.fetch.take()
        });
        give_up(fetch.ok_or_else(stale)?, turn);
        Ok(self.joined(now, session.id, held))
    }

    pub(super) fn detach(&mut self, session: SessionId, ticket: Ticket) {
        self.live.change(session, |live| {
            if live.stream == Some(ticket) {
                live.stream = None;
                live.credit = Credit::default();
            }
        });
    }

    /// Credit of a stream that is over counts for nothing, and is no word of its session.
    pub(super) fn credit(&mut self, now: UnixMillis, session: SessionId, stream: Ticket, messages: u32, bytes: u64) {
        self.live.change(session, |live| {
            if live.stream != Some(stream) {
                return;
            }
            live.last_seen = now;
            live.credit.messages = live.credit.messages.saturating_add(messages);
            live.credit.bytes = live.credit.bytes.saturating_add(bytes);
        });
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
        let held = self.held_of(session);
        Ok(self.joined(now, session.id, held))
    }

    pub(super) fn leave(&mut self, now: UnixMillis, session: &SessionRef, turn: &mut Turn) {
        let group = self.memory.sessions.get(&session.id).map(|known| known.row.group);
        if group.is_some_and(|no| self.is_group(no, &session.group)) {
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
        if let Some(live) = self.live.remove(id) {
            turn.outs.extend(live.fetch.map(|fetch| Out::Reply(fetch.ticket, Reply::Refused(stale()))));
            turn.outs.extend(live.stream.map(|ticket| Out::StreamOver(id, ticket)));
        }
    }

    /// The session is alive; the first word of it joins.
    fn join(&mut self, now: UnixMillis, session: &SessionRef, turn: &mut Turn) -> Result<(), Refusal> {
        let no = self.group_no(&session.group)?;
        if let Some(known) = self.memory.sessions.get(&session.id) {
            if known.row.group != no {
                return Err(Refusal::invalid("session.group", "this session belongs to another group"));
            }
            self.seen(now, session.id);
            return Ok(());
        }
        if self.is_replaced(no, session) {
            let text =
                "a newer session of the same instance has taken over; two processes must not share an instance_id";
            return Err(Refusal::new(Reason::StaleSession, text));
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
        self.live.insert(session.id, Live::joined(now, no, timeout_ms));
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
                    self.live.change(session.id, |live| live.moved.push((*epoch, to)));
                }
            }
            self.notify(id, Notice::Waiting(Waiting::AllLeased), turn);
            self.end_session(now, id, false, turn);
        }
    }

    /// What became of the leases in the session's list. One that moved to it when it took over goes by either epoch until
    /// it is over: the answer that told the new one may have been lost.
    fn held_of(&mut self, session: &SessionRef) -> HeldAnswer {
        let leases = self.memory.sessions.get(&session.id).map(|known| &known.leases);
        let is_live = |epoch: &Epoch| leases.is_some_and(|leases| leases.contains(epoch));
        let moved = self.live.change(session.id, |live| {
            live.moved.retain(|(_, to)| is_live(to));
            live.moved.clone()
        });
        let moved = moved.unwrap_or_default();
        let mut answer = HeldAnswer::default();
        for epoch in session.held.iter().flatten() {
            let now_is = moved.iter().find(|(from, _)| from == epoch).map_or(*epoch, |(_, to)| *to);
            if is_live(&now_is) {
                answer.kept.push((*epoch, now_is));
            } else {
                answer.lost.push(*epoch);
            }
        }
        answer
    }

    /// Whether a session that lives has taken over from this one, at once or through others.
    fn is_replaced(&self, no: GroupNo, session: &SessionRef) -> bool {
        !session.instance.is_empty()
            && self
                .memory
                .groups
                .get(&no)
                .into_iter()
                .flat_map(|group| &group.sessions)
                .any(|id| self.memory.sessions.get(id).is_some_and(|newer| newer.row.replaced.contains(&session.id)))
    }

    /// Ends the session's leases that are not in its own list, and says which of the list are over.
    fn settle_held(&mut self, now: UnixMillis, session: &SessionRef, turn: &mut Turn) -> HeldAnswer {
        if session.held.is_none() {
            return HeldAnswer::default();
        }
        let answer = self.held_of(session);
        let stays: BTreeSet<Epoch> = answer.kept.iter().map(|(_, now_is)| *now_is).collect();
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
        let notices = self.live.change(id, |live| std::mem::take(&mut live.notices)).unwrap_or_default();
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

    /// Whether the group of this number has this name.
    pub(super) fn is_group(&self, no: GroupNo, name: &crate::model::GroupRef) -> bool {
        self.memory.groups.get(&no).is_some_and(|group| group.row.spec.name == *name)
    }

    /// The session spoke, by whatever call.
    pub(super) fn seen(&mut self, now: UnixMillis, session: SessionId) {
        self.live.change(session, |live| live.last_seen = now);
    }
}

/// Answers a fetch whose session asks in another way now.
fn give_up(fetch: Option<WaitingFetch>, turn: &mut Turn) {
    if let Some(fetch) = fetch {
        let (deliveries, waiting, notices) = (Vec::new(), Some(Waiting::AllLeased), Vec::new());
        turn.outs.push(Out::Reply(fetch.ticket, Reply::Fetched { deliveries, waiting, held: fetch.held, notices }));
    }
}

fn stale() -> Refusal {
    Refusal::new(Reason::StaleSession, "the session is over; join again with the leases still held")
}
