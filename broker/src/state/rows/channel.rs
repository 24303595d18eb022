//! `channels`: `channel number: u64` -> [`ChannelRow`], written when the channel was published to.
//! `channel_names`: `policy number: u32, tenant, 0, agent` -> `channel number: u64` (big-endian), written once. Tenants
//! hold no NUL, so keys of one tenant are one range and no two keys meet.

use super::{RowError, take};
use crate::model::{ChannelNo, Lsn, Offset, PolicyNo, UnixMillis};
use serde::{Deserialize, Serialize};

/// A channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChannelRow {
    pub(crate) policy: PolicyNo,
    pub(crate) tenant: String,
    pub(crate) agent: String,
    /// The next offset.
    pub(crate) head: Offset,
    /// Payload bytes ever published.
    pub(crate) bytes: u64,
    pub(crate) made_at: UnixMillis,
    pub(crate) last_publish_at: UnixMillis,
    pub(crate) last_publish_lsn: Lsn,
    /// For groups with start "latest": `(l, head)` says that the head was `head` when the group of LSN `l` was made,
    /// noted at the first publish after it. Ascending.
    pub(crate) latest_marks: Vec<(Lsn, Offset)>,
}

impl ChannelRow {
    /// The first offset that a group made at `lsn` with start "latest" reads.
    pub(crate) fn head_at(&self, lsn: Lsn) -> Offset {
        self.latest_marks.iter().find(|(mark, _)| *mark >= lsn).map_or(self.head, |(_, head)| *head)
    }
}

pub(crate) fn channel_key(no: ChannelNo) -> Vec<u8> {
    no.get().to_be_bytes().to_vec()
}

pub(crate) fn channel_name_key(policy: PolicyNo, tenant: &str, agent: &str) -> Vec<u8> {
    let mut key = channel_name_prefix(policy, Some(tenant));
    key.extend_from_slice(agent.as_bytes());
    key
}

/// The range of one policy, or of one tenant in it.
pub(crate) fn channel_name_prefix(policy: PolicyNo, tenant: Option<&str>) -> Vec<u8> {
    let mut key = policy.get().to_be_bytes().to_vec();
    if let Some(tenant) = tenant {
        key.extend_from_slice(tenant.as_bytes());
        key.push(0);
    }
    key
}

/// `(policy, tenant, agent)` of a key of `channel_names`.
pub(crate) fn parse_channel_name_key(mut key: &[u8]) -> Result<(PolicyNo, String, String), RowError> {
    let policy = PolicyNo(u32::from_be_bytes(take(&mut key)?));
    let names = std::str::from_utf8(key).map_err(|e| RowError(e.to_string()))?;
    let (tenant, agent) = names.split_once('\0').ok_or_else(|| RowError("channel name without NUL".to_owned()))?;
    Ok((policy, tenant.to_owned(), agent.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_from_their_key() {
        let key = channel_name_key(PolicyNo(3), "acme", "desk");
        assert_eq!(parse_channel_name_key(&key).unwrap(), (PolicyNo(3), "acme".to_owned(), "desk".to_owned()));
        assert!(key.starts_with(&channel_name_prefix(PolicyNo(3), Some("acme"))));
        assert!(
            !channel_name_key(PolicyNo(3), "acme2", "").starts_with(&channel_name_prefix(PolicyNo(3), Some("acme")))
        );
    }

    #[test]
    fn a_latest_group_starts_at_the_head_of_its_own_making() {
        let mut row = ChannelRow {
            policy: PolicyNo(1),
            tenant: "t".to_owned(),
            agent: "a".to_owned(),
            head: Offset(9),
            bytes: 0,
            made_at: UnixMillis(0),
            last_publish_at: UnixMillis(0),
            last_publish_lsn: Lsn(50),
            latest_marks: vec![(Lsn(10), Offset(4)), (Lsn(30), Offset(7))],
        };
        assert_eq!(row.head_at(Lsn(10)), Offset(4));
        assert_eq!(row.head_at(Lsn(11)), Offset(7), "made between the two marks: nothing came before the second");
        assert_eq!(row.head_at(Lsn(60)), Offset(9));
        row.latest_marks.clear();
        assert_eq!(row.head_at(Lsn(10)), Offset(9));
    }
}
