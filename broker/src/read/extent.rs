//! `extents`: `channel: u64, first offset: u64` -> `version: u8` (1), `segment: u64`, `last offset: u64`, all big-endian.
//!
//! One row for each run of dense offsets of a channel in a segment, which is one row for each (channel, segment) as long
//! as a channel is only appended to. Written by the first checkpoint that covers the whole segment; goes with the
//! segment. Rows of a channel never overlap.

use super::ReadError;
use super::places::Entry;
use crate::model::{ChannelNo, Offset, SegmentNo};
use crate::state::{Family, Store};

/// Version of the value.
const VERSION: u8 = 1;

/// A run of a channel's offsets that lies in one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) channel: ChannelNo,
    pub(super) first: Offset,
    pub(super) last: Offset,
    pub(super) segment: SegmentNo,
}

impl Extent {
    /// Whether it covers a message.
    pub(super) fn holds(&self, channel: ChannelNo, offset: Offset) -> bool {
        self.channel == channel && (self.first..=self.last).contains(&offset)
    }

    /// Looks up the extent that covers a message.
    ///
    /// # Errors
    /// Where state cannot be read or the row does not decode.
    pub(super) fn covering(store: &dyn Store, channel: ChannelNo, offset: Offset) -> Result<Option<Self>, ReadError> {
        let prefix = channel.get().to_be_bytes();
        let row = store.last_at_or_before(Family::Extents, &key(channel, offset), &prefix)?;
        let extent = row.map(|(key, value)| Self::decode(&key, &value).map_err(ReadError::Extent)).transpose()?;
        Ok(extent.filter(|extent| extent.holds(channel, offset)))
    }

    /// Its key, without the family byte.
    pub(super) fn key(&self) -> Vec<u8> {
        key(self.channel, self.first).to_vec()
    }

    /// Its value.
    pub(super) fn value(&self) -> Vec<u8> {
        let mut value = Vec::with_capacity(17);
        value.push(VERSION);
        value.extend_from_slice(&self.segment.get().to_be_bytes());
        value.extend_from_slice(&self.last.get().to_be_bytes());
        value
    }

    pub(super) fn decode(key: &[u8], value: &[u8]) -> Result<Self, &'static str> {
        let (channel, first) = two_numbers(key).ok_or("the key has not 16 bytes")?;
        let (&version, rest) = value.split_first().ok_or("the value is empty")?;
        if version != VERSION {
            return Err("the version is unknown");
        }
        let (segment, last) = two_numbers(rest).ok_or("the value has not 17 bytes")?;
        if last < first {
            return Err("it ends before it begins");
        }
        Ok(Self { channel: ChannelNo(channel), first: Offset(first), last: Offset(last), segment: SegmentNo(segment) })
    }
}

/// The extents of a segment's sorted entries, in order.
pub(super) fn extents_of(segment: SegmentNo, entries: &[Entry]) -> impl Iterator<Item = Extent> {
    let dense = |a: &Entry, b: &Entry| a.channel == b.channel && a.offset.get().checked_add(1) == Some(b.offset.get());
    entries.chunk_by(dense).filter_map(move |run| {
        let (first, last) = (run.first()?, run.last()?);
        Some(Extent { channel: first.channel, first: first.offset, last: last.offset, segment })
    })
}

fn key(channel: ChannelNo, offset: Offset) -> [u8; 16] {
    let mut key = [0; 16];
    let (front, back) = key.split_at_mut(8);
    front.copy_from_slice(&channel.get().to_be_bytes());
    back.copy_from_slice(&offset.get().to_be_bytes());
    key
}

fn two_numbers(bytes: &[u8]) -> Option<(u64, u64)> {
    let (first, rest) = bytes.split_first_chunk::<8>()?;
    let second: &[u8; 8] = rest.try_into().ok()?;
    Some((u64::from_be_bytes(*first), u64::from_be_bytes(*second)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_extent_comes_back_as_it_went(channel: u64, first: u64, more: u64, segment: u64, cut in 0..17_usize) {
            let extent = Extent {
                channel: ChannelNo(channel),
                first: Offset(first),
                last: Offset(first.saturating_add(more)),
                segment: SegmentNo(segment),
            };
            let (key, value) = (extent.key(), extent.value());
            prop_assert_eq!(Extent::decode(&key, &value), Ok(extent));
            prop_assert!(Extent::decode(&key, &value[..cut]).is_err());
            prop_assert!(Extent::decode(&key[..cut.min(15)], &value).is_err());
        }
    }

    #[test]
    fn dense_offsets_of_a_channel_are_one_extent() {
        let entry =
            |channel, offset| Entry { channel: ChannelNo(channel), offset: Offset(offset), position: 0, len: 0 };
        let entries = [entry(1, 5), entry(1, 6), entry(1, 9), entry(2, 10), entry(2, 11), entry(2, u64::MAX)];
        let found: Vec<_> =
            extents_of(SegmentNo(3), &entries).map(|e| (e.channel.get(), e.first.get(), e.last.get())).collect();
        assert_eq!(found, [(1, 5, 6), (1, 9, 9), (2, 10, 11), (2, u64::MAX, u64::MAX)]);
    }
}
