//! The folder of index files: written once, opened as needed, made again where unfit.

use super::block::Owner;
use super::file::{IndexFile, Unfit};
use super::places::{Entry, sort};
use super::{ReadError, Records};
use crate::fs::FileSystem;
use crate::model::{ChannelNo, Lsn, Offset, SegmentNo};
use lru::LruCache;
use parking_lot::Mutex;
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

/// Index files open at a time: their share of the 256 handles that segments and their indexes have.
const OPEN_FILES_MAX: NonZeroUsize = match NonZeroUsize::new(64) {
    Some(files) => files,
    None => NonZeroUsize::MIN,
};
const SUFFIX: &str = ".idx";
/// What a file is called until it is whole.
const UNFINISHED_SUFFIX: &str = ".idx.new";

/// The index files of a journal's sealed segments.
///
/// They are not synced: all in them can be had from the segments again, a file that a power cut damaged is found by its
/// sums, and a sync of some MiB beside those of the journal would be felt by every publisher.
pub(crate) struct IndexFiles {
    fs: Arc<dyn FileSystem>,
    folder: PathBuf,
    journal_id: u128,
    /// Files in use lately. Held for looking up only, never for I/O.
    open: Mutex<LruCache<SegmentNo, Arc<IndexFile>>>,
    /// Held while a file is made, so that those who miss one do not all read its segment.
    making: Mutex<()>,
}

impl IndexFiles {
    /// Opens the folder, making it where it is missing, and takes away the files of segments that are gone and those
    /// that were never finished.
    ///
    /// # Errors
    /// Where the folder can not be made, listed, or rid of a file.
    pub(crate) fn open(
        fs: Arc<dyn FileSystem>,
        folder: impl Into<PathBuf>,
        journal_id: u128,
        exists: impl Fn(SegmentNo) -> bool,
    ) -> io::Result<Self> {
        let folder = folder.into();
        fs.create_dir(&folder)?;
        for name in fs.list(&folder)? {
            let gone = segment_of(&name).is_some_and(|segment| !exists(segment));
            if gone || name.ends_with(UNFINISHED_SUFFIX) {
                fs.remove(&folder.join(name))?;
            }
        }
        let open = Mutex::new(LruCache::new(OPEN_FILES_MAX));
        Ok(Self { fs, folder, journal_id, open, making: Mutex::new(()) })
    }

    /// Writes the file of a segment from its sorted entries.
    ///
    /// # Errors
    /// What the file system said; the segment has no file then, or keeps an older one.
    pub(super) fn write(&self, segment: SegmentNo, entries: &[Entry]) -> io::Result<()> {
        let _making = self.making.lock();
        self.write_alone(segment, entries)
    }

    /// Sorted entries of a segment that hold the message's, if the segment does: a block of its file, or all of them
    /// where the file had to be made again.
    ///
    /// # Errors
    /// Where the file is of no use and the segment cannot be read either.
    pub(super) fn around(
        &self,
        records: &dyn Records,
        segment: SegmentNo,
        channel: ChannelNo,
        offset: Offset,
    ) -> Result<Vec<Entry>, ReadError> {
        self.read_or_make(records, segment, |file| match file.block_of(channel, offset) {
            Some(number) => file.block(number),
            None => Ok(Vec::new()),
        })
    }

    /// All entries of a segment, sorted.
    ///
    /// # Errors
    /// As [`IndexFiles::around`].
    pub(super) fn all(&self, records: &dyn Records, segment: SegmentNo) -> Result<Vec<Entry>, ReadError> {
        self.read_or_make(records, segment, IndexFile::all)
    }

    fn read_or_make(
        &self,
        records: &dyn Records,
        segment: SegmentNo,
        read: impl Fn(&IndexFile) -> Result<Vec<Entry>, Unfit>,
    ) -> Result<Vec<Entry>, ReadError> {
        if let Ok(entries) = self.file(segment).and_then(|file| read(&file)) {
            return Ok(entries);
        }
        let _making = self.making.lock();
        // Somebody may have made it meanwhile.
        let unfit = match self.file(segment).and_then(|file| read(&file)) {
            Ok(entries) => return Ok(entries),
            Err(unfit) => unfit,
        };
        let (entries, _) = scan(records, segment)?;
        tracing::warn!(%segment, reason = %unfit, "the index file of a segment is made again");
        if let Err(error) = self.write_alone(segment, &entries) {
            // What was read from the segment serves this time; the next look-up tries again.
            tracing::warn!(%segment, %error, "the index file of a segment cannot be written");
        }
        Ok(entries)
    }

    /// Takes away the file of a segment that is given back.
    ///
    /// # Errors
    /// What the file system said; the file goes when the folder is opened the next time.
    pub(super) fn remove(&self, segment: SegmentNo) -> io::Result<()> {
        let _making = self.making.lock();
        self.open.lock().pop(&segment);
        match self.fs.remove(&self.path(segment, SUFFIX)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn file(&self, segment: SegmentNo) -> Result<Arc<IndexFile>, Unfit> {
        if let Some(file) = self.open.lock().get(&segment) {
            return Ok(Arc::clone(file));
        }
        let file = self.fs.open(&self.path(segment, SUFFIX))?;
        let file = Arc::new(IndexFile::open(file, self.owner(segment))?);
        self.open.lock().put(segment, Arc::clone(&file));
        Ok(file)
    }

    fn write_alone(&self, segment: SegmentNo, entries: &[Entry]) -> io::Result<()> {
        let unfinished = self.path(segment, UNFINISHED_SUFFIX);
        let bytes = IndexFile::encode(self.owner(segment), entries);
        self.open.lock().pop(&segment);
        self.fs.create(&unfinished)?.write_all_at(&bytes, 0)?;
        self.fs.rename(&unfinished, &self.path(segment, SUFFIX))
    }

    const fn owner(&self, segment: SegmentNo) -> Owner {
        Owner { journal_id: self.journal_id, segment }
    }

    fn path(&self, segment: SegmentNo, suffix: &str) -> PathBuf {
        self.folder.join(format!("{:012}{suffix}", segment.get()))
    }
}

/// The sorted entries of a sealed segment, and its last LSN, from the segment itself.
pub(super) fn scan(records: &dyn Records, segment: SegmentNo) -> Result<(Vec<Entry>, Lsn), ReadError> {
    let mut entries = Vec::new();
    let last_lsn = records.scan(segment, &mut |channel, offset, place| {
        entries.push(Entry { channel, offset, position: place.position, len: place.len });
    })?;
    sort(&mut entries);
    Ok((entries, last_lsn))
}

/// The segment of which a file of this name is the index.
fn segment_of(name: &str) -> Option<SegmentNo> {
    name.strip_suffix(SUFFIX)?.parse().ok().map(SegmentNo)
}
