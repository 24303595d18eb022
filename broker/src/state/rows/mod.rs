//! Rows: what state keeps, one key family a file. Each file says its key, its value, who writes it and when it goes.
//!
//! # On disk
//! A value is `version: u8` followed by the postcard encoding of the row of that version. Keys are big-endian, so that
//! a range scan is in order. A value of an unknown version is refused: state never guesses.

mod channel;
mod cursor;
mod dedup;
mod delivery;
mod execution;
mod group;
mod policy;
mod session;
mod settles;
mod task;
mod totals;

pub(crate) use channel::{ChannelRow, channel_key, channel_name_key, channel_name_prefix, parse_channel_name_key};
pub(crate) use cursor::{CursorRow, cursor_key};
pub(crate) use dedup::{DedupRow, pair_key};
pub(crate) use delivery::{DeliveryRow, DeliveryState, LeaseRow, delivery_key, parse_delivery_key};
pub(crate) use execution::{BeginRow, DELIVERIES_FIRST, DeliveryRecord, ExecutionRow, RequestRow, execution_key};
pub(crate) use group::{GroupRow, group_key};
pub(crate) use policy::{PolicyRow, policy_key};
pub(crate) use session::{REPLACED_MAX, SessionRow, session_key};
pub(crate) use settles::{SettleBlockRow, SettledRecord, settles_block, settles_key};
pub(crate) use task::{TaskMessage, TaskRow, parse_task_key, task_channel_prefix, task_key, task_prefix};
pub(crate) use totals::{TotalsRow, totals_key};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Version of every row so far.
const VERSION: u8 = 1;

/// Why a stored value did not decode.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("a stored row does not decode: {0}")]
pub(crate) struct RowError(pub(crate) String);

/// Encodes a row's value.
///
/// # Errors
/// None in practice: rows hold nothing that postcard cannot write.
pub(crate) fn encode<R: Serialize>(row: &R) -> Result<Vec<u8>, RowError> {
    postcard::to_extend(row, vec![VERSION]).map_err(|e| RowError(e.to_string()))
}

/// Decodes a row's value.
///
/// # Errors
/// [`RowError`] where the bytes are not exactly one row of this version.
pub(crate) fn decode<R: DeserializeOwned>(bytes: &[u8]) -> Result<R, RowError> {
    let (&version, rest) = bytes.split_first().ok_or_else(|| RowError("empty value".to_owned()))?;
    if version != VERSION {
        return Err(RowError(format!("version {version}, this weir reads {VERSION}")));
    }
    let (row, tail) = postcard::take_from_bytes(rest).map_err(|e| RowError(e.to_string()))?;
    if tail.is_empty() { Ok(row) } else { Err(RowError(format!("{} bytes too many", tail.len()))) }
}

/// Nothing may be left of a key of fixed length.
fn at_end<K>(parsed: K, rest: &[u8]) -> Result<K, RowError> {
    if rest.is_empty() { Ok(parsed) } else { Err(RowError(format!("key {} bytes too long", rest.len()))) }
}

/// Takes `N` bytes off the front of a key.
fn take<const N: usize>(key: &mut &[u8]) -> Result<[u8; N], RowError> {
    let (head, rest) = key.split_first_chunk::<N>().ok_or_else(|| RowError("key too short".to_owned()))?;
    *key = rest;
    Ok(*head)
}
