//! A journal in memory, for the tests of this room.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::Records;
use crate::journal::{Damage, Place, Placed, Placements, ReadError};
use crate::model::{ChannelNo, Lsn, Offset, SegmentNo};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A record and its place.
pub(super) fn placed(segment: u64, channel: u64, offset: u64, position: u32, bytes: Bytes) -> Placed {
    let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let place = Place { segment: SegmentNo(segment), position, len };
    Placed { channel: ChannelNo(channel), offset: Offset(offset), place, bytes }
}

/// Segments of records, the last of them open. Each append is a frame.
#[derive(Debug)]
pub(super) struct MemoryJournal {
    log: Mutex<Log>,
    scans: AtomicUsize,
}

#[derive(Debug)]
struct Log {
    segments: BTreeMap<SegmentNo, Segment>,
    last_lsn: Lsn,
}

#[derive(Debug)]
struct Segment {
    first_lsn: Lsn,
    last_lsn: Lsn,
    records: Vec<Placed>,
}

impl Segment {
    const fn after(last_lsn: Lsn) -> Self {
        Self { first_lsn: last_lsn.next(), last_lsn, records: Vec::new() }
    }
}

impl MemoryJournal {
    /// A journal with one empty segment, 1.
    pub(super) fn new() -> Self {
        let segments = BTreeMap::from([(SegmentNo(1), Segment::after(Lsn(0)))]);
        Self { log: Mutex::new(Log { segments, last_lsn: Lsn(0) }), scans: AtomicUsize::new(0) }
    }

    /// Appends messages as one frame and tells of them.
    pub(super) fn append(&self, messages: &[(u64, u64, Bytes)], told: &dyn Placements) -> Lsn {
        let mut log = self.log.lock();
        let lsn = log.last_lsn.next();
        log.last_lsn = lsn;
        let (number, segment) = log.segments.iter_mut().next_back().unwrap();
        let before = segment.records.len();
        for (channel, offset, bytes) in messages {
            let last = segment.records.last().map(|record| record.place);
            let position = last.map_or(4096, |last| last.position + 24 + last.len);
            segment.records.push(placed(number.get(), *channel, *offset, position, bytes.clone()));
        }
        segment.last_lsn = lsn;
        told.placed(*number, &segment.records[before..]);
        lsn
    }

    /// Seals the open segment and opens the next.
    pub(super) fn seal(&self, told: &dyn Placements) -> SegmentNo {
        let mut log = self.log.lock();
        let (sealed, last_lsn) = log.segments.iter().next_back().map(|(no, segment)| (*no, segment.last_lsn)).unwrap();
        let next = Segment::after(log.last_lsn);
        log.segments.insert(sealed.next(), next);
        drop(log);
        told.sealed(sealed, last_lsn);
        sealed
    }

    /// The segment that is open.
    pub(super) fn open_segment(&self) -> SegmentNo {
        *self.log.lock().segments.last_key_value().unwrap().0
    }

    /// The last LSN, and the segment that holds it.
    pub(super) fn last(&self) -> (SegmentNo, Lsn) {
        let log = self.log.lock();
        let holder = log.segments.iter().rev().find(|(_, segment)| segment.first_lsn <= log.last_lsn);
        (holder.map_or(SegmentNo(1), |(no, _)| *no), log.last_lsn)
    }

    /// Recovers after `applied`: the open segment is sealed, and all is told from the segment on that holds what follows
    /// that LSN. Answers the sealed segments.
    pub(super) fn recover(&self, applied: Lsn, told: &dyn Placements) -> Vec<SegmentNo> {
        let mut log = self.log.lock();
        let start = log.segments.iter().rev().find(|(_, segment)| segment.first_lsn <= applied.next());
        let start = start.map_or(SegmentNo(1), |(no, _)| *no);
        for (number, segment) in log.segments.range(start..) {
            told.placed(*number, &segment.records);
            told.sealed(*number, segment.last_lsn);
        }
        let sealed: Vec<_> = log.segments.keys().copied().collect();
        let next = Segment::after(log.last_lsn);
        log.segments.insert(sealed.last().unwrap().next(), next);
        sealed
    }

    /// Gives a segment back.
    pub(super) fn remove(&self, segment: SegmentNo) {
        self.log.lock().segments.remove(&segment);
    }

    /// How often a segment was read as a whole.
    pub(super) fn scans(&self) -> usize {
        self.scans.load(Ordering::Relaxed)
    }
}

impl Records for MemoryJournal {
    fn read_run(&self, places: &[Place]) -> Result<Vec<Bytes>, ReadError> {
        assert!(places.is_sorted() && places.windows(2).all(|pair| pair[0].segment == pair[1].segment));
        let log = self.log.lock();
        let read = |place: &Place| {
            let segment = log.segments.get(&place.segment).ok_or(ReadError::Gone(place.segment))?;
            let record = segment.records.iter().find(|record| record.place == *place);
            let (segment, position) = (place.segment, place.position);
            let record = record.ok_or(ReadError::Damaged { segment, position, what: Damage::Record })?;
            Ok(record.bytes.clone())
        };
        places.iter().map(read).collect()
    }

    fn scan(&self, segment: SegmentNo, found: &mut dyn FnMut(ChannelNo, Offset, Place)) -> Result<Lsn, ReadError> {
        self.scans.fetch_add(1, Ordering::Relaxed);
        let log = self.log.lock();
        let segment = log.segments.get(&segment).ok_or(ReadError::Gone(segment))?;
        segment.records.iter().for_each(|record| found(record.channel, record.offset, record.place));
        Ok(segment.last_lsn)
    }
}
