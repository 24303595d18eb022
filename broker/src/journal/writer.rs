//! The one thread that writes: takes what waits, writes it as one group, syncs, and lets the waiters go.
//!
//! While it syncs the next group gathers in the queue, so load makes its own batches and nobody lingers.

use super::active::Active;
use super::batch::{Batch, Finished};
use super::config::SyncMode;
use super::error::JournalError;
use super::group::{GROUP_ALIGN, GROUP_HEADER_LEN};
use super::queue::{Shared, release};
use super::segments::Segments;
use super::spares::Spares;
use super::submission::{Frame, Placements, Submission};
use crate::model::{Lsn, UnixMillis};
use crate::telemetry::metrics;
use std::collections::VecDeque;
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the last confirmed group may be without a witness.
const WITNESS_AFTER: Duration = Duration::from_millis(2);

/// What the writer is given for life.
pub(super) struct Surroundings {
    pub(super) shared: Arc<Shared>,
    pub(super) spares: Arc<Spares>,
    pub(super) segments: Arc<Segments>,
    pub(super) placements: Arc<dyn Placements>,
    pub(super) sync: SyncMode,
    pub(super) group_bytes_max: u64,
    pub(super) frame_bytes_max: u64,
    #[cfg(test)]
    pub(super) flaw: Option<super::config::Flaw>,
}

/// A submission, some of whose frames may have been taken.
struct Incoming {
    #[cfg(test)]
    nothing_written: bool,
    frames: std::vec::IntoIter<Frame>,
    broker_time: UnixMillis,
    finished: Finished,
}

/// The writer's own.
pub(super) struct Writer {
    around: Surroundings,
    active: Active,
    /// Of the next frame to be taken.
    next_lsn: Lsn,
    /// Of the last frame written.
    written: Lsn,
    broker_time: UnixMillis,
    batch: Batch,
    arrived: VecDeque<Submission>,
    incoming: VecDeque<Incoming>,
    /// Written, not synced.
    held: VecDeque<Finished>,
    /// When the oldest write that is not synced must be.
    sync_due: Option<Instant>,
    /// When the last synced group must have a witness.
    witness_due: Option<Instant>,
    unsynced: bool,
}

impl Writer {
    pub(super) fn new(around: Surroundings, active: Active, next_lsn: Lsn, broker_time: UnixMillis) -> Self {
        Self {
            batch: Batch::new(usize::try_from(around.group_bytes_max).unwrap_or(usize::MAX)),
            written: around.shared.durable(),
            around,
            active,
            next_lsn,
            broker_time,
            arrived: VecDeque::new(),
            incoming: VecDeque::new(),
            held: VecDeque::new(),
            sync_due: None,
            witness_due: None,
            unsynced: false,
        }
    }

    /// Works until the journal closes.
    pub(super) fn run(mut self) {
        loop {
            let due = [self.sync_due, self.witness_due].into_iter().flatten().min();
            let closing = self.around.shared.wait(&mut self.arrived, due);
            self.unpack();
            let worked = if self.around.shared.closed().is_some() { Ok(()) } else { self.turn(closing) };
            if let Err(error) = worked {
                tracing::error!(%error, cause = error.source().map(tracing::field::display), "nothing more is confirmed");
                self.around.shared.close_for(error);
            }
            if self.around.shared.closed().is_some() {
                self.let_all_go();
            }
            if closing {
                return;
            }
        }
    }

    /// Writes all that has arrived, then what has come due.
    fn turn(&mut self, closing: bool) -> Result<(), JournalError> {
        while self.gather()? {
            self.write()?;
            self.around.shared.take(&mut self.arrived);
            self.unpack();
        }
        if closing {
            self.sync()?;
            return if self.witness_due.is_some() { self.witness() } else { Ok(()) };
        }
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now());
        if due(self.sync_due) {
            self.sync()?;
        }
        if due(self.witness_due) {
            self.witness()?;
        }
        Ok(())
    }

    fn unpack(&mut self) {
        self.incoming.extend(self.arrived.drain(..).map(|submission| Incoming {
            #[cfg(test)]
            nothing_written: submission.frames.is_empty(),
            frames: submission.frames.into_iter(),
            broker_time: submission.broker_time,
            finished: Finished {
                applied: submission.applied,
                early_waiters: submission.early_waiters,
                waiters: submission.waiters,
            },
        }));
    }

    /// Fills the batch with what waits, as far as one group goes. Whether there is anything to write or to hold.
    fn gather(&mut self) -> Result<bool, JournalError> {
        self.batch.start(self.next_lsn, self.broker_time);
        while let Some(mut incoming) = self.incoming.pop_front() {
            let taken = self.take_frames(&mut incoming);
            if !matches!(taken, Ok(true)) {
                self.incoming.push_front(incoming);
                return taken.map(|_| true);
            }
            #[cfg(test)]
            if incoming.nothing_written && self.around.flaw == Some(super::config::Flaw::ReadsNotHeldBack) {
                self.tell(incoming.finished, &Ok(()));
                self.around.shared.done(1);
                continue;
            }
            let at_once = self.batch.is_empty() && self.batch.finished.is_empty() && self.held.is_empty();
            if at_once && incoming.finished.applied <= self.around.shared.durable() {
                self.tell(incoming.finished, &Ok(()));
                self.around.shared.done(1);
            } else {
                self.batch.finished.push(incoming.finished);
            }
        }
        Ok(!self.batch.is_empty() || !self.batch.finished.is_empty())
    }

    /// Whether all frames of a submission went into the batch.
    fn take_frames(&mut self, incoming: &mut Incoming) -> Result<bool, JournalError> {
        while let Some(frame) = incoming.frames.as_slice().first() {
            let len = match self.check(frame) {
                Ok(len) => len,
                // What came before it in good order is still written.
                Err(_) if !self.batch.is_empty() => return Ok(false),
                Err(error) => return Err(error),
            };
            let group_len = self.batch.len_with(len);
            let fits = group_len.next_multiple_of(u64::from(GROUP_ALIGN)) <= self.active.room();
            let broker_time = self.broker_time.max(incoming.broker_time);
            let full = !fits || group_len > self.around.group_bytes_max || !self.batch.can_tell(broker_time);
            if full && !self.batch.is_empty() {
                return Ok(false);
            }
            if !fits {
                self.next_segment()?;
                continue;
            }
            self.broker_time = broker_time;
            if let Some(frame) = incoming.frames.next() {
                self.next_lsn = self.next_lsn.next();
                self.batch.push(frame, broker_time, self.active.place());
            }
        }
        Ok(true)
    }

    fn check(&self, frame: &Frame) -> Result<u64, JournalError> {
        let (bytes, limit) = (frame.encoded_len(), self.around.frame_bytes_max);
        if frame.lsn != self.next_lsn {
            return Err(JournalError::OutOfOrder { expected: self.next_lsn, found: frame.lsn });
        }
        if bytes > limit {
            return Err(JournalError::FrameTooLong { lsn: frame.lsn, bytes, limit });
        }
        Ok(bytes)
    }

    /// Writes the batch, if it has frames, and syncs it or holds it back.
    fn write(&mut self) -> Result<(), JournalError> {
        if !self.batch.is_empty() {
            self.write_group()?;
        }
        let always = self.around.sync == SyncMode::Always;
        if always {
            self.sync_file()?;
        }
        if !self.batch.placed.is_empty() {
            self.around.placements.placed(self.active.segment(), &self.batch.placed);
        }
        self.around.shared.written(std::mem::take(&mut self.batch.frame_bytes));
        let mut somebody_waits = false;
        for mut finished in self.batch.finished.drain(..) {
            // Whatever the mode: what is not durable with `Always` is about to be, and order is kept by holding all.
            if !always {
                release(std::mem::take(&mut finished.early_waiters), &Ok(()));
            }
            somebody_waits |= !finished.waiters.is_empty();
            self.held.push_back(finished);
        }
        if always || somebody_waits { self.sync() } else { Ok(()) }
    }

    fn write_group(&mut self) -> Result<(), JournalError> {
        let batch = &mut self.batch;
        let written = self.active.write(&mut batch.buffer, batch.frame_count, batch.first_lsn, batch.broker_time);
        written.map_err(failed("write"))?;
        if batch.frame_count > 0 {
            metrics::group_written(batch.frame_count);
        }
        self.written = Lsn(self.next_lsn.get().saturating_sub(1));
        self.unsynced = true;
        self.witness_due = None;
        if let (None, SyncMode::Interval(interval)) = (self.sync_due, self.around.sync) {
            self.sync_due = Some(now() + interval);
        }
        Ok(())
    }

    /// Syncs what is written and lets go what waits for it.
    fn sync(&mut self) -> Result<(), JournalError> {
        self.sync_file()?;
        let durable = self.written;
        self.around.shared.set_durable(durable);
        let mut told = 0;
        while self.held.front().is_some_and(|held| held.applied <= durable) {
            if let Some(held) = self.held.pop_front() {
                self.tell(held, &Ok(()));
                told += 1;
            }
        }
        self.around.shared.done(told);
        Ok(())
    }

    fn sync_file(&mut self) -> Result<(), JournalError> {
        if self.unsynced {
            let begun = now();
            self.active.sync().map_err(failed("sync"))?;
            metrics::journal_synced(now().saturating_duration_since(begun));
            self.unsynced = false;
            self.sync_due = None;
            self.witness_due = Some(now() + WITNESS_AFTER);
        }
        Ok(())
    }

    /// Proves the last group: by an empty one behind it, or by the next segment's header if there is no room.
    fn witness(&mut self) -> Result<(), JournalError> {
        #[cfg(test)]
        if self.around.flaw == Some(super::config::Flaw::NoWitness) {
            self.witness_due = None;
            return Ok(());
        }
        if self.active.room() < u64::from(GROUP_HEADER_LEN) {
            self.next_segment()?;
        } else {
            self.batch.start(self.next_lsn, self.broker_time);
            self.write_group()?;
            self.sync_file()?;
        }
        self.witness_due = None;
        Ok(())
    }

    /// Seals the segment, synced as a whole, and goes on in the next. Only while the batch has no frame.
    fn next_segment(&mut self) -> Result<(), JournalError> {
        self.sync()?;
        let header = self.active.next_header(self.next_lsn, self.broker_time);
        let (file, link) = self.around.spares.make_segment(&header).map_err(failed("new segment"))?;
        let sealed = self.active.segment();
        self.active = Active::new(file, header, link);
        self.around.segments.insert(header, link);
        self.around.placements.sealed(sealed, self.written);
        self.witness_due = None;
        Ok(())
    }

    fn tell(&self, finished: Finished, outcome: &Result<(), JournalError>) {
        release(finished.early_waiters, outcome);
        release(finished.waiters, outcome);
    }

    /// After the end: what is durable is confirmed, the rest is told why not. In order.
    fn let_all_go(&mut self) {
        (self.sync_due, self.witness_due) = (None, None);
        let never = self.incoming.iter().flat_map(|incoming| incoming.frames.as_slice()).map(Frame::encoded_len);
        self.around.shared.written(never.sum::<u64>() + std::mem::take(&mut self.batch.frame_bytes));
        let held = std::mem::take(&mut self.held).into_iter();
        let finished = std::mem::take(&mut self.batch.finished);
        let incoming = std::mem::take(&mut self.incoming).into_iter().map(|incoming| incoming.finished);
        let mut told = 0;
        for finished in held.chain(finished).chain(incoming) {
            let outcome = self.around.shared.outcome(finished.applied).unwrap_or(Err(JournalError::Closed));
            self.tell(finished, &outcome);
            told += 1;
        }
        self.around.shared.done(told);
    }
}

impl Drop for Writer {
    /// However the thread ends, nobody waits for it for ever.
    fn drop(&mut self) {
        let reason = if std::thread::panicking() { JournalError::WriterEnded } else { JournalError::Closed };
        self.around.shared.close_for(reason);
        self.around.shared.end(&mut self.arrived);
        self.unpack();
        self.let_all_go();
    }
}

fn failed(step: &'static str) -> impl FnOnce(io::Error) -> JournalError {
    move |source| JournalError::Failed { step, source: Arc::new(source) }
}

#[expect(clippy::disallowed_methods, reason = "paces syncs and witnesses; no decision depends on it")]
fn now() -> Instant {
    Instant::now()
}
