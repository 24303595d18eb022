//! Frames and the records in them.

use super::damage::Damage;
use super::fields::{Fields, length};
use super::submission::{Frame, Place, Placed, Record};
use super::sums::{SumKey, agree};
use crate::model::{ChannelNo, Offset, SegmentNo};
use bytes::{Buf, BufMut, Bytes};

const FRAME_HEADER_LEN: usize = 24;
/// Where in the frame's header its own sum begins to look.
const SUMMED_FROM: usize = 8;
/// Bytes of a record's header.
pub(super) const RECORD_HEADER_LEN: usize = 24;

/// Bytes a frame takes.
pub(super) fn encoded_len(frame: &Frame) -> u64 {
    (FRAME_HEADER_LEN + frame.entries.len() + records_len(&frame.records)) as u64
}

fn records_len(records: &[Record]) -> usize {
    records.iter().map(|record| RECORD_HEADER_LEN + record.bytes.len()).sum()
}

/// Appends a frame to a group under construction and its records' places to `placed`.
///
/// `base` is the place of the buffer's first byte in `segment`; `time_ms` the frame's time after the group's. The whole
/// is below 4 GiB.
pub(super) fn encode(
    frame: Frame,
    time_ms: u32,
    (segment, base, key): (SegmentNo, u32, SumKey),
    buffer: &mut Vec<u8>,
    placed: &mut Vec<Placed>,
) {
    let start = buffer.len();
    let place_of = |at: usize| base.saturating_add(length(at));
    buffer.put_u64_le(0);
    buffer.put_u32_le(length(frame.entries.len()));
    buffer.put_u32_le(length(frame.records.len()));
    buffer.put_u32_le(length(records_len(&frame.records)));
    buffer.put_u32_le(time_ms);
    let mut sum = key.at(place_of(start));
    sum.update(buffer.get(start + SUMMED_FROM..).unwrap_or_default());
    let header_sum = sum.clone().finalize();
    sum.update(&frame.entries);
    buffer.put_slice(&frame.entries);
    for Record { channel, offset, bytes } in frame.records {
        let at = buffer.len();
        let place = Place { segment, position: place_of(at), len: length(bytes.len()) };
        buffer.put_u32_le(place.len);
        buffer.put_u32_le(key.of(place.position, &bytes));
        buffer.put_u64_le(channel.get());
        buffer.put_u64_le(offset.get());
        sum.update(buffer.get(at..).unwrap_or_default());
        buffer.put_slice(&bytes);
        placed.push(Placed { channel, offset, place, bytes });
    }
    if let Some(mut sums) = buffer.get_mut(start..start + SUMMED_FROM) {
        sums.put_u32_le(header_sum);
        sums.put_u32_le(sum.finalize());
    }
}

/// A frame read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decoded {
    /// Milliseconds after the group's time.
    pub(super) time_ms: u32,
    pub(super) entries: Bytes,
    pub(super) records: Vec<Placed>,
}

/// Reads the frame at the front of `body`, which stands at `*position`, and moves both behind it.
pub(super) fn decode(
    body: &mut Bytes,
    position: &mut u32,
    (segment, key): (SegmentNo, SumKey),
) -> Result<Decoded, Damage> {
    let header = take(body, FRAME_HEADER_LEN)?;
    let mut fields = Fields::new(&header);
    let (Some(header_sum), Some(frame_sum)) = (fields.u32(), fields.u32()) else {
        return Err(Damage::Frame);
    };
    let mut sum = key.at(*position);
    sum.update(header.get(SUMMED_FROM..).ok_or(Damage::Frame)?);
    if !agree(sum.clone().finalize(), header_sum) {
        return Err(Damage::Frame);
    }
    let (Some(entries_len), Some(count), Some(records_len), Some(time_ms)) =
        (fields.u32(), fields.u32(), fields.u32(), fields.u32())
    else {
        return Err(Damage::Frame);
    };
    let entries = take(body, entries_len as usize)?;
    sum.update(&entries);
    let mut area = take(body, records_len as usize)?;
    let mut at = advanced(*position, FRAME_HEADER_LEN + entries.len())?;
    *position = advanced(at, area.len())?;
    // Bounded by bytes that are really there: a record has at least its header.
    let mut records = Vec::with_capacity((count as usize).min(area.len() / RECORD_HEADER_LEN));
    let mut bytes_agree = true;
    for _ in 0..count {
        let header = take(&mut area, RECORD_HEADER_LEN)?;
        sum.update(&header);
        let header = RecordHeader::parse(&header).ok_or(Damage::Frame)?;
        let bytes = take(&mut area, header.len as usize)?;
        bytes_agree &= agree(key.of(at, &bytes), header.sum);
        let place = Place { segment, position: at, len: header.len };
        at = advanced(at, RECORD_HEADER_LEN + bytes.len())?;
        records.push(Placed { channel: header.channel, offset: header.offset, place, bytes });
    }
    match (agree(sum.finalize(), frame_sum) && area.is_empty(), bytes_agree) {
        (true, true) => Ok(Decoded { time_ms, entries, records }),
        (true, false) => Err(Damage::Record),
        (false, _) => Err(Damage::Frame),
    }
}

/// A record's header.
pub(super) struct RecordHeader {
    /// Bytes of the message.
    pub(super) len: u32,
    /// Their sum.
    pub(super) sum: u32,
    channel: ChannelNo,
    offset: Offset,
}

impl RecordHeader {
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields::new(bytes);
        Some(Self {
            len: fields.u32()?,
            sum: fields.u32()?,
            channel: ChannelNo(fields.u64()?),
            offset: Offset(fields.u64()?),
        })
    }
}

/// The first `len` bytes, taken off; `Bytes` would panic if there were fewer.
fn take(bytes: &mut Bytes, len: usize) -> Result<Bytes, Damage> {
    if bytes.remaining() < len {
        return Err(Damage::Frame);
    }
    Ok(bytes.split_to(len))
}

fn advanced(position: u32, bytes: usize) -> Result<u32, Damage> {
    position.checked_add(length(bytes)).ok_or(Damage::Frame)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]
    use super::*;
    use crate::model::Lsn;
    use proptest::prelude::*;

    const SEGMENT: SegmentNo = SegmentNo(2);
    const BASE: u32 = 4096;

    fn key() -> SumKey {
        SumKey::new(1, SEGMENT, 3)
    }

    fn frames() -> impl Strategy<Value = Vec<Frame>> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..40);
        let record = (any::<u64>(), any::<u64>(), bytes()).prop_map(|(channel, offset, bytes)| Record {
            channel: ChannelNo(channel),
            offset: Offset(offset),
            bytes: bytes.into(),
        });
        let frame = (bytes(), prop::collection::vec(record, 0..4)).prop_map(|(entries, records)| Frame {
            lsn: Lsn(1),
            entries,
            records,
        });
        prop::collection::vec(frame, 1..4)
    }

    fn written(frames: &[Frame]) -> (Vec<u8>, Vec<Placed>) {
        let (mut buffer, mut placed) = (Vec::new(), Vec::new());
        for (time_ms, frame) in frames.iter().enumerate() {
            encode(frame.clone(), time_ms as u32, (SEGMENT, BASE, key()), &mut buffer, &mut placed);
        }
        (buffer, placed)
    }

    fn read(buffer: &[u8], count: usize) -> Result<Vec<Decoded>, Damage> {
        let (mut body, mut position) = (Bytes::copy_from_slice(buffer), BASE);
        (0..count).map(|_| decode(&mut body, &mut position, (SEGMENT, key()))).collect()
    }

    proptest! {
        #[test]
        fn frames_come_back_as_written_and_in_the_length_foretold(frames in frames()) {
            let (buffer, placed) = written(&frames);
            prop_assert_eq!(buffer.len() as u64, frames.iter().map(encoded_len).sum::<u64>());
            let decoded = read(&buffer, frames.len()).unwrap();
            prop_assert_eq!(decoded.iter().flat_map(|frame| frame.records.clone()).collect::<Vec<_>>(), placed);
            for (time_ms, (frame, decoded)) in frames.iter().zip(&decoded).enumerate() {
                prop_assert_eq!(&decoded.entries, &frame.entries);
                prop_assert_eq!(decoded.time_ms, time_ms as u32);
                for (record, placed) in frame.records.iter().zip(&decoded.records) {
                    prop_assert_eq!((record.channel, record.offset, &record.bytes),
                        (placed.channel, placed.offset, &placed.bytes));
                }
            }
        }

        #[test]
        fn no_flipped_bit_and_no_missing_end_is_accepted(frames in frames(), bit: prop::sample::Index) {
            let (buffer, _) = written(&frames);
            let mut flipped = buffer.clone();
            let bit = bit.index(buffer.len() * 8);
            flipped[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(read(&flipped, frames.len()).is_err());
            prop_assert!(read(&buffer[..bit / 8], frames.len()).is_err());
        }

        #[test]
        fn arbitrary_bytes_are_no_frame(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(read(&bytes, 1).is_err());
        }
    }
}
