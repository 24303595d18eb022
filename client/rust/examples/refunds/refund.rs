//! What is to be paid back: three orders, two refunds each. An order is a task, so its second refund comes after its first.

use crate::{AGENT, POLICY, TENANT};
use std::fmt;
use weir_client::v1;

/// One refund.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refund {
    /// Its order, which is the task.
    pub(crate) order: &'static str,
    /// What was sent back.
    item: &'static str,
    /// Amount in cents.
    pub(crate) cents: u64,
}

/// All refunds, in the order in which they are published.
pub(crate) const REFUNDS: [Refund; 6] = [
    Refund { order: "order-1", item: "shoes", cents: 8_990 },
    Refund { order: "order-2", item: "lamp", cents: 3_450 },
    Refund { order: "order-3", item: "book", cents: 1_999 },
    Refund { order: "order-1", item: "postage", cents: 490 },
    Refund { order: "order-2", item: "postage", cents: 690 },
    Refund { order: "order-3", item: "postage", cents: 290 },
];

/// Where the refunds are published.
pub(crate) fn channel() -> v1::ChannelRef {
    v1::ChannelRef { policy: POLICY.into(), tenant: TENANT.into(), agent_id: AGENT.into() }
}

/// The refund of this execution.
pub(crate) fn of_execution(execution_id: &str) -> Result<Refund, String> {
    let found = REFUNDS.into_iter().find(|refund| refund.execution_id() == execution_id);
    found.ok_or_else(|| format!("there is no refund {execution_id}"))
}

impl Refund {
    /// Names the one attempt to pay it.
    pub(crate) fn execution_id(&self) -> String {
        self.to_string()
    }

    /// The refund that waits behind this one in its order.
    pub(crate) fn next(&self) -> Option<Self> {
        REFUNDS.into_iter().skip_while(|refund| refund != self).skip(1).find(|refund| refund.order == self.order)
    }

    /// The message that asks for it. Its effect is unsafe: paying again pays twice.
    pub(crate) fn request(&self) -> v1::Message {
        v1::Message {
            message_id: format!("{self}/request"),
            task_id: self.order.into(),
            agent_id: AGENT.into(),
            execution_id: self.execution_id(),
            r#type: "task.request".into(),
            intent: "refund".into(),
            effect: v1::Effect::Unsafe.into(),
            payload: self.cents.to_string().into_bytes().into(),
            ..Default::default()
        }
    }

    /// A report that it was paid.
    pub(crate) fn report(&self, message_id: &str, receipt: &str) -> v1::Message {
        v1::Message {
            message_id: message_id.into(),
            task_id: self.order.into(),
            agent_id: AGENT.into(),
            execution_id: self.execution_id(),
            r#type: "task.result".into(),
            final_state: v1::FinalState::Completed.into(),
            artifact_ref: receipt.into(),
            ..Default::default()
        }
    }
}

impl fmt::Display for Refund {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.order, self.item)
    }
}

/// Cents as people write them.
pub(crate) fn money(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}
