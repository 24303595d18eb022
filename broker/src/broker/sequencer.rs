//! The sequencer: the one thread that owns the engine. It takes what waits, lets the engine decide, hands frames and what
//! leaves with them to the journal's writer, and never waits for the disk.

use super::answer::{Answer, Leave, Leaving, chain};
use super::checkpointing::Checkpoints;
use super::consume::StreamItem;
use super::lanes::{Lane, Lanes};
use super::listing::{Health, HealthCell};
use super::loading::{LoadError, Loaders};
use crate::clock::Clock;
use crate::engine::{Arrival, Command, Engine, Out, Reply, Ticket, Turn, Want};
use crate::journal::{Frame, Journal, Record, Submission, Waiter, entry};
use crate::model::{Reason, Refusal, SessionId, UnixMillis};
use crate::state::StoreError;
use std::collections::HashMap;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc as stream, oneshot};

/// Inputs carried out before frames are handed to the writer.
const INPUTS_PER_ROUND: usize = 512;
/// Longest wait for an input: time is looked at this often even if nothing is known to be due.
const WAIT_MS_MAX: u64 = 1_000;
/// Shortest wait while something is due that waits for rows.
const WAIT_MS_MIN: u64 = 1;
/// Bytes of frames that may wait for the writer before the sequencer takes no more calls.
const BACKLOG_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A call on its way through the sequencer.
pub(super) struct Call {
    pub(super) ticket: Ticket,
    pub(super) command: Command,
    pub(super) answer: Option<Answer>,
    /// The call's share of the byte budget; returned when the call is carried out.
    pub(super) permit: Option<OwnedSemaphorePermit>,
}

/// What the sequencer is told.
pub(crate) enum Input {
    /// Do this.
    Call { ticket: Ticket, command: Command, answer: Option<Answer>, permit: Option<OwnedSemaphorePermit> },
    /// Do this, and put the session's deliveries into `items`.
    Attach { ticket: Ticket, command: Command, items: stream::UnboundedSender<StreamItem>, answer: Answer },
    /// Something wanted has come.
    Arrived(Result<Arrival, LoadError>),
    /// The frame of the frozen rows is durable.
    FrozenDurable,
    /// The journal takes no more.
    JournalClosed,
    /// A checkpoint is durable, or failed.
    CheckpointDone(u64, Result<(), StoreError>),
    /// Finish and end.
    Stop(oneshot::Sender<()>),
}

pub(super) struct Sequencer {
    pub(super) engine: Engine,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) journal: Arc<Journal>,
    pub(super) loaders: Loaders,
    pub(super) checkpoints: Checkpoints,
    pub(super) health: Arc<HealthCell>,
    pub(super) inbox: mpsc::Receiver<Input>,
    pub(super) own: mpsc::Sender<Input>,
    pub(super) lanes: Lanes,
    pub(super) answers: HashMap<Ticket, Answer>,
    pub(super) streams: HashMap<SessionId, (Ticket, stream::UnboundedSender<StreamItem>)>,
    /// Streams whose sessions have not joined yet.
    pub(super) attaching: HashMap<Ticket, (SessionId, stream::UnboundedSender<StreamItem>)>,
    pub(super) round: Round,
    /// Whoever asked it to stop.
    pub(super) stop: Option<oneshot::Sender<()>>,
    /// The last broker time handed to the engine.
    pub(super) now: UnixMillis,
}

/// What goes to the writer together.
#[derive(Default)]
pub(super) struct Round {
    frames: Vec<Frame>,
    leaving: Vec<Leaving>,
    /// Publish replies, which `interval` lets go earlier.
    early: Vec<Leaving>,
}

impl Sequencer {
    /// Runs until it is asked to stop or cannot go on.
    pub(super) fn run(mut self) {
        loop {
            if let Err(cause) = self.round() {
                return self.fail(&cause);
            }
            if let Some(done) = self.stop.take() {
                return self.end(done);
            }
        }
    }

    /// One round: wait, take what is there, hand over.
    fn round(&mut self) -> Result<(), String> {
        let mut next = self.wait()?;
        self.engine.set_storage_full(self.journal.storage_full());
        let mut taken = 0;
        while let Some(input) = next {
            self.look_at_clock();
            self.take(input)?;
            taken += 1;
            if taken == INPUTS_PER_ROUND || self.stop.is_some() {
                break;
            }
            next = self.inbox.try_recv().ok();
        }
        self.look_at_clock();
        if self.engine.next_due().is_some_and(|due| due <= self.now) {
            let turn = self.engine.tick(self.now);
            self.take_turn(turn)?;
        }
        self.checkpoint()?;
        // Rows also come by being looked for, and no checkpoint follows from that.
        if self.engine.is_crowded() {
            self.engine.sweep();
        }
        self.hand_over();
        if let Some(error) = self.journal.closed() {
            return Err(chain(&error));
        }
        Ok(())
    }

    fn wait(&self) -> Result<Option<Input>, String> {
        let due = self.engine.next_due().map_or(WAIT_MS_MAX, |due| due.since(self.now));
        let due = match self.engine.dirty_rows() {
            0 => due,
            _ => due.min(self.checkpoints.due_at().since(self.now)),
        };
        let wait = Duration::from_millis(due.clamp(WAIT_MS_MIN, WAIT_MS_MAX));
        match self.inbox.recv_timeout(wait) {
            Ok(input) => Ok(Some(input)),
            Err(mpsc::RecvTimeoutError::Timeout) => Ok(None),
            Err(mpsc::RecvTimeoutError::Disconnected) => Err("all handles are gone".to_owned()),
        }
    }

    fn look_at_clock(&mut self) {
        self.now = self.now.max(self.clock.now()).max(self.engine.time());
    }

    fn take(&mut self, input: Input) -> Result<(), String> {
        match input {
            Input::Call { ticket, command, answer, permit } => {
                if let Command::Detach(session, of) = &command {
                    self.attaching.remove(of);
                    self.end_stream(*session, *of);
                }
                let lane = Lane::of(ticket, &command);
                if let Some(call) = self.lanes.queue(&lane, Call { ticket, command, answer, permit }) {
                    self.carry_out(lane, call)?;
                }
            }
            Input::Attach { ticket, command, items, answer } => {
                if let Command::Attach(session, _) = &command {
                    self.attaching.insert(ticket, (session.id, items));
                }
                let lane = Lane::of(ticket, &command);
                let call = Call { ticket, command, answer: Some(answer), permit: None };
                if let Some(call) = self.lanes.queue(&lane, call) {
                    self.carry_out(lane, call)?;
                }
            }
            Input::Arrived(arrival) => self.arrived(arrival.map_err(|e| chain(&e))?)?,
            Input::FrozenDurable => self.checkpoints.write(&self.own)?,
            // It wakes the round, whose end looks why.
            Input::JournalClosed => {}
            Input::CheckpointDone(generation, outcome) => {
                outcome.map_err(|e| chain(&e))?;
                self.checkpoints.finished();
                self.engine.checkpoint_finished(generation);
                self.engine.sweep();
            }
            Input::Stop(done) => self.stop = Some(done),
        }
        Ok(())
    }

    /// Carries the call out if its rows are in memory, and then those that queued behind it; else it waits for them.
    fn carry_out(&mut self, lane: Lane, call: Call) -> Result<(), String> {
        let mut next = Some(call);
        while let Some(call) = next {
            let missing = self.engine.needs(&call.command);
            if !missing.is_empty() {
                for key in self.lanes.wait(lane, call, missing) {
                    self.loaders.ask(Want::Row(key));
                }
                return Ok(());
            }
            let Call { ticket, command, answer, permit } = call;
            if let Some(answer) = answer {
                self.answers.insert(ticket, answer);
            }
            if let Command::CancelFetch(_, fetch) = &command {
                self.answers.remove(fetch);
            }
            let turn = self.engine.handle(self.now, ticket, command);
            self.take_turn(turn)?;
            drop(permit);
            next = self.lanes.next(&lane);
        }
        Ok(())
    }

    fn arrived(&mut self, arrival: Arrival) -> Result<(), String> {
        let key = match &arrival {
            Arrival::Row(key, _) => Some(key.clone()),
            Arrival::Names { .. } | Arrival::Tasks { .. } => None,
        };
        let turn = self.engine.arrived(self.now, arrival).map_err(|e| chain(&e))?;
        self.take_turn(turn)?;
        for lane in key.map(|key| self.lanes.came(&key)).unwrap_or_default() {
            if let Some(call) = self.lanes.next(&lane) {
                self.carry_out(lane, call)?;
            }
        }
        Ok(())
    }

    /// Puts a turn into the round.
    fn take_turn(&mut self, turn: Turn) -> Result<(), String> {
        if !turn.entries.is_empty() {
            let entries = entry::encode(&turn.entries).map_err(|e| e.to_string())?;
            let records = turn
                .records
                .into_iter()
                .map(|r| Record { channel: r.channel, offset: r.offset, bytes: r.bytes })
                .collect();
            let frame = Frame { lsn: turn.lsn, entries, records };
            self.checkpoints.count(frame.encoded_len());
            self.round.frames.push(frame);
        }
        for want in turn.wants {
            self.loaders.ask(want);
        }
        for out in turn.outs {
            match out {
                Out::Reply(ticket, reply) => {
                    // A stream is one from its session's joining on; one that is refused leaves an earlier one alone.
                    if let Some((session, items)) = self.attaching.remove(&ticket)
                        && matches!(reply, Reply::Joined { .. })
                    {
                        self.streams.insert(session, (ticket, items));
                    }
                    if let Some(answer) = self.answers.remove(&ticket) {
                        let early = matches!(reply, Reply::Published(_));
                        let queue = if early { &mut self.round.early } else { &mut self.round.leaving };
                        queue.push(Leaving::Reply(answer, reply));
                    }
                }
                Out::Deliver(session, deliveries) => self.put_into_stream(session, StreamItem::Deliver(deliveries)),
                Out::StreamOver(session, ticket) => self.end_stream(session, ticket),
                Out::Notice(session, notice) => self.put_into_stream(session, StreamItem::Notice(notice)),
            }
        }
        Ok(())
    }

    /// What is on its way still comes; then the stream has ended.
    fn end_stream(&mut self, session: SessionId, ticket: Ticket) {
        if self.streams.get(&session).is_some_and(|(of, _)| *of == ticket) {
            self.streams.remove(&session);
        }
    }

    fn put_into_stream(&mut self, session: SessionId, item: StreamItem) {
        if let Some((_, items)) = self.streams.get(&session) {
            self.round.leaving.push(Leaving::Item(items.clone(), item));
        }
    }

    /// Freezes the changed rows if a checkpoint is due.
    fn checkpoint(&mut self) -> Result<(), String> {
        if self.checkpoints.is_due(self.now, self.engine.dirty_rows()) {
            let frozen = self.engine.freeze().map_err(|e| e.to_string())?;
            self.checkpoints.begin(self.now, frozen);
            let own = self.own.clone();
            let told = Box::new(move || drop(own.send(Input::FrozenDurable)));
            self.round.leaving.push(Leaving::Durable(told));
        }
        Ok(())
    }

    /// Hands the round to the writer.
    fn hand_over(&mut self) {
        let round = std::mem::take(&mut self.round);
        if round.frames.is_empty() && round.leaving.is_empty() && round.early.is_empty() {
            return;
        }
        let waiters = |leaving: Vec<Leaving>| -> Vec<Box<dyn Waiter>> {
            if leaving.is_empty() { Vec::new() } else { vec![Box::new(Leave(leaving))] }
        };
        self.journal.submit(Submission {
            broker_time: self.now,
            frames: round.frames,
            applied: self.engine.applied(),
            waiters: waiters(round.leaving),
            early_waiters: waiters(round.early),
        });
        // The writer is behind by a whole budget: let it catch up before more is decided.
        while self.journal.backlog_bytes() > BACKLOG_BYTES_MAX && self.journal.closed().is_none() {
            std::thread::park_timeout(Duration::from_millis(1));
        }
    }

    /// Ends in order: what was handed in is durable, and a last checkpoint makes the next start quick.
    fn end(mut self, done: oneshot::Sender<()>) {
        self.refuse_waiting();
        let last = self.last_checkpoint();
        if let Err(cause) = last {
            self.health.set(Health::Failed(cause));
        }
        self.streams.clear();
        self.attaching.clear();
        if let Err(error) = self.journal.close() {
            self.health.set(Health::Failed(chain(&error)));
        }
        self.health.set(Health::Closed);
        // The caller may be gone.
        let _ = done.send(());
    }

    fn last_checkpoint(&mut self) -> Result<(), String> {
        self.hand_over();
        loop {
            if !self.checkpoints.is_running() {
                if self.engine.dirty_rows() == 0 {
                    return Ok(());
                }
                let frozen = self.engine.freeze().map_err(|e| e.to_string())?;
                self.checkpoints.begin(self.now, frozen);
                let own = self.own.clone();
                let told = Box::new(move || drop(own.send(Input::FrozenDurable)));
                self.round.leaving.push(Leaving::Durable(told));
                self.hand_over();
            }
            match self.inbox.recv_timeout(Duration::from_millis(WAIT_MS_MAX)) {
                Ok(Input::FrozenDurable) => self.checkpoints.write(&self.own)?,
                Ok(Input::CheckpointDone(generation, outcome)) => {
                    outcome.map_err(|e| chain(&e))?;
                    self.checkpoints.finished();
                    self.engine.checkpoint_finished(generation);
                }
                // Refused by being dropped.
                Ok(_) => {}
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    if let Some(error) = self.journal.closed() {
                        return Err(chain(&error));
                    }
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    /// The disk failed, or rows cannot be read: nothing new is decided. What is durable has left or will.
    fn fail(mut self, cause: &str) {
        tracing::error!(cause, "the broker cannot go on");
        self.health.set(Health::Failed(cause.to_owned()));
        self.hand_over();
        self.refuse_waiting();
        self.streams.clear();
        self.attaching.clear();
        // Later calls are refused with the cause, until the last handle is gone or closes. It may have asked to stop in the
        // very round that failed.
        let done = loop {
            if let Some(done) = self.stop.take() {
                break done;
            }
            match self.inbox.recv() {
                Ok(Input::Call { answer: Some(answer), .. } | Input::Attach { answer, .. }) => {
                    let _ = answer.send(Err(Refusal::new(Reason::JournalFailed, cause)));
                }
                Ok(Input::Stop(done)) => self.stop = Some(done),
                Ok(_) => {}
                Err(mpsc::RecvError) => return,
            }
        };
        // Why it had closed is known.
        let _ = self.journal.close();
        let _ = done.send(());
    }

    /// Calls that wait for rows or messages will not be answered by the engine any more.
    fn refuse_waiting(&mut self) {
        let refusal = match self.health.get() {
            Health::Failed(cause) => Refusal::new(Reason::JournalFailed, cause),
            _ => super::closed(),
        };
        for answer in self.lanes.drain().filter_map(|call| call.answer) {
            let _ = answer.send(Err(refusal.clone()));
        }
        for (_, answer) in self.answers.drain() {
            let _ = answer.send(Err(refusal.clone()));
        }
    }
}
