//! What goes wrong in reading.

use crate::journal;
use crate::state::StoreError;

/// Why a message could not be read. That it is not there, or not any more, is no error.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// The journal could not give the bytes, or not the places of a segment.
    #[error("reading from the journal")]
    Journal(#[from] journal::ReadError),
    /// State could not say which segment holds the message.
    #[error("looking up a message's segment")]
    State(#[from] StoreError),
    /// A row that says so does not decode.
    #[error("a row of extents does not decode: {0}")]
    Extent(&'static str),
}
