//! The store as the rest of the broker sees it.

use super::{AppliedRow, Batch, Family, StoreError};
use bytes::Bytes;

/// Rows that one scan may bring.
pub(crate) const SCAN_ROWS_MAX: usize = 4096;

/// A bounded walk over the rows of a family in ascending order of keys. Keys go without the family byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scan<'a> {
    /// Only rows whose key begins with this; empty means all of the family.
    pub(crate) prefix: &'a [u8],
    /// Only rows after this whole key, which itself is left out: the last key of the page before. It need not begin
    /// with the prefix, nor have a row.
    pub(crate) after: Option<&'a [u8]>,
    /// Most rows to bring, at most [`SCAN_ROWS_MAX`]. Fewer mean that the walk is over.
    pub(crate) limit: usize,
}

/// A row: its key without the family byte, and its value.
pub(crate) type Row = (Vec<u8>, Bytes);

/// Rows of bytes that change by whole checkpoints only. Safe to read from many threads, also while a checkpoint runs;
/// such a read may see the rows of that checkpoint before it is durable, which is sound because a batch is handed over
/// only when its LSN is durable in the journal.
pub(crate) trait Store: Send + Sync + 'static {
    /// The value under a key.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] or [`StoreError::Failed`] where it cannot be read.
    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Bytes>, StoreError>;

    /// The values under several keys, in the order of the keys.
    ///
    /// # Errors
    /// As [`Store::get`], of any of them.
    fn get_many(&self, keys: &[(Family, Vec<u8>)]) -> Result<Vec<Option<Bytes>>, StoreError>;

    /// One page of rows, ascending.
    ///
    /// # Errors
    /// [`StoreError::ScanTooLong`] for a limit above [`SCAN_ROWS_MAX`], else as [`Store::get`].
    fn scan(&self, family: Family, scan: Scan<'_>) -> Result<Vec<Row>, StoreError>;

    /// Of the rows whose key begins with `prefix`, the one with the greatest key that is not above `key`.
    ///
    /// # Errors
    /// As [`Store::get`].
    fn last_at_or_before(&self, family: Family, key: &[u8], prefix: &[u8]) -> Result<Option<Row>, StoreError>;

    /// Writes a batch as one and returns when it is durable. It is the caller's to have its LSN durable in the journal
    /// before. Blocks for the time of the write; one at a time.
    ///
    /// # Errors
    /// [`StoreError::Failed`], now and from then on; see there for what became of the batch.
    fn checkpoint(&self, batch: Batch) -> Result<(), StoreError>;

    /// Up to where the rows are true; none in a new store.
    ///
    /// # Errors
    /// As [`Store::get`].
    fn applied(&self) -> Result<Option<AppliedRow>, StoreError>;

    /// Lets go of the folder and of all threads and memory, whoever still holds the store. Waits for reads and
    /// checkpoints that run; everything later is refused with [`StoreError::Closed`].
    fn close(&self);
}
