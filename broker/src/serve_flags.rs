//! The flags of `weir serve`: one for each setting, made from the setting's own declaration.

use clap::builder::ValueParser;
use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};
use std::path::PathBuf;
use weir_broker::config::{Overrides, SETTINGS, Setting};

/// What the flags of `weir serve` say.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServeFlags {
    /// The configuration file.
    pub(crate) config: Option<PathBuf>,
    /// The settings given.
    pub(crate) overrides: Overrides,
}

impl Args for ServeFlags {
    fn augment_args(command: Command) -> Command {
        let config = Arg::new("config")
            .long("config")
            .value_name("FILE")
            .value_parser(clap::value_parser!(PathBuf))
            .help("Configuration file with channels and settings [env: WEIR_CONFIG]");
        SETTINGS.iter().fold(command.arg(config), |command, setting| command.arg(argument(setting)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ServeFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        if let Some(path) = matches.get_one::<PathBuf>("config") {
            self.config = Some(path.clone());
        }
        for setting in SETTINGS {
            if let Some(text) = matches.get_one::<String>(setting.key) {
                setting
                    .put(text, &mut self.overrides)
                    .map_err(|message| Error::raw(ErrorKind::ValueValidation, message))?;
            }
        }
        Ok(())
    }
}

/// The flag of a setting. It has no default of its own, and does not read its variable: [`crate::launch`] lays the
/// layers over each other.
fn argument(setting: &'static Setting) -> Arg {
    let check = move |text: &str| setting.put(text, &mut Overrides::default()).map(|()| text.to_owned());
    let (doc, takes, default, env) = (setting.doc, setting.takes(), setting.default_text(), setting.env);
    let argument = Arg::new(setting.key)
        .long(setting.flag)
        .value_name(setting.placeholder())
        .value_parser(ValueParser::new(check))
        .help(format!("{doc} Takes {takes} [default: {default}] [env: {env}]"));
    if setting.is_switch() {
        argument.num_args(0..=1).require_equals(true).default_missing_value("true")
    } else {
        argument
    }
}
