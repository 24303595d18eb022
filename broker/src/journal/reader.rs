//! Positional reads: any thread, any number at once, beside the writer.

use super::damage::Damage;
use super::error::ReadError;
use super::frame::{RECORD_HEADER_LEN, RecordHeader};
use super::scan::{Scan, Step};
use super::segment::segment_path;
use super::segments::Segments;
use super::submission::{Place, Placed};
use super::sums::{SumKey, agree};
use crate::fs::{File, FileSystem};
use crate::model::{Lsn, SegmentNo};
use bytes::Bytes;
use lru::LruCache;
use parking_lot::Mutex;
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

/// Files kept open.
const HANDLES_MAX: NonZeroUsize = match NonZeroUsize::new(256) {
    Some(handles) => handles,
    None => NonZeroUsize::MIN,
};

/// Reads records out of segments.
pub(super) struct Reader {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    segments: Arc<Segments>,
    handles: Mutex<LruCache<SegmentNo, Handle>>,
}

#[derive(Clone)]
struct Handle {
    file: Arc<dyn File>,
    key: SumKey,
}

impl Reader {
    pub(super) fn new(fs: Arc<dyn FileSystem>, dir: PathBuf, segments: Arc<Segments>) -> Self {
        Self { fs, dir, segments, handles: Mutex::new(LruCache::new(HANDLES_MAX)) }
    }

    /// The messages at `places`, which lie in one segment, in rising order: one read from the first to the last.
    pub(super) fn read_run(&self, places: &[Place]) -> Result<Vec<Bytes>, ReadError> {
        let (Some(first), Some(last)) = (places.first(), places.last()) else {
            return Ok(Vec::new());
        };
        let handle = self.handle(first.segment)?;
        let damaged = |place: &Place| ReadError::damaged(first.segment, place.position, Damage::Record);
        let span = end_of(last).and_then(|end| end.checked_sub(u64::from(first.position)));
        let span = span.and_then(|span| usize::try_from(span).ok()).ok_or_else(|| damaged(last))?;
        let mut bytes = vec![0; span];
        handle.file.read_exact_at(&mut bytes, u64::from(first.position)).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => damaged(last),
            _ => ReadError::io(first.segment)(error),
        })?;
        let bytes = Bytes::from(bytes);
        let record = |place: &Place| {
            let start = place.position.checked_sub(first.position).filter(|_| place.segment == first.segment)?;
            verified(&bytes, start as usize, place, handle.key)
        };
        places.iter().map(|place| record(place).ok_or_else(|| damaged(place))).collect()
    }

    /// Walks a sealed segment and shows the records of each frame, for an index to be rebuilt. Returns the last LSN in
    /// it, or before it if it is empty.
    pub(super) fn scan_segment(&self, segment: SegmentNo, show: &mut dyn FnMut(&[Placed])) -> Result<Lsn, ReadError> {
        let (header, link) = self.segments.header(segment).ok_or(ReadError::Gone(segment))?;
        let file = self.handle(segment)?.file;
        let io = ReadError::io(segment);
        let len = match file.len() {
            Ok(len) => u32::try_from(len).unwrap_or(u32::MAX),
            Err(error) => return Err(io(error)),
        };
        let end = self.segments.end(segment);
        if let Some(end) = end.filter(|end| *end > len) {
            return Err(ReadError::damaged(segment, len.min(end), Damage::Absent));
        }
        let mut scan = Scan::new(file, &header, link, end.unwrap_or(len));
        loop {
            match scan.step().map_err(ReadError::io(segment))? {
                Step::Group(group) => {
                    group
                        .frames
                        .iter()
                        .filter(|frame| !frame.records.is_empty())
                        .for_each(|frame| show(&frame.records));
                }
                // Without the next segment to say where this one ends, it ends where the zeros begin.
                Step::Stopped(Damage::Absent) if end.is_none() => break,
                Step::Stopped(damage) => {
                    return Err(ReadError::damaged(segment, scan.position(), damage));
                }
                Step::End => break,
            }
        }
        Ok(Lsn(scan.next_lsn().get().saturating_sub(1)))
    }

    /// Closes the handle of a segment that goes.
    pub(super) fn forget(&self, segment: SegmentNo) {
        let handle = self.handles.lock().pop(&segment);
        drop(handle);
    }

    /// The segment's handle; opened, outside the lock, if it is not in the cache.
    fn handle(&self, segment: SegmentNo) -> Result<Handle, ReadError> {
        if let Some(handle) = self.handles.lock().get(&segment) {
            return Ok(handle.clone());
        }
        let (header, _) = self.segments.header(segment).ok_or(ReadError::Gone(segment))?;
        let file = self.fs.open(&segment_path(&self.dir, segment)).map_err(ReadError::io(segment))?;
        let handle = Handle { file, key: header.key() };
        let evicted = self.handles.lock().push(segment, handle.clone());
        drop(evicted);
        // Removed while we opened it: a handle left in the cache would keep its blocks from being given back.
        if self.segments.header(segment).is_none() {
            self.forget(segment);
        }
        Ok(handle)
    }
}

fn end_of(place: &Place) -> Option<u64> {
    u64::from(place.position).checked_add(RECORD_HEADER_LEN as u64)?.checked_add(u64::from(place.len))
}

/// The record that begins at `start` of `bytes`, if it is the one that was written at `place`.
fn verified(bytes: &Bytes, start: usize, place: &Place, key: SumKey) -> Option<Bytes> {
    let body = start.checked_add(RECORD_HEADER_LEN)?;
    let end = body.checked_add(place.len as usize)?;
    let header = RecordHeader::parse(bytes.get(start..body)?)?;
    let message = bytes.get(body..end)?;
    (header.len == place.len && agree(key.of(place.position, message), header.sum)).then(|| bytes.slice(body..end))
}
