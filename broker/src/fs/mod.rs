//! What the broker's own files ask of an operating system, as a trait, so that a test can pull the plug.
//!
//! [`OsFileSystem`] is the real one. The simulated one (`sim`, built for tests) keeps files in memory and loses, on a
//! power cut, all that POSIX allows to be lost.
//!
//! What callers may rely on, and nothing more:
//! - bytes written are on the medium once [`File::sync_data`] or [`File::sync_all`] has returned `Ok`; until then each
//!   512-byte sector may hold its old or any newer content after a power cut;
//! - names (made, renamed, removed) and lengths are there once [`FileSystem::sync_dir`] of their folder has returned,
//!   lengths only if the file was synced before;
//! - after a sync that failed, nothing written since the last good one is known, and a second sync does not mend it.

mod os;
#[cfg(test)]
pub(crate) mod sim;

pub(crate) use os::OsFileSystem;

use std::io;
use std::path::Path;
use std::sync::Arc;

/// A file system, as far as the broker needs one.
pub(crate) trait FileSystem: Send + Sync + 'static {
    /// Makes a folder and all that is missing above it, each entry synced; one that exists is no error.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;

    /// Names of the files and folders in `dir`, in no order. Names that are not UTF-8 are none of ours and left out.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// Makes an empty file for reading and writing; what stood there is emptied.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>>;

    /// Opens a file for reading and writing.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>>;

    /// Gives a file another name in the same folder, at once or not at all.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Takes a file's name away. Handles that are open go on working.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names and lengths in `dir` safe.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Bytes that this process can still write into the file system that holds `dir`.
    fn free_bytes(&self, dir: &Path) -> io::Result<u64>;

    /// Takes a folder for this process alone, until the guard is dropped or the process ends.
    ///
    /// # Errors
    /// `WouldBlock` if another holds it.
    fn lock(&self, dir: &Path) -> io::Result<Box<dyn FolderLock>>;
}

/// An open file. All access is positional, so a handle can be shared.
pub(crate) trait File: Send + Sync {
    /// Reads up to `buffer.len()` bytes at `offset`; 0 at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of `bytes` at `offset`. After an error any part of it may be there.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes the bytes safe, and of the metadata what reading them needs.
    fn sync_data(&self) -> io::Result<()>;

    /// Makes the bytes and all metadata safe: for a file whose length has changed.
    fn sync_all(&self) -> io::Result<()>;

    /// Cuts the file, or lengthens it with zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// The file's length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Asks that later reads come from the medium, not from memory. Only what is synced can be forgotten, and a system
    /// that has no such call reads on from memory.
    fn forget_cached(&self) -> io::Result<()>;

    /// Fills `buffer` from `offset` on.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file ends before.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut rest = buffer;
        let mut at = offset;
        while !rest.is_empty() {
            let count = match self.read_at(rest, at) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            at = at.saturating_add(count as u64);
            rest = std::mem::take(&mut rest).get_mut(count..).unwrap_or_default();
        }
        Ok(())
    }
}

/// Holds a folder for one process; dropping it lets go.
pub(crate) trait FolderLock: Send + Sync {}
