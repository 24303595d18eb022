//! Names of rows: what a command needs in memory, and what a checkpoint has to write.

use crate::journal::entry::{ExecutionHash, PairHash, PartitionKey, TaskHash};
use crate::model::{ChannelNo, GroupNo, Offset, PolicyNo, SessionId};

/// A row the engine may not have in memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum RowKey {
    /// Number of a channel by its name.
    ChannelName(PolicyNo, String, String),
    /// A channel.
    Channel(ChannelNo),
    /// A task with all its messages.
    Task(ChannelNo, TaskHash),
    /// The first message that carried a pair.
    Pair(PairHash),
    /// An execution in the ledger.
    Execution(ExecutionHash),
    /// What of a channel a group is through with.
    Cursor(GroupNo, ChannelNo),
    /// How a block of leases ended.
    Settles(u64),
    /// A tenant's totals in a policy.
    Totals(PolicyNo, String),
    /// A message's head, from the journal.
    Head(ChannelNo, Offset),
}

/// A row that changed since the last checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum DirtyKey {
    /// A row that may be out of memory at other times.
    Cached(RowKey),
    /// A policy.
    Policy(PolicyNo),
    /// A group.
    Group(GroupNo),
    /// A session.
    Session(SessionId),
    /// The state of a partition's first message.
    Delivery(PartitionKey),
}
