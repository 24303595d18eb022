//! What can go wrong, an operation each.

use super::damage::Damage;
use crate::model::{Lsn, SegmentNo};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// Why nothing more is appended. The first one stays; only opening the folder anew heals.
#[derive(Clone, Debug, Error)]
pub(crate) enum JournalError {
    /// A write or sync failed. What was waiting may or may not be on disk.
    #[error("journal {step} failed")]
    Failed {
        /// Which call: "write", "sync", "new segment".
        step: &'static str,
        /// What the file system said.
        #[source]
        source: Arc<io::Error>,
    },
    /// A frame is longer than half a segment. Nothing of it was written.
    #[error("frame {lsn} has {bytes} bytes, above the limit of {limit}")]
    FrameTooLong {
        /// The frame.
        lsn: Lsn,
        /// Its encoded length.
        bytes: u64,
        /// The longest that fits.
        limit: u64,
    },
    /// A frame came out of turn. Nothing of it was written.
    #[error("frame {found} was submitted where {expected} is next")]
    OutOfOrder {
        /// The LSN that is next.
        expected: Lsn,
        /// The one submitted.
        found: Lsn,
    },
    /// The journal was closed.
    #[error("the journal is closed")]
    Closed,
    /// The writer's thread ended by a panic.
    #[error("the journal's writer ended unexpectedly")]
    WriterEnded,
}

/// Why a folder is not opened.
#[derive(Debug, Error)]
pub(crate) enum OpenError {
    /// Another process, or another journal of this one, holds the folder.
    #[error("{} is in use by another broker", .0.display())]
    Locked(PathBuf),
    /// A setting is out of bounds.
    #[error("journal setting: {0}")]
    Config(&'static str),
    /// What was confirmed is damaged or gone. Nothing was changed.
    #[error("journal data loss in segment {segment} at {position}: {what}")]
    DataLoss {
        /// The segment's number.
        segment: SegmentNo,
        /// Place in its file.
        position: u32,
        /// What was found.
        what: Damage,
    },
    /// The state belongs to another journal than the one in the folder.
    #[error("the state belongs to journal {expected:032x}, the folder holds {found:032x}")]
    WrongJournal {
        /// Journal id in the state.
        expected: u128,
        /// Journal id in the segments.
        found: u128,
    },
    /// A segment was written by a version this one does not know.
    #[error("segment {segment} has format version {version}, this broker reads 1")]
    Version {
        /// The segment's number.
        segment: SegmentNo,
        /// Its version.
        version: u32,
    },
    /// A call to the file system failed.
    #[error("{step} {}", path.display())]
    Io {
        /// What was being done, as in "read".
        step: &'static str,
        /// To what.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
}

impl OpenError {
    /// Makes an [`OpenError::Io`] of a failed call.
    pub(super) fn io(step: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { step, path: path.to_path_buf(), source }
    }

    pub(super) fn lost(segment: SegmentNo, position: u32, what: Damage) -> Self {
        Self::DataLoss { segment, position, what }
    }
}

/// Why bytes could not be read.
#[derive(Clone, Debug, Error)]
pub(crate) enum ReadError {
    /// The segment is gone.
    #[error("segment {0} is gone")]
    Gone(SegmentNo),
    /// What stands there does not verify.
    #[error("segment {segment} is damaged at {position}: {what}")]
    Damaged {
        /// The segment's number.
        segment: SegmentNo,
        /// Place in its file.
        position: u32,
        /// What was found.
        what: Damage,
    },
    /// A call to the file system failed.
    #[error("reading segment {segment}")]
    Io {
        /// The segment's number.
        segment: SegmentNo,
        /// What the file system said.
        #[source]
        source: Arc<io::Error>,
    },
}

impl ReadError {
    /// Makes the error of a failed call; a file that is not there is a segment that is gone.
    pub(super) fn io(segment: SegmentNo) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.kind() {
            io::ErrorKind::NotFound => Self::Gone(segment),
            _ => Self::Io { segment, source: Arc::new(source) },
        }
    }

    pub(super) fn damaged(segment: SegmentNo, position: u32, what: Damage) -> Self {
        Self::Damaged { segment, position, what }
    }
}
