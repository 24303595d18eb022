//! The client side of a measurement: connections, publishes in flight on each, and every answer checked.

mod answer;
mod connection;
mod stream;
mod unary;

pub(crate) use connection::connect;

use crate::stopwatch::Stopwatch;
use crate::workload::{Call, Lane, Pattern};
use anyhow::Context as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tonic::transport::Channel;

/// Longest run: whoever takes longer has got stuck.
pub(crate) const RUN_LIMIT: Duration = Duration::from_secs(900);

/// What came of some calls.
#[derive(Clone, Debug)]
pub(crate) struct Driven {
    /// From the first request to the last answer, over all connections.
    pub(crate) elapsed: Duration,
    /// Messages confirmed.
    pub(crate) confirmed: u64,
    /// From each call being handed to its connection to its answer, sorted; in microseconds.
    pub(crate) waits_us: Vec<u32>,
}

/// Connections to one server.
pub(crate) struct Load {
    channels: Vec<Channel>,
    call: Call,
    in_flight: usize,
}

/// What one connection saw.
#[derive(Default)]
pub(crate) struct Seen {
    confirmed: u64,
    waits_us: Vec<u32>,
}

impl Seen {
    /// So many messages were confirmed by the answer to a call sent then.
    pub(crate) fn answered(&mut self, messages: usize, sent: Stopwatch) {
        self.confirmed += messages as u64;
        self.waits_us.push(u32::try_from(sent.elapsed().as_micros()).unwrap_or(u32::MAX));
    }
}

impl Driven {
    /// Adds what one more connection saw.
    pub(crate) fn take(&mut self, seen: Seen) {
        self.confirmed += seen.confirmed;
        self.waits_us.extend(seen.waits_us);
    }
}

impl Load {
    /// Opens the connections of a pattern.
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub(crate) async fn open(address: &str, pattern: &Pattern) -> anyhow::Result<Self> {
        let mut channels = Vec::with_capacity(pattern.connections);
        for _ in 0..pattern.connections {
            channels.push(connect(address).await?);
        }
        Ok(Self { channels, call: pattern.call, in_flight: pattern.in_flight })
    }

    /// Publishes the lanes, one a connection, and waits for all answers.
    ///
    /// # Errors
    /// If a connection broke, anything was answered but that it is stored and durable, or it took longer than any run
    /// may.
    pub(crate) async fn drive(&self, lanes: &[Lane]) -> anyhow::Result<Driven> {
        let start = Arc::new(Barrier::new(lanes.len() + 1));
        let mut running = JoinSet::new();
        for (channel, lane) in self.channels.iter().cloned().zip(lanes.iter().cloned()) {
            let (start, in_flight) = (Arc::clone(&start), self.in_flight);
            match self.call {
                Call::Stream => running.spawn(stream::drive(channel, lane, in_flight, start)),
                Call::Unary => running.spawn(unary::drive(channel, lane, in_flight, start)),
            };
        }
        start.wait().await;
        let clock = Stopwatch::start();
        let mut driven = Driven { elapsed: Duration::ZERO, confirmed: 0, waits_us: Vec::new() };
        let all = async {
            while let Some(seen) = running.join_next().await {
                driven.take(seen.context("a connection's task")??);
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(RUN_LIMIT, all).await.with_context(|| format!("not answered within {RUN_LIMIT:?}"))??;
        driven.elapsed = clock.elapsed();
        driven.waits_us.sort_unstable();
        Ok(driven)
    }
}
