//! Logs of the server binary: on standard error, never with a payload.
//!
//! `WEIR_LOG` is a filter (`info`, `weir_broker=debug`); `WEIR_LOG_FORMAT` is `text` or `json`, one object a line.

use std::io;
use tracing_subscriber::EnvFilter;

/// The filter's variable.
const FILTER: &str = "WEIR_LOG";
/// The format's variable.
const FORMAT: &str = "WEIR_LOG_FORMAT";
/// The filter where none is given: the transport's own libraries tell only what is wrong.
const FILTER_DEFAULT: &str = "info,h2=warn,hyper=warn,tonic=warn,tower=warn";

/// Why logging was not set up.
#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    /// The filter does not read.
    #[error("{FILTER}: {0}")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
    /// The format is none.
    #[error("{FORMAT}: `text` or `json`, not {0:?}")]
    Format(String),
    /// The process logs already.
    #[error("logging is set up already: {0}")]
    Taken(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Sets logging up for the whole process, by the environment.
///
/// # Errors
/// [`LoggingError`].
pub fn init() -> Result<(), LoggingError> {
    let words = std::env::var(FILTER).unwrap_or_else(|_| FILTER_DEFAULT.to_owned());
    let filter = EnvFilter::try_new(words)?;
    let format = std::env::var(FORMAT).unwrap_or_else(|_| "text".to_owned());
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    match format.as_str() {
        "text" => logs.with_ansi(false).try_init(),
        "json" => logs.json().try_init(),
        _ => return Err(LoggingError::Format(format)),
    }
    .map_err(LoggingError::Taken)
}
