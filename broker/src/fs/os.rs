//! The operating system's file system.

use super::{File, FileSystem, FolderLock};
use std::fs::{self, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

/// Name of the file whose lock stands for the folder's.
const LOCK_FILE: &str = "LOCK";
/// Files hold what agents said to each other: the owner's alone.
const FILE_MODE: u32 = 0o600;
const DIR_MODE: u32 = 0o700;

/// The file system of the machine. Unix only: positional I/O and folder syncs are POSIX calls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OsFileSystem;

impl FileSystem for OsFileSystem {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        if dir.as_os_str().is_empty() || dir.is_dir() {
            return Ok(());
        }
        let parent = dir.parent().unwrap_or(Path::new("/"));
        self.create_dir(parent)?;
        match fs::DirBuilder::new().mode(DIR_MODE).create(dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => self.sync_dir(parent),
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir)? {
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).mode(FILE_MODE);
        Ok(Arc::new(OsFile(options.open(path)?)))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(OsFile(OpenOptions::new().read(true).write(true).open(path)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        fs::File::open(dir)?.sync_all()
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        let told = rustix::fs::statvfs(dir)?;
        Ok(told.f_bavail.saturating_mul(told.f_frsize))
    }

    fn lock(&self, dir: &Path) -> io::Result<Box<dyn FolderLock>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(FILE_MODE);
        let file = options.open(dir.join(LOCK_FILE))?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(OsLock { _file: file })),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// The kernel gives the lock back when the file is closed, also if the process is killed.
struct OsLock {
    _file: fs::File,
}

impl FolderLock for OsLock {}

struct OsFile(fs::File);

impl File for OsFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.0.sync_all()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    #[cfg(target_os = "linux")]
    fn forget_cached(&self) -> io::Result<()> {
        Ok(rustix::fs::fadvise(&self.0, 0, None, rustix::fs::Advice::DontNeed)?)
    }

    #[cfg(not(target_os = "linux"))]
    fn forget_cached(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_file_gives_back_what_was_written_at_a_position() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let file = OsFileSystem.create(&path).unwrap();
        file.write_all_at(b"behind", 5).unwrap();
        file.write_all_at(b"first", 0).unwrap();
        file.sync_all().unwrap();
        file.forget_cached().unwrap();
        let mut read = [0; 11];
        OsFileSystem.open(&path).unwrap().read_exact_at(&mut read, 0).unwrap();
        assert_eq!(&read, b"firstbehind");
        assert_eq!(file.len().unwrap(), 11);
        assert_eq!(file.read_exact_at(&mut read, 1).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_folder_is_held_by_one_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let held = OsFileSystem.lock(dir.path()).unwrap();
        assert_eq!(OsFileSystem.lock(dir.path()).err().unwrap().kind(), io::ErrorKind::WouldBlock);
        drop(held);
        assert!(OsFileSystem.lock(dir.path()).is_ok());
    }

    #[test]
    fn missing_folders_are_made_down_to_the_last() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b/c");
        OsFileSystem.create_dir(&deep).unwrap();
        OsFileSystem.create_dir(&deep).unwrap();
        drop(OsFileSystem.create(&deep.join("f")).unwrap());
        assert_eq!(OsFileSystem.list(&deep).unwrap(), ["f"]);
    }
}
