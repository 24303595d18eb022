//! What holds of the rows of `extents` for any bytes. See `crate::fuzzing`.

use super::extent::Extent;
#[cfg(test)]
use crate::model::{ChannelNo, Offset, SegmentNo};

/// A row: what is read has its key and value.
pub(crate) fn extent(key: &[u8], value: &[u8]) {
    if let Ok(extent) = Extent::decode(key, value) {
        assert_eq!((extent.key().as_slice(), extent.value().as_slice()), (key, value));
        assert!(extent.holds(extent.channel, extent.first) && extent.holds(extent.channel, extent.last));
    }
}

/// Key and value of a row.
#[cfg(test)]
pub(crate) fn row_of(channel: ChannelNo, (first, last): (Offset, Offset), segment: SegmentNo) -> (Vec<u8>, Vec<u8>) {
    let extent = Extent { channel, first, last, segment };
    (extent.key(), extent.value())
}
