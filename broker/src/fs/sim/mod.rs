//! A disk in memory that loses, under a seed, whatever a real one may lose.
//!
//! - A *power cut* leaves each unsynced 512-byte sector old or in any version since the last sync, in any order; names,
//!   lengths and removals need a sync of their folder (a length a sync of its file before).
//! - A sync that fails drops what it should have written, while reads go on showing it until the cache is forgotten, which
//!   a disk may be told never to do.
//! - *Death* of the process keeps the cache. Handles of an earlier life fail.
//! - Any call can be made to fail, or to be the process's last.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::cast_possible_truncation)]

mod content;
mod names;
#[cfg(test)]
mod tests;

use super::{File, FileSystem, FolderLock};
use content::Content;
use names::{FileNo, Names};
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The disk. Clones are the same disk.
#[derive(Clone)]
pub(crate) struct SimDisk(Arc<Mutex<World>>);

struct World {
    rng: StdRng,
    names: Names,
    files: Vec<Content>,
    locks: BTreeSet<PathBuf>,
    /// Counts deaths: handles know in which life they were made.
    life: u64,
    calls: u64,
    fail_at: Option<(u64, ErrorKind)>,
    die_at: Option<u64>,
    capacity: Option<usize>,
    /// Whether [`File::forget_cached`] does anything: the call is advice, which a system may pass over.
    forgets: bool,
}

impl SimDisk {
    /// An empty disk; the seed decides all that is left to chance.
    pub(crate) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(World {
            rng: StdRng::seed_from_u64(seed),
            names: Names::default(),
            files: Vec::new(),
            locks: BTreeSet::new(),
            life: 0,
            calls: 0,
            fail_at: None,
            die_at: None,
            capacity: None,
            forgets: true,
        })))
    }

    /// The file system as the process sees it, until it dies.
    pub(crate) fn process(&self) -> Arc<dyn FileSystem> {
        let life = self.0.lock().life;
        Arc::new(SimFileSystem { disk: self.clone(), life })
    }

    /// The process dies, the machine goes on.
    pub(crate) fn kill(&self) {
        self.0.lock().die();
    }

    /// The process dies with the machine.
    pub(crate) fn power_cut(&self) {
        let mut guard = self.0.lock();
        let world = &mut *guard;
        world.die();
        let survives = match world.rng.random_range(0..4) {
            0 => 0.0,
            1 => 1.0,
            _ => world.rng.random_range(0.0..1.0),
        };
        for file in &mut world.files {
            file.power_cut(&mut world.rng, survives);
        }
        world.names.power_cut(&mut world.rng);
    }

    /// Calls made so far, failed ones included.
    pub(crate) fn calls(&self) -> u64 {
        self.0.lock().calls
    }

    /// The `nth` call from now (0 is the next) fails.
    pub(crate) fn fail_call(&self, nth: u64, kind: ErrorKind) {
        let mut world = self.0.lock();
        world.fail_at = Some((world.calls + nth, kind));
    }

    /// The process dies in the `nth` call from now (0 is the next), which has no effect.
    pub(crate) fn die_at_call(&self, nth: u64) {
        let mut world = self.0.lock();
        world.die_at = Some(world.calls + nth);
    }

    /// From now on all files together hold at most `bytes`.
    pub(crate) fn set_capacity(&self, bytes: Option<usize>) {
        self.0.lock().capacity = bytes;
    }

    /// Whether asking to forget what is cached does anything.
    pub(crate) fn set_forgets(&self, forgets: bool) {
        self.0.lock().forgets = forgets;
    }

    /// Names of the files and folders in a folder, as a process would see them.
    pub(crate) fn list(&self, dir: &Path) -> Vec<String> {
        self.0.lock().names.list(dir)
    }

    /// Bytes of a file, as a process would see them.
    pub(crate) fn contents(&self, path: &Path) -> Vec<u8> {
        let world = self.0.lock();
        let file = world.names.find(path).expect("a file of this name");
        world.files[file].cache().to_vec()
    }

    /// Flips the bits of `mask` in a byte, on the medium and in memory.
    pub(crate) fn decay(&self, path: &Path, at: usize, mask: u8) {
        let mut world = self.0.lock();
        let file = world.names.find(path).expect("a file of this name");
        world.files[file].decay(at, mask);
    }
}

impl World {
    fn die(&mut self) {
        self.life += 1;
        self.locks.clear();
        (self.fail_at, self.die_at) = (None, None);
    }

    /// Counts a call; an error if the process is dead or dies in it, else the fault the call is to have.
    fn enter(&mut self, life: u64) -> io::Result<Option<ErrorKind>> {
        let call = self.calls;
        self.calls += 1;
        if self.life == life && self.die_at == Some(call) {
            self.die();
        }
        if self.life != life {
            return Err(io::Error::new(ErrorKind::BrokenPipe, "the process is dead"));
        }
        Ok(self.fail_at.take_if(|(at, _)| *at == call).map(|(_, kind)| kind))
    }

    /// Bytes that still fit; `None` is no limit.
    fn room(&self) -> Option<usize> {
        let used: usize = self.names.files().map(|file| self.files[file].len()).sum();
        self.capacity.map(|capacity| capacity.saturating_sub(used))
    }

    fn room_for(&self, more: usize) -> io::Result<()> {
        match self.room() {
            Some(room) if more > room => Err(ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }
}

struct SimFileSystem {
    disk: SimDisk,
    life: u64,
}

impl SimFileSystem {
    /// The world, for a call that either fails or happens.
    fn call(&self) -> io::Result<MutexGuard<'_, World>> {
        let mut world = self.disk.0.lock();
        match world.enter(self.life)? {
            Some(kind) => Err(kind.into()),
            None => Ok(world),
        }
    }

    fn handle(&self, file: FileNo) -> Arc<dyn File> {
        Arc::new(SimFile { disk: self.disk.clone(), life: self.life, file })
    }
}

impl FileSystem for SimFileSystem {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.call()?.names.make_dir(dir);
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let world = self.call()?;
        if world.names.has_dir(dir) { Ok(world.names.list(dir)) } else { Err(ErrorKind::NotFound.into()) }
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let mut world = self.call()?;
        if !path.parent().is_some_and(|dir| world.names.has_dir(dir)) {
            return Err(ErrorKind::NotFound.into());
        }
        let file = world.names.find(path).unwrap_or_else(|| {
            world.files.push(Content::default());
            let file = world.files.len() - 1;
            world.names.make(path, file);
            file
        });
        world.files[file].set_len(0);
        Ok(self.handle(file))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let file = self.call()?.names.find(path).ok_or(ErrorKind::NotFound)?;
        Ok(self.handle(file))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut world = self.call()?;
        let file = world.names.find(from).ok_or(ErrorKind::NotFound)?;
        assert_eq!(from.parent(), to.parent(), "only within a folder");
        world.names.rename(from, to, file);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut world = self.call()?;
        world.names.find(path).ok_or(ErrorKind::NotFound)?;
        world.names.remove(path);
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut guard = self.call()?;
        let World { names, files, .. } = &mut *guard;
        names.sync(dir);
        names.files_in(dir).for_each(|file| files[file].sync_len());
        Ok(())
    }

    fn free_bytes(&self, _: &Path) -> io::Result<u64> {
        Ok(self.call()?.room().map_or(u64::MAX, |room| room as u64))
    }

    fn lock(&self, dir: &Path) -> io::Result<Box<dyn FolderLock>> {
        let mut world = self.call()?;
        if !world.locks.insert(dir.to_path_buf()) {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(SimLock { disk: self.disk.clone(), life: self.life, dir: dir.to_path_buf() }))
    }
}

struct SimLock {
    disk: SimDisk,
    life: u64,
    dir: PathBuf,
}

impl FolderLock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut world = self.disk.0.lock();
        if world.life == self.life {
            world.locks.remove(&self.dir);
        }
    }
}

struct SimFile {
    disk: SimDisk,
    life: u64,
    file: FileNo,
}

impl SimFile {
    fn content(&self) -> io::Result<MappedMutexGuard<'_, Content>> {
        let mut world = self.disk.0.lock();
        match world.enter(self.life)? {
            Some(kind) => Err(kind.into()),
            None => Ok(MutexGuard::map(world, |world| &mut world.files[self.file])),
        }
    }

    fn sync(&self) -> io::Result<()> {
        let mut guard = self.disk.0.lock();
        let fault = guard.enter(self.life)?;
        let World { files, rng, .. } = &mut *guard;
        match fault {
            None => files[self.file].sync(),
            Some(_) => files[self.file].fail_sync(rng),
        }
        fault.map_or(Ok(()), |kind| Err(kind.into()))
    }
}

impl File for SimFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(self.content()?.read(buffer, offset as usize))
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut guard = self.disk.0.lock();
        let fault = guard.enter(self.life)?;
        let world = &mut *guard;
        let more = (offset as usize + bytes.len()).saturating_sub(world.files[self.file].len());
        world.room_for(more)?;
        let count = if fault.is_some() { world.rng.random_range(0..=bytes.len()) } else { bytes.len() };
        world.files[self.file].write(&bytes[..count], offset as usize);
        fault.map_or(Ok(()), |kind| Err(kind.into()))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sync()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.content()?.set_len(len as usize);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.content()?.len() as u64)
    }

    fn forget_cached(&self) -> io::Result<()> {
        let mut guard = self.disk.0.lock();
        if let Some(kind) = guard.enter(self.life)? {
            return Err(kind.into());
        }
        if guard.forgets {
            guard.files[self.file].forget_cached();
        }
        Ok(())
    }
}
