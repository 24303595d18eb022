//! Where the journal tells this room of new records.

use super::{MessageIndex, TailCache};
use crate::journal::{Placed, Placements};
use crate::model::{Lsn, SegmentNo};
use std::sync::Arc;

/// Tells index and tail of what the journal placed.
#[derive(Clone, Debug)]
pub(crate) struct Feed {
    index: Arc<MessageIndex>,
    tail: Arc<TailCache>,
}

impl Feed {
    /// A feed of both.
    pub(crate) const fn new(index: Arc<MessageIndex>, tail: Arc<TailCache>) -> Self {
        Self { index, tail }
    }
}

impl Placements for Feed {
    fn placed(&self, segment: SegmentNo, records: &[Placed]) {
        self.index.placed(segment, records);
        self.tail.placed(records);
    }

    fn sealed(&self, segment: SegmentNo, last_lsn: Lsn) {
        self.index.sealed(segment, last_lsn);
    }
}
