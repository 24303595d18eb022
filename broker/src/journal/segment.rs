//! The segment's header block and file name.

use super::damage::Damage;
use super::fields::Fields;
use super::sums::{SumKey, agree};
use crate::model::{Lsn, SegmentNo, UnixMillis};
use bytes::BufMut;
use crc32fast::Hasher;
use std::path::{Path, PathBuf};

/// Bytes of the header: a whole block, so that the first group never shares a sector with it.
pub(super) const SEGMENT_HEADER_LEN: u32 = 4096;
const BLOCK: usize = SEGMENT_HEADER_LEN as usize;
const MAGIC: [u8; 8] = *b"weirjrnl";
const VERSION: u32 = 1;
const SUM_AT: usize = 12;
const SUFFIX: &str = ".seg";

/// A place in a segment and the sum of the header there: how a group names the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    /// Where the header begins; 0 is the segment's own.
    pub(super) position: u32,
    /// The header's sum.
    pub(super) sum: u32,
}

/// What a segment says of the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Previous {
    /// Its number.
    pub(super) segment: SegmentNo,
    /// Where its groups end: all before is proven, nothing behind counts.
    pub(super) end: u32,
    /// Sum of its last group's header, or of its own header if it has none.
    pub(super) sum: u32,
}

/// A segment's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub(super) journal_id: u128,
    pub(super) segment: SegmentNo,
    /// Counts how often the folder was opened, from 1.
    pub(super) incarnation: u64,
    /// LSN of the first frame in it.
    pub(super) first_lsn: Lsn,
    /// Broker time of what was written before.
    pub(super) broker_time: UnixMillis,
    /// Length of the file while it is written to.
    pub(super) file_len: u32,
    /// `None` for the journal's first.
    pub(super) previous: Option<Previous>,
}

/// Why a header block is not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderFault {
    Damaged(Damage),
    /// It verifies, and was written by a version we do not know.
    Version(u32),
}

impl SegmentHeader {
    /// The key of the segment's sums.
    pub(super) fn key(&self) -> SumKey {
        SumKey::new(self.journal_id, self.segment, self.incarnation)
    }

    /// The block as it stands on disk, and the link by which the first group names it.
    pub(super) fn encode(&self) -> (Vec<u8>, Link) {
        let mut block = Vec::with_capacity(BLOCK);
        block.put_slice(&MAGIC);
        block.put_u32_le(VERSION);
        block.put_u32_le(0);
        block.put_u128_le(self.journal_id);
        block.put_u64_le(self.segment.get());
        block.put_u64_le(self.incarnation);
        block.put_u64_le(self.first_lsn.get());
        block.put_u64_le(self.broker_time.get());
        block.put_u32_le(self.file_len);
        block.put_u32_le(self.previous.map_or(0, |previous| previous.end));
        block.put_u32_le(self.previous.map_or(0, |previous| previous.sum));
        block.put_u32_le(0);
        block.put_u64_le(self.previous.map_or(0, |previous| previous.segment.get()));
        block.resize(BLOCK, 0);
        let sum = block_sum(&block).unwrap_or_default();
        if let Some(slot) = block.get_mut(SUM_AT..SUM_AT + 4) {
            slot.copy_from_slice(&sum.to_le_bytes());
        }
        (block, Link { position: 0, sum })
    }

    /// Reads the block at the front of the file of `segment`.
    pub(super) fn decode(block: &[u8], segment: SegmentNo) -> Result<(Self, Link), HeaderFault> {
        let damaged = HeaderFault::Damaged(Damage::SegmentHeader);
        let (header, version, sum) = Self::parse(block).ok_or(damaged)?;
        if !block_sum(block).is_some_and(|due| agree(sum, due)) || block.get(..MAGIC.len()) != Some(&MAGIC[..]) {
            return Err(damaged);
        }
        if version != VERSION {
            return Err(HeaderFault::Version(version));
        }
        // Each byte of a block follows from these fields, also those that must be zero.
        if header.segment != segment || block.get(..BLOCK) != Some(&header.encode().0[..]) {
            return Err(damaged);
        }
        Ok((header, Link { position: 0, sum }))
    }

    fn parse(block: &[u8]) -> Option<(Self, u32, u32)> {
        let mut fields = Fields::new(block);
        fields.array::<8>()?;
        let (version, sum) = (fields.u32()?, fields.u32()?);
        let (journal_id, segment, incarnation) = (fields.u128()?, SegmentNo(fields.u64()?), fields.u64()?);
        let (first_lsn, broker_time, file_len) = (Lsn(fields.u64()?), UnixMillis(fields.u64()?), fields.u32()?);
        let (end, previous_sum, _zero, previous) = (fields.u32()?, fields.u32()?, fields.u32()?, fields.u64()?);
        let previous = (previous != 0).then_some(Previous { segment: SegmentNo(previous), end, sum: previous_sum });
        Some((Self { journal_id, segment, incarnation, first_lsn, broker_time, file_len, previous }, version, sum))
    }
}

/// Sum of a whole block but for the sum's own place; `None` if it is no whole block.
fn block_sum(block: &[u8]) -> Option<u32> {
    let mut hasher = Hasher::new();
    hasher.update(block.get(..SUM_AT)?);
    hasher.update(block.get(SUM_AT + 4..BLOCK)?);
    Some(hasher.finalize())
}

/// Path of a segment's file.
pub(super) fn segment_path(dir: &Path, segment: SegmentNo) -> PathBuf {
    dir.join(format!("{:012}{SUFFIX}", segment.get()))
}

/// The number in a segment's file name; `None` if it is not one we would give.
pub(super) fn segment_no(name: &str) -> Option<SegmentNo> {
    let digits = name.strip_suffix(SUFFIX)?;
    let number = digits.parse::<u64>().ok().filter(|number| *number > 0)?;
    (format!("{number:012}") == digits).then_some(SegmentNo(number))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn header() -> SegmentHeader {
        SegmentHeader {
            journal_id: 0x0123_4567_89AB_CDEF_0011_2233_4455_6677,
            segment: SegmentNo(7),
            incarnation: 3,
            first_lsn: Lsn(99),
            broker_time: UnixMillis(1_700_000_000_000),
            file_len: 65_536,
            previous: Some(Previous { segment: SegmentNo(6), end: 5_000, sum: 77 }),
        }
    }

    #[test]
    fn a_header_comes_back_as_written() {
        let (block, link) = header().encode();
        assert_eq!(SegmentHeader::decode(&block, SegmentNo(7)).unwrap(), (header(), link));
        let first = SegmentHeader { previous: None, ..header() };
        assert_eq!(SegmentHeader::decode(&first.encode().0, SegmentNo(7)).unwrap().0, first);
    }

    #[test]
    fn no_flipped_bit_of_a_header_is_accepted() {
        let (block, _) = header().encode();
        for bit in 0..block.len() * 8 {
            let mut flipped = block.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(SegmentHeader::decode(&flipped, SegmentNo(7)).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn what_must_be_zero_is_though_the_sum_holds() {
        let first = SegmentHeader { previous: None, ..header() };
        // The end of a segment before it that it does not name, the field of zeros, the zeros behind all fields.
        for at in [68, 76, 88, BLOCK - 1] {
            let (mut block, _) = first.encode();
            block[at] = 1;
            let sum = block_sum(&block).unwrap();
            block[SUM_AT..SUM_AT + 4].copy_from_slice(&sum.to_le_bytes());
            let damaged = HeaderFault::Damaged(Damage::SegmentHeader);
            assert_eq!(SegmentHeader::decode(&block, SegmentNo(7)).unwrap_err(), damaged, "byte {at}");
        }
    }

    #[test]
    fn a_header_under_another_name_or_too_short_is_damaged() {
        let (block, _) = header().encode();
        let damaged = HeaderFault::Damaged(Damage::SegmentHeader);
        assert_eq!(SegmentHeader::decode(&block, SegmentNo(8)).unwrap_err(), damaged);
        assert_eq!(SegmentHeader::decode(&block[..BLOCK - 1], SegmentNo(7)).unwrap_err(), damaged);
        assert_eq!(SegmentHeader::decode(&[], SegmentNo(7)).unwrap_err(), damaged);
    }

    #[test]
    fn file_names_go_both_ways_and_others_are_left_alone() {
        let path = segment_path(Path::new("d"), SegmentNo(12));
        assert_eq!(segment_no(path.file_name().unwrap().to_str().unwrap()), Some(SegmentNo(12)));
        for name in ["12.seg", "000000000000.seg", "+00000000012.seg", "spare-000012", "000000000012.seg.bak"] {
            assert_eq!(segment_no(name), None, "{name}");
        }
    }
}
