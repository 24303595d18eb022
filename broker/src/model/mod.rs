//! The words every room shares: positions, names, times, limits. Plain values; no I/O.

mod position;
mod time;

pub use position::{ChannelNo, Epoch, GroupNo, Lsn, Offset, PolicyNo, SegmentNo};
pub use time::UnixMillis;
