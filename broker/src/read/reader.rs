//! Reading messages, wherever they are.

use super::extent::{Extent, extents_of};
use super::files::{self, IndexFiles};
use super::places::{self, Entry};
use super::writer::IndexWriter;
use super::{MessageIndex, ReadError, Records, TailCache};
use crate::journal::{self, Place};
use crate::model::{ChannelNo, Offset, SegmentNo};
use crate::state::{Family, Store};
use bytes::Bytes;
use std::io;
use std::sync::Arc;

/// Bytes that may lie between two messages, headers and entries of frames included, for them to be read in one go.
const GAP_BYTES_MAX: u64 = 512;
/// Bytes read in one go, if it is more than one message.
const RUN_BYTES_MAX: u64 = 1 << 20;
/// Rows looked up at a time where the extents of a segment are verified.
const ROWS_AT_ONCE: usize = 1024;

/// Gives the bytes of messages. From many threads; blocks for the time of reads from disk, so it is not for the
/// sequencer, and async code calls it where blocking is allowed.
pub(crate) struct Reader {
    tail: Arc<TailCache>,
    index: Arc<MessageIndex>,
    files: Arc<IndexFiles>,
    records: Arc<dyn Records>,
    store: Arc<dyn Store>,
    /// Dropped with the reader: index files are written no longer than they can be read.
    _writer: IndexWriter,
}

impl Reader {
    /// A reader over these, and the thread that writes the index files of sealed segments.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub(crate) fn open(
        tail: Arc<TailCache>,
        index: Arc<MessageIndex>,
        files: IndexFiles,
        records: Arc<dyn Records>,
        store: Arc<dyn Store>,
    ) -> io::Result<Self> {
        let files = Arc::new(files);
        let writer = IndexWriter::start(Arc::clone(&index), Arc::clone(&files))?;
        Ok(Self { tail, index, files, records, store, _writer: writer })
    }

    /// Takes into memory those of the sealed segments from `from` on, the one the applied row names, of which recovery
    /// told nothing. Where the applied LSN is the last of its segment, recovery begins behind that segment, and whether
    /// a checkpoint covers it is not certain. Call it once recovery is through, before anything is read or any extents
    /// are taken.
    ///
    /// # Errors
    /// [`ReadError::Journal`] where a segment cannot be read.
    pub(crate) fn adopt(&self, from: SegmentNo, sealed: &[SegmentNo]) -> Result<(), ReadError> {
        for segment in sealed.iter().copied().filter(|segment| *segment >= from && !self.index.holds(*segment)) {
            let (entries, last_lsn) = files::scan(&*self.records, segment)?;
            self.index.adopt(segment, entries, last_lsn);
        }
        Ok(())
    }

    /// The bytes of a message; none if it never was, or is not any more.
    ///
    /// # Errors
    /// [`ReadError`] where it is there and cannot be read.
    pub(crate) fn get(&self, channel: ChannelNo, offset: Offset) -> Result<Option<Bytes>, ReadError> {
        match self.tail.get(channel, offset) {
            Some(bytes) => Ok(Some(bytes)),
            None => match Finder::new(self).find(channel, offset)? {
                Some(place) => Ok(self.read_run(&[place])?.pop().flatten()),
                None => Ok(None),
            },
        }
    }

    /// The bytes of several messages, in the order of `keys`. What is not in memory is read in the order in which it
    /// stands in the journal. The caller bounds what comes back by what it asks for.
    ///
    /// # Errors
    /// As [`Reader::get`], for any of them.
    pub(crate) fn get_many(&self, keys: &[(ChannelNo, Offset)]) -> Result<Vec<Option<Bytes>>, ReadError> {
        let mut found = self.tail.get_many(keys);
        let mut missing: Vec<_> = keys.iter().zip(&mut found).filter(|(_, bytes)| bytes.is_none()).collect();
        missing.sort_unstable_by_key(|(key, _)| **key);

        let mut finder = Finder::new(self);
        let mut places = Vec::with_capacity(missing.len());
        for ((channel, offset), bytes) in missing {
            if let Some(place) = finder.find(*channel, *offset)? {
                places.push((place, bytes));
            }
        }
        places.sort_unstable_by_key(|(place, _)| *place);
        let (places, mut targets): (Vec<_>, Vec<_>) = places.into_iter().unzip();
        let mut targets = targets.iter_mut();
        for run in runs(&places) {
            for (read, target) in self.read_run(run)?.into_iter().zip(&mut targets) {
                **target = read;
            }
        }
        Ok(found)
    }

    /// Keys of the extents rows that go with a segment when it is given back. The caller deletes them in a checkpoint,
    /// unlinks the segment when that is durable, and then calls [`Reader::forget`].
    ///
    /// # Errors
    /// Where neither index nor segment nor state can be read.
    #[allow(dead_code, reason = "giving segments back is not wired to the sequencer yet")]
    pub(crate) fn extents_of(&self, segment: SegmentNo) -> Result<Vec<(Family, Vec<u8>)>, ReadError> {
        let entries = match self.index.entries(segment) {
            Some(entries) => entries,
            None => Arc::new(self.files.all(&*self.records, segment)?),
        };
        let extents: Vec<_> = extents_of(segment, &entries).collect();
        let mut keys = Vec::with_capacity(extents.len());
        for extents in extents.chunks(ROWS_AT_ONCE) {
            let asked: Vec<_> = extents.iter().map(|extent| (Family::Extents, extent.key())).collect();
            let rows = self.store.get_many(&asked)?;
            // A row that a later segment has replaced stays.
            let own = asked.into_iter().zip(extents).zip(rows);
            let own = own.filter(|((_, extent), row)| row.as_deref() == Some(extent.value().as_slice()));
            keys.extend(own.map(|((key, _), _)| key));
        }
        Ok(keys)
    }

    /// Drops what is known of a segment that was given back, and its index file.
    ///
    /// # Errors
    /// Where the file cannot be removed; it goes at the next start then.
    #[allow(dead_code, reason = "giving segments back is not wired to the sequencer yet")]
    pub(crate) fn forget(&self, segment: SegmentNo) -> io::Result<()> {
        self.index.forget(segment);
        self.files.remove(segment)
    }

    fn read_run(&self, places: &[Place]) -> Result<Vec<Option<Bytes>>, ReadError> {
        match self.records.read_run(places) {
            Ok(read) => Ok(read.into_iter().map(Some).collect()),
            // The segment was given back since it was found: nobody needs the messages any more.
            Err(journal::ReadError::Gone(_)) => Ok(vec![None; places.len()]),
            Err(error) => Err(error.into()),
        }
    }
}

/// Ascending places, cut into what is read in one go.
fn runs(places: &[Place]) -> impl Iterator<Item = &[Place]> {
    let mut rest = places;
    std::iter::from_fn(move || {
        let first = rest.first()?;
        let joined = rest.windows(2).take_while(|pair| matches!(pair, [a, b] if may_join(first, a, b))).count();
        let (run, behind) = rest.split_at_checked(joined + 1)?;
        rest = behind;
        Some(run)
    })
}

/// Whether `b`, which comes after `a`, is read in one go with the run from `first` to `a`. The messages share the buffer
/// then, so little may lie between them, and the whole is bounded.
fn may_join(first: &Place, a: &Place, b: &Place) -> bool {
    let end = |place: &Place| u64::from(place.position) + u64::from(place.len);
    let is_near = u64::from(b.position).saturating_sub(end(a)) <= GAP_BYTES_MAX;
    a.segment == b.segment && is_near && end(b).saturating_sub(u64::from(first.position)) <= RUN_BYTES_MAX
}

/// Finds places one after the other, keeping what the next one is likely to need again.
struct Finder<'a> {
    reader: &'a Reader,
    extent: Option<Extent>,
    around: Vec<Entry>,
    around_of: SegmentNo,
}

impl<'a> Finder<'a> {
    const fn new(reader: &'a Reader) -> Self {
        Self { reader, extent: None, around: Vec::new(), around_of: SegmentNo(0) }
    }

    fn find(&mut self, channel: ChannelNo, offset: Offset) -> Result<Option<Place>, ReadError> {
        // Memory first: a segment leaves it only when the other ways lead to it.
        if let Some(place) = self.reader.index.find(channel, offset) {
            return Ok(Some(place));
        }
        let Some(segment) = self.segment(channel, offset)? else { return Ok(None) };
        if self.around_of != segment || !covers(&self.around, channel, offset) {
            let Reader { files, records, .. } = self.reader;
            self.around = match files.around(&**records, segment, channel, offset) {
                Err(ReadError::Journal(journal::ReadError::Gone(_))) => return Ok(None),
                around => around?,
            };
            self.around_of = segment;
        }
        let entry = places::find(&self.around, channel, offset);
        Ok(entry.map(|entry| Place { segment, position: entry.position, len: entry.len }))
    }

    fn segment(&mut self, channel: ChannelNo, offset: Offset) -> Result<Option<SegmentNo>, ReadError> {
        if !self.extent.is_some_and(|extent| extent.holds(channel, offset)) {
            self.extent = Extent::covering(&*self.reader.store, channel, offset)?;
        }
        Ok(self.extent.map(|extent| extent.segment))
    }
}

/// Whether a message would be in these sorted entries if it is in their segment.
fn covers(entries: &[Entry], channel: ChannelNo, offset: Offset) -> bool {
    let key = (channel, offset);
    entries.first().is_some_and(|first| first.key() <= key) && entries.last().is_some_and(|last| key <= last.key())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_neighbours_are_read_in_one_go() {
        let place = |segment, position, len| Place { segment: SegmentNo(segment), position, len };
        let places = [
            place(1, 4096, 100),
            place(1, 4220, 100),
            place(1, 4900, 10),
            place(2, 4096, 10),
            place(2, 4200, 1 << 20),
            place(2, 4300 + (1 << 20), 10),
        ];
        let lengths: Vec<_> = runs(&places).map(<[Place]>::len).collect();
        assert_eq!(lengths, [2, 1, 1, 1, 1]);
        assert_eq!(runs(&[]).count(), 0);
    }
}
