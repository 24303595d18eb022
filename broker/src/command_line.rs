//! What can be written after `weir`.

use crate::serve_flags::ServeFlags;
use clap::{Parser, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;

/// An event broker for the internal plane of multi-agent systems.
#[derive(Debug, Parser)]
#[command(name = "weir", version, arg_required_else_help = true)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run the server. Without a configuration it has the policies `task_events` and `events`, on loopback.
    Serve(ServeFlags),
    /// Check a configuration file: print all its faults, or the policies it declares. Exits with 1 if there are faults.
    CheckConfig {
        /// The file.
        file: PathBuf,
    },
    /// Print the JSON schema of the configuration file.
    ConfigSchema,
    /// Ask a running server whether it is ready. Exits with 0 if it is, else with 1.
    Health {
        /// The server's HTTP address.
        #[arg(long, value_name = "ADDRESS", env = "WEIR_HTTP_LISTEN", default_value = "127.0.0.1:7448")]
        http: SocketAddr,
    },
}

impl CommandLine {
    /// Reads the arguments of this process. A line that makes no sense ends it with exit code 2 and the reason.
    pub(crate) fn read() -> Self {
        Self::parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use clap::error::ErrorKind;
    use weir_broker::config::{Overrides, SETTINGS};

    fn serve_flags(words: &[&str]) -> Result<ServeFlags, clap::Error> {
        let line = ["weir", "serve"].iter().chain(words);
        match CommandLine::try_parse_from(line)?.verb {
            Verb::Serve(flags) => Ok(flags),
            other => panic!("not serve: {other:?}"),
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn every_setting_has_a_flag_whose_help_names_default_and_variable() {
        let command = CommandLine::command();
        let serve = command.find_subcommand("serve").unwrap();
        for setting in SETTINGS {
            let arg = serve.get_arguments().find(|arg| arg.get_id() == setting.key).unwrap();
            assert_eq!(arg.get_long(), Some(setting.flag));
            let help = arg.get_help().unwrap().to_string();
            assert!(help.contains(&setting.default_text()) && help.contains(setting.env), "{help}");
        }
    }

    #[test]
    fn flags_become_overrides_and_what_is_left_out_stays_open() {
        let flags = serve_flags(&[
            "--listen",
            "127.0.0.1:0",
            "--insecure",
            "--session-timeout-ms=2500",
            "--config",
            "c.yaml",
            "--sync",
            "interval",
        ])
        .unwrap();
        assert_eq!(flags.config, Some(PathBuf::from("c.yaml")));
        assert_eq!(
            flags.overrides,
            Overrides {
                listen: Some("127.0.0.1:0".parse().unwrap()),
                insecure: Some(true),
                session_timeout_ms: Some(2500),
                sync: Some(weir_broker::config::SyncMode::Interval),
                ..Overrides::default()
            }
        );
        assert_eq!(serve_flags(&[]).unwrap().overrides, Overrides::default());
    }

    #[test]
    fn a_line_that_makes_no_sense_is_a_usage_error_with_exit_code_2() {
        let table: &[(&[&str], ErrorKind)] = &[
            (&["weir", "sevre"], ErrorKind::InvalidSubcommand),
            (&["weir", "check-config"], ErrorKind::MissingRequiredArgument),
            (&["weir", "serve", "--listen", "localhost:1"], ErrorKind::ValueValidation),
            (&["weir", "serve", "--interval-ms", "1001"], ErrorKind::ValueValidation),
            (&["weir", "serve", "--insecure=maybe"], ErrorKind::ValueValidation),
            (&["weir", "serve", "--listen", "127.0.0.1:1", "--listen", "127.0.0.1:2"], ErrorKind::ArgumentConflict),
            (&["weir", "health", "--http", "7448"], ErrorKind::ValueValidation),
        ];
        for (words, kind) in table {
            let error = CommandLine::try_parse_from(*words).unwrap_err();
            assert_eq!(error.kind(), *kind, "{words:?}: {error}");
            assert_eq!(error.exit_code(), 2);
        }
    }
}
