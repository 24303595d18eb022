//! What the engine asks of the world to bring into its memory, and in what shape it comes.

use super::head::MessageHead;
use super::row_key::RowKey;
use crate::journal::entry::TaskHash;
use crate::model::{ChannelNo, GroupNo, PolicyNo};
use crate::state::rows::TaskMessage;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Something to be loaded off the engine's thread. The answer comes back as [`Arrival`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Want {
    /// One row.
    Row(RowKey),
    /// A page of channel names of a policy (of one tenant in it), for a group's backlog.
    /// `finished` as with tasks.
    Names { group: GroupNo, policy: PolicyNo, tenant: Option<String>, after: Option<(String, String)>, finished: u64 },
    /// A page of a channel's tasks, for a group's backlog. `finished` is the last finished checkpoint when it was asked
    /// for: a page read across the end of a checkpoint may lack what that checkpoint took out of memory.
    Tasks { group: GroupNo, channel: ChannelNo, after: Option<TaskHash>, finished: u64 },
}

/// A row as it was found.
#[derive(Clone, Debug)]
pub(crate) enum Loaded {
    /// A value, or its absence.
    Value(Option<Bytes>),
    /// All parts of a task, ascending.
    Parts(Vec<Bytes>),
    /// A message's head.
    Head(Arc<MessageHead>),
    /// A message that was confirmed and cannot be read: where it stands, and what is wrong.
    Unreadable(String),
}

/// Some of a channel's tasks, ascending by hash.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskPage {
    /// Tasks after this one (`None`: from the first).
    pub(crate) after: Option<TaskHash>,
    /// All tasks up to this one are in the page (`None`: up to the last).
    pub(crate) through: Option<TaskHash>,
    pub(crate) tasks: BTreeMap<TaskHash, Vec<TaskMessage>>,
}

/// The answer to a [`Want`].
#[derive(Debug)]
pub(crate) enum Arrival {
    Row(RowKey, Loaded),
    Names {
        group: GroupNo,
        policy: PolicyNo,
        after: Option<(String, String)>,
        names: Vec<(String, String, ChannelNo)>,
        /// All names up to this one are in the page (`None`: up to the last).
        through: Option<(String, String)>,
        finished: u64,
    },
    Tasks {
        group: GroupNo,
        channel: ChannelNo,
        page: TaskPage,
        finished: u64,
    },
}
