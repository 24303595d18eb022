//! Looking through a folder that nobody has open, changing nothing.

use super::damage::Damage;
use super::error::OpenError;
use super::frames::RecoveredFrame;
use super::recovery::{Headers, hold, read_headers};
use super::scan::{Scan, Step};
use super::segment::{Link, SegmentHeader, segment_path};
use super::tail;
use crate::fs::FileSystem;
use crate::model::{Lsn, SegmentNo};
use std::path::Path;

/// Where a segment stops being what the journal would have written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Place in the segment.
    pub(crate) position: u32,
    /// What was found.
    pub(crate) what: Damage,
    /// Whether what should be there was confirmed: an opening refuses this, and cuts off the other.
    pub(crate) proven: bool,
}

/// What a segment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inspected {
    /// Its number.
    pub(crate) segment: SegmentNo,
    /// How often the folder had been opened when it was made.
    pub(crate) incarnation: u64,
    /// LSN of its first frame.
    pub(crate) first_lsn: Lsn,
    /// Its frames that verify.
    pub(crate) frames: u64,
    /// Their records.
    pub(crate) records: u64,
    /// Where the groups that verify end.
    pub(crate) end: u32,
    /// What stands there, if it is not the end.
    pub(crate) fault: Option<Fault>,
}

/// Verifies every byte of every segment in `dir`, shows each frame that is whole, in order, and goes on with the next
/// segment behind a fault.
///
/// # Errors
/// The folder is in use, a segment's header does not verify, or the file system failed.
pub(crate) fn inspect(
    fs: &dyn FileSystem,
    dir: &Path,
    show: &mut dyn FnMut(SegmentNo, &RecoveredFrame),
) -> Result<Vec<Inspected>, OpenError> {
    let names = fs.list(dir).map_err(OpenError::io("list", dir))?;
    let _lock = hold(fs, dir)?;
    let headers = read_headers(fs, dir, &names)?;
    headers.values().map(|(header, link)| segment(fs, dir, &headers, header, *link, show)).collect()
}

fn segment(
    fs: &dyn FileSystem,
    dir: &Path,
    headers: &Headers,
    header: &SegmentHeader,
    link: Link,
    show: &mut dyn FnMut(SegmentNo, &RecoveredFrame),
) -> Result<Inspected, OpenError> {
    let segment = header.segment;
    let path = segment_path(dir, segment);
    let file = fs.open(&path).map_err(OpenError::io("open", &path))?;
    let len = file.len().map_err(OpenError::io("measure", &path))?;
    let len = u32::try_from(len).unwrap_or(u32::MAX).min(header.file_len);
    let follower = headers.get(&segment.next()).and_then(|(next, _)| Some((next.previous?, next.first_lsn)));
    let end = follower.map(|(previous, _)| previous.end);
    let mut scan = Scan::new(file.clone(), header, link, end.unwrap_or(len).min(len));
    let (mut frames, mut records) = (0, 0);
    let stopped = loop {
        match scan.step().map_err(OpenError::io("read", &path))? {
            Step::Group(group) => {
                for frame in &group.frames {
                    frames += 1;
                    records += frame.records.len() as u64;
                    show(segment, frame);
                }
            }
            Step::End => break None,
            Step::Stopped(what) => break Some(what),
        }
    };
    let position = scan.position();
    let fault = match (stopped, follower) {
        (Some(what), Some(_)) => Some(Fault { position, what, proven: true }),
        (Some(what), None) => {
            let tail = tail::examine(file, header.key(), position, len).map_err(OpenError::io("read", &path))?;
            (tail.len > 0).then_some(Fault { position, what, proven: tail.proven })
        }
        (None, Some((previous, next_lsn))) => {
            let meets = (previous.end, previous.sum, next_lsn) == (position, scan.link().sum, scan.next_lsn());
            (!meets).then_some(Fault { position, what: Damage::SegmentChain, proven: true })
        }
        (None, None) => None,
    };
    let (incarnation, first_lsn) = (header.incarnation, header.first_lsn);
    Ok(Inspected { segment, incarnation, first_lsn, frames, records, end: position, fault })
}
