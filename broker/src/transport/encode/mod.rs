//! From the model to the wire, once.

mod channel;
mod consume;
mod execution;
mod group;
mod publish;

pub(super) use channel::{channel, policy};
pub(super) use consume::{
    begin_result, complete_result, delivery, extend_results, held, notice, settle_results, waiting,
};
pub(super) use execution::{execution, explanation};
pub(super) use group::{audit, group, member, parked};
pub(super) use publish::published;

use crate::model::{ChannelRef, ExecutionState, FinalState, GroupRef, LeaseRef, Offset};
use weir_proto::server as wire;

fn channel_ref(channel: ChannelRef) -> wire::ChannelRef {
    wire::ChannelRef { policy: channel.policy, tenant: channel.tenant, agent_id: channel.agent }
}

fn group_ref(group: GroupRef) -> wire::GroupRef {
    wire::GroupRef { scope: group.scope, policy: group.policy, name: group.name }
}

fn message_ref((channel, offset): (ChannelRef, Offset)) -> wire::MessageRef {
    wire::MessageRef { channel: Some(channel_ref(channel)), offset: offset.get() }
}

const fn lease_ref(lease: LeaseRef) -> wire::LeaseRef {
    wire::LeaseRef { epoch: lease.epoch.get(), offset: lease.offset.get() }
}

const fn final_state(state: FinalState) -> wire::FinalState {
    match state {
        FinalState::Completed => wire::FinalState::Completed,
        FinalState::Failed => wire::FinalState::Failed,
        FinalState::Canceled => wire::FinalState::Canceled,
        FinalState::Rejected => wire::FinalState::Rejected,
        FinalState::Unknown => wire::FinalState::Unknown,
    }
}

/// Unspecified where there is none.
fn final_state_or_none(state: Option<FinalState>) -> wire::FinalState {
    state.map_or(wire::FinalState::Unspecified, final_state)
}

const fn execution_state(state: ExecutionState) -> wire::ExecutionState {
    match state {
        ExecutionState::Requested => wire::ExecutionState::Requested,
        ExecutionState::Begun => wire::ExecutionState::Begun,
        ExecutionState::Completed => wire::ExecutionState::Completed,
        ExecutionState::Failed => wire::ExecutionState::Failed,
        ExecutionState::Canceled => wire::ExecutionState::Canceled,
        ExecutionState::Rejected => wire::ExecutionState::Rejected,
        ExecutionState::Unknown => wire::ExecutionState::Unknown,
        ExecutionState::Expired => wire::ExecutionState::Expired,
    }
}
