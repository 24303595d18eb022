//! Reading: from (channel, offset) to the bytes of the message, off the sequencer.
//!
//! Three places know where a message is, asked in this order by the [`Reader`]:
//!
//! 1. the [`TailCache`] holds the bytes of the newest messages, so that live consumers touch no file;
//! 2. the [`MessageIndex`] holds in memory the places of all messages in the open segment and in those sealed lately;
//! 3. for older segments, the `extents` rows of state say which segment holds a run of a channel's offsets, and the
//!    segment's `.idx` file ([`IndexFiles`]) says where in it. That file is derived: missing or damaged, it is made
//!    again from the segment, and nothing is lost with it.
//!
//! A segment leaves memory when its index file is written *and* its extents are inside a finished checkpoint. So at any
//! instant, after any crash, each message is found by one of the ways: recovery reads again what no checkpoint covers.
//!
//! The journal feeds the room through [`Feed`]; whoever opens the broker wires it as follows: make a [`TailCache`], a
//! [`MessageIndex`] and their [`Feed`]; open the journal with it; then open the [`Reader`] and, once recovery is through,
//! let it [`adopt`](Reader::adopt) what recovery did not tell of.

mod block;
mod error;
mod extent;
mod feed;
mod file;
mod files;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod index;
mod places;
mod reader;
mod records;
mod segment;
mod tail;
mod writer;

#[cfg(all(test, feature = "rocksdb"))]
mod over_journal;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub(crate) use self::{
    error::ReadError, feed::Feed, files::IndexFiles, index::MessageIndex, reader::Reader, records::Records,
    tail::TailCache,
};
