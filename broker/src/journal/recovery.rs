//! Opening a folder. Nothing kept is shown, stored or counted before the disk holds it and a header proves it.
//!
//! The order, each step synced before the next: look at the last segment past the page cache; write again what is kept
//! of it behind the last proven place; copy what is cut aside; cut; make the next segment, whose header proves the rest.

use super::active::Active;
use super::config::JournalConfig;
use super::cut::{self, CutReport};
use super::damage::Damage;
use super::error::OpenError;
use super::frames::{Frames, Part};
use super::last::{self, Kept};
use super::scan::read_header;
use super::segment::{HeaderFault, Link, Previous, SegmentHeader, segment_no, segment_path};
use super::segments::Segments;
use super::spares::Spares;
use super::submission::Placements;
use crate::fs::{FileSystem, FolderLock};
use crate::model::{Lsn, SegmentNo, UnixMillis};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// What the state says it holds of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Applied {
    /// The segment that held it, as far as the state knew.
    pub(crate) segment: SegmentNo,
    /// The last LSN in the state.
    pub(crate) lsn: Lsn,
    /// The journal it belongs to.
    pub(crate) journal_id: u128,
}

/// What was found.
pub(crate) struct Recovery {
    /// The frames the state does not hold yet, to be applied in order before anything is submitted.
    pub(crate) frames: Frames,
    /// What a crash had cut short, if anything.
    pub(crate) cut: Option<CutReport>,
    /// Last LSN in the journal; 0 if there is none.
    pub(crate) last_lsn: Lsn,
    /// Latest broker time in the journal.
    pub(crate) broker_time: UnixMillis,
    /// The journal's id, for the state to keep.
    pub(crate) journal_id: u128,
}

/// A folder, recovered and held.
pub(super) struct Opened {
    pub(super) recovery: Recovery,
    pub(super) active: Active,
    pub(super) segments: Arc<Segments>,
    pub(super) spares: Arc<Spares>,
    pub(super) lock: Box<dyn FolderLock>,
}

pub(super) type Headers = BTreeMap<SegmentNo, (SegmentHeader, Link)>;

/// Recovers the folder, or makes a new journal where there is none and the state knows of none.
pub(super) fn open(
    fs: &Arc<dyn FileSystem>,
    config: &JournalConfig,
    applied: Option<Applied>,
    placements: Arc<dyn Placements>,
) -> Result<Opened, OpenError> {
    let segment_bytes = config.checked_segment_bytes()?;
    let dir = config.dir.as_path();
    fs.create_dir(dir).map_err(OpenError::io("make", dir))?;
    let lock = hold(fs.as_ref(), dir)?;
    let names = fs.list(dir).map_err(OpenError::io("list", dir))?;
    let headers = read_headers(fs.as_ref(), dir, &names)?;
    let after = applied.map_or(Lsn(0), |applied| applied.lsn);
    let replayed = replayed(&headers, applied)?;
    let spares = Spares::open(fs.clone(), dir, segment_bytes, config.spares, &names)
        .map(Arc::new)
        .map_err(OpenError::io("sort out the spares of", dir))?;

    let (next, cut) = match replayed.last() {
        None => (first_header(segment_bytes), None),
        Some((header, link)) => keep_last(fs.as_ref(), dir, *header, *link, after, segment_bytes)?,
    };
    let (file, link) = spares.make_segment(&next).map_err(OpenError::io("make the next segment in", dir))?;
    let parts = parts(&replayed, &next);
    let segments = Segments::new(headers);
    segments.insert(next, link);
    let recovery = Recovery {
        frames: Frames::new(fs.clone(), dir.to_path_buf(), placements, after, parts),
        cut,
        last_lsn: Lsn(next.first_lsn.get().saturating_sub(1)),
        broker_time: next.broker_time,
        journal_id: next.journal_id,
    };
    Ok(Opened { recovery, active: Active::new(file, next, link), segments: Arc::new(segments), spares, lock })
}

/// Takes the folder for this process.
pub(super) fn hold(fs: &dyn FileSystem, dir: &Path) -> Result<Box<dyn FolderLock>, OpenError> {
    fs.lock(dir).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => OpenError::Locked(dir.to_path_buf()),
        _ => OpenError::io("lock", dir)(error),
    })
}

/// Reads every segment's header: a segment has its name only after its header was synced, so each must verify.
pub(super) fn read_headers(fs: &dyn FileSystem, dir: &Path, names: &[String]) -> Result<Headers, OpenError> {
    let mut headers = Headers::new();
    for segment in names.iter().filter_map(|name| segment_no(name)) {
        let path = segment_path(dir, segment);
        let file = fs.open(&path).map_err(OpenError::io("open", &path))?;
        match read_header(file.as_ref(), segment).map_err(OpenError::io("read", &path))? {
            Ok(found) => headers.insert(segment, found),
            Err(HeaderFault::Version(version)) => {
                return Err(OpenError::Version { segment, version });
            }
            Err(HeaderFault::Damaged(what)) => return Err(OpenError::lost(segment, 0, what)),
        };
    }
    let mut ids = headers.values().map(|(header, _)| header.journal_id);
    if let Some(expected) = ids.next()
        && let Some(found) = ids.find(|id| *id != expected)
    {
        return Err(OpenError::WrongJournal { expected, found });
    }
    Ok(headers)
}

/// The segments from the one that holds what follows the applied LSN to the last: all there, each naming the one before.
fn replayed(headers: &Headers, applied: Option<Applied>) -> Result<Vec<(SegmentHeader, Link)>, OpenError> {
    let Some((last, (last_header, _))) = headers.last_key_value() else {
        return match applied {
            Some(applied) => Err(OpenError::lost(applied.segment, 0, Damage::SegmentMissing)),
            None => Ok(Vec::new()),
        };
    };
    if let Some(applied) = applied {
        if applied.journal_id != last_header.journal_id {
            let (expected, found) = (applied.journal_id, last_header.journal_id);
            return Err(OpenError::WrongJournal { expected, found });
        }
        if applied.segment > *last {
            return Err(OpenError::lost(applied.segment, 0, Damage::SegmentMissing));
        }
    }
    let next = applied.map_or(Lsn(1), |applied| applied.lsn.next());
    let start = headers.iter().rev().find(|(_, (header, _))| header.first_lsn <= next).map(|(segment, _)| *segment);
    let Some(start) = start else {
        let first = headers.first_key_value().map_or(*last, |(segment, _)| *segment);
        return Err(OpenError::lost(first, 0, Damage::AppliedBeforeStart));
    };
    let found: Vec<_> = headers.range(start..).map(|(_, found)| *found).collect();
    for pair in found.windows(2) {
        let [(before, _), (after, _)] = pair else {
            continue;
        };
        if after.segment != before.segment.next() {
            return Err(OpenError::lost(before.segment.next(), 0, Damage::SegmentMissing));
        }
        let named = after.previous.is_some_and(|previous| previous.segment == before.segment);
        if !named || after.first_lsn < before.first_lsn || after.incarnation < before.incarnation {
            return Err(OpenError::lost(after.segment, 0, Damage::SegmentChain));
        }
    }
    Ok(found)
}

/// Makes safe what is kept of the last segment, cuts off the rest, and says how the next segment begins.
fn keep_last(
    fs: &dyn FileSystem,
    dir: &Path,
    header: SegmentHeader,
    link: Link,
    after: Lsn,
    segment_bytes: u32,
) -> Result<(SegmentHeader, Option<CutReport>), OpenError> {
    let path = segment_path(dir, header.segment);
    let file = fs.open(&path).map_err(OpenError::io("open", &path))?;
    let kept = last::examine(&file, &path, &header, link)?;
    let Kept { end, proven, next_lsn, tail_len, .. } = kept;
    if next_lsn <= after {
        return Err(OpenError::lost(header.segment, end, Damage::AppliedBeyondEnd));
    }
    last::write_again(&file, proven, end).map_err(OpenError::io("write again", &path))?;
    let cut = match tail_len {
        0 => None,
        len => Some(cut::keep(fs, dir, &file, (header.segment, end, len))?),
    };
    last::cut(fs, dir, file.as_ref(), end).map_err(OpenError::io("cut", &path))?;
    let next = SegmentHeader {
        journal_id: header.journal_id,
        segment: header.segment.next(),
        incarnation: header.incarnation.saturating_add(1),
        first_lsn: next_lsn,
        broker_time: kept.broker_time,
        file_len: segment_bytes,
        previous: Some(Previous { segment: header.segment, end, sum: kept.link.sum }),
    };
    Ok((next, cut))
}

fn first_header(segment_bytes: u32) -> SegmentHeader {
    SegmentHeader {
        journal_id: rand::random(),
        segment: SegmentNo(1),
        incarnation: 1,
        first_lsn: Lsn(1),
        broker_time: UnixMillis(0),
        file_len: segment_bytes,
        previous: None,
    }
}

/// Each segment with what the one after it says of it.
fn parts(replayed: &[(SegmentHeader, Link)], next: &SegmentHeader) -> VecDeque<Part> {
    let followers = replayed.iter().skip(1).map(|(header, _)| header).chain([next]);
    let part = |((header, link), follower): (&(SegmentHeader, Link), &SegmentHeader)| {
        let previous = follower.previous?;
        let (end, last_sum) = (previous.end, previous.sum);
        Some(Part { header: *header, link: *link, end, last_sum, next_lsn: follower.first_lsn })
    };
    replayed.iter().zip(followers).filter_map(part).collect()
}
