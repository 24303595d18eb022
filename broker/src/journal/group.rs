//! The group's header.

use super::damage::Damage;
use super::fields::Fields;
use super::segment::Link;
use super::sums::{SumKey, agree};
use crate::model::{Lsn, UnixMillis};
use bytes::BufMut;

/// Bytes of a group's header.
pub(super) const GROUP_HEADER_LEN: u32 = 48;
const LEN: usize = GROUP_HEADER_LEN as usize;
/// Groups begin on multiples of this.
pub(super) const GROUP_ALIGN: u32 = 8;
/// First bytes of every group.
pub(super) const GROUP_MAGIC: [u8; 4] = *b"WGRP";

/// A group's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GroupHeader {
    /// Bytes of the frames.
    pub(super) body_len: u32,
    /// How many frames; 0 for a witness.
    pub(super) frame_count: u32,
    /// LSN of the first frame, or of the next to come.
    pub(super) first_lsn: Lsn,
    /// Broker time of the first frame, or the latest before.
    pub(super) broker_time: UnixMillis,
    /// All before this place in the segment was synced when the group was written.
    pub(super) synced_through: u32,
    /// The group before, or the segment's header.
    pub(super) previous: Link,
}

impl GroupHeader {
    /// The header as it stands at `position`, and the link by which the next group names it.
    pub(super) fn encode(&self, position: u32, key: SumKey) -> ([u8; LEN], Link) {
        let mut fields = Vec::with_capacity(LEN - 8);
        fields.put_u32_le(self.body_len);
        fields.put_u32_le(self.frame_count);
        fields.put_u64_le(self.first_lsn.get());
        fields.put_u64_le(self.broker_time.get());
        fields.put_u32_le(self.synced_through);
        fields.put_u32_le(self.previous.position);
        fields.put_u32_le(self.previous.sum);
        fields.put_u32_le(0);
        let sum = key.of(position, &fields);
        let mut out = [0; LEN];
        let mut front = out.as_mut_slice();
        front.put_slice(&GROUP_MAGIC);
        front.put_u32_le(sum);
        front.put_slice(&fields);
        (out, Link { position, sum })
    }

    /// Reads the header at `position`.
    pub(super) fn decode(bytes: &[u8], position: u32, key: SumKey) -> Result<(Self, Link), Damage> {
        let bytes: &[u8; LEN] = bytes.first_chunk().ok_or(Damage::Absent)?;
        if bytes.iter().all(|byte| *byte == 0) {
            return Err(Damage::Absent);
        }
        Self::parse(bytes, position, key).ok_or(Damage::GroupHeader)
    }

    fn parse(bytes: &[u8; LEN], position: u32, key: SumKey) -> Option<(Self, Link)> {
        let (magic, rest) = bytes.split_first_chunk::<4>()?;
        let (sum, summed) = rest.split_first_chunk::<4>()?;
        let sum = u32::from_le_bytes(*sum);
        if *magic != GROUP_MAGIC || !agree(key.of(position, summed), sum) {
            return None;
        }
        let mut fields = Fields::new(summed);
        let header = Self {
            body_len: fields.u32()?,
            frame_count: fields.u32()?,
            first_lsn: Lsn(fields.u64()?),
            broker_time: UnixMillis(fields.u64()?),
            synced_through: fields.u32()?,
            previous: Link { position: fields.u32()?, sum: fields.u32()? },
        };
        if fields.u32()? != 0 {
            return None;
        }
        Some((header, Link { position, sum }))
    }
}

/// Bytes of a group with its padding, of the length of its frames.
pub(super) fn group_len(body_len: u32) -> Option<u32> {
    GROUP_HEADER_LEN.checked_add(body_len)?.checked_next_multiple_of(GROUP_ALIGN)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::model::SegmentNo;
    use proptest::prelude::*;

    fn key() -> SumKey {
        SumKey::new(1, SegmentNo(2), 3)
    }

    proptest! {
        #[test]
        fn a_header_comes_back_at_its_place_and_at_no_other(
            body_len: u32, frame_count: u32, first: u64, time: u64, synced_through: u32, previous: (u32, u32),
            position: u32, elsewhere: u32,
        ) {
            let header = GroupHeader {
                body_len, frame_count, first_lsn: Lsn(first), broker_time: UnixMillis(time), synced_through,
                previous: Link { position: previous.0, sum: previous.1 },
            };
            let (bytes, link) = header.encode(position, key());
            prop_assert_eq!(GroupHeader::decode(&bytes, position, key()), Ok((header, link)));
            prop_assume!(position != elsewhere);
            prop_assert_eq!(GroupHeader::decode(&bytes, elsewhere, key()), Err(Damage::GroupHeader));
        }

        #[test]
        fn no_flipped_bit_of_a_header_is_accepted(body_len: u32, first: u64, bit in 0..LEN * 8) {
            let header = GroupHeader {
                body_len, frame_count: 1, first_lsn: Lsn(first), broker_time: UnixMillis(5), synced_through: 4096,
                previous: Link { position: 0, sum: 9 },
            };
            let (mut bytes, _) = header.encode(4096, key());
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(GroupHeader::decode(&bytes, 4096, key()).is_err());
        }

        #[test]
        fn the_field_of_zeros_is_zero_though_the_sum_holds(zero in 1..u32::MAX, position: u32) {
            let header = GroupHeader {
                body_len: 0, frame_count: 0, first_lsn: Lsn(1), broker_time: UnixMillis(5), synced_through: 4096,
                previous: Link { position: 0, sum: 9 },
            };
            let (mut bytes, _) = header.encode(position, key());
            bytes[LEN - 4..].copy_from_slice(&zero.to_le_bytes());
            let sum = key().of(position, &bytes[8..]);
            bytes[4..8].copy_from_slice(&sum.to_le_bytes());
            prop_assert_eq!(GroupHeader::decode(&bytes, position, key()), Err(Damage::GroupHeader));
        }

        #[test]
        fn arbitrary_bytes_are_no_header(bytes in prop::collection::vec(any::<u8>(), 0..100), position: u32) {
            prop_assert!(GroupHeader::decode(&bytes, position, key()).is_err());
        }
    }
}
