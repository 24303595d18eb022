//! `weir-bench` measures weir on the machine it runs on, beside the least that any broker would have to do there: the
//! bare pipe, a gRPC stream of the same bytes into one file with a group sync.
//!
//! Every number is a ratio or a figure of this machine and this run; none is judged here. `README.md` says what each
//! one means.

mod codec;
mod command_line;
mod consume;
mod cpu;
mod load;
mod pipe;
mod report;
mod server;
mod spread;
mod stopwatch;
mod verbs;
mod workload;

use clap::Parser as _;
use command_line::CommandLine;
use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    match verbs::run(CommandLine::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let told = writeln!(std::io::stderr(), "weir-bench: {error:#}");
            // Without a standard error there is nobody left to tell; the exit code says it all the same.
            drop(told);
            ExitCode::FAILURE
        }
    }
}
