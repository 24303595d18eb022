//! The command line of `weir-bench`.

use crate::consume::Way;
use crate::pipe::PipeArgs;
use crate::report::Format;
use crate::workload::{Call, Pattern, at_least_one_to};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Measures weir on this machine, beside the least any broker would have to do.
#[derive(Debug, Parser)]
#[command(name = "weir-bench", version, about)]
pub(crate) struct CommandLine {
    /// What is measured
    #[command(subcommand)]
    pub(crate) verb: Verb,
    /// How the figures are shown
    #[arg(short, long, global = true, value_enum, default_value_t = Format::Table)]
    pub(crate) output: Format,
}

/// What is measured.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Publishes to `weir serve`
    Publish(PublishArgs),
    /// Publishes to the bare pipe: the same bytes over the same calls into one file, synced
    Pipe(PublishArgs),
    /// The pipe and weir in turns, and their ratio
    Gate(PublishArgs),
    /// Publishes, then takes and settles each message
    Consume(ConsumeArgs),
    /// One publish in flight: a bare call, the pipe and weir in turns
    Latency(LatencyArgs),
    /// The server of the pipe; the other verbs start it
    #[command(hide = true)]
    PipeServer(PipeArgs),
}

/// Where and how often.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunArgs {
    /// Runs, each on a fresh server and folder
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: u32,
    /// Folder whose disk is measured; data goes into folders of its own in there, which are removed again
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// The `weir` to measure; else the one beside this program
    #[arg(long, value_name = "FILE")]
    pub(crate) weir: Option<PathBuf>,
    /// Journal between two checkpoints of weir, in MiB; else its default
    #[arg(long, value_name = "MIB")]
    pub(crate) checkpoint_mib: Option<u64>,
    /// Wait until others use at most so many cores, and measure again where they used more meanwhile
    #[arg(long, value_name = "CORES")]
    pub(crate) quiet: Option<f64>,
}

/// A measurement of publishes.
#[derive(Clone, Debug, Args)]
pub(crate) struct PublishArgs {
    /// Where and how often
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// The pattern
    #[command(flatten)]
    pub(crate) pattern: Pattern,
    /// Bytes of each payload; several, with commas, are measured one after the other
    #[arg(long, value_delimiter = ',', default_values_t = [256, 1024])]
    pub(crate) payload: Vec<usize>,
}

/// A measurement of single publishes.
#[derive(Clone, Debug, Args)]
pub(crate) struct LatencyArgs {
    /// Where and how often
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Messages that are measured; a tenth as many go before
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) messages: u64,
    /// Channels, one after the other
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(crate) channels: u64,
    /// Tasks a channel
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) tasks: u64,
    /// Every two messages of a channel are a request with an execution and its final report
    #[arg(long)]
    pub(crate) executions: bool,
    /// How publishes are called
    #[arg(long, value_enum, default_value_t = Call::Unary)]
    pub(crate) call: Call,
    /// Bytes of each payload; several, with commas, are measured one after the other
    #[arg(long, value_delimiter = ',', default_values_t = [256])]
    pub(crate) payload: Vec<usize>,
}

/// A measurement of consuming.
#[derive(Clone, Debug, Args)]
pub(crate) struct ConsumeArgs {
    /// Where and how often
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// The pattern of what is published first
    #[command(flatten)]
    pub(crate) pattern: Pattern,
    /// Members of the group, a connection each
    #[arg(long, default_value_t = 8, value_parser = at_least_one_to::<1024>)]
    pub(crate) members: usize,
    /// How members take messages
    #[arg(long, value_enum, default_value_t = Way::Stream)]
    pub(crate) way: Way,
    /// Messages a member may hold, or most messages of a fetch
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) window: u32,
    /// Bytes of each payload; several, with commas, are measured one after the other
    #[arg(long, value_delimiter = ',', default_values_t = [256, 1024])]
    pub(crate) payload: Vec<usize>,
}
