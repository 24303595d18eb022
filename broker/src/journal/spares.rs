//! Files of full size, written and synced before they are needed: on fresh blocks a sync costs twice as much, and a full
//! disk is found out here, while there is still room to finish what has begun.
//!
//! That room is the reserve: bytes of the file system that no spare is made of. Below it the storage counts as full, from
//! which follows that new work is refused, while results, settlements and the state's own files go on. It is free space
//! and not a file, so nothing has to be given back in a hurry, and whatever else fills the disk is seen too.

use super::segment::{Link, SegmentHeader, segment_path};
use crate::fs::{File, FileSystem};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use tracing::warn;

const PREFIX: &str = "spare-";
const FILLING: &str = ".filling";
/// Zeros written at once.
const CHUNK: usize = 1024 * 1024;
/// Bytes after which the filling waits for the disk, so that it never stands long in the way of a group's sync.
const SYNC_EVERY: u64 = 4 * 1024 * 1024;
/// Pause after a failed attempt, or while the storage is full.
const RETRY: Duration = Duration::from_secs(1);
/// How often the file system is looked at while all is well.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// The reserve, in segments.
const RESERVE_SEGMENTS: u64 = 2;

/// The spare segments of a folder.
pub(super) struct Spares {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    segment_bytes: u32,
    wanted: usize,
    next_no: AtomicU64,
    full: AtomicBool,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    ready: VecDeque<PathBuf>,
    trouble: Option<io::ErrorKind>,
    stopping: bool,
}

impl Spares {
    /// Takes stock: finds what an earlier run left, removes what it did not finish or made in another size.
    pub(super) fn open(
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        segment_bytes: u32,
        wanted: usize,
        names: &[String],
    ) -> io::Result<Self> {
        let mut ready = VecDeque::new();
        let mut last_no = 0;
        for name in names.iter().filter(|name| name.starts_with(PREFIX)) {
            let path = dir.join(name);
            let number = name.strip_prefix(PREFIX).and_then(|digits| digits.parse::<u64>().ok());
            let whole = number.is_some() && fs.open(&path)?.len()? == u64::from(segment_bytes);
            if whole {
                ready.push_back(path);
            } else {
                fs.remove(&path)?;
            }
            last_no = last_no.max(number.unwrap_or(0));
        }
        Ok(Self {
            fs,
            dir: dir.to_path_buf(),
            segment_bytes,
            wanted,
            next_no: AtomicU64::new(last_no + 1),
            full: AtomicBool::new(false),
            state: Mutex::new(State { ready, ..State::default() }),
            wake: Condvar::new(),
        })
    }

    /// Starts the helper that keeps the wanted number ready; none if none is wanted.
    pub(super) fn start(self: &Arc<Self>) -> io::Result<Option<thread::JoinHandle<()>>> {
        if self.wanted == 0 {
            return Ok(None);
        }
        let spares = self.clone();
        thread::Builder::new().name("weir-spares".into()).spawn(move || spares.keep_ready()).map(Some)
    }

    /// Tells the helper to end.
    pub(super) fn stop(&self) {
        self.state.lock().stopping = true;
        self.wake.notify_all();
    }

    /// How many are ready.
    #[cfg(test)]
    pub(super) fn ready(&self) -> usize {
        self.state.lock().ready.len()
    }

    /// Whether the reserve is all that is left. Never while no spares are wanted: nobody looks then.
    pub(super) fn storage_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// Makes the segment of `header` out of a spare, or of a new file if none is ready: the header is synced before the
    /// file has its name, and the name when this returns.
    pub(super) fn make_segment(&self, header: &SegmentHeader) -> io::Result<(Arc<dyn File>, Link)> {
        let ready = self.state.lock().ready.pop_front();
        self.wake.notify_all();
        let path = match ready {
            Some(path) => path,
            None => self.fill(&|| false)?.ok_or(io::ErrorKind::Interrupted)?,
        };
        let (block, link) = header.encode();
        let file = self.fs.open(&path)?;
        file.write_all_at(&block, 0)?;
        file.sync_data()?;
        self.fs.rename(&path, &segment_path(&self.dir, header.segment))?;
        self.fs.sync_dir(&self.dir)?;
        Ok((file, link))
    }

    fn keep_ready(&self) {
        loop {
            let missing = {
                let state = self.state.lock();
                if state.stopping {
                    return;
                }
                state.ready.len() < self.wanted
            };
            if !self.has_room(missing) {
                self.pause(&io::Error::new(io::ErrorKind::StorageFull, "the disk has no more left than the reserve"));
            } else if !missing {
                self.all_is_well();
            } else {
                match self.fill(&|| self.state.lock().stopping) {
                    Ok(Some(path)) => self.state.lock().ready.push_back(path),
                    Ok(None) => return,
                    Err(error) => self.pause(&error),
                }
            }
        }
    }

    /// Whether the reserve would be left, after another spare if one is missing. Where the system does not tell, the
    /// attempt will.
    fn has_room(&self, missing: bool) -> bool {
        let segment = u64::from(self.segment_bytes);
        let needed = segment.saturating_mul(RESERVE_SEGMENTS + u64::from(missing));
        self.fs.free_bytes(&self.dir).map_or(true, |free| free >= needed)
    }

    /// Waits until a spare is taken, or it is time to look again.
    fn all_is_well(&self) {
        let mut state = self.state.lock();
        state.trouble = None;
        if self.full.swap(false, Ordering::Relaxed) {
            tracing::info!("there is room on the disk again");
        }
        if !state.stopping && state.ready.len() >= self.wanted {
            self.wake.wait_for(&mut state, LOOK_EVERY);
        }
    }

    /// Waits a while after a failure; the first of a row is worth a line in the log.
    fn pause(&self, error: &io::Error) {
        let mut state = self.state.lock();
        if state.trouble.replace(error.kind()).is_none() {
            warn!(%error, ready = state.ready.len(), "no spare journal segment can be made");
        }
        if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            self.full.store(true, Ordering::Relaxed);
        }
        if !state.stopping {
            self.wake.wait_for(&mut state, RETRY);
        }
    }

    /// Makes one spare, synced with its name; `None` if `stop` said so in between.
    fn fill(&self, stop: &dyn Fn() -> bool) -> io::Result<Option<PathBuf>> {
        let number = self.next_no.fetch_add(1, Ordering::Relaxed);
        let path = self.dir.join(format!("{PREFIX}{number:06}"));
        let filling = self.dir.join(format!("{PREFIX}{number:06}{FILLING}"));
        match self.write_zeros(&filling, stop) {
            Ok(true) => {}
            Ok(false) => {
                self.fs.remove(&filling)?;
                return Ok(None);
            }
            Err(error) => {
                // Half a spare only takes space; if it cannot go now, the next start removes it.
                if let Err(error) = self.fs.remove(&filling) {
                    warn!(%error, path = %filling.display(), "an unfinished spare stays until the next start");
                }
                return Err(error);
            }
        }
        self.fs.rename(&filling, &path)?;
        self.fs.sync_dir(&self.dir)?;
        Ok(Some(path))
    }

    /// Whether the file was filled to the end.
    fn write_zeros(&self, path: &Path, stop: &dyn Fn() -> bool) -> io::Result<bool> {
        let file = self.fs.create(path)?;
        let total = u64::from(self.segment_bytes);
        let zeros = vec![0; CHUNK.min(self.segment_bytes as usize)];
        let (mut at, mut synced) = (0, 0);
        while at < total {
            if stop() {
                return Ok(false);
            }
            let len = (total - at).min(zeros.len() as u64);
            file.write_all_at(zeros.get(..usize::try_from(len).unwrap_or(0)).unwrap_or_default(), at)?;
            at += len;
            if at - synced >= SYNC_EVERY {
                file.sync_data()?;
                synced = at;
            }
        }
        file.sync_all()?;
        Ok(true)
    }
}
