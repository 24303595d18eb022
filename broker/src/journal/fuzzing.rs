//! What holds of the journal's decoders for any bytes. See `crate::fuzzing`.
#![allow(clippy::expect_used, reason = "a check says what broke by panicking")]

mod image;
mod mend;
#[cfg(test)]
pub(crate) mod seeds;

use self::image::Image;
use super::damage::Damage;
use super::frame::{self, Decoded};
use super::group::{GROUP_HEADER_LEN, group_len};
use super::scan::{Group, Scan, Step};
use super::segment::{HeaderFault, Link, SEGMENT_HEADER_LEN, SegmentHeader};
use super::submission::{Frame, Record};
use super::sums::SumKey;
use super::{entry, tail};
use crate::model::{Lsn, SegmentNo, UnixMillis};
use bytes::Bytes;
use std::sync::Arc;

pub(super) const JOURNAL_ID: u128 = 1;
pub(super) const SEGMENT: SegmentNo = SegmentNo(2);
pub(super) const INCARNATION: u64 = 3;
/// Where groups and frames stand.
pub(super) const BASE: u32 = SEGMENT_HEADER_LEN;

pub(super) fn key() -> SumKey {
    SumKey::new(JOURNAL_ID, SEGMENT, INCARNATION)
}

/// A segment's header block: what is read is written again as it stood.
pub(crate) fn segment(bytes: &[u8]) {
    same_block(bytes);
    let mut block = bytes.to_vec();
    block.resize(SEGMENT_HEADER_LEN as usize, 0);
    mend::segment(&mut block);
    same_block(&block);
}

fn same_block(block: &[u8]) {
    match SegmentHeader::decode(block, SEGMENT) {
        Ok((header, link)) => {
            let (written, same_link) = header.encode();
            assert_eq!((written.len(), same_link), (block.len(), link));
            assert_eq!(written.iter().zip(block).position(|(a, b)| a != b), None, "the first byte that differs");
        }
        Err(HeaderFault::Version(version)) => assert_ne!(version, 1),
        Err(HeaderFault::Damaged(damage)) => assert_eq!(damage, Damage::SegmentHeader),
    }
}

/// Groups behind a segment's header: a scan moves on by whole groups, each of which is written again as it stood, stops
/// without moving, and what stands behind it is looked through.
pub(crate) fn groups(bytes: &[u8]) {
    scan(bytes);
    let mut mended = bytes.to_vec();
    mend::groups(&mut mended);
    scan(&mended);
}

fn scan(bytes: &[u8]) {
    let content = [&[0; SEGMENT_HEADER_LEN as usize], bytes].concat();
    let limit = u32::try_from(content.len()).expect("inputs are short");
    let header = SegmentHeader {
        journal_id: JOURNAL_ID,
        segment: SEGMENT,
        incarnation: INCARNATION,
        first_lsn: mend::first_lsn(bytes),
        broker_time: UnixMillis(0),
        file_len: limit,
        previous: None,
    };
    let file = Arc::new(Image(content));
    let mut scan = Scan::new(file.clone(), &header, mend::LINK, limit);
    loop {
        let (from, lsn) = (scan.position(), scan.next_lsn());
        match scan.step().expect("memory can be read") {
            Step::Group(group) => {
                let (to, next) = (scan.position(), scan.next_lsn());
                assert!(from < to && to <= limit, "from {from} to {to} of {limit}");
                assert_eq!(next.get().checked_sub(lsn.get()), Some(group.frames.len() as u64));
                same_group(&group, from, scan.link(), file.between(from, to));
            }
            Step::End => return assert_eq!(from, limit),
            Step::Stopped(_) => {
                assert_eq!((scan.position(), scan.next_lsn()), (from, lsn));
                let tail = tail::examine(file, key(), from, limit).expect("memory can be read");
                return assert!(tail.len <= limit - from);
            }
        }
    }
}

fn same_group(group: &Group, position: u32, link: Link, bytes: &[u8]) {
    if group.header.broker_time.get() > u64::MAX - u64::from(u32::MAX) {
        // Times of frames end at the end of time, so how far behind the group's they were is not known any more.
        return;
    }
    let mut buffer = vec![0; GROUP_HEADER_LEN as usize];
    for frame in &group.frames {
        let time_ms = frame.broker_time.since(group.header.broker_time);
        let decoded = Decoded {
            time_ms: u32::try_from(time_ms).expect("a difference has 32 bits"),
            entries: frame.entries.clone(),
            records: frame.records.clone(),
        };
        write(decoded, position, &mut buffer);
    }
    let (front, written) = group.header.encode(position, key());
    assert_eq!(written, link);
    buffer.splice(..front.len(), front);
    let len = group_len(group.header.body_len).expect("it was read");
    buffer.resize(len as usize, 0);
    assert_eq!(buffer, bytes);
}

/// One frame at the front: what is read is written again as it stood, and one whose lengths agree is read.
pub(crate) fn frame(bytes: &[u8]) {
    same_frame(bytes);
    let mut mended = bytes.to_vec();
    let whole = mend::frame(&mut mended, BASE);
    assert_eq!(same_frame(&mended), whole);
}

fn same_frame(bytes: &[u8]) -> Option<usize> {
    let (mut body, mut position) = (Bytes::copy_from_slice(bytes), BASE);
    let decoded = frame::decode(&mut body, &mut position, (SEGMENT, key())).ok()?;
    let len = bytes.len() - body.len();
    assert_eq!((position - BASE) as usize, len);
    let mut again = Vec::new();
    write(decoded, BASE, &mut again);
    assert_eq!(again, bytes.get(..len).unwrap_or_default());
    Some(len)
}

/// Writes a frame that was read; `base` is the place of the buffer's first byte.
fn write(decoded: Decoded, base: u32, buffer: &mut Vec<u8>) {
    let Decoded { time_ms, entries, records } = decoded;
    let record =
        |placed: &super::Placed| Record { channel: placed.channel, offset: placed.offset, bytes: placed.bytes.clone() };
    let frame = Frame { lsn: Lsn(1), entries: entries.to_vec(), records: records.iter().map(record).collect() };
    let mut placed = Vec::new();
    frame::encode(frame, time_ms, (SEGMENT, base, key()), buffer, &mut placed);
    assert_eq!(placed, records);
}

/// The entries of a frame: what is read is written, and read again as the same.
pub(crate) fn entries(bytes: &[u8]) {
    let Ok(entries) = entry::decode(bytes) else { return };
    let written = entry::encode(&entries).expect("what was read can be written");
    let again = entry::decode(&written).expect("what was written can be read");
    assert_eq!(again, entries);
    assert_eq!(entry::encode(&again).as_ref(), Ok(&written));
}
