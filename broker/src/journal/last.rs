//! The last segment of a folder: the only one that a crash can have left unfinished.

use super::error::OpenError;
use super::scan::{Scan, Step};
use super::segment::{Link, SEGMENT_HEADER_LEN, SegmentHeader};
use super::tail;
use super::window::Window;
use crate::fs::{File, FileSystem};
use crate::model::{Lsn, UnixMillis};
use std::io;
use std::path::Path;
use std::sync::Arc;
use tracing::warn;

/// Bytes written at once.
const CHUNK: u32 = 1024 * 1024;

/// What is kept of the segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    /// Where its groups end.
    pub(super) end: u32,
    /// Up to where they are known to have been synced.
    pub(super) proven: u32,
    /// The last group, or the segment's header.
    pub(super) link: Link,
    /// LSN of the frame to come.
    pub(super) next_lsn: Lsn,
    /// Latest broker time.
    pub(super) broker_time: UnixMillis,
    /// Bytes behind the end, up to the last one that is not zero.
    pub(super) tail_len: u32,
}

/// Reads the segment, as the medium has it, up to the last group that verifies.
///
/// # Errors
/// `DataLoss` if what does not verify was once synced.
pub(super) fn examine(
    file: &Arc<dyn File>,
    path: &Path,
    header: &SegmentHeader,
    link: Link,
) -> Result<Kept, OpenError> {
    // A process that was killed leaves its writes in the page cache, a sync that failed leaves there what the medium
    // does not have. So sync, forget, and believe what is read then: the sync's own failure is told by that.
    if let Err(error) = file.sync_data() {
        warn!(%error, path = %path.display(), "the journal's last writes cannot be synced");
    }
    file.forget_cached().map_err(OpenError::io("read past the page cache", path))?;
    let len = file.len().map_err(OpenError::io("measure", path))?;
    let limit = u32::try_from(len).unwrap_or(u32::MAX).min(header.file_len);
    let mut scan = Scan::new(file.clone(), header, link, limit);
    let mut proven = SEGMENT_HEADER_LEN;
    let damage = loop {
        match scan.step().map_err(OpenError::io("read", path))? {
            Step::Group(group) => proven = proven.max(group.header.synced_through),
            Step::End => break None,
            Step::Stopped(damage) => break Some(damage),
        }
    };
    let end = scan.position();
    let mut tail_len = 0;
    if let Some(what) = damage {
        let tail = tail::examine(file.clone(), header.key(), end, limit).map_err(OpenError::io("read", path))?;
        if tail.proven {
            return Err(OpenError::lost(header.segment, end, what));
        }
        tail_len = tail.len;
    }
    let (link, next_lsn, broker_time) = (scan.link(), scan.next_lsn(), scan.broker_time());
    Ok(Kept { end, proven, link, next_lsn, broker_time, tail_len })
}

/// Writes the bytes from `proven` to `end` once more, in place, and syncs them: what was only in the page cache, or on
/// its way to the medium, is there now.
pub(super) fn write_again(file: &Arc<dyn File>, proven: u32, end: u32) -> io::Result<()> {
    let mut window = Window::new(file.clone(), end);
    let mut at = proven;
    while at < end {
        let len = CHUNK.min(end - at);
        let Some(bytes) = window.bytes(at, len)? else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        file.write_all_at(&bytes, u64::from(at))?;
        at += len;
    }
    if proven < end { file.sync_data() } else { Ok(()) }
}

/// Cuts the file to `end`.
pub(super) fn cut(fs: &dyn FileSystem, dir: &Path, file: &dyn File, end: u32) -> io::Result<()> {
    if file.len()? > u64::from(end) {
        file.set_len(u64::from(end))?;
        file.sync_all()?;
        fs.sync_dir(dir)?;
    }
    Ok(())
}
