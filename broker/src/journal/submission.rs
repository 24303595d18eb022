//! What goes into the journal, and who is told.

use super::error::JournalError;
use super::frame;
use crate::model::{ChannelNo, Lsn, Offset, SegmentNo, UnixMillis};
use bytes::Bytes;

/// A message to be kept.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// Its channel.
    pub(crate) channel: ChannelNo,
    /// Its place in the channel.
    pub(crate) offset: Offset,
    /// The producer's bytes, verbatim.
    pub(crate) bytes: Bytes,
}

/// One command with all it decided: kept as a whole or not at all.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// The next LSN; they are dense.
    pub(crate) lsn: Lsn,
    /// What was decided, encoded. Opaque here.
    pub(crate) entries: Vec<u8>,
    /// The messages, in the order in which the entries speak of them.
    pub(crate) records: Vec<Record>,
}

impl Frame {
    /// Bytes the frame takes in the journal; at most [`super::Journal::frame_bytes_max`].
    pub(crate) fn encoded_len(&self) -> u64 {
        frame::encoded_len(self)
    }
}

/// A reply or delivery held back until what it speaks of is durable.
pub(crate) trait Waiter: Send {
    /// Lets it go, or tells it that what it waits for is not durable and will not be. Called once, mostly on the
    /// writer's thread: it must not block.
    fn release(self: Box<Self>, outcome: Result<(), JournalError>);
}

/// One hand-over from the sequencer to the writer.
pub(crate) struct Submission {
    /// Broker time of the frames. One that goes back counts as the latest before.
    pub(crate) broker_time: UnixMillis,
    /// Frames in LSN order; none if there is only something to wait for.
    pub(crate) frames: Vec<Frame>,
    /// What was applied when the waiters were made: they go when this is durable.
    pub(crate) applied: Lsn,
    /// Go after the sync.
    pub(crate) waiters: Vec<Box<dyn Waiter>>,
    /// Publish replies: with [`super::SyncMode::Interval`] they go after the write, else with the others, before them.
    pub(crate) early_waiters: Vec<Box<dyn Waiter>>,
}

impl Submission {
    /// Bytes the frames take in the journal.
    pub(crate) fn encoded_len(&self) -> u64 {
        self.frames.iter().map(Frame::encoded_len).sum()
    }
}

/// Where a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    /// The segment.
    pub(crate) segment: SegmentNo,
    /// Where the record's header begins in the segment.
    pub(crate) position: u32,
    /// Bytes of the message, without the header.
    pub(crate) len: u32,
}

/// A record and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    /// Its channel.
    pub(crate) channel: ChannelNo,
    /// Its place in the channel.
    pub(crate) offset: Offset,
    /// Its place in the journal.
    pub(crate) place: Place,
    /// The message.
    pub(crate) bytes: Bytes,
}

/// Who keeps the index of places.
///
/// Called by the writer's thread, before any waiter of the group is released, and during recovery by the thread that
/// takes the frames. Must not block for long: nothing is confirmed meanwhile.
pub(crate) trait Placements: Send + Sync {
    /// These records now stand in `segment`, in this order.
    fn placed(&self, segment: SegmentNo, records: &[Placed]);

    /// `segment` gets no more records; `last_lsn` is the last frame in it or, if it has none, before it.
    fn sealed(&self, segment: SegmentNo, last_lsn: Lsn);
}
