//! One file a verb: what it takes, what it asks, what it shows.

pub(crate) mod audit;
pub(crate) mod channel;
pub(crate) mod completions;
pub(crate) mod execution;
mod execution_view;
pub(crate) mod group;
mod group_view;
pub(crate) mod policy;
pub(crate) mod publish;
mod reference;
mod status;
pub(crate) mod subscribe;

use crate::cli::{Cli, Verb};
use crate::connection::Connection;
use crate::exit::Failure;
use crate::output::Output;

/// Records asked for at once.
const PAGE_SIZE: u32 = 500;

/// Does what was typed.
///
/// # Errors
/// What was refused or went wrong, with the exit code it ends in.
pub(crate) async fn run(cli: Cli) -> Result<(), Failure> {
    let mut output = Output::new(cli.global.output);
    if let Verb::Completions(args) = &cli.verb {
        return completions::run(args);
    }
    let connection = Connection::open(&cli.global)?;
    match cli.verb {
        Verb::Publish(args) => publish::run(args, &connection, &mut output).await,
        Verb::Subscribe(args) => subscribe::run(args, &cli.global, &connection, &mut output).await,
        Verb::Group(verb) => group::run(verb, &connection, &mut output).await,
        Verb::Policy(verb) => policy::run(verb, &connection, &mut output).await,
        Verb::Channel(verb) => channel::run(verb, &connection, &mut output).await,
        Verb::Execution(verb) => execution::run(verb, &connection, &mut output).await,
        Verb::Status => status::run(&connection, &mut output).await,
        Verb::Audit(args) => audit::run(args, &connection, &mut output).await,
        Verb::Completions(args) => completions::run(&args),
    }
}
