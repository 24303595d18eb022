//! Walking a segment group by group, believing nothing that does not verify.

use super::damage::Damage;
use super::frame;
use super::frames::RecoveredFrame;
use super::group::{GROUP_HEADER_LEN, GroupHeader, group_len};
use super::segment::{HeaderFault, Link, SEGMENT_HEADER_LEN, SegmentHeader};
use super::sums::SumKey;
use super::window::Window;
use crate::fs::File;
use crate::model::{Lsn, SegmentNo, UnixMillis};
use bytes::Bytes;
use std::io;
use std::sync::Arc;

/// A group that verified.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) header: GroupHeader,
    pub(super) frames: Vec<RecoveredFrame>,
}

/// What stands at the scan's place.
#[derive(Debug)]
pub(super) enum Step {
    /// A group; the scan has moved behind it.
    Group(Group),
    /// The end of what was to be scanned.
    End,
    /// Something else; the scan has not moved.
    Stopped(Damage),
}

/// A scan of one segment.
pub(super) struct Scan {
    window: Window,
    segment: SegmentNo,
    key: SumKey,
    position: u32,
    link: Link,
    next_lsn: Lsn,
    broker_time: UnixMillis,
}

impl Scan {
    /// A scan of the groups of `header`'s file, up to `limit`.
    pub(super) fn new(file: Arc<dyn File>, header: &SegmentHeader, link: Link, limit: u32) -> Self {
        Self {
            window: Window::new(file, limit),
            segment: header.segment,
            key: header.key(),
            position: SEGMENT_HEADER_LEN,
            link,
            next_lsn: header.first_lsn,
            broker_time: header.broker_time,
        }
    }

    /// Where the next group begins, or the groups end.
    pub(super) fn position(&self) -> u32 {
        self.position
    }

    /// The last group, or the segment's header.
    pub(super) fn link(&self) -> Link {
        self.link
    }

    /// LSN of the next frame.
    pub(super) fn next_lsn(&self) -> Lsn {
        self.next_lsn
    }

    /// Latest broker time seen.
    pub(super) fn broker_time(&self) -> UnixMillis {
        self.broker_time
    }

    /// The next group.
    ///
    /// # Errors
    /// Only of reading: damage is a [`Step`].
    pub(super) fn step(&mut self) -> io::Result<Step> {
        if self.position == self.window.limit() {
            return Ok(Step::End);
        }
        let Some(bytes) = self.window.bytes(self.position, GROUP_HEADER_LEN)? else {
            return Ok(Step::Stopped(Damage::Absent));
        };
        let (header, link) = match GroupHeader::decode(&bytes, self.position, self.key) {
            Ok(found) => found,
            Err(damage) => return Ok(Step::Stopped(damage)),
        };
        if !self.follows(&header) {
            return Ok(Step::Stopped(Damage::GroupChain));
        }
        let Some(body_len) = group_len(header.body_len).and_then(|len| len.checked_sub(GROUP_HEADER_LEN)) else {
            return Ok(Step::Stopped(Damage::GroupLength));
        };
        let body_at = self.position.saturating_add(GROUP_HEADER_LEN);
        let Some(mut body) = self.window.bytes(body_at, body_len)? else {
            return Ok(Step::Stopped(Damage::GroupLength));
        };
        let padding = body.split_off(header.body_len as usize);
        if padding.iter().any(|byte| *byte != 0) {
            return Ok(Step::Stopped(Damage::Padding));
        }
        match self.frames(&header, body, body_at) {
            Ok(frames) => {
                self.position = body_at.saturating_add(body_len);
                self.link = link;
                self.next_lsn = Lsn(header.first_lsn.get().saturating_add(u64::from(header.frame_count)));
                let latest = frames.last().map_or(header.broker_time, |frame| frame.broker_time);
                self.broker_time = self.broker_time.max(latest);
                Ok(Step::Group(Group { header, frames }))
            }
            Err(damage) => Ok(Step::Stopped(damage)),
        }
    }

    fn follows(&self, header: &GroupHeader) -> bool {
        header.previous == self.link
            && header.first_lsn == self.next_lsn
            && header.synced_through <= self.position
            && header.first_lsn.get().checked_add(u64::from(header.frame_count)).is_some()
    }

    fn frames(&self, header: &GroupHeader, mut body: Bytes, mut position: u32) -> Result<Vec<RecoveredFrame>, Damage> {
        let mut frames = Vec::new();
        let mut lsn = header.first_lsn;
        for _ in 0..header.frame_count {
            let decoded = frame::decode(&mut body, &mut position, (self.segment, self.key))?;
            frames.push(RecoveredFrame {
                lsn,
                broker_time: header.broker_time.plus(u64::from(decoded.time_ms)),
                entries: decoded.entries,
                records: decoded.records,
            });
            lsn = lsn.next();
        }
        if body.is_empty() { Ok(frames) } else { Err(Damage::Frame) }
    }
}

/// Reads and verifies the header block of `segment`; a file too short for one is damaged.
pub(super) fn read_header(
    file: &dyn File,
    segment: SegmentNo,
) -> io::Result<Result<(SegmentHeader, Link), HeaderFault>> {
    let mut block = vec![0; SEGMENT_HEADER_LEN as usize];
    match file.read_exact_at(&mut block, 0) {
        Ok(()) => Ok(SegmentHeader::decode(&block, segment)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Ok(Err(HeaderFault::Damaged(Damage::SegmentHeader)))
        }
        Err(error) => Err(error),
    }
}
