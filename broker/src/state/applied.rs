//! `applied`: the empty key -> [`AppliedRow`]. Written with every checkpoint, as part of it.
//!
//! # On disk
//! Big-endian, 69 bytes: `version: u8` (1), `journal id: u128`, `segment: u64`, `lsn: u64`, `broker time: u64`,
//! `epoch: u64`, `next channel: u64`, `next policy: u32`, `next group: u32`, `crc: u32` over all before it. The row is
//! the hinge between state and journal, so it carries a sum of its own on top of the store's.

use crate::model::{ChannelNo, Epoch, GroupNo, Lsn, PolicyNo, SegmentNo, UnixMillis};

/// Version of the encoding.
const VERSION: u8 = 1;
const SUMMED_BYTES: usize = 1 + 16 + 5 * 8 + 2 * 4;
const ROW_BYTES: usize = SUMMED_BYTES + 4;

/// Up to where the rows of a store are true, and the broker's counters at that place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AppliedRow {
    /// The journal this state belongs to. Another journal's entries must not be applied to it.
    pub(crate) journal_id: u128,
    /// Segment that holds `lsn`: where recovery begins to scan.
    pub(crate) segment: SegmentNo,
    /// Every entry up to this one is in the rows, none after it.
    pub(crate) lsn: Lsn,
    /// Broker time at `lsn`; it goes on from here at the earliest.
    pub(crate) broker_time: UnixMillis,
    /// The last epoch given.
    pub(crate) epoch: Epoch,
    /// The number the next channel gets.
    pub(crate) next_channel: ChannelNo,
    /// The number the next policy gets.
    pub(crate) next_policy: PolicyNo,
    /// The number the next group gets.
    pub(crate) next_group: GroupNo,
}

impl AppliedRow {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(ROW_BYTES);
        bytes.push(VERSION);
        bytes.extend_from_slice(&self.journal_id.to_be_bytes());
        let places = [self.segment.0, self.lsn.0, self.broker_time.0, self.epoch.0, self.next_channel.0];
        for number in places {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        for number in [self.next_policy.0, self.next_group.0] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        let crc = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&crc.to_be_bytes());
        bytes
    }

    /// # Errors
    /// Says what does not fit where the bytes are not a row of this version.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, String> {
        match bytes.first() {
            Some(&VERSION) => {}
            Some(version) => return Err(format!("the applied row has version {version}, this weir reads {VERSION}")),
            None => return Err("the applied row is empty".to_owned()),
        }
        if bytes.len() != ROW_BYTES {
            return Err(format!("the applied row has {} bytes instead of {ROW_BYTES}", bytes.len()));
        }
        let (summed, sum) = bytes.split_at(SUMMED_BYTES);
        if crc32fast::hash(summed).to_be_bytes() != sum {
            return Err("the applied row's checksum does not match".to_owned());
        }
        let mut rest = summed.get(1..).unwrap_or_default();
        let short = || "the applied row is short".to_owned();
        let mut wide = || take(&mut rest).map(u64::from_be_bytes).ok_or_else(short);
        let (high, low) = (wide()?, wide()?);
        let (segment, lsn, broker_time, epoch, next_channel) = (wide()?, wide()?, wide()?, wide()?, wide()?);
        let mut narrow = || take(&mut rest).map(u32::from_be_bytes).ok_or_else(short);
        Ok(Self {
            journal_id: (u128::from(high) << 64) | u128::from(low),
            segment: SegmentNo(segment),
            lsn: Lsn(lsn),
            broker_time: UnixMillis(broker_time),
            epoch: Epoch(epoch),
            next_channel: ChannelNo(next_channel),
            next_policy: PolicyNo(narrow()?),
            next_group: GroupNo(narrow()?),
        })
    }
}

/// Takes the first `N` bytes off `bytes`; none where there are fewer.
fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = bytes.split_first_chunk::<N>()?;
    *bytes = tail;
    Some(*head)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_applied_row_comes_back_as_it_went(
            journal_id: u128, a: u64, b: u64, c: u64, d: u64, e: u64, f: u32, g: u32, bad in 0..ROW_BYTES, flip in 1..=255u8,
        ) {
            let row = AppliedRow {
                journal_id,
                segment: SegmentNo(a),
                lsn: Lsn(b),
                broker_time: UnixMillis(c),
                epoch: Epoch(d),
                next_channel: ChannelNo(e),
                next_policy: PolicyNo(f),
                next_group: GroupNo(g),
            };
            let mut bytes = row.encode();
            prop_assert_eq!(AppliedRow::decode(&bytes), Ok(row));
            prop_assert!(AppliedRow::decode(&bytes[..bad]).is_err(), "cut at {}", bad);
            bytes[bad] ^= flip;
            prop_assert!(AppliedRow::decode(&bytes).is_err(), "byte {} changed", bad);
        }
    }

    #[test]
    fn the_first_version_keeps_its_bytes() {
        let row = AppliedRow {
            journal_id: 7,
            segment: SegmentNo(1),
            lsn: Lsn(2),
            broker_time: UnixMillis(3),
            epoch: Epoch(4),
            next_channel: ChannelNo(5),
            next_policy: PolicyNo(6),
            next_group: GroupNo(7),
        };
        let hex: String = row.encode().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            "0100000000000000000000000000000007000000000000000100000000000000020000000000000003000000000000000400000000\
             000000050000000600000007"
                .to_owned() + &hex[2 * SUMMED_BYTES..]
        );
        assert_eq!(hex.len(), 2 * ROW_BYTES);
    }
}
