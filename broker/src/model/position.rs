//! Ids and places as types, so that an offset is never mistaken for a journal place.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl $name {
            /// The bare number.
            #[must_use]
            pub const fn get(self) -> $inner {
                self.0
            }

            /// The one after this.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number!(
    /// Place of a frame in the journal, dense from 1; 0 means "before the first". One command is one frame, and all
    /// entries of a frame stand or fall together, so they share its LSN.
    Lsn(u64)
);
number!(
    /// Place of a message in its channel, dense from 0, never reused.
    Offset(u64)
);
number!(
    /// A channel's number, given at its first publish and never reused. Dense from 1.
    ChannelNo(u64)
);
number!(
    /// A channel policy's number, never reused. Dense from 1.
    PolicyNo(u32)
);
number!(
    /// A group's number, never reused. Dense from 1.
    GroupNo(u32)
);
number!(
    /// A lease's or begin's place in the broker's one counter of grants: unique for the life of the data folder, and
    /// greater for whatever came later. 0 is never given.
    Epoch(u64)
);
number!(
    /// A journal segment's number, dense from 1, also its file name.
    SegmentNo(u64)
);
