//! From the wire to the model, once. A message that breaks a rule is refused by the path of the field at fault.
//!
//! Only what the wire alone knows is judged here: parts that are missing, numbers that no enum has, texts with a
//! structure. What holds for every caller, embedders included, the broker judges.

mod consume;
mod execution;
mod group;
mod policy;

pub(super) use consume::{complete, extensions, held, lease, session, settlements};
pub(super) use execution::{execution_filter, resolve};
pub(super) use group::{group_ref, group_spec};
pub(super) use policy::policy;

use crate::model::{ChannelRef, FinalState, Refusal};
use weir_proto::server as wire;

/// What a field says, where it must say something.
fn required<T>(field: &str, value: Option<T>) -> Result<T, Refusal> {
    value.ok_or_else(|| Refusal::invalid(field, "required"))
}

/// The value of an enum that has this number.
fn known<T: TryFrom<i32>>(field: &str, number: i32) -> Result<T, Refusal> {
    T::try_from(number).map_err(|_| Refusal::invalid(field, format!("no value has the number {number}")))
}

/// A final state; `None` where the field is unspecified.
fn final_state(field: &str, number: i32) -> Result<Option<FinalState>, Refusal> {
    Ok(match known(field, number)? {
        wire::FinalState::Unspecified => None,
        wire::FinalState::Completed => Some(FinalState::Completed),
        wire::FinalState::Failed => Some(FinalState::Failed),
        wire::FinalState::Canceled => Some(FinalState::Canceled),
        wire::FinalState::Rejected => Some(FinalState::Rejected),
        wire::FinalState::Unknown => Some(FinalState::Unknown),
    })
}

/// The channel of these names, which the broker checks.
pub(super) const fn channel(policy: String, tenant: String, agent: String) -> ChannelRef {
    ChannelRef { policy, tenant, agent }
}
