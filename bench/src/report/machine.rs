//! What the figures depend on: the machine and its disk.

use crate::spread::Spread;
use crate::stopwatch::Stopwatch;
use anyhow::Context as _;
use serde::Serialize;
use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::thread;

/// Syncs that are timed.
const SYNCS: usize = 300;
/// Written before each.
const BLOCK: usize = 4096;
/// Blocks of the file that is written over; all of them are there before the clock starts.
const BLOCKS: usize = 256;

/// The machine and the disk the folder is on.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    /// Cores this process may use; client and server share them.
    pub(crate) cores: usize,
    /// Version of the kernel.
    pub(crate) kernel: String,
    /// Milliseconds that writing 4 KiB over synced blocks and syncing them takes: median, 1st and 99th percentile.
    pub(crate) sync_ms: Spread,
}

impl Machine {
    /// Looks, and times the disk of `folder`.
    ///
    /// # Errors
    /// Of the file system.
    pub(crate) fn look(folder: &Path) -> anyhow::Result<Self> {
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_else(|_| "unknown".to_owned());
        Ok(Self {
            cores: thread::available_parallelism().map_or(1, std::num::NonZero::get),
            kernel: kernel.trim().to_owned(),
            sync_ms: sync_ms(folder).with_context(|| format!("timing the disk of {}", folder.display()))?,
        })
    }
}

fn sync_ms(folder: &Path) -> anyhow::Result<Spread> {
    let mut file = tempfile::tempfile_in(folder)?;
    let block = [7; BLOCK];
    for _ in 0..BLOCKS {
        file.write_all(&block)?;
    }
    file.sync_all()?;
    let mut times = Vec::with_capacity(SYNCS);
    for turn in 0..SYNCS {
        file.seek(SeekFrom::Start((turn % BLOCKS * BLOCK) as u64))?;
        let clock = Stopwatch::start();
        file.write_all(&block)?;
        file.sync_data()?;
        times.push(clock.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let at = |hundredths| crate::spread::percentile(&times, hundredths);
    Ok(Spread { median: at(50), min: at(1), max: at(99) })
}
