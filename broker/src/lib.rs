//! weir: an embedded event broker for the internal plane of multi-agent systems.

pub mod clock;
pub mod config;
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
mod state;
