//! The verbs, a file each.

mod consume;
mod latency;
mod measuring;
mod publish;
mod quiet;
mod turns;

use crate::command_line::{CommandLine, Verb};
use crate::pipe;
use crate::report::{Format, Report};
use anyhow::Context as _;

/// Does what the command line says.
///
/// # Errors
/// If a server does not start, a publish is not confirmed, or the figures cannot be written.
pub(crate) fn run(line: CommandLine) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no threads")?;
    runtime.block_on(async {
        match line.verb {
            Verb::Publish(arguments) => show(&publish::weir(&arguments).await?, line.output),
            Verb::Pipe(arguments) => show(&publish::pipe(&arguments).await?, line.output),
            Verb::Gate(arguments) => show(&publish::gate(&arguments).await?, line.output),
            Verb::Consume(arguments) => show(&consume::consume(&arguments).await?, line.output),
            Verb::Latency(arguments) => show(&latency::latency(&arguments).await?, line.output),
            Verb::PipeServer(arguments) => pipe::serve(arguments).await,
        }
    })
}

fn show(report: &Report, format: Format) -> anyhow::Result<()> {
    report.show(format, &mut std::io::stdout().lock()).context("standard output")
}
