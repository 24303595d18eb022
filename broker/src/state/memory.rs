//! State in memory: the twin of the store on disk, for simulations and tests.
//!
//! A [`MemoryDisk`] holds what is durable and outlives the [`MemoryStore`] that is opened on it, as a folder outlives a
//! process. A crash is to drop the store and to open another: that one finds the last finished checkpoint.

use super::range::{KeyRange, bare_key, whole_key};
use super::store::Row;
use super::{AppliedRow, Batch, Family, Scan, Store, StoreError};
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// Whole key to value.
type Rows = BTreeMap<Vec<u8>, Bytes>;

/// Where a planned failure meets a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckpointFault {
    /// Before anything is written.
    Write,
    /// The rows can be read and are not durable.
    Flush,
    /// The rows are durable, but the caller hears of a failure.
    Answer,
}

/// What is durable. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryDisk {
    shared: Arc<Mutex<Durable>>,
}

#[derive(Debug, Default)]
struct Durable {
    rows: Rows,
    next_fault: Option<CheckpointFault>,
}

impl MemoryDisk {
    /// Lets the next checkpoint fail there.
    pub(crate) fn fail_next_checkpoint(&self, fault: CheckpointFault) {
        self.shared.lock().next_fault = Some(fault);
    }
}

/// A store in memory.
#[derive(Debug)]
pub(crate) struct MemoryStore {
    disk: MemoryDisk,
    /// What reads see. Taken before the disk's lock where both are held.
    live: RwLock<Rows>,
    failed: Mutex<Option<StoreError>>,
}

impl MemoryStore {
    /// A store with what is durable on `disk`.
    pub(crate) fn open(disk: &MemoryDisk) -> Self {
        let rows = disk.shared.lock().rows.clone();
        Self { disk: disk.clone(), live: RwLock::new(rows), failed: Mutex::new(None) }
    }

    fn fail(&self, at: CheckpointFault) -> StoreError {
        let error = StoreError::Failed { reason: format!("planned failure at {at:?}") };
        self.failed.lock().get_or_insert_with(|| error.clone());
        error
    }
}

impl Store for MemoryStore {
    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        Ok(self.live.read().get(&whole_key(family, key)).cloned())
    }

    fn get_many(&self, keys: &[(Family, Vec<u8>)]) -> Result<Vec<Option<Bytes>>, StoreError> {
        let live = self.live.read();
        Ok(keys.iter().map(|(family, key)| live.get(&whole_key(*family, key)).cloned()).collect())
    }

    fn scan(&self, family: Family, scan: Scan<'_>) -> Result<Vec<Row>, StoreError> {
        let Some(range) = KeyRange::of_scan(family, &scan)? else { return Ok(Vec::new()) };
        let live = self.live.read();
        let rows = live.range(range.from..range.below).take(scan.limit);
        Ok(rows.map(|(key, value)| (bare_key(key), value.clone())).collect())
    }

    fn last_at_or_before(&self, family: Family, key: &[u8], prefix: &[u8]) -> Result<Option<Row>, StoreError> {
        let range = KeyRange::of_prefix(family, prefix);
        let key = whole_key(family, key);
        if key < range.from {
            return Ok(None);
        }
        let end = if key < range.below { Bound::Included(key) } else { Bound::Excluded(range.below) };
        let live = self.live.read();
        let row = live.range((Bound::Included(range.from), end)).next_back();
        Ok(row.map(|(key, value)| (bare_key(key), value.clone())))
    }

    /// Nothing to let go of: what it holds goes with it.
    fn close(&self) {}

    fn checkpoint(&self, batch: Batch) -> Result<(), StoreError> {
        if let Some(failed) = self.failed.lock().clone() {
            return Err(failed);
        }
        let fault = self.disk.shared.lock().next_fault.take();
        if fault == Some(CheckpointFault::Write) {
            return Err(self.fail(CheckpointFault::Write));
        }
        write(&mut self.live.write(), &batch);
        if fault == Some(CheckpointFault::Flush) {
            return Err(self.fail(CheckpointFault::Flush));
        }
        write(&mut self.disk.shared.lock().rows, &batch);
        match fault {
            Some(fault) => Err(self.fail(fault)),
            None => Ok(()),
        }
    }

    fn applied(&self) -> Result<Option<AppliedRow>, StoreError> {
        let Some(bytes) = self.get(Family::Applied, &[])? else { return Ok(None) };
        let damaged = |reason| StoreError::Damaged { folder: "memory".to_owned(), reason };
        AppliedRow::decode(&bytes).map(Some).map_err(damaged)
    }
}

fn write(rows: &mut Rows, batch: &Batch) {
    for (family, key) in &batch.deletes {
        rows.remove(&whole_key(*family, key));
    }
    for (family, key, value) in &batch.puts {
        rows.insert(whole_key(*family, key), Bytes::copy_from_slice(value));
    }
    rows.insert(whole_key(Family::Applied, &[]), Bytes::from(batch.applied.encode()));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::contract::{Home, applied_at, puts, upholds_the_contract};
    use super::*;

    impl Home for MemoryDisk {
        type Store = MemoryStore;

        fn open(&self) -> MemoryStore {
            MemoryStore::open(self)
        }

        fn crash_in_checkpoint(&self, store: MemoryStore, unfinished: Batch) -> MemoryStore {
            self.fail_next_checkpoint(CheckpointFault::Flush);
            store.checkpoint(unfinished).unwrap_err();
            drop(store);
            MemoryStore::open(self)
        }
    }

    #[test]
    fn it_upholds_the_contract() {
        upholds_the_contract(MemoryDisk::default);
    }

    #[test]
    fn a_failure_is_final_until_the_store_is_opened_anew() {
        for (fault, kept) in [(CheckpointFault::Write, 1), (CheckpointFault::Flush, 1), (CheckpointFault::Answer, 2)] {
            let disk = MemoryDisk::default();
            let store = MemoryStore::open(&disk);
            store.checkpoint(puts(1, &[])).unwrap();
            disk.fail_next_checkpoint(fault);
            let first = store.checkpoint(puts(2, &[])).unwrap_err();
            assert_eq!(store.checkpoint(puts(3, &[])), Err(first));
            let store = MemoryStore::open(&disk);
            assert_eq!(store.applied().unwrap(), Some(applied_at(kept)), "{fault:?}");
            store.checkpoint(puts(3, &[])).unwrap();
        }
    }
}
