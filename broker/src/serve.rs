//! `weir serve`.

use weir_broker::config::Settings;

/// Runs the server until it is asked to stop.
///
/// # Errors
/// If it cannot start, or has to stop unasked.
pub(crate) fn serve(_settings: Settings) -> anyhow::Result<()> {
    anyhow::bail!("serve is not wired up yet")
}
