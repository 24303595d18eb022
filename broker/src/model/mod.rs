//! The words every room shares: positions, names, times, limits, and the values that calls and answers are made of.
//! Plain values; no I/O.

pub mod admission;
mod consume;
pub mod envelope;
mod execution;
mod fault;
mod group;
mod ledger;
pub mod limits;
pub mod names;
pub mod policy;
mod position;
mod publish;
mod refusal;
mod time;

pub use consume::{
    BeginResult, Complete, CompleteResult, Delivery, EndedAs, ExecutionHint, FetchLimits, HeldAnswer, LeaseRef, Notice,
    Outcome, SessionId, SessionRef, Settle, SettleResult, Waiting,
};
pub use execution::{Effect, ExecutionState, FinalState, UnknownReason, Verdict};
pub use fault::{FieldFault, Rule};
pub use group::{
    GoneCause, GroupAudit, GroupCounts, GroupInfo, GroupRef, GroupSpec, MemberInfo, ParkedInfo, Selector, SettledCause,
    Start,
};
pub use ledger::{
    BeginInfo, ChannelInfo, DeliveryInfo, Execution, ExecutionFilter, Explanation, Page, Remark, RemarkKind, Resolve,
};
pub use position::{ChannelNo, Epoch, GroupNo, Lsn, Offset, PolicyNo, SegmentNo};
pub use publish::{ChannelRef, Duplicate, DuplicateKind, Level, Publish, PublishResult, Published};
pub use refusal::{Reason, Refusal};
pub use time::UnixMillis;
