//! The journal: one log for all channels, and for every decision the engine takes. What it says is durable stays.
//!
//! # Folder
//! `000000000001.seg`, `000000000002.seg`, ... hold the log; `spare-000001` is a segment's file before its time,
//! `spare-000001.filling` one being made; `cut/` keeps what recovery cut off; `LOCK` is held by the process at work.
//!
//! # Format (version 1, little-endian)
//! A **segment** is a file of fixed size: one header block of 4,096 bytes, then groups. What follows the last group is
//! zeros. A segment that recovery closed is cut to its last group.
//!
//! ```text
//! segment header                           group header                        frame header
//!  0 magic          8  "weirjrnl"           0 magic         4  "WGRP"           0 header sum    4  over 8..24
//!  8 version        4  1                    4 sum           4  over 8..48       4 frame sum     4  see below
//! 12 sum            4  over all but itself  8 body length   4  without padding  8 entries length 4
//! 16 journal id    16                      12 frame count   4                  12 record count  4
//! 32 segment        8                      16 first LSN     8                  16 records length 4  with headers
//! 40 incarnation    8                      24 broker time   8                  20 time          4  ms after group's
//! 48 first LSN      8                      32 synced through 4                 24 entries, then records
//! 56 broker time    8                      36 previous at   4                  record
//! 64 file length    4                      40 previous sum  4                   0 length        4
//! 68 previous end   4                      44 zero          4                   4 sum           4  over the bytes
//! 72 previous sum   4                      48 frames, then zeros               8 channel       8
//! 76 zero           4                         up to a multiple of 8            16 offset        8
//! 80 previous seg   8  0: none                                                 24 bytes
//! 88 zeros
//! ```
//!
//! - **Sums** are CRC-32, started from {journal id, segment, incarnation, position}: a block that landed elsewhere, or
//!   was left by an earlier use of the file, never verifies. Group header: its own sum. Frame: the header's sum, then
//!   run on over the entries and the record headers. Record: the bytes, started at the place of the record's header.
//!   Each byte is summed once. No length is used before the sum of its header was checked; a record's length, which the
//!   frame's sum covers, is bounded by the frame's, and what it leads to is used only if the frame's sum agrees.
//! - A **frame** is one command with all it decided: there as a whole or not at all. It is at most half a segment.
//!   Frames number themselves: the first of a group has its `first LSN`, and LSNs are dense. Its time is the group's
//!   plus the frame's own difference.
//! - A **group** is one write: it starts on a multiple of 8, never crosses a segment, and names the group before it
//!   (place and sum of its header; the segment's header for the first). An *empty* group only bears witness.
//! - **Incarnation** grows by one each time the folder is opened; an old segment is never appended to.
//!
//! # What is proven
//! A place is *proven* to have been synced if a later group's `synced through` or a later segment's header covers it
//! (`previous end`: all groups before it, and nothing behind it), or the state's applied LSN. Damage in a proven place
//! is data loss, and the folder is refused. Damage elsewhere is a write that a crash cut short: nobody was told of it,
//! and it is cut off at the group.
//!
//! So that the last confirmed group is proven soon, the writer adds an empty group when nothing follows within 2 ms.
//! A segment is synced whole before the next is made, and the next one's header is synced before it has its name.

mod active;
mod batch;
mod config;
mod cut;
mod damage;
pub(crate) mod entry;
mod error;
mod fields;
mod frame;
mod frames;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod group;
mod handle;
#[allow(dead_code, reason = "`weir verify` and `weir dump` come later")]
mod inspect;
mod last;
mod queue;
mod reader;
mod recovery;
mod scan;
mod segment;
mod segments;
mod spares;
mod submission;
mod sums;
mod tail;
mod window;
mod writer;

#[cfg(test)]
mod tests;

pub(crate) use config::{JournalConfig, SyncMode};
#[cfg(test)]
pub(crate) use damage::Damage;
pub(crate) use error::{JournalError, OpenError, ReadError};
pub(crate) use frames::RecoveredFrame;
pub(crate) use handle::Journal;
pub(crate) use recovery::{Applied, Recovery};
pub(crate) use submission::{Frame, Place, Placed, Placements, Record, Submission, Waiter};
