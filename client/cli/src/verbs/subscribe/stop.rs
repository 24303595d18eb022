//! SIGINT and SIGTERM end the work in order; the second one ends it at once.

use std::io;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Exit code of a process that was interrupted.
const INTERRUPTED: i32 = 130;

/// Becomes true with the first signal.
///
/// # Errors
/// If the signals cannot be taken.
pub(super) fn on_signals() -> io::Result<watch::Receiver<bool>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if stop.send_replace(true) {
                std::process::exit(INTERRUPTED);
            }
        }
    });
    Ok(stopped)
}
