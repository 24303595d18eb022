//! Which segments there are.

use super::segment::{Link, SegmentHeader};
use crate::model::{Lsn, SegmentNo};
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// A segment, as others may know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentInfo {
    /// Its number.
    pub(crate) segment: SegmentNo,
    /// No frame in it is before this one.
    pub(crate) first_lsn: Lsn,
    /// No frame in it is after this one; `None` for the segment that is written to. Below `first_lsn` if it is empty.
    pub(crate) last_lsn: Option<Lsn>,
}

/// Headers of all segments in the folder. The lock guards look-ups only, never a call to the file system.
#[derive(Debug, Default)]
pub(super) struct Segments(Mutex<BTreeMap<SegmentNo, (SegmentHeader, Link)>>);

impl Segments {
    pub(super) fn new(headers: BTreeMap<SegmentNo, (SegmentHeader, Link)>) -> Self {
        Self(Mutex::new(headers))
    }

    pub(super) fn insert(&self, header: SegmentHeader, link: Link) {
        self.0.lock().insert(header.segment, (header, link));
    }

    #[allow(dead_code, reason = "giving disk back comes later")]
    pub(super) fn remove(&self, segment: SegmentNo) {
        self.0.lock().remove(&segment);
    }

    pub(super) fn header(&self, segment: SegmentNo) -> Option<(SegmentHeader, Link)> {
        self.0.lock().get(&segment).copied()
    }

    /// Where a segment's groups end, as far as the one after it is there to say so.
    pub(super) fn end(&self, segment: SegmentNo) -> Option<u32> {
        let next = self.header(segment.next())?.0;
        next.previous.map(|previous| previous.end)
    }

    /// The one written to.
    #[allow(dead_code, reason = "giving disk back comes later")]
    pub(super) fn last(&self) -> Option<SegmentNo> {
        self.0.lock().keys().next_back().copied()
    }

    /// All of them, in order.
    pub(super) fn list(&self) -> Vec<SegmentInfo> {
        let headers = self.0.lock();
        let mut next_first = None;
        let mut list: Vec<_> = headers
            .values()
            .rev()
            .map(|(header, _)| {
                let last_lsn = next_first.map(|first: Lsn| Lsn(first.get().saturating_sub(1)));
                next_first = Some(header.first_lsn);
                SegmentInfo { segment: header.segment, first_lsn: header.first_lsn, last_lsn }
            })
            .collect();
        list.reverse();
        list
    }
}
