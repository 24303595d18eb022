//! How much is published, how it is spread, and how it is sent.

use clap::{Args, ValueEnum};
use serde::Serialize;

/// Part of the messages that goes before the measuring where nothing is said.
const WARM_UP_PART: u64 = 10;

/// How publishes are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Call {
    /// `PublishStream`: one stream a connection
    Stream,
    /// `Publish`: a call each
    Unary,
}

/// Which channel comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// One after the other
    Turns,
    /// At random, the same in every run
    Random,
}

/// A pattern of publishes.
#[derive(Clone, Debug, Args, Serialize)]
pub(crate) struct Pattern {
    /// Messages that are measured; rounded up to whole publishes
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) messages: u64,
    /// Messages a publish
    #[arg(long, default_value_t = 100, value_parser = at_least_one_to::<1000>)]
    pub(crate) batch: usize,
    /// Connections
    #[arg(long, default_value_t = 8, value_parser = at_least_one_to::<1024>)]
    pub(crate) connections: usize,
    /// Channels
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(crate) channels: u64,
    /// Tasks a channel
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) tasks: u64,
    /// Publishes in flight on each connection
    #[arg(long, default_value_t = 8, value_parser = at_least_one_to::<256>)]
    pub(crate) in_flight: usize,
    /// How publishes are called
    #[arg(long, value_enum, default_value_t = Call::Stream)]
    pub(crate) call: Call,
    /// Which channel comes next
    #[arg(long, value_enum, default_value_t = Order::Turns)]
    pub(crate) order: Order,
    /// Every two messages are a request with an execution and its final report
    #[arg(long)]
    pub(crate) executions: bool,
    /// Messages published before the measuring; a tenth as many as are measured where nothing is said
    #[arg(long, value_parser = clap::value_parser!(u64).range(..=100_000_000))]
    pub(crate) warm_up: Option<u64>,
}

impl Pattern {
    /// Publishes that are measured.
    pub(crate) const fn requests(&self) -> u64 {
        self.messages.div_ceil(self.batch as u64)
    }

    /// Publishes that go before.
    pub(crate) fn warm_up_requests(&self) -> u64 {
        self.warm_up.unwrap_or(self.messages / WARM_UP_PART).div_ceil(self.batch as u64)
    }
}

/// Reads a number of the command line that has both bounds.
pub(crate) fn at_least_one_to<const MOST: usize>(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if (1..=MOST).contains(&number) => Ok(number),
        _ => Err(format!("1 to {MOST}")),
    }
}
