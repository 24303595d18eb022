//! The journal as the rest of the broker sees it.

use super::config::JournalConfig;
use super::error::{JournalError, OpenError, ReadError};
use super::queue::Shared;
use super::reader::Reader;
use super::recovery::{self, Applied, Opened, Recovery};
use super::segment::segment_path;
use super::segments::{SegmentInfo, Segments};
use super::spares::Spares;
use super::submission::{Place, Placed, Placements, Submission};
use super::writer::{Surroundings, Writer};
use crate::fs::{FileSystem, FolderLock};
use crate::model::{Lsn, SegmentNo};
use bytes::Bytes;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// An open journal. One caller submits (the sequencer); reading and asking are free to all threads.
pub(crate) struct Journal {
    #[allow(dead_code, reason = "giving disk back comes later")]
    fs: Arc<dyn FileSystem>,
    #[allow(dead_code, reason = "giving disk back comes later")]
    config: JournalConfig,
    id: u128,
    shared: Arc<Shared>,
    spares: Arc<Spares>,
    segments: Arc<Segments>,
    reader: Reader,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Held until the threads have ended.
    lock: Mutex<Option<Box<dyn FolderLock>>>,
}

impl Journal {
    /// Opens the folder, or makes a new journal where there is none and the state knows of none. Recovery is complete
    /// when this returns; what remains is to apply [`Recovery::frames`], all of them, before anything is submitted.
    ///
    /// # Errors
    /// `DataLoss`, `WrongJournal`, `Version` if the folder does not hold what was confirmed: nothing was changed. Else
    /// the folder is in use, a setting is out of bounds, or the file system failed.
    pub(crate) fn open(
        fs: Arc<dyn FileSystem>,
        config: JournalConfig,
        applied: Option<Applied>,
        placements: Arc<dyn Placements>,
    ) -> Result<(Self, Recovery), OpenError> {
        let Opened { recovery, active, segments, spares, lock } =
            recovery::open(&fs, &config, applied, placements.clone())?;
        let shared = Arc::new(Shared::new(recovery.last_lsn));
        let around = Surroundings {
            shared: shared.clone(),
            spares: spares.clone(),
            segments: segments.clone(),
            placements,
            sync: config.sync,
            group_bytes_max: config.group_bytes_max as u64,
            frame_bytes_max: Self::frame_bytes_max(config.segment_bytes),
            #[cfg(test)]
            flaw: config.flaw,
        };
        let writer = Writer::new(around, active, recovery.last_lsn.next(), recovery.broker_time);
        let started = |error| OpenError::io("start the threads of", &config.dir)(error);
        let helper = spares.start().map_err(started)?;
        let writer =
            thread::Builder::new().name("weir-journal".into()).spawn(move || writer.run()).map_err(|error| {
                spares.stop();
                started(error)
            })?;
        let journal = Self {
            reader: Reader::new(fs.clone(), config.dir.clone(), segments.clone()),
            threads: Mutex::new(std::iter::once(writer).chain(helper).collect()),
            fs,
            config,
            id: recovery.journal_id,
            shared,
            spares,
            segments,
            lock: Mutex::new(Some(lock)),
        };
        Ok((journal, recovery))
    }

    /// Longest frame, by [`super::Frame::encoded_len`], in segments of this length: half of it.
    pub(crate) const fn frame_bytes_max(segment_bytes: u64) -> u64 {
        segment_bytes / 2
    }

    /// Hands frames and waiters to the writer. Never blocks and takes all: the caller bounds what it lets through by
    /// [`Self::backlog_bytes`]. Waiters go in the order of their submissions; where nothing is before them and nothing
    /// has to be written, before this returns.
    pub(crate) fn submit(&self, submission: Submission) {
        self.shared.submit(submission);
    }

    /// Bytes of frames submitted and not written yet.
    pub(crate) fn backlog_bytes(&self) -> u64 {
        self.shared.backlog_bytes()
    }

    /// The last LSN that is safe on disk.
    pub(crate) fn durable(&self) -> Lsn {
        self.shared.durable()
    }

    /// Why nothing more is appended; `None` while all is well.
    pub(crate) fn closed(&self) -> Option<JournalError> {
        self.shared.closed().cloned()
    }

    /// Calls `told` once, from any thread, when nothing more is appended.
    pub(crate) fn when_closed(&self, told: impl FnOnce() + Send + 'static) {
        self.shared.when_closed(Box::new(told));
    }

    /// The messages at places of one segment, in rising order, by one read from the first to the last; so the caller
    /// joins neighbours only. They share one buffer. Blocks for the disk.
    ///
    /// # Errors
    /// The segment is gone, the bytes of one do not verify (which fails them all), or the file system failed.
    pub(crate) fn read_run(&self, places: &[Place]) -> Result<Vec<Bytes>, ReadError> {
        self.reader.read_run(places)
    }

    /// Shows the records of a sealed segment, frame by frame, and returns the last LSN in it, or before it if it is
    /// empty.
    ///
    /// # Errors
    /// As [`Self::read_run`].
    pub(crate) fn scan_segment(&self, segment: SegmentNo, show: &mut dyn FnMut(&[Placed])) -> Result<Lsn, ReadError> {
        self.reader.scan_segment(segment, show)
    }

    /// All segments, in order; the last one is written to.
    pub(crate) fn segments(&self) -> Vec<SegmentInfo> {
        self.segments.list()
    }

    /// Removes segments nobody needs: all they hold is dead or in the state's last finished flush. The one written to
    /// stays, whatever is asked. Reads under way end well, later ones find the segment gone. Returns how many went.
    ///
    /// # Errors
    /// Of the file system; segments named before the one that failed are gone.
    #[allow(dead_code, reason = "giving disk back comes later")]
    pub(crate) fn remove(&self, segments: &[SegmentNo]) -> io::Result<usize> {
        let mut removed = 0;
        for segment in segments.iter().filter(|segment| Some(**segment) < self.segments.last()) {
            if self.segments.header(*segment).is_some() {
                self.fs.remove(&segment_path(&self.config.dir, *segment))?;
                self.segments.remove(*segment);
                self.reader.forget(*segment);
                removed += 1;
            }
        }
        if removed > 0 {
            self.fs.sync_dir(&self.config.dir)?;
        }
        Ok(removed)
    }

    /// How many spare segments are ready.
    #[cfg(test)]
    pub(crate) fn spares(&self) -> usize {
        self.spares.ready()
    }

    /// Whether the disk has no more left than what finishing needs. It comes well before a write fails.
    pub(crate) fn storage_full(&self) -> bool {
        self.spares.storage_full()
    }

    /// The journal's id, made with the folder.
    pub(crate) fn id(&self) -> u128 {
        self.id
    }

    /// Writes and syncs what waits, ends the threads, lets go of the folder, and takes no more. A second call finds nothing to do.
    ///
    /// # Errors
    /// What had closed the journal before.
    pub(crate) fn close(&self) -> Result<(), JournalError> {
        self.shared.begin_close();
        self.spares.stop();
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads {
            // A panic of the writer is told by `closed`, one of the helper costs nothing now.
            if thread.join().is_err() {
                tracing::error!("a thread of the journal ended by a panic");
            }
        }
        drop(self.lock.lock().take());
        match self.closed() {
            None | Some(JournalError::Closed) => Ok(()),
            Some(error) => Err(error),
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::warn!(%error, "the journal had closed before it was dropped");
        }
    }
}
