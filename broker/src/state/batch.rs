//! What one checkpoint writes.

use super::{AppliedRow, Family};

/// The net change of the rows between two checkpoints, and the place it reaches. Keys go without the family byte.
///
/// Deletes come first and then puts in their order, so that of one key the last put wins, and a put wins over a delete.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    /// Rows to set: family, key, value.
    pub(crate) puts: Vec<(Family, Vec<u8>, Vec<u8>)>,
    /// Rows to take away: family, key. A key without a row is no error.
    pub(crate) deletes: Vec<(Family, Vec<u8>)>,
    /// Up to where the rows are true once this is in. Set last, over any put of the same family.
    pub(crate) applied: AppliedRow,
}

impl Batch {
    /// A batch that changes no row but the applied one.
    pub(crate) const fn new(applied: AppliedRow) -> Self {
        Self { puts: Vec::new(), deletes: Vec::new(), applied }
    }
}
