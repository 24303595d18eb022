//! The journal as this room needs it.

use crate::journal::{Journal, Place, ReadError};
use crate::model::{ChannelNo, Lsn, Offset, SegmentNo};
use bytes::Bytes;

/// Gives back records of the journal. From many threads; blocks for the time of the read.
pub(crate) trait Records: Send + Sync + 'static {
    /// The bytes of the records at `places`, once their checksums agree. The places lie in one segment, in rising order,
    /// and are read in one go from the first to the last.
    ///
    /// # Errors
    /// [`ReadError::Gone`] where the segment was given back, [`ReadError::Damaged`] where bytes do not verify.
    fn read_run(&self, places: &[Place]) -> Result<Vec<Bytes>, ReadError>;

    /// Calls `found` for each record of a sealed segment, in the order in which they stand. Answers the last LSN in the
    /// segment or, if it has none, before it.
    ///
    /// # Errors
    /// As [`Records::read_run`]. `found` may have been called for a part of the records.
    fn scan(&self, segment: SegmentNo, found: &mut dyn FnMut(ChannelNo, Offset, Place)) -> Result<Lsn, ReadError>;
}

impl Records for Journal {
    fn read_run(&self, places: &[Place]) -> Result<Vec<Bytes>, ReadError> {
        Self::read_run(self, places)
    }

    fn scan(&self, segment: SegmentNo, found: &mut dyn FnMut(ChannelNo, Offset, Place)) -> Result<Lsn, ReadError> {
        self.scan_segment(segment, &mut |records| {
            records.iter().for_each(|record| found(record.channel, record.offset, record.place));
        })
    }
}
