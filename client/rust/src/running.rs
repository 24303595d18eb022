//! A consumer on a task of its own.

use crate::consumer::Setup;
use crate::error::ClientError;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A worker or subscriber that runs. Dropping it stops it too, without waiting for its end.
#[derive(Debug)]
#[must_use = "a consumer whose handle is dropped stops"]
pub struct Running {
    stop: CancellationToken,
    main: JoinHandle<Result<(), ClientError>>,
    end: Option<Result<(), ClientError>>,
    _dropped: DropGuard,
}

impl Running {
    pub(crate) fn start(setup: Setup) -> Self {
        let stop = setup.stop.clone();
        let _dropped = stop.clone().drop_guard();
        Self { stop, main: tokio::spawn(setup.run()), end: None, _dropped }
    }

    /// Stops it in order, as its `run` says, and waits for the end.
    ///
    /// # Errors
    /// Why it had ended by itself before, if it had.
    pub async fn stop(mut self) -> Result<(), ClientError> {
        self.stop.cancel();
        self.ended().await
    }

    /// Waits until it has ended: because it was stopped, or because the broker refuses for good.
    ///
    /// # Errors
    /// Why it ended by itself.
    pub async fn ended(&mut self) -> Result<(), ClientError> {
        if let Some(end) = &self.end {
            return end.clone();
        }
        let end = match (&mut self.main).await {
            Ok(end) => end,
            Err(error) => Err(ClientError::stopped(format!("its task ended: {error}"))),
        };
        self.end.insert(end).clone()
    }
}
