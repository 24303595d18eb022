//! Writes into bytes the sums, magics and links that the rest of them asks for. Lengths, counts and times stay as they
//! are, so what a reader meets behind the sums is still anything.
//!
//! This is the format told a second time, in plain arithmetic over the layout of the module's documentation: it shares no
//! code with the decoders it is held against, but for the sums.

use super::super::group::GROUP_MAGIC;
use super::super::segment::Link;
use super::{BASE, INCARNATION, JOURNAL_ID, SEGMENT, key};
use crate::model::Lsn;
use std::ops::Range;

const GROUP_HEADER: usize = 48;
const FRAME_HEADER: usize = 24;
const RECORD_HEADER: usize = 24;

/// What the first group has to name as the one before it.
pub(super) const LINK: Link = Link { position: 0, sum: 0x5EED };

/// The LSN that the first group claims for its first frame.
pub(super) fn first_lsn(groups: &[u8]) -> Lsn {
    Lsn(groups.get(16..24).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes))
}

/// A segment's header block: magic, journal, segment, incarnation, sum.
pub(super) fn segment(block: &mut [u8]) {
    put(block, 0, b"weirjrnl");
    put(block, 16, &JOURNAL_ID.to_le_bytes());
    put(block, 32, &SEGMENT.get().to_le_bytes());
    put(block, 40, &INCARNATION.to_le_bytes());
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(part(block, 0..12));
    hasher.update(part(block, 16..block.len()));
    put(block, 12, &hasher.finalize().to_le_bytes());
}

/// Groups one behind the other, as far as their lengths lead; each follows the one before it.
pub(super) fn groups(bytes: &mut [u8]) {
    let (mut at, mut link, mut lsn) = (0, LINK, first_lsn(bytes));
    while at + GROUP_HEADER <= bytes.len() {
        let (body_len, frame_count) = (number(bytes, at + 8), number(bytes, at + 12));
        put(bytes, at, &GROUP_MAGIC);
        put(bytes, at + 16, &lsn.get().to_le_bytes());
        put(bytes, at + 36, &link.position.to_le_bytes());
        put(bytes, at + 40, &link.sum.to_le_bytes());
        let sum = key().of(place(at), part(bytes, at + 8..at + GROUP_HEADER));
        put(bytes, at + 4, &sum.to_le_bytes());
        let body = at + GROUP_HEADER;
        let Some(end) = body.checked_add(body_len).filter(|end| *end <= bytes.len()) else { return };
        let mut frame_at = body;
        for _ in 0..frame_count {
            let Some(len) = bytes.get_mut(frame_at..end).and_then(|rest| frame(rest, place(frame_at))) else { break };
            frame_at += len;
        }
        (at, link) = (end.next_multiple_of(8), Link { position: place(at), sum });
        lsn = Lsn(lsn.get().saturating_add(frame_count as u64));
    }
}

/// The frame at the front of `bytes`, which stand at `position`. Its length, if it is all there and its lengths agree.
pub(super) fn frame(bytes: &mut [u8], position: u32) -> Option<usize> {
    if bytes.len() < FRAME_HEADER {
        return None;
    }
    let (entries_len, count, records_len) = (number(bytes, 8), number(bytes, 12), number(bytes, 16));
    let mut sum = key().at(position);
    sum.update(part(bytes, 8..FRAME_HEADER));
    put(bytes, 0, &sum.clone().finalize().to_le_bytes());
    let records = FRAME_HEADER.checked_add(entries_len)?;
    let end = records.checked_add(records_len).filter(|end| *end <= bytes.len())?;
    sum.update(part(bytes, FRAME_HEADER..records));
    let mut at = records;
    for _ in 0..count {
        let body = at.checked_add(RECORD_HEADER).filter(|body| *body <= end)?;
        let next = body.checked_add(number(bytes, at)).filter(|next| *next <= end)?;
        let bytes_sum = key().of(position + u32::try_from(at).ok()?, part(bytes, body..next));
        put(bytes, at + 4, &bytes_sum.to_le_bytes());
        sum.update(part(bytes, at..body));
        at = next;
    }
    put(bytes, 4, &sum.finalize().to_le_bytes());
    (at == end).then_some(end)
}

fn place(at: usize) -> u32 {
    BASE.saturating_add(u32::try_from(at).unwrap_or(u32::MAX))
}

fn part(bytes: &[u8], range: Range<usize>) -> &[u8] {
    bytes.get(range).unwrap_or_default()
}

fn number(bytes: &[u8], at: usize) -> usize {
    part(bytes, at..at + 4).try_into().map_or(0, |bytes| u32::from_le_bytes(bytes) as usize)
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + value.len()) {
        place.copy_from_slice(value);
    }
}
