//! What recovery hands to the engine, frame by frame.

use super::damage::Damage;
use super::error::OpenError;
use super::scan::{Scan, Step};
use super::segment::{Link, SegmentHeader, segment_path};
use super::submission::{Placed, Placements};
use crate::fs::FileSystem;
use crate::model::{Lsn, SegmentNo, UnixMillis};
use bytes::Bytes;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

/// A frame as it was submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecoveredFrame {
    /// Its LSN.
    pub(crate) lsn: Lsn,
    /// The broker time it was submitted with.
    pub(crate) broker_time: UnixMillis,
    /// Its entries, opaque here.
    pub(crate) entries: Bytes,
    /// Its records, in order.
    pub(crate) records: Vec<Placed>,
}

/// A segment to be read, and what the one after it says of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) header: SegmentHeader,
    pub(super) link: Link,
    /// Where its groups must end.
    pub(super) end: u32,
    /// Sum of its last group's header, or of its own.
    pub(super) last_sum: u32,
    /// The LSN after its last frame.
    pub(super) next_lsn: Lsn,
}

/// The frames after the applied LSN, in order. Reads as it goes and believes nothing: every sum is checked.
///
/// It tells the read room of every record it passes, also of those at or before the applied LSN, and of every segment it
/// has finished; so take all of them. After an error there is nothing more.
pub(crate) struct Frames {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    placements: Arc<dyn Placements>,
    after: Lsn,
    parts: VecDeque<Part>,
    current: Option<(Part, Scan)>,
    ready: std::vec::IntoIter<RecoveredFrame>,
}

impl Frames {
    pub(super) fn new(
        fs: Arc<dyn FileSystem>,
        dir: PathBuf,
        placements: Arc<dyn Placements>,
        after: Lsn,
        parts: VecDeque<Part>,
    ) -> Self {
        Self { fs, dir, placements, after, parts, current: None, ready: Vec::new().into_iter() }
    }

    /// The next frame, applied or not; `None` after the last.
    fn advance(&mut self) -> Result<Option<(SegmentNo, RecoveredFrame)>, OpenError> {
        loop {
            if self.current.is_none() {
                let Some(part) = self.parts.pop_front() else {
                    return Ok(None);
                };
                self.current = Some((part, self.open(part)?));
            }
            let Some((part, scan)) = &mut self.current else {
                return Ok(None);
            };
            let segment = part.header.segment;
            if let Some(frame) = self.ready.next() {
                return Ok(Some((segment, frame)));
            }
            let step = scan.step().map_err(|source| OpenError::Io {
                step: "read",
                path: segment_path(&self.dir, segment),
                source,
            })?;
            match step {
                Step::Group(group) => self.ready = group.frames.into_iter(),
                Step::Stopped(damage) => {
                    return Err(OpenError::lost(segment, scan.position(), damage));
                }
                Step::End if scan.link().sum != part.last_sum || scan.next_lsn() != part.next_lsn => {
                    return Err(OpenError::lost(segment, scan.position(), Damage::SegmentChain));
                }
                Step::End => {
                    self.placements.sealed(segment, Lsn(part.next_lsn.get().saturating_sub(1)));
                    self.current = None;
                }
            }
        }
    }

    fn open(&self, part: Part) -> Result<Scan, OpenError> {
        let path = segment_path(&self.dir, part.header.segment);
        let file = self.fs.open(&path).map_err(OpenError::io("open", &path))?;
        let len = file.len().map_err(OpenError::io("measure", &path))?;
        if len < u64::from(part.end) {
            let end = u32::try_from(len).unwrap_or(part.end);
            return Err(OpenError::lost(part.header.segment, end, Damage::Absent));
        }
        Ok(Scan::new(file, &part.header, part.link, part.end))
    }
}

impl Iterator for Frames {
    type Item = Result<RecoveredFrame, OpenError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.advance() {
                Ok(None) => return None,
                Ok(Some((segment, frame))) => {
                    if !frame.records.is_empty() {
                        self.placements.placed(segment, &frame.records);
                    }
                    if frame.lsn > self.after {
                        return Some(Ok(frame));
                    }
                }
                Err(error) => {
                    self.parts.clear();
                    self.current = None;
                    return Some(Err(error));
                }
            }
        }
    }
}
