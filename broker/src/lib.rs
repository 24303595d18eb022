//! weir: an embedded event broker for the internal plane of multi-agent systems.

pub mod clock;
pub mod config;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod model;
pub mod telemetry;
pub mod transport;

pub use broker::{
    Broker, BrokerBuilder, ConsumeStream, Fetched, Health, Joined, OpenError, SessionEvent, Status, SyncPolicy,
};

mod broker;
mod engine;
mod fs;
mod journal;
mod read;
#[cfg(test)]
mod simulation;
#[cfg_attr(not(feature = "rocksdb"), allow(dead_code, reason = "without RocksDB there is nobody to keep it"))]
mod state;
