//! The server over a real socket, spoken to with plain generated clients.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod consume_stream;
mod fetching;
mod probes;
mod publishing;
mod rig;
mod undecodable;
