//! When a checkpoint is due, and its way: freeze, wait until its frame is durable, write, let go.

use super::sequencer::Input;
use crate::engine::Frozen;
use crate::journal::Journal;
use crate::model::{Lsn, SegmentNo, UnixMillis};
use crate::read::MessageIndex;
use crate::state::{AppliedRow, Batch, CheckpointJob, Checkpointer};
use std::sync::{Arc, mpsc};

/// When a checkpoint is due (design, section 4).
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckpointPolicy {
    /// Bytes of journal since the last one.
    pub(crate) journal_bytes: u64,
    /// Rows changed since the last one.
    pub(crate) rows: usize,
    /// Milliseconds since the last one, where anything changed.
    pub(crate) every_ms: u64,
}

impl Default for CheckpointPolicy {
    fn default() -> Self {
        Self { journal_bytes: 256 * 1024 * 1024, rows: 250_000, every_ms: 60_000 }
    }
}

/// The checkpoint under way, if there is one.
pub(super) struct Checkpoints {
    policy: CheckpointPolicy,
    checkpointer: Checkpointer,
    index: Arc<MessageIndex>,
    journal: Arc<Journal>,
    frozen: Option<Frozen>,
    running: bool,
    bytes_since: u64,
    last_at: UnixMillis,
}

impl Checkpoints {
    pub(super) fn new(
        policy: CheckpointPolicy,
        checkpointer: Checkpointer,
        index: Arc<MessageIndex>,
        journal: Arc<Journal>,
        now: UnixMillis,
    ) -> Self {
        Self { policy, checkpointer, index, journal, frozen: None, running: false, bytes_since: 0, last_at: now }
    }

    pub(super) const fn count(&mut self, bytes: u64) {
        self.bytes_since += bytes;
    }

    pub(super) const fn is_running(&self) -> bool {
        self.running
    }

    /// Whether to freeze now.
    pub(super) fn is_due(&self, now: UnixMillis, dirty: usize) -> bool {
        !self.running
            && dirty > 0
            && (self.bytes_since >= self.policy.journal_bytes
                || dirty >= self.policy.rows
                || now.since(self.last_at) >= self.policy.every_ms)
    }

    /// When one is due by time.
    pub(super) const fn due_at(&self) -> UnixMillis {
        self.last_at.plus(self.policy.every_ms)
    }

    /// Takes the frozen rows; they are written once their frame is durable.
    pub(super) fn begin(&mut self, now: UnixMillis, frozen: Frozen) {
        self.running = true;
        self.bytes_since = 0;
        self.last_at = now;
        self.frozen = Some(frozen);
    }

    /// The frame of the frozen rows is durable: writes them.
    pub(super) fn write(&mut self, inbox: &mpsc::Sender<Input>) -> Result<(), String> {
        let Some(frozen) = self.frozen.take() else { return Ok(()) };
        let mut batch = Batch::new(AppliedRow {
            journal_id: self.journal.id(),
            segment: self.segment_of(frozen.lsn),
            lsn: frozen.lsn,
            broker_time: frozen.time,
            epoch: frozen.counters.epoch,
            next_channel: frozen.counters.channel.next(),
            next_policy: frozen.counters.policy.next(),
            next_group: frozen.counters.group.next(),
        });
        batch.puts = frozen.puts;
        batch.puts.extend(self.index.take_extents(frozen.lsn));
        batch.deletes = frozen.deletes;
        let generation = frozen.generation;
        let inbox = inbox.clone();
        let on_done = Box::new(move |outcome| {
            // A sequencer that is gone needs no word.
            let _ = inbox.send(Input::CheckpointDone(generation, outcome));
        });
        self.checkpointer.submit(CheckpointJob { batch, on_done }).map_err(|e| e.to_string())
    }

    /// The checkpoint is durable.
    pub(super) fn finished(&mut self) {
        self.running = false;
        self.index.extents_stored();
    }

    /// The segment that holds the frame.
    fn segment_of(&self, lsn: Lsn) -> SegmentNo {
        self.journal
            .segments()
            .iter()
            .rev()
            .find(|info| info.first_lsn <= lsn)
            .or(self.journal.segments().first())
            .map_or(SegmentNo(1), |info| info.segment)
    }
}
