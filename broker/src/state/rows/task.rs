//! `tasks`: `channel number: u64, task hash: u128, first offset: u64` -> [`TaskRow`]. The messages of one task that came
//! between two checkpoints, packed; never one row a message. Serves order (a group's backlog is rebuilt from it) and
//! the duplicates of `message_id`. Goes with its messages.

use super::{RowError, at_end, take};
use crate::journal::entry::TaskHash;
use crate::model::{ChannelNo, Offset, UnixMillis};
use serde::{Deserialize, Serialize};

/// Some of a task's messages, ascending.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TaskRow {
    pub(crate) task_id: String,
    pub(crate) messages: Vec<TaskMessage>,
}

/// One message of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TaskMessage {
    pub(crate) offset: Offset,
    /// Hash of its message id.
    pub(crate) id: u128,
    /// Hash of payload, content type and artifact_ref.
    pub(crate) body: u64,
    /// When it was published.
    pub(crate) at: UnixMillis,
}

pub(crate) fn task_key(channel: ChannelNo, task: TaskHash, first: Offset) -> Vec<u8> {
    let mut key = task_prefix(channel, task);
    key.extend_from_slice(&first.get().to_be_bytes());
    key
}

/// The range of one task.
pub(crate) fn task_prefix(channel: ChannelNo, task: TaskHash) -> Vec<u8> {
    let mut key = task_channel_prefix(channel);
    key.extend_from_slice(&task.to_be_bytes());
    key
}

/// The range of one channel.
pub(crate) fn task_channel_prefix(channel: ChannelNo) -> Vec<u8> {
    channel.get().to_be_bytes().to_vec()
}

pub(crate) fn parse_task_key(mut key: &[u8]) -> Result<(ChannelNo, TaskHash, Offset), RowError> {
    let parsed = (
        ChannelNo(u64::from_be_bytes(take(&mut key)?)),
        u128::from_be_bytes(take(&mut key)?),
        Offset(u64::from_be_bytes(take(&mut key)?)),
    );
    at_end(parsed, key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_back_and_one_a_byte_shorter_or_longer_does_not() {
        let key = task_key(ChannelNo(3), 1 << 90, Offset(4));
        assert_eq!(parse_task_key(&key), Ok((ChannelNo(3), 1 << 90, Offset(4))));
        assert!(parse_task_key(&key[1..]).is_err());
        assert!(parse_task_key(&[&key[..], &[0]].concat()).is_err());
    }
}
