//! State: what the broker knows up to one LSN, as rows of bytes under keys. Together with the journal after that LSN
//! it is the truth; neither knows the other.
//!
//! A [`Store`] holds rows of [`Family`]s and one [`AppliedRow`], which says up to which LSN they are true. The only way
//! to change it is a checkpoint: one [`Batch`], whole or not there, durable when it is answered. Between checkpoints the
//! engine's own table of dirty rows is in front of the store; nothing is ever written here before its LSN is durable in
//! the journal, so a crash at any instant leaves the rows of some finished or just written checkpoint, never of a
//! future that the journal does not have.
//!
//! Damage: RocksDB sums each block, each file's size and its manifest, verifies them on every read and says so, thus
//! values carry no sum of their own. State is never rebuilt by itself: it is the only copy of decisions older than the
//! journal. A damaged store is refused, and the way back is a copy of the data folder.
//!
//! The layout of keys and values belongs to the file of each family in `rows`.

mod applied;
mod batch;
mod checkpoint;
#[cfg(test)]
mod contract;
mod error;
mod family;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
#[cfg(test)]
mod memory;
#[cfg(feature = "rocksdb")]
mod options;
mod range;
#[cfg(feature = "rocksdb")]
mod rocks;
pub(crate) mod rows;
mod store;

pub(crate) use self::{
    applied::AppliedRow,
    batch::Batch,
    checkpoint::{CheckpointJob, Checkpointer},
    error::StoreError,
    family::Family,
    store::{SCAN_ROWS_MAX, Scan, Store},
};

#[cfg(feature = "rocksdb")]
pub(crate) use self::rocks::RocksStore;
#[cfg(test)]
pub(crate) use self::{
    memory::{CheckpointFault, MemoryDisk, MemoryStore},
    store::Row,
};
