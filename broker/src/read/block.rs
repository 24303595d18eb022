//! Blocks of an index file: up to 170 sorted entries, and a sum that knows where the block belongs.
//!
//! ```text
//!  0 sum       4   over 4..4096, started from {journal id, segment, number of the block}
//!  4 zeros    12
//! 16 entries  24 each: channel 8, offset 8, position 4, length 4; zeros behind the last
//! ```
//! Little-endian, 4,096 bytes.

use super::places::Entry;
use crate::model::{ChannelNo, Offset, SegmentNo};
use bytes::{Buf, BufMut};
use crc32fast::Hasher;

/// Bytes of a block.
pub(super) const BLOCK_BYTES: usize = 4096;
const FRONT_BYTES: usize = 16;
const ENTRY_BYTES: usize = 24;
/// Entries in a full block.
pub(super) const BLOCK_ENTRIES: usize = (BLOCK_BYTES - FRONT_BYTES) / ENTRY_BYTES;

const _: () = assert!(FRONT_BYTES + BLOCK_ENTRIES * ENTRY_BYTES == BLOCK_BYTES);

/// Whose parts the sums belong to: a part of another file, or from another place in this one, never verifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) journal_id: u128,
    pub(super) segment: SegmentNo,
}

impl Owner {
    /// The sum of `bytes` as part number `part`.
    pub(super) fn sum(&self, part: u64, bytes: &[u8]) -> u32 {
        let mut hasher = Hasher::new();
        hasher.update(&self.journal_id.to_le_bytes());
        hasher.update(&self.segment.get().to_le_bytes());
        hasher.update(&part.to_le_bytes());
        hasher.update(bytes);
        hasher.finalize()
    }
}

/// Adds the block of these entries, at most [`BLOCK_ENTRIES`], to `out`.
pub(super) fn encode(owner: Owner, number: u64, entries: &[Entry], out: &mut Vec<u8>) {
    let mut block = Vec::with_capacity(BLOCK_BYTES);
    block.put_bytes(0, FRONT_BYTES - 4);
    for entry in entries {
        block.put_u64_le(entry.channel.get());
        block.put_u64_le(entry.offset.get());
        block.put_u32_le(entry.position);
        block.put_u32_le(entry.len);
    }
    block.resize(BLOCK_BYTES - 4, 0);
    out.put_u32_le(owner.sum(number, &block));
    out.extend_from_slice(&block);
}

/// The first `count` entries of a block; none if it does not verify.
pub(super) fn decode(owner: Owner, number: u64, bytes: &[u8; BLOCK_BYTES], count: usize) -> Option<Vec<Entry>> {
    let (sum, block) = bytes.split_first_chunk::<4>()?;
    if owner.sum(number, block) != u32::from_le_bytes(*sum) {
        return None;
    }
    let (entries, _) = block.get(FRONT_BYTES - 4..)?.as_chunks::<ENTRY_BYTES>();
    let entry = |mut fields: &[u8]| Entry {
        channel: ChannelNo(fields.get_u64_le()),
        offset: Offset(fields.get_u64_le()),
        position: fields.get_u32_le(),
        len: fields.get_u32_le(),
    };
    Some(entries.get(..count)?.iter().map(|fields| entry(fields)).collect())
}
