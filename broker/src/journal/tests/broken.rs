//! File systems that leave a step out, to show that the simulation would notice.

use crate::fs::{File, FileSystem, FolderLock};
use crate::journal::segment::segment_no;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The step that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeftOut {
    /// Files are never synced.
    Sync,
    /// Folders are never synced.
    FolderSync,
    /// The cut is made only in the books.
    Truncation,
    /// What was cut off is gone from memory, not from the medium.
    TruncationSync,
    /// What an opening keeps of the last segment is read from the page cache and left there.
    TailSync,
    /// A sync that failed is made once more, and its word is taken.
    FailureOfSync,
    /// A spare is written to before the folder has its name as a segment.
    SpareFolderSync,
}

/// A file system that leaves one step out.
pub(super) struct Broken {
    pub(super) inner: Arc<dyn FileSystem>,
    pub(super) left_out: LeftOut,
    /// The next sync of a folder is the one to leave out.
    pub(super) skip_folder: Arc<AtomicBool>,
}

impl Broken {
    pub(super) fn new(inner: Arc<dyn FileSystem>, left_out: LeftOut) -> Self {
        Self { inner, left_out, skip_folder: Arc::default() }
    }

    fn file(&self, inner: Arc<dyn File>, is_segment: bool) -> Arc<dyn File> {
        let (left_out, skip_folder) = (self.left_out, self.skip_folder.clone());
        Arc::new(BrokenFile { inner, left_out, is_segment, skip_sync: AtomicBool::new(false), skip_folder })
    }
}

fn is_segment(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).and_then(segment_no).is_some()
}

impl FileSystem for Broken {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.inner.create_dir(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.inner.list(dir)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(self.file(self.inner.create(path)?, is_segment(path)))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(self.file(self.inner.open(path)?, is_segment(path)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)?;
        if self.left_out == LeftOut::SpareFolderSync && is_segment(to) {
            self.skip_folder.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.inner.remove(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let skip = self.skip_folder.swap(false, Ordering::Relaxed) || self.left_out == LeftOut::FolderSync;
        if skip { Ok(()) } else { self.inner.sync_dir(dir) }
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.inner.free_bytes(dir)
    }

    fn lock(&self, dir: &Path) -> io::Result<Box<dyn FolderLock>> {
        self.inner.lock(dir)
    }
}

struct BrokenFile {
    inner: Arc<dyn File>,
    left_out: LeftOut,
    is_segment: bool,
    skip_sync: AtomicBool,
    skip_folder: Arc<AtomicBool>,
}

impl BrokenFile {
    fn sync(&self, sync: impl Fn() -> io::Result<()>) -> io::Result<()> {
        match self.left_out {
            LeftOut::Sync => Ok(()),
            // Segments are opened by their name only to be recovered, or to be read.
            LeftOut::TailSync if self.is_segment => Ok(()),
            LeftOut::FailureOfSync => sync().or_else(|_| sync()),
            _ if self.skip_sync.swap(false, Ordering::Relaxed) => Ok(()),
            _ => sync(),
        }
    }
}

impl File for BrokenFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_at(buffer, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.inner.write_all_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sync(|| self.inner.sync_data())
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync(|| self.inner.sync_all())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        if self.left_out == LeftOut::TruncationSync {
            self.skip_sync.store(true, Ordering::Relaxed);
            self.skip_folder.store(true, Ordering::Relaxed);
        }
        if self.left_out == LeftOut::Truncation { Ok(()) } else { self.inner.set_len(len) }
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn forget_cached(&self) -> io::Result<()> {
        if self.left_out == LeftOut::TailSync { Ok(()) } else { self.inner.forget_cached() }
    }
}
