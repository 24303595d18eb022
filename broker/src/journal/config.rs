//! Settings of the journal.

use super::error::OpenError;
use super::segment::SEGMENT_HEADER_LEN;
use std::path::PathBuf;
use std::time::Duration;

/// Smallest segment: the header's block, and room for a frame of half a segment.
const SEGMENT_BYTES_MIN: u64 = 16 * 1024;
/// Largest segment: places are 32 bits, and sums of two of them must not overflow.
const SEGMENT_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Longest a publish may stay unsynced.
const INTERVAL_MAX: Duration = Duration::from_secs(1);

const _: () = assert!(SEGMENT_BYTES_MIN / 2 + SEGMENT_HEADER_LEN as u64 + 64 <= SEGMENT_BYTES_MIN);

/// When a group is synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncMode {
    /// Each group before anything of it is answered.
    Always,
    /// Publish replies leave after the write, and a sync follows within this time (at most 1 s). Whatever else waits
    /// still waits for a sync, which then comes at once.
    Interval(Duration),
}

/// How the journal is kept.
#[derive(Clone, Debug)]
pub(crate) struct JournalConfig {
    /// The journal's own folder.
    pub(crate) dir: PathBuf,
    /// Length of a segment in bytes: 16 KiB to 1 GiB, a multiple of 4,096. Default 64 MiB.
    pub(crate) segment_bytes: u64,
    /// Spare segments a helper thread keeps ready. With 0 there is no helper, and the writer makes each segment itself.
    pub(crate) spares: usize,
    /// When a group is synced.
    pub(crate) sync: SyncMode,
    /// Most bytes in a group of several frames; one frame alone may be longer. Default 4 MiB.
    pub(crate) group_bytes_max: usize,
    /// What the writer is to do wrong.
    #[cfg(test)]
    pub(crate) flaw: Option<Flaw>,
}

/// A way to break the writer by hand, to show that tests would notice.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// The last group gets no witness.
    NoWitness,
    /// What waits and brings no frames goes at once, whatever it has seen.
    ReadsNotHeldBack,
}

impl JournalConfig {
    /// The defaults, for a journal in `dir`.
    pub(crate) fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            segment_bytes: 64 * 1024 * 1024,
            spares: 2,
            sync: SyncMode::Always,
            group_bytes_max: 4 * 1024 * 1024,
            #[cfg(test)]
            flaw: None,
        }
    }

    /// Length of a segment, once found to be within bounds.
    ///
    /// # Errors
    /// [`OpenError::Config`] names the first setting out of bounds.
    pub(super) fn checked_segment_bytes(&self) -> Result<u32, OpenError> {
        if let SyncMode::Interval(interval) = self.sync
            && (interval.is_zero() || interval > INTERVAL_MAX)
        {
            return Err(OpenError::Config("sync interval is above 0 and at most 1 s"));
        }
        if !(SEGMENT_BYTES_MIN..=SEGMENT_BYTES_MAX).contains(&self.segment_bytes)
            || !self.segment_bytes.is_multiple_of(u64::from(SEGMENT_HEADER_LEN))
        {
            return Err(OpenError::Config("segment length is 16 KiB to 1 GiB and a multiple of 4,096"));
        }
        u32::try_from(self.segment_bytes).map_err(|_| OpenError::Config("segment length is at most 1 GiB"))
    }
}
