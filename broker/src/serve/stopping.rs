//! What makes the server stop.

use anyhow::Context as _;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use weir_broker::{Broker, Health};

/// How often the broker's health is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// SIGTERM and SIGINT.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From now on both are taken here, and no longer end the process by themselves.
    pub(super) fn listen() -> anyhow::Result<Self> {
        let terminate = signal(SignalKind::terminate()).context("SIGTERM")?;
        let interrupt = signal(SignalKind::interrupt()).context("SIGINT")?;
        Ok(Self { terminate, interrupt })
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Waits until the broker's disk has failed, and returns why.
pub(super) async fn failed(broker: &Broker) -> String {
    let mut looks = tokio::time::interval(LOOK);
    loop {
        looks.tick().await;
        if let Health::Failed(cause) = broker.health() {
            return cause;
        }
    }
}
