//! What may be typed.

use crate::duration::DurationArg;
use crate::output::Format;
use crate::verbs;
use clap::{Parser, Subcommand};

/// Publishes to weir, consumes from it, and asks it what became of things.
///
/// Data goes to stdout, words go to stderr. Exit codes: 0 ok, 1 error, 2 usage, 3 not found, 4 denied, 5 backpressure,
/// 6 unavailable.
#[derive(Debug, Parser)]
#[command(name = "weirctl", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// How the broker is reached and how answers are shown.
    #[command(flatten)]
    pub(crate) global: Global,
    /// What to do.
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// Options of every verb.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Global {
    /// Where the broker listens
    #[arg(long, global = true, value_name = "URL", env = "WEIR_ENDPOINT", default_value = "http://127.0.0.1:7447")]
    pub(crate) endpoint: String,
    /// How data is shown; pub and sub always write JSON lines
    #[arg(short, long, global = true, value_enum, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: Format,
    /// Longest wait for an answer; in pub also for a place or for a broker that is away
    #[arg(long, global = true, value_name = "TIME", default_value = "30s")]
    pub(crate) timeout: DurationArg,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Publish messages, one JSON object a line
    #[command(name = "pub")]
    Publish(verbs::publish::Args),
    /// Consume as a member of a group, one JSON line a delivery
    #[command(name = "sub")]
    Subscribe(verbs::subscribe::Args),
    /// Make groups and look at them
    #[command(subcommand)]
    Group(verbs::group::Verb),
    /// Look at policies
    #[command(subcommand)]
    Policy(verbs::policy::Verb),
    /// Look at channels
    #[command(subcommand)]
    Channel(verbs::channel::Verb),
    /// Ask what became of executions, and end those nobody else can end
    #[command(subcommand)]
    Execution(verbs::execution::Verb),
    /// Say how the broker is
    Status,
    /// Count, for each group, what became of every message; exit 1 if an account is not balanced
    Audit(verbs::audit::Args),
    /// Write the completions of a shell
    Completions(verbs::completions::Args),
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn global_options_may_stand_behind_the_verb() {
        let cli = Cli::try_parse_from(["weirctl", "status", "-o", "json", "--endpoint", "http://h:1"]).unwrap();
        assert_eq!(cli.global.output, Format::Json);
        assert_eq!(cli.global.endpoint, "http://h:1");
    }

    #[test]
    fn a_call_nobody_understands_is_a_usage_error() {
        for words in [
            vec!["weirctl", "publish"],
            vec!["weirctl", "pub"],
            vec!["weirctl", "status", "-o", "xml"],
            vec!["weirctl", "pub", "--policy", "p", "--channel", "a:b:c"],
            vec!["weirctl", "sub", "--policy", "p", "--group", "g", "--selector", "*:a"],
            vec!["weirctl", "sub", "--policy", "p", "--group", "g", "--settle", "maybe"],
            vec!["weirctl", "sub", "--policy", "p", "--group", "g", "--session-timeout-ms", "999"],
            vec!["weirctl", "execution", "get", "x1"],
        ] {
            assert_eq!(Cli::try_parse_from(&words).unwrap_err().exit_code(), 2, "{words:?}");
        }
    }
}
