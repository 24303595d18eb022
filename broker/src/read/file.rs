//! The index file of a sealed segment, `NNNNNNNNNNNN.idx`.
//!
//! # Format (version 1, little-endian)
//! One head of 4,096 bytes, then blocks of 4,096 bytes ([`super::block`]), then the fences: channel 8 and offset 8 of
//! each block's first entry. Entries ascend by channel, then offset, over the whole file; all blocks but the last are
//! full.
//!
//! ```text
//! head
//!  0 magic       8  "weirindx"
//!  8 version     4  1
//! 12 sum         4  over 0..12 and 16..4096, started from {journal id, segment, all ones}
//! 16 journal id 16
//! 32 segment     8
//! 40 entries     8
//! 48 fences sum  4  started from {journal id, segment, all ones less one}
//! 52 zeros
//! ```
//!
//! The file's length follows from `entries`, and a file of another length is not one. So any changed, missing or foreign
//! byte is found before anything is made of it. Fences stay in memory while the file is open (16 bytes in 4,096), and
//! a look-up reads one block.

use super::block::{self, BLOCK_BYTES, BLOCK_ENTRIES, Owner};
use super::places::Entry;
use crate::fs::File;
use crate::model::{ChannelNo, Offset};
use bytes::{Buf, BufMut};
use std::io;
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"weirindx";
const VERSION: u32 = 1;
const HEAD_BYTES: usize = 4096;
const FENCE_BYTES: usize = 16;
/// Numbers of the parts that are no blocks.
const HEAD_PART: u64 = u64::MAX;
const FENCES_PART: u64 = u64::MAX - 1;
/// No segment holds more records: a record takes 24 bytes of at most 1 GiB.
const ENTRIES_MAX: u64 = (1 << 30) / 24;

/// Why an index file cannot be used. It is made again from the segment.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unfit {
    /// It cannot be read, or is not there.
    #[error("it cannot be read")]
    Io(#[from] io::Error),
    /// A part of it does not verify.
    #[error("its {0} does not verify")]
    Damaged(&'static str),
}

/// An open index file.
pub(super) struct IndexFile {
    file: Arc<dyn File>,
    owner: Owner,
    entries: u64,
    fences: Vec<(ChannelNo, Offset)>,
}

impl IndexFile {
    /// The whole file of these sorted entries.
    pub(super) fn encode(owner: Owner, entries: &[Entry]) -> Vec<u8> {
        let blocks = entries.len().div_ceil(BLOCK_ENTRIES);
        let mut fences = Vec::with_capacity(blocks * FENCE_BYTES);
        let mut out = Vec::with_capacity(HEAD_BYTES + blocks * (BLOCK_BYTES + FENCE_BYTES));
        out.put_bytes(0, HEAD_BYTES);
        for (number, entries) in (0..).zip(entries.chunks(BLOCK_ENTRIES)) {
            block::encode(owner, number, entries, &mut out);
            if let Some(first) = entries.first() {
                fences.put_u64_le(first.channel.get());
                fences.put_u64_le(first.offset.get());
            }
        }
        out.extend_from_slice(&fences);
        let head = encode_head(owner, entries.len() as u64, owner.sum(FENCES_PART, &fences));
        out.iter_mut().zip(head).for_each(|(byte, head)| *byte = head);
        out
    }

    /// Opens a file, verifying its head and fences.
    ///
    /// # Errors
    /// [`Unfit`] where it is not what `owner`'s segment needs.
    pub(super) fn open(file: Arc<dyn File>, owner: Owner) -> Result<Self, Unfit> {
        let mut head = [0; HEAD_BYTES];
        file.read_exact_at(&mut head, 0)?;
        let (entries, fences_sum) = decode_head(owner, &head).ok_or(Unfit::Damaged("head"))?;
        if entries > ENTRIES_MAX {
            return Err(Unfit::Damaged("number of entries"));
        }
        let blocks = entries.div_ceil(BLOCK_ENTRIES as u64);
        let fences_at = HEAD_BYTES as u64 + blocks * BLOCK_BYTES as u64;
        let fences_len = blocks * FENCE_BYTES as u64;
        if file.len()? != fences_at + fences_len {
            return Err(Unfit::Damaged("length"));
        }
        let mut fences = vec![0; usize::try_from(fences_len).map_err(|_| Unfit::Damaged("length"))?];
        file.read_exact_at(&mut fences, fences_at)?;
        if owner.sum(FENCES_PART, &fences) != fences_sum {
            return Err(Unfit::Damaged("fences"));
        }
        let (fences, _) = fences.as_chunks::<FENCE_BYTES>();
        let fence = |mut fields: &[u8]| (ChannelNo(fields.get_u64_le()), Offset(fields.get_u64_le()));
        let fences = fences.iter().map(|fields| fence(fields)).collect();
        Ok(Self { file, owner, entries, fences })
    }

    /// The block in which a message's entry would be; none if it would come before the first.
    pub(super) fn block_of(&self, channel: ChannelNo, offset: Offset) -> Option<u64> {
        let behind = self.fences.partition_point(|fence| *fence <= (channel, offset));
        Some(behind.checked_sub(1)? as u64)
    }

    /// Reads and verifies a block.
    ///
    /// # Errors
    /// [`Unfit`] where it cannot be read or does not verify.
    pub(super) fn block(&self, number: u64) -> Result<Vec<Entry>, Unfit> {
        let mut bytes = [0; BLOCK_BYTES];
        self.file.read_exact_at(&mut bytes, HEAD_BYTES as u64 + number * BLOCK_BYTES as u64)?;
        let left = self.entries.saturating_sub(number * BLOCK_ENTRIES as u64);
        let count = usize::try_from(left).unwrap_or(BLOCK_ENTRIES).min(BLOCK_ENTRIES);
        block::decode(self.owner, number, &bytes, count).ok_or(Unfit::Damaged("block"))
    }

    /// All entries, in order.
    ///
    /// # Errors
    /// As [`IndexFile::block`].
    pub(super) fn all(&self) -> Result<Vec<Entry>, Unfit> {
        let mut entries = Vec::with_capacity(self.fences.len() * BLOCK_ENTRIES);
        for number in 0..self.fences.len() as u64 {
            entries.extend(self.block(number)?);
        }
        Ok(entries)
    }
}

fn encode_head(owner: Owner, entries: u64, fences_sum: u32) -> Vec<u8> {
    let mut summed = Vec::with_capacity(HEAD_BYTES - 4);
    summed.put_slice(MAGIC);
    summed.put_u32_le(VERSION);
    summed.put_u128_le(owner.journal_id);
    summed.put_u64_le(owner.segment.get());
    summed.put_u64_le(entries);
    summed.put_u32_le(fences_sum);
    summed.resize(HEAD_BYTES - 4, 0);
    let sum = owner.sum(HEAD_PART, &summed);
    let (front, back) = summed.split_at(12);
    [front, &sum.to_le_bytes(), back].concat()
}

/// Number of entries and sum of the fences; none where the head is not the owner's or does not verify.
fn decode_head(owner: Owner, head: &[u8; HEAD_BYTES]) -> Option<(u64, u32)> {
    let mut fields = head.get(40..52)?;
    let (entries, fences_sum) = (fields.get_u64_le(), fields.get_u32_le());
    // Each byte of a head follows from these two and the owner.
    (encode_head(owner, entries, fences_sum) == head).then_some((entries, fences_sum))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::places;
    use super::*;
    use crate::fs::{FileSystem, OsFileSystem};
    use crate::model::SegmentNo;
    use proptest::collection::btree_set;
    use proptest::prelude::*;
    use tempfile::TempDir;

    const OWNER: Owner = Owner { journal_id: 7, segment: SegmentNo(3) };

    fn opened(folder: &TempDir, bytes: &[u8]) -> Result<IndexFile, Unfit> {
        let file = OsFileSystem.create(&folder.path().join("file")).unwrap();
        file.write_all_at(bytes, 0).unwrap();
        IndexFile::open(file, OWNER)
    }

    fn find(file: &IndexFile, channel: u64, offset: u64) -> Option<Entry> {
        let (channel, offset) = (ChannelNo(channel), Offset(offset));
        let block = file.block(file.block_of(channel, offset)?).unwrap();
        places::find(&block, channel, offset)
    }

    fn entries(count: u64) -> Vec<Entry> {
        let entry = |n| Entry { channel: ChannelNo(n / 50), offset: Offset(n % 50), position: 8, len: 2 };
        (0..count).map(entry).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn a_file_finds_its_entries_and_no_others(keys in btree_set((0..30_u64, 0..60_u64), 0..900)) {
            let folder = TempDir::new().unwrap();
            let entries: Vec<_> = (0..).zip(&keys).map(|(at, &(channel, offset))| Entry {
                channel: ChannelNo(channel), offset: Offset(offset), position: at, len: at * 2,
            }).collect();
            let file = opened(&folder, &IndexFile::encode(OWNER, &entries)).unwrap();
            prop_assert_eq!(file.all().unwrap(), entries.clone());
            for (channel, offset) in (0..31).flat_map(|channel| (0..61).map(move |offset| (channel, offset))) {
                let found = find(&file, channel, offset);
                prop_assert_eq!(found, places::find(&entries, ChannelNo(channel), Offset(offset)));
                prop_assert_eq!(found.is_some(), keys.contains(&(channel, offset)));
            }
        }
    }

    #[test]
    fn a_change_of_any_byte_or_of_the_length_is_found() {
        let folder = TempDir::new().unwrap();
        let sound = IndexFile::encode(OWNER, &entries(200));
        assert!(opened(&folder, &sound).unwrap().all().is_ok());
        let file = OsFileSystem.open(&folder.path().join("file")).unwrap();
        for (at, byte) in (0..).zip(&sound) {
            file.write_all_at(&[byte ^ 1 << (at % 8)], at).unwrap();
            assert!(IndexFile::open(file.clone(), OWNER).and_then(|file| file.all()).is_err(), "byte {at}");
            file.write_all_at(&[*byte], at).unwrap();
        }
        for len in (0..sound.len()).step_by(101) {
            assert!(opened(&folder, &sound[..len]).is_err(), "cut to {len}");
        }
        assert!(opened(&folder, &[&sound[..], &[0]].concat()).is_err(), "a byte more");
    }

    #[test]
    fn a_file_of_another_segment_or_journal_is_refused() {
        let folder = TempDir::new().unwrap();
        for owner in [Owner { journal_id: 8, ..OWNER }, Owner { segment: SegmentNo(4), ..OWNER }] {
            let foreign = IndexFile::encode(owner, &entries(3));
            assert!(matches!(opened(&folder, &foreign).err(), Some(Unfit::Damaged("head"))));
        }
    }

    #[test]
    fn a_segment_without_messages_has_an_empty_file() {
        let folder = TempDir::new().unwrap();
        let file = opened(&folder, &IndexFile::encode(OWNER, &[])).unwrap();
        assert_eq!(find(&file, 0, 0), None);
        assert_eq!(file.all().unwrap(), []);
    }
}
