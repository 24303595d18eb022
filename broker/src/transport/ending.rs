//! The end of the server's streams. A stream that a peer keeps open would hold up a shutdown for ever, so the server ends
//! them itself.

use super::status;
use crate::model::{Reason, Refusal};
use tokio_util::sync::CancellationToken;
use tonic::Status;

/// Tells every stream when to end.
#[derive(Clone, Debug, Default)]
pub(super) struct Ending(CancellationToken);

impl Ending {
    /// From now on streams end: what they have taken is answered, then they say why.
    pub(super) fn begin(&self) {
        self.0.cancel();
    }

    /// Waits for the end, and returns the status that streams end with.
    pub(super) async fn reached(self) -> Status {
        self.0.cancelled().await;
        status::status(&Refusal::new(Reason::Draining, "the broker is going down"))
    }
}
