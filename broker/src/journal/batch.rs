//! A group under construction.

use super::frame;
use super::group::GROUP_HEADER_LEN;
use super::submission::{Frame, Placed, Waiter};
use super::sums::SumKey;
use crate::model::{Lsn, SegmentNo, UnixMillis};

/// A submission whose frames are all in this group or an earlier one.
pub(super) struct Finished {
    pub(super) applied: Lsn,
    pub(super) early_waiters: Vec<Box<dyn Waiter>>,
    pub(super) waiters: Vec<Box<dyn Waiter>>,
}

/// The one buffer all groups are built in, and what goes with the group in it.
pub(super) struct Batch {
    pub(super) buffer: Vec<u8>,
    pub(super) placed: Vec<Placed>,
    pub(super) finished: Vec<Finished>,
    pub(super) first_lsn: Lsn,
    /// Time of the first frame.
    pub(super) broker_time: UnixMillis,
    pub(super) frame_count: u32,
    /// Bytes of the frames.
    pub(super) frame_bytes: u64,
    /// What the buffer shrinks to after a longer frame.
    usual_bytes: usize,
}

impl Batch {
    /// A buffer for groups of about `usual_bytes`; it grows as they come.
    pub(super) fn new(usual_bytes: usize) -> Self {
        Self {
            buffer: Vec::new(),
            placed: Vec::new(),
            finished: Vec::new(),
            first_lsn: Lsn(0),
            broker_time: UnixMillis(0),
            frame_count: 0,
            frame_bytes: 0,
            usual_bytes: usual_bytes.saturating_add(GROUP_HEADER_LEN as usize),
        }
    }

    /// Begins the next group. What is finished and has not been told stays.
    pub(super) fn start(&mut self, first_lsn: Lsn, broker_time: UnixMillis) {
        self.buffer.clear();
        self.buffer.shrink_to(self.usual_bytes.saturating_mul(2));
        self.buffer.resize(GROUP_HEADER_LEN as usize, 0);
        self.placed.clear();
        (self.first_lsn, self.broker_time) = (first_lsn, broker_time);
        (self.frame_count, self.frame_bytes) = (0, 0);
    }

    /// Whether it has no frame.
    pub(super) fn is_empty(&self) -> bool {
        self.frame_count == 0
    }

    /// Bytes with the group's header and without padding, if a frame of `frame_len` came in.
    pub(super) fn len_with(&self, frame_len: u64) -> u64 {
        (self.buffer.len() as u64).saturating_add(frame_len)
    }

    /// Whether a frame's time can be told as a difference to the group's.
    pub(super) fn can_tell(&self, broker_time: UnixMillis) -> bool {
        self.is_empty() || u32::try_from(broker_time.since(self.broker_time)).is_ok()
    }

    /// Adds a frame of `broker_time`, not before the batch's.
    pub(super) fn push(&mut self, frame: Frame, broker_time: UnixMillis, place: (SegmentNo, u32, SumKey)) {
        if self.is_empty() {
            self.broker_time = broker_time;
        }
        self.frame_bytes += frame.encoded_len();
        self.frame_count += 1;
        let time_ms = u32::try_from(broker_time.since(self.broker_time)).unwrap_or(u32::MAX);
        frame::encode(frame, time_ms, place, &mut self.buffer, &mut self.placed);
    }
}
