//! `deliveries`: `group number: u32, channel number: u64, task hash: u128` -> [`DeliveryRow`]. The state of a
//! partition's first unsettled message where it is anything but untouched: leased, delayed, held, parked, or with
//! attempts behind it. Goes when that message does. All of them are in memory (they are what is in flight).

use super::{RowError, at_end, take};
use crate::journal::entry::{ExecutionHash, HoldCause, PartitionKey};
use crate::model::{ChannelNo, Epoch, GroupNo, Offset, SessionId, UnixMillis};
use serde::{Deserialize, Serialize};

/// A lease as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeaseRow {
    pub(crate) epoch: Epoch,
    pub(crate) session: SessionId,
    pub(crate) granted_at: UnixMillis,
    /// For a lease with its own duration.
    pub(crate) expires: Option<UnixMillis>,
    /// The execution of its request, in an executing group.
    pub(crate) execution: Option<ExecutionHash>,
    /// The token of the begin made under this lease.
    pub(crate) begun: Option<Epoch>,
    /// Broker time at which a begun execution becomes UNKNOWN.
    pub(crate) deadline: Option<UnixMillis>,
}

/// What a partition's first message is at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum DeliveryState {
    /// Could be granted.
    Ready,
    Leased(LeaseRow),
    Delayed {
        until: UnixMillis,
    },
    Held {
        cause: HoldCause,
        execution: ExecutionHash,
        since: UnixMillis,
    },
    Parked {
        since: UnixMillis,
    },
}

/// Attempts and state of a partition's first message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeliveryRow {
    pub(crate) offset: Offset,
    pub(crate) failed: u32,
    pub(crate) lease_lost: u32,
    pub(crate) acquired: u32,
    /// Why the last attempt failed or why it is parked; at most 512 bytes.
    pub(crate) reason: String,
    pub(crate) state: DeliveryState,
}

impl DeliveryRow {
    pub(crate) const fn untouched(offset: Offset) -> Self {
        Self { offset, failed: 0, lease_lost: 0, acquired: 0, reason: String::new(), state: DeliveryState::Ready }
    }

    /// 1 + failed + lease_lost.
    pub(crate) const fn attempt(&self) -> u32 {
        1 + self.failed + self.lease_lost
    }

    pub(crate) const fn lease(&self) -> Option<&LeaseRow> {
        match &self.state {
            DeliveryState::Leased(lease) => Some(lease),
            _ => None,
        }
    }
}

pub(crate) fn delivery_key(partition: PartitionKey) -> Vec<u8> {
    let mut key = partition.group.get().to_be_bytes().to_vec();
    key.extend_from_slice(&partition.channel.get().to_be_bytes());
    key.extend_from_slice(&partition.task.to_be_bytes());
    key
}

pub(crate) fn parse_delivery_key(mut key: &[u8]) -> Result<PartitionKey, RowError> {
    let partition = PartitionKey {
        group: GroupNo(u32::from_be_bytes(take(&mut key)?)),
        channel: ChannelNo(u64::from_be_bytes(take(&mut key)?)),
        task: u128::from_be_bytes(take(&mut key)?),
    };
    at_end(partition, key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_back_and_one_a_byte_shorter_or_longer_does_not() {
        let partition = PartitionKey { group: GroupNo(2), channel: ChannelNo(3), task: 1 << 90 };
        let key = delivery_key(partition);
        assert_eq!(parse_delivery_key(&key), Ok(partition));
        assert!(parse_delivery_key(&key[1..]).is_err());
        assert!(parse_delivery_key(&[&key[..], &[0]].concat()).is_err());
    }
}
