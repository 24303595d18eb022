//! The message index of the segments in memory, and the way of each out of it.

use super::extent::extents_of;
use super::places::Entry;
use super::segment::SegmentIndex;
use crate::journal::{Place, Placed, Placements};
use crate::model::{ChannelNo, Lsn, Offset, SegmentNo};
use crate::state::Family;
use parking_lot::{Condvar, Mutex, RwLock};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Places of all messages of the open segment and of those sealed segments that are not both written to an index file
/// and covered by a finished checkpoint.
#[derive(Debug, Default)]
pub(crate) struct MessageIndex {
    /// The segments in memory. Held for looking up only.
    segments: RwLock<BTreeMap<SegmentNo, Arc<SegmentIndex>>>,
    /// The ways out. Taken before `segments` where both are.
    sealed: Mutex<Sealed>,
    /// Wakes the writer of index files.
    to_write: Condvar,
}

#[derive(Debug, Default)]
struct Sealed {
    segments: BTreeMap<SegmentNo, Way>,
    stopped: bool,
}

/// How far a sealed segment is on its way out of memory.
#[derive(Clone, Copy, Debug)]
struct Way {
    last_lsn: Lsn,
    file: FileStep,
    extents: ExtentStep,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileStep {
    Unwritten,
    /// Writing it failed; tried again when the next segment is sealed.
    PutOff,
    Written,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExtentStep {
    Pending,
    Taken,
    Stored,
}

impl MessageIndex {
    /// An empty index.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Extents rows for the checkpoint that reaches `up_to`: those of every sealed segment that lies before it and has
    /// none in state yet. Sorts those segments where nobody has; that takes some 10 ms a segment at worst.
    ///
    /// `up_to` has to be durable: then the journal has told of every segment that ends before it. One checkpoint at a
    /// time: the rows of one that failed are not given again, as a failed store is not written to again.
    pub(crate) fn take_extents(&self, up_to: Lsn) -> Vec<(Family, Vec<u8>, Vec<u8>)> {
        let mut rows = Vec::new();
        for (segment, index) in self.take_pending(up_to) {
            let entries = index.entries();
            let extents = extents_of(segment, &entries);
            rows.extend(extents.map(|extent| (Family::Extents, extent.key(), extent.value())));
        }
        rows
    }

    /// The checkpoint that holds the rows taken last is durable.
    pub(crate) fn extents_stored(&self) {
        let mut sealed = self.sealed.lock();
        for way in sealed.segments.values_mut().filter(|way| way.extents == ExtentStep::Taken) {
            way.extents = ExtentStep::Stored;
        }
        self.let_go(&mut sealed);
    }

    /// Where a message is, if its segment is in memory.
    pub(super) fn find(&self, channel: ChannelNo, offset: Offset) -> Option<Place> {
        // Newest first: that is what is read most, and where a message stands that was moved.
        self.in_memory().iter().rev().find_map(|(_, index)| index.find(channel, offset))
    }

    /// Whether anything was heard of a segment that is still in memory.
    pub(super) fn holds(&self, segment: SegmentNo) -> bool {
        self.segments.read().contains_key(&segment)
    }

    /// Whether writing the index file of a segment has failed and waits for the next try.
    #[cfg(test)]
    pub(super) fn put_off(&self, segment: SegmentNo) -> bool {
        self.sealed.lock().segments.get(&segment).is_some_and(|way| way.file == FileStep::PutOff)
    }

    /// Takes in a sealed segment from what was read of it.
    pub(super) fn adopt(&self, segment: SegmentNo, entries: Vec<Entry>, last_lsn: Lsn) {
        self.of(segment).extend(entries);
        self.sealed(segment, last_lsn);
    }

    /// The sorted entries of a segment in memory.
    pub(super) fn entries(&self, segment: SegmentNo) -> Option<Arc<Vec<Entry>>> {
        let index = self.segments.read().get(&segment).cloned()?;
        Some(index.entries())
    }

    /// Drops a segment that is given back.
    pub(super) fn forget(&self, segment: SegmentNo) {
        let mut sealed = self.sealed.lock();
        sealed.segments.remove(&segment);
        self.segments.write().remove(&segment);
    }

    /// Waits for a sealed segment that has no index file; none once [`MessageIndex::stop`] was called.
    pub(super) fn next_to_write(&self) -> Option<(SegmentNo, Arc<Vec<Entry>>)> {
        let (segment, index) = {
            let mut sealed = self.sealed.lock();
            loop {
                if sealed.stopped {
                    return None;
                }
                let mut unwritten = sealed.segments.iter().filter(|(_, way)| way.file == FileStep::Unwritten);
                match unwritten.next() {
                    Some((segment, _)) => break (*segment, self.of(*segment)),
                    None => self.to_write.wait(&mut sealed),
                }
            }
        };
        Some((segment, index.entries()))
    }

    /// The index file of a segment is written, or is not and will be tried again when the next segment is sealed.
    /// Answers whether the segment is still there; it may have been given back meanwhile.
    pub(super) fn file_written(&self, segment: SegmentNo, written: bool) -> bool {
        let mut sealed = self.sealed.lock();
        let Some(way) = sealed.segments.get_mut(&segment) else { return false };
        way.file = if written { FileStep::Written } else { FileStep::PutOff };
        self.let_go(&mut sealed);
        true
    }

    /// Ends the wait for segments to write.
    pub(super) fn stop(&self) {
        self.sealed.lock().stopped = true;
        self.to_write.notify_all();
    }

    fn take_pending(&self, up_to: Lsn) -> Vec<(SegmentNo, Arc<SegmentIndex>)> {
        let mut taken = Vec::new();
        let mut sealed = self.sealed.lock();
        for (segment, way) in &mut sealed.segments {
            if way.extents == ExtentStep::Pending && way.last_lsn <= up_to {
                way.extents = ExtentStep::Taken;
                taken.push((*segment, self.of(*segment)));
            }
        }
        taken
    }

    /// Drops the segments that can be found without memory.
    fn let_go(&self, sealed: &mut Sealed) {
        let done = |way: &Way| way.file == FileStep::Written && way.extents == ExtentStep::Stored;
        for (segment, _) in sealed.segments.extract_if(.., |_, way| done(way)) {
            self.segments.write().remove(&segment);
        }
    }

    fn in_memory(&self) -> Vec<(SegmentNo, Arc<SegmentIndex>)> {
        self.segments.read().iter().map(|(segment, index)| (*segment, Arc::clone(index))).collect()
    }

    /// The index of a segment, begun where there is none.
    fn of(&self, segment: SegmentNo) -> Arc<SegmentIndex> {
        if let Some(index) = self.segments.read().get(&segment) {
            return Arc::clone(index);
        }
        let mut segments = self.segments.write();
        Arc::clone(segments.entry(segment).or_insert_with(|| Arc::new(SegmentIndex::new(segment))))
    }
}

impl Placements for MessageIndex {
    fn placed(&self, segment: SegmentNo, records: &[Placed]) {
        self.of(segment).append(records);
    }

    fn sealed(&self, segment: SegmentNo, last_lsn: Lsn) {
        let mut sealed = self.sealed.lock();
        // A segment without messages is sealed as well: it has an empty index and no extents.
        self.of(segment);
        let way = Way { last_lsn, file: FileStep::Unwritten, extents: ExtentStep::Pending };
        sealed.segments.insert(segment, way);
        for way in sealed.segments.values_mut().filter(|way| way.file == FileStep::PutOff) {
            way.file = FileStep::Unwritten;
        }
        drop(sealed);
        self.to_write.notify_one();
    }
}
