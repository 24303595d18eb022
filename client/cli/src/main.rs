//! `weirctl`, the command line of weir: publishes, consumes, and asks what became of things.
//!
//! Data goes to stdout, words go to stderr, and the exit code says what kind of end it was ([`exit::Code`]). The JSON of
//! each verb is described in `OUTPUT.md` and stays as it is.

mod cli;
mod connection;
mod duration;
mod enums;
mod exit;
mod names;
mod ndjson;
mod output;
mod refused;
mod verbs;

use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(cli: cli::Cli) -> Result<(), exit::Failure> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(verbs::run(cli))
}
