//! State on disk: RocksDB with one column family and its own log off.
//!
//! A checkpoint is one write batch, which lies in one memtable as a whole, and the flush of that memtable into one file
//! that the manifest names in one step. So after a crash the store holds whole checkpoints only.

use super::range::{KeyRange, bare_key, whole_key};
use super::store::Row;
use super::{AppliedRow, Batch, Family, Scan, Store, StoreError, options};
use bytes::Bytes;
use parking_lot::{MappedRwLockReadGuard, Mutex, RwLock, RwLockReadGuard};
use rocksdb::{DB, ErrorKind, WriteBatch, properties};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The store of a data folder.
pub(crate) struct RocksStore {
    /// Gone once the store is closed.
    db: RwLock<Option<DB>>,
    folder: PathBuf,
    /// The first failure, kept for good. Guards nothing else and is held for no I/O.
    failed: Mutex<Option<StoreError>>,
}

impl RocksStore {
    /// Opens the store in `folder`, making the folder where it is missing.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] where what is there does not verify, [`StoreError::InUse`] where somebody has it open,
    /// [`StoreError::NotOpened`] where something else stands in the way.
    pub(crate) fn open(folder: &Path) -> Result<Self, StoreError> {
        let not_opened = |error: io::Error| StoreError::NotOpened { folder: shown(folder), reason: error.to_string() };
        make_folder(folder).map_err(not_opened)?;
        let mut options = options::database();
        match contents(folder).map_err(not_opened)? {
            Contents::Nothing => options.create_if_missing(true),
            Contents::Store => options.create_if_missing(false),
            // Making a store here would pass for an empty one, and all that was known would be gone without a word.
            Contents::Remains(name) => {
                let reason = format!("there is {name} but no CURRENT");
                return Err(StoreError::Damaged { folder: shown(folder), reason });
            }
        }
        let db = DB::open(&options, folder).map_err(|error| opening_failed(folder, &error))?;
        let store = Self { db: RwLock::new(Some(db)), folder: folder.to_owned(), failed: Mutex::new(None) };
        // The hinge to the journal has to be readable before anything builds on it.
        store.applied()?;
        Ok(store)
    }

    fn db(&self) -> Result<MappedRwLockReadGuard<'_, DB>, StoreError> {
        RwLockReadGuard::try_map(self.db.read(), Option::as_ref).map_err(|_| StoreError::Closed)
    }

    /// Puts the batch into memory, as one.
    fn write(&self, batch: &Batch) -> Result<(), StoreError> {
        let mut writes = WriteBatch::default();
        for (family, key) in &batch.deletes {
            writes.delete(whole_key(*family, key));
        }
        for (family, key, value) in &batch.puts {
            writes.put(whole_key(*family, key), value);
        }
        writes.put(whole_key(Family::Applied, &[]), batch.applied.encode());
        self.db()?.write_opt(writes, &options::writing()).map_err(|error| self.fail(&error))
    }

    /// Makes durable what was written.
    fn flush(&self) -> Result<(), StoreError> {
        self.db()?.flush_opt(&options::flushing()).map_err(|error| self.fail(&error))
    }

    /// # Errors
    /// The first failure, or one met in the background since the store was opened. RocksDB goes on by itself after some
    /// of those; weir does not, as nobody can say what the disk kept.
    fn still_well(&self) -> Result<(), StoreError> {
        if let Some(failed) = self.failed.lock().clone() {
            return Err(failed);
        }
        let errors = self.db()?.property_int_value(properties::BACKGROUND_ERRORS).map_err(|error| self.fail(&error))?;
        match errors {
            None | Some(0) => Ok(()),
            Some(count) => Err(self.keep(StoreError::Failed { reason: format!("{count} errors in background work") })),
        }
    }

    fn fail(&self, error: &rocksdb::Error) -> StoreError {
        self.keep(match error.kind() {
            ErrorKind::Corruption => StoreError::Damaged { folder: shown(&self.folder), reason: error.to_string() },
            _ => StoreError::Failed { reason: error.to_string() },
        })
    }

    /// Keeps `error` as the reason for all refusals to come, if it is the first.
    fn keep(&self, error: StoreError) -> StoreError {
        self.failed.lock().get_or_insert_with(|| error.clone());
        error
    }
}

impl Store for RocksStore {
    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let value = self.db()?.get_opt(whole_key(family, key), &options::point_read());
        value.map(|value| value.map(Bytes::from)).map_err(|error| self.fail(&error))
    }

    fn get_many(&self, keys: &[(Family, Vec<u8>)]) -> Result<Vec<Option<Bytes>>, StoreError> {
        let whole = keys.iter().map(|(family, key)| whole_key(*family, key));
        let values = self.db()?.multi_get_opt(whole, &options::point_read());
        let values = values.into_iter().map(|value| value.map(|value| value.map(Bytes::from)));
        values.collect::<Result<_, _>>().map_err(|error| self.fail(&error))
    }

    fn scan(&self, family: Family, scan: Scan<'_>) -> Result<Vec<Row>, StoreError> {
        let Some(range) = KeyRange::of_scan(family, &scan)? else { return Ok(Vec::new()) };
        let from = range.from.clone();
        let one_prefix = fills_bloom_prefix(scan.prefix);
        let db = self.db()?;
        let mut walk = db.raw_iterator_opt(options::walk(range, one_prefix));
        let mut rows = Vec::new();
        walk.seek(&from);
        while rows.len() < scan.limit
            && let Some((key, value)) = walk.item()
        {
            rows.push((bare_key(key), Bytes::copy_from_slice(value)));
            walk.next();
        }
        walk.status().map_err(|error| self.fail(&error))?;
        Ok(rows)
    }

    fn last_at_or_before(&self, family: Family, key: &[u8], prefix: &[u8]) -> Result<Option<Row>, StoreError> {
        let range = KeyRange::of_prefix(family, prefix);
        let target = whole_key(family, key).min(range.below.clone());
        let one_prefix = fills_bloom_prefix(prefix) && key.starts_with(prefix);
        let db = self.db()?;
        let mut walk = db.raw_iterator_opt(options::walk(range, one_prefix));
        walk.seek_for_prev(&target);
        let row = walk.item().map(|(key, value)| (bare_key(key), Bytes::copy_from_slice(value)));
        walk.status().map_err(|error| self.fail(&error))?;
        Ok(row)
    }

    fn checkpoint(&self, batch: Batch) -> Result<(), StoreError> {
        self.still_well()?;
        self.write(&batch)?;
        drop(batch);
        self.flush()?;
        self.still_well()
    }

    fn applied(&self) -> Result<Option<AppliedRow>, StoreError> {
        let Some(bytes) = self.get(Family::Applied, &[])? else { return Ok(None) };
        let damaged = |reason| self.keep(StoreError::Damaged { folder: shown(&self.folder), reason });
        AppliedRow::decode(&bytes).map(Some).map_err(damaged)
    }

    fn close(&self) {
        drop(self.db.write().take());
    }
}

fn fills_bloom_prefix(prefix: &[u8]) -> bool {
    1 + prefix.len() >= options::BLOOM_PREFIX_BYTES
}

fn shown(folder: &Path) -> String {
    folder.display().to_string()
}

/// Makes `folder` and makes its name durable.
fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    match folder.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => fs::File::open(parent)?.sync_all(),
        None => fs::File::open(".")?.sync_all(),
    }
}

/// What a folder holds before it is opened.
enum Contents {
    Nothing,
    Store,
    /// Files of a store, one of them named, without the one that says which are in force.
    Remains(String),
}

fn contents(folder: &Path) -> io::Result<Contents> {
    let mut remains = None;
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name == "CURRENT" {
            return Ok(Contents::Store);
        }
        if name.ends_with(".sst") {
            remains = Some(name);
        }
    }
    Ok(remains.map_or(Contents::Nothing, Contents::Remains))
}

fn opening_failed(folder: &Path, error: &rocksdb::Error) -> StoreError {
    let (folder, reason) = (shown(folder), error.to_string());
    match error.kind() {
        ErrorKind::Corruption => StoreError::Damaged { folder, reason },
        // A file that the manifest names and that is missing or too short is damage as well.
        ErrorKind::IOError if reason.contains("No such file") => StoreError::Damaged { folder, reason },
        ErrorKind::IOError if reason.contains("lock ") || reason.contains("LOCK") => {
            StoreError::InUse { folder, reason }
        }
        _ => StoreError::NotOpened { folder, reason },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::super::contract::{Home, applied_at, puts, upholds_the_contract};
    use super::*;
    use tempfile::TempDir;

    /// A folder, and the images of it that crashes left.
    struct Folder {
        now: TempDir,
        after_crash: TempDir,
    }

    impl Folder {
        fn new() -> Self {
            Self { now: TempDir::new().unwrap(), after_crash: TempDir::new().unwrap() }
        }
    }

    impl Home for Folder {
        type Store = RocksStore;

        fn open(&self) -> RocksStore {
            RocksStore::open(self.now.path()).unwrap()
        }

        /// Closing a store in order would flush what it holds, so the crash is an image of the files in mid-checkpoint.
        fn crash_in_checkpoint(&self, store: RocksStore, unfinished: Batch) -> RocksStore {
            store.write(&unfinished).unwrap();
            for file in fs::read_dir(self.now.path()).unwrap() {
                let file = file.unwrap();
                fs::copy(file.path(), self.after_crash.path().join(file.file_name())).unwrap();
            }
            RocksStore::open(self.after_crash.path()).unwrap()
        }
    }

    /// A closed store of one file.
    fn one_file() -> (TempDir, PathBuf) {
        let folder = TempDir::new().unwrap();
        let store = RocksStore::open(folder.path()).unwrap();
        store.checkpoint(puts(1, &[(Family::Channels, b"key", &[7; 100])])).unwrap();
        drop(store);
        let file = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
        let file = file.into_iter().find(|file| file.extension().is_some_and(|end| end == "sst")).unwrap();
        (folder, file)
    }

    #[test]
    fn it_upholds_the_contract() {
        upholds_the_contract(Folder::new);
    }

    #[test]
    fn a_changed_byte_is_damage_that_names_the_way_back() {
        let (folder, file) = one_file();
        let sound = fs::read(&file).unwrap();
        let mut found = 0;
        for at in (0..sound.len()).step_by(37) {
            let mut bytes = sound.clone();
            bytes[at] ^= 0x20;
            fs::write(&file, bytes).unwrap();
            let read = RocksStore::open(folder.path()).and_then(|store| store.get(Family::Channels, b"key"));
            match read {
                Err(StoreError::Damaged { .. } | StoreError::NotOpened { .. }) => found += 1,
                Err(error) => panic!("byte {at}: {error}"),
                // Bytes that nothing above depends on, such as statistics in the file's properties.
                Ok(value) => assert_eq!(value.as_deref(), Some(&[7; 100][..]), "byte {at}"),
            }
        }
        assert!(found > 0);
        fs::write(&file, &sound[..sound.len() / 2]).unwrap();
        let error = RocksStore::open(folder.path()).err().unwrap();
        assert!(error.to_string().contains("a copy of it that was taken while weir was stopped"), "{error}");
    }

    #[test]
    fn a_missing_file_is_damage() {
        let (folder, file) = one_file();
        fs::remove_file(file).unwrap();
        assert!(matches!(RocksStore::open(folder.path()).err(), Some(StoreError::Damaged { .. })));
    }

    #[test]
    fn the_remains_of_a_store_are_damage_and_not_an_empty_store() {
        let (folder, _) = one_file();
        fs::remove_file(folder.path().join("CURRENT")).unwrap();
        assert!(matches!(RocksStore::open(folder.path()).err(), Some(StoreError::Damaged { .. })));
    }

    #[test]
    fn an_applied_row_that_does_not_decode_is_damage() {
        let folder = TempDir::new().unwrap();
        let store = RocksStore::open(folder.path()).unwrap();
        store.db().unwrap().put_opt([Family::Applied.byte()], b"nonsense", &options::writing()).unwrap();
        store.flush().unwrap();
        drop(store);
        assert!(matches!(RocksStore::open(folder.path()).err(), Some(StoreError::Damaged { .. })));
    }

    #[test]
    fn a_folder_is_open_once() {
        let folder = TempDir::new().unwrap();
        let _first = RocksStore::open(folder.path()).unwrap();
        let second = RocksStore::open(folder.path()).err();
        assert!(matches!(second, Some(StoreError::InUse { .. })), "{second:?}");
    }

    #[test]
    fn a_closed_store_lets_go_of_its_folder_and_answers_nothing() {
        let folder = TempDir::new().unwrap();
        let first = RocksStore::open(folder.path()).unwrap();
        first.close();
        assert_eq!(first.applied(), Err(StoreError::Closed));
        assert_eq!(first.checkpoint(puts(1, &[])), Err(StoreError::Closed));
        assert!(RocksStore::open(folder.path()).is_ok());
    }

    #[test]
    fn a_failed_flush_is_final_and_reads_go_on() {
        let folder = TempDir::new().unwrap();
        let (here, gone) = (folder.path().join("state"), folder.path().join("moved"));
        let store = RocksStore::open(&here).unwrap();
        store.checkpoint(puts(1, &[(Family::Channels, b"key", b"value")])).unwrap();
        assert!(store.get(Family::Channels, b"key").unwrap().is_some());
        fs::rename(&here, &gone).unwrap();
        let first = store.checkpoint(puts(2, &[])).unwrap_err();
        assert!(matches!(first, StoreError::Failed { .. }), "{first:?}");
        fs::rename(&gone, &here).unwrap();
        assert_eq!(store.checkpoint(puts(3, &[])), Err(first), "a mended disk does not undo it");
        assert!(store.get(Family::Channels, b"key").unwrap().is_some());
        drop(store);
        let applied = RocksStore::open(&here).unwrap().applied().unwrap();
        assert!([Some(applied_at(1)), Some(applied_at(2))].contains(&applied), "{applied:?}");
    }
}
