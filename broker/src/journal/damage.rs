//! What can be wrong with bytes on disk.

use std::fmt;

/// Why what stands at a place is not what the journal would have written there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    /// A segment's file is not there.
    SegmentMissing,
    /// A segment's header does not verify.
    SegmentHeader,
    /// Two segments disagree about where one ends and the next begins.
    SegmentChain,
    /// No group where one must be: zeros, or the end of the file.
    Absent,
    /// A group's header does not verify.
    GroupHeader,
    /// A group does not follow the one before it.
    GroupChain,
    /// A group is longer than what is left of the segment.
    GroupLength,
    /// A frame's sum does not agree with its header, entries or record headers, or its lengths not with the group's.
    Frame,
    /// A record's sum does not agree with its bytes.
    Record,
    /// What must be zeros is not.
    Padding,
    /// The state has applied an LSN that the journal does not hold.
    AppliedBeyondEnd,
    /// The segment that must hold what follows the applied LSN begins later.
    AppliedBeforeStart,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SegmentMissing => "the segment is missing",
            Self::SegmentHeader => "the segment header does not verify",
            Self::SegmentChain => "the segment does not end where the next one says",
            Self::Absent => "there is no group",
            Self::GroupHeader => "the group header does not verify",
            Self::GroupChain => "the group does not follow the one before it",
            Self::GroupLength => "the group is longer than the rest of the segment",
            Self::Frame => "a frame does not verify",
            Self::Record => "a record's bytes do not verify",
            Self::Padding => "bytes that must be zero are not",
            Self::AppliedBeyondEnd => "the journal ends before what the state has applied",
            Self::AppliedBeforeStart => "the journal begins after what the state has applied",
        })
    }
}
