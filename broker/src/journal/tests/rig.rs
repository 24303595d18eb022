//! A journal with numbered frames in it, and somebody who remembers what was told.

use crate::fs::FileSystem;
use crate::journal::error::OpenError;
use crate::journal::{
    Applied, Frame, Journal, JournalConfig, JournalError, Placed, Placements, Record, RecoveredFrame, Recovery,
    Submission, Waiter,
};
use crate::model::{ChannelNo, Lsn, Offset, SegmentNo, UnixMillis};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;

/// What a waiter was told: the LSN it waited for, and whether that is durable.
#[derive(Clone, Default)]
pub(super) struct Told(Arc<Ear>);

#[derive(Default)]
struct Ear {
    heard: Mutex<Vec<(Lsn, bool)>>,
    more: Condvar,
}

impl Told {
    pub(super) fn all(&self) -> Vec<(Lsn, bool)> {
        self.0.heard.lock().clone()
    }

    /// Waits until `count` have been told, and returns the first `count`.
    pub(super) fn first(&self, count: usize) -> Vec<(Lsn, bool)> {
        let mut told = self.0.heard.lock();
        self.0.more.wait_while(&mut told, |told| told.len() < count);
        told[..count].to_vec()
    }

    pub(super) fn waiter(&self, lsn: Lsn) -> Box<dyn Waiter> {
        Box::new(Waiting { told: self.clone(), lsn })
    }

    /// The highest LSN told durable.
    pub(super) fn confirmed(&self) -> Lsn {
        self.all().into_iter().filter(|(_, durable)| *durable).map(|(lsn, _)| lsn).max().unwrap_or_default()
    }
}

struct Waiting {
    told: Told,
    lsn: Lsn,
}

impl Waiter for Waiting {
    fn release(self: Box<Self>, outcome: Result<(), JournalError>) {
        self.told.0.heard.lock().push((self.lsn, outcome.is_ok()));
        self.told.0.more.notify_all();
    }
}

/// Remembers all places it was told, and the segments sealed.
#[derive(Default)]
pub(super) struct Index {
    pub(super) placed: Mutex<Vec<Placed>>,
    pub(super) sealed: Mutex<Vec<(SegmentNo, Lsn)>>,
}

impl Placements for Index {
    fn placed(&self, segment: SegmentNo, records: &[Placed]) {
        assert!(records.iter().all(|record| record.place.segment == segment));
        self.placed.lock().extend_from_slice(records);
    }

    fn sealed(&self, segment: SegmentNo, last_lsn: Lsn) {
        self.sealed.lock().push((segment, last_lsn));
    }
}

/// A folder that is opened again and again.
pub(super) struct Rig {
    pub(super) fs: Arc<dyn FileSystem>,
    pub(super) config: JournalConfig,
    pub(super) index: Arc<Index>,
}

impl Rig {
    /// Tiny segments, no helper thread: calls come in the same order each time.
    pub(super) fn new(fs: Arc<dyn FileSystem>, dir: &std::path::Path) -> Self {
        let config = JournalConfig {
            segment_bytes: 16 * 1024,
            spares: 0,
            group_bytes_max: 4 * 1024,
            ..JournalConfig::new(dir.join("journal"))
        };
        Self { fs, config, index: Arc::default() }
    }

    pub(super) fn open(&self) -> Result<(Journal, Recovery), OpenError> {
        self.open_after(None)
    }

    pub(super) fn open_after(&self, applied: Option<Applied>) -> Result<(Journal, Recovery), OpenError> {
        Journal::open(self.fs.clone(), self.config.clone(), applied, self.index.clone())
    }

    /// Opens and takes all frames, each of which must be the one [`frame`] makes.
    pub(super) fn recover(&self) -> Result<(Journal, Lsn), OpenError> {
        let (journal, recovery) = self.open()?;
        let mut next = Lsn(1);
        for frame in recovery.frames {
            check(&frame?, next);
            next = next.next();
        }
        assert_eq!(recovery.last_lsn.next(), next);
        Ok((journal, recovery.last_lsn))
    }
}

/// The frame that stands under `lsn` in all these tests: its length differs from one to the next.
pub(super) fn frame(lsn: Lsn) -> Frame {
    let size = |salt: u64| (lsn.get().wrapping_mul(2_654_435_761 + salt) >> 7) as usize;
    let byte = lsn.get().to_le_bytes()[0] | 1;
    let record = |nth: u64| Record {
        channel: ChannelNo(nth + 1),
        offset: Offset(lsn.get()),
        bytes: vec![byte; size(nth) % 300].into(),
    };
    Frame { lsn, entries: vec![byte; size(9) % 90], records: (0..lsn.get() % 4).map(record).collect() }
}

pub(super) fn time_of(lsn: Lsn) -> UnixMillis {
    UnixMillis(1_000_000 + lsn.get() * 3)
}

/// Asserts that a frame is the one [`frame`] makes, with its time.
pub(super) fn check(found: &RecoveredFrame, lsn: Lsn) {
    let expected = frame(lsn);
    assert_eq!((found.lsn, found.broker_time), (lsn, time_of(lsn)));
    assert_eq!(found.entries, expected.entries);
    assert_eq!(found.records.len(), expected.records.len());
    for (found, expected) in found.records.iter().zip(&expected.records) {
        assert_eq!((found.channel, found.offset), (expected.channel, expected.offset));
        assert_eq!(found.bytes, expected.bytes);
    }
}

/// A submission of one frame and one waiter for it.
pub(super) fn submission(lsn: Lsn, told: &Told) -> Submission {
    Submission {
        broker_time: time_of(lsn),
        frames: vec![frame(lsn)],
        applied: lsn,
        waiters: vec![told.waiter(lsn)],
        early_waiters: Vec::new(),
    }
}

/// A submission of one frame and one publish reply for it.
pub(super) fn published(lsn: Lsn, told: &Told) -> Submission {
    Submission { waiters: Vec::new(), early_waiters: vec![told.waiter(lsn)], ..submission(lsn, told) }
}

/// Submits the frames `first..=last`, one a submission.
pub(super) fn submit(journal: &Journal, first: u64, last: u64, told: &Told) {
    for lsn in first..=last {
        journal.submit(submission(Lsn(lsn), told));
    }
}
