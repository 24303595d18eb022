//! The index of one segment in memory.

use super::places::{Entry, SortedRuns};
use crate::journal::{Place, Placed};
use crate::model::{ChannelNo, Offset, SegmentNo};
use parking_lot::Mutex;
use std::sync::Arc;

/// Places of the messages of a segment.
///
/// The journal's writer only appends to an array; whoever looks something up first sorts in what was appended since. So
/// the writer's time goes by the message, and looking up, which the tail cache mostly spares, pays for the order.
#[derive(Debug)]
pub(super) struct SegmentIndex {
    segment: SegmentNo,
    /// What was appended and is not sorted in yet. Held for a copy at most, and never while anything is sorted.
    appended: Mutex<Vec<Entry>>,
    /// Taken before `appended` where both are.
    sorted: Mutex<SortedRuns>,
}

impl SegmentIndex {
    pub(super) fn new(segment: SegmentNo) -> Self {
        Self { segment, appended: Mutex::default(), sorted: Mutex::default() }
    }

    /// Notes where records are.
    pub(super) fn append(&self, records: &[Placed]) {
        let entries = records.iter().map(|record| Entry {
            channel: record.channel,
            offset: record.offset,
            position: record.place.position,
            len: record.place.len,
        });
        self.appended.lock().extend(entries);
    }

    /// Notes entries read from the segment itself.
    pub(super) fn extend(&self, entries: Vec<Entry>) {
        self.appended.lock().extend(entries);
    }

    /// Where a message is.
    pub(super) fn find(&self, channel: ChannelNo, offset: Offset) -> Option<Place> {
        let mut sorted = self.sorted.lock();
        sorted.take_in(std::mem::take(&mut self.appended.lock()));
        let entry = sorted.find(channel, offset)?;
        Some(Place { segment: self.segment, position: entry.position, len: entry.len })
    }

    /// All entries so far, sorted.
    pub(super) fn entries(&self) -> Arc<Vec<Entry>> {
        let mut sorted = self.sorted.lock();
        sorted.take_in(std::mem::take(&mut self.appended.lock()));
        sorted.as_one()
    }
}
