//! The segment that is written to.

use super::group::{GROUP_ALIGN, GROUP_HEADER_LEN, GroupHeader};
use super::segment::{Link, Previous, SEGMENT_HEADER_LEN, SegmentHeader};
use super::sums::SumKey;
use crate::fs::File;
use crate::model::{Lsn, SegmentNo, UnixMillis};
use std::io;
use std::sync::Arc;

/// The open segment, its end, and how much of it is synced.
pub(super) struct Active {
    file: Arc<dyn File>,
    header: SegmentHeader,
    key: SumKey,
    position: u32,
    synced_through: u32,
    link: Link,
}

impl Active {
    /// A segment just made.
    pub(super) fn new(file: Arc<dyn File>, header: SegmentHeader, link: Link) -> Self {
        let (position, synced_through) = (SEGMENT_HEADER_LEN, SEGMENT_HEADER_LEN);
        Self { file, header, key: header.key(), position, synced_through, link }
    }

    pub(super) fn segment(&self) -> SegmentNo {
        self.header.segment
    }

    /// Segment, place of the next group, and key of its sums.
    pub(super) fn place(&self) -> (SegmentNo, u32, SumKey) {
        (self.header.segment, self.position, self.key)
    }

    /// Bytes left for groups.
    pub(super) fn room(&self) -> u64 {
        u64::from(self.header.file_len.saturating_sub(self.position))
    }

    /// Writes a group: `buffer` holds room for its header, then its frames.
    pub(super) fn write(
        &mut self,
        buffer: &mut Vec<u8>,
        frame_count: u32,
        first_lsn: Lsn,
        broker_time: UnixMillis,
    ) -> io::Result<()> {
        let body_len = buffer.len().saturating_sub(GROUP_HEADER_LEN as usize);
        buffer.resize(buffer.len().next_multiple_of(GROUP_ALIGN as usize), 0);
        let (Ok(len), Ok(body_len)) = (u32::try_from(buffer.len()), u32::try_from(body_len)) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let header = GroupHeader {
            body_len,
            frame_count,
            first_lsn,
            broker_time,
            synced_through: self.synced_through,
            previous: self.link,
        };
        let (bytes, link) = header.encode(self.position, self.key);
        let (Some(front), true) = (buffer.get_mut(..bytes.len()), u64::from(len) <= self.room()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        front.copy_from_slice(&bytes);
        self.file.write_all_at(buffer, u64::from(self.position))?;
        self.position += len;
        self.link = link;
        Ok(())
    }

    /// Syncs what was written.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        self.synced_through = self.position;
        Ok(())
    }

    /// Header of the segment that comes after this one, all of which is synced.
    pub(super) fn next_header(&self, first_lsn: Lsn, broker_time: UnixMillis) -> SegmentHeader {
        SegmentHeader {
            segment: self.header.segment.next(),
            first_lsn,
            broker_time,
            previous: Some(Previous { segment: self.header.segment, end: self.position, sum: self.link.sum }),
            ..self.header
        }
    }
}
