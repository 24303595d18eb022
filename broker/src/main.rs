//! The server binary, `weir`.

mod check_config;
mod command_line;
mod health;
mod launch;
mod serve;
mod serve_flags;

use command_line::{CommandLine, Verb};
use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let line = CommandLine::read();
    match run(line.verb) {
        Ok(code) => code,
        Err(error) => {
            let told = writeln!(io::stderr(), "weir: {error:#}");
            // Without a standard error there is nobody left to tell; the exit code says it all the same.
            drop(told);
            ExitCode::FAILURE
        }
    }
}

fn run(verb: Verb) -> anyhow::Result<ExitCode> {
    match verb {
        Verb::Serve(flags) => {
            let settings = launch::settings(flags, |name| std::env::var_os(name))?;
            let code = serve::serve(settings)?;
            // Not by returning: a recovery or a checkpoint that is cut off may still be in RocksDB, and what its threads
            // stand on must not be torn down under them. Nothing is buffered that a return would write.
            signal_hook::low_level::exit(i32::from(code))
        }
        Verb::CheckConfig { file } => check_config::run(&file, &mut io::stdout().lock(), &mut io::stderr().lock()),
        Verb::ConfigSchema => {
            let schema = serde_json::to_string_pretty(&weir_broker::config::schema())?;
            writeln!(io::stdout().lock(), "{schema}")?;
            Ok(ExitCode::SUCCESS)
        }
        Verb::Health { http } => health::run(http, &mut io::stdout().lock()),
    }
}
