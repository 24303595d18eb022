//! What outlives a broker: its disk, its state, and time.

use crate::broker::{Broker, OpenError};
use crate::clock::ManualClock;
use crate::fs::FileSystem;
use crate::fs::sim::SimDisk;
use crate::model::UnixMillis;
use crate::state::{AppliedRow, Batch, Family, MemoryDisk, MemoryStore, Row, Scan, Store, StoreError};
use bytes::Bytes;
use std::path::Path;
use std::sync::Arc;

const FOLDER: &str = "/data";
/// Bytes of journal between two checkpoints: small, so that a story has several.
const CHECKPOINT_BYTES: u64 = 6 * 1024;

const TAIL_BYTES: usize = 64 * 1024 * 1024;
/// Calls to the disk between the two halves of a checkpoint that is broken by hand.
const APART_CALLS: u32 = 10;

/// A machine that brokers run on, one after the other.
pub(super) struct Machine {
    pub(super) disk: SimDisk,
    pub(super) clock: ManualClock,
    state: MemoryDisk,
    /// Bytes of messages that a broker keeps in memory.
    pub(super) tail_bytes: usize,
    /// Segments that a broker keeps ready.
    pub(super) spares: usize,
    /// Whether checkpoints write the applied LSN first and the rows later: a way to break them by hand.
    pub(super) applied_apart: bool,
}

impl Machine {
    pub(super) fn new(seed: u64) -> Self {
        let clock = ManualClock::at(UnixMillis(1_000_000));
        Self {
            disk: SimDisk::new(seed),
            clock,
            state: MemoryDisk::default(),
            tail_bytes: TAIL_BYTES,
            spares: 0,
            applied_apart: false,
        }
    }

    /// Opens a broker, as a new process.
    pub(super) fn open(&self) -> Result<Broker, OpenError> {
        let fs = self.disk.process();
        let inner = MemoryStore::open(&self.state);
        let store = SimStore { inner, fs: Arc::clone(&fs), applied_apart: self.applied_apart };
        let mut builder = Broker::builder(FOLDER);
        builder.tail_bytes = self.tail_bytes;
        builder
            .storage(fs, Arc::new(store))
            .clock(Arc::new(self.clock.clone()))
            .segment_bytes(1024 * 1024)
            .spares(self.spares)
            .session_timeout_ms(10_000)
            .checkpoint_every(CHECKPOINT_BYTES, 3_600_000)
            .open()
    }
}

/// A store that lives and dies with the process, and fails with its disk.
struct SimStore {
    inner: MemoryStore,
    fs: Arc<dyn FileSystem>,
    applied_apart: bool,
}

impl SimStore {
    /// A call that fails if the process is dead or the disk is to fail just now.
    fn reach_disk(&self) -> Result<(), StoreError> {
        let reached = self.fs.list(Path::new(FOLDER));
        reached.map(drop).map_err(|error| StoreError::Failed { reason: error.to_string() })
    }
}

impl Store for SimStore {
    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.inner.get(family, key)
    }

    fn get_many(&self, keys: &[(Family, Vec<u8>)]) -> Result<Vec<Option<Bytes>>, StoreError> {
        self.inner.get_many(keys)
    }

    fn scan(&self, family: Family, scan: Scan<'_>) -> Result<Vec<Row>, StoreError> {
        self.inner.scan(family, scan)
    }

    fn last_at_or_before(&self, family: Family, key: &[u8], prefix: &[u8]) -> Result<Option<Row>, StoreError> {
        self.inner.last_at_or_before(family, key, prefix)
    }

    fn checkpoint(&self, batch: Batch) -> Result<(), StoreError> {
        self.reach_disk()?;
        if self.applied_apart {
            self.inner.checkpoint(Batch::new(batch.applied))?;
            // Long enough that a crash in between is no rare luck.
            for _ in 0..APART_CALLS {
                self.reach_disk()?;
            }
        }
        self.inner.checkpoint(batch)
    }

    fn applied(&self) -> Result<Option<AppliedRow>, StoreError> {
        self.inner.applied()
    }

    fn close(&self) {
        self.inner.close();
    }
}
