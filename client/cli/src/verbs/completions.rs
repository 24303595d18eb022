//! `weirctl completions`.

use crate::cli::Cli;
use crate::exit::Failure;
use clap::CommandFactory as _;
use clap_complete::Shell;
use std::io::{self, Write as _};

/// What `completions` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Writes the completions of a shell.
///
/// # Errors
/// If stdout does not take them.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "weirctl", &mut script);
    let mut out = io::stdout().lock();
    out.write_all(&script)?;
    Ok(out.flush()?)
}
