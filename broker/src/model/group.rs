//! Groups: their names, settings and numbers.

use super::{Offset, UnixMillis};
use serde::{Deserialize, Serialize};

/// A group's full name: (scope, policy, name).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GroupRef {
    /// A tenant, or `*` for an operator's group over all tenants.
    pub scope: String,
    /// The policy whose channels it reads.
    pub policy: String,
    /// Its own name.
    pub name: String,
}

impl std::fmt::Display for GroupRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.scope, self.policy, self.name)
    }
}

/// Which channels of its policy a group reads. Never a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Selector {
    /// `t:a`: one channel.
    Channel {
        /// Its tenant.
        tenant: String,
        /// Its agent; empty for a policy keyed by `{tenant}` alone.
        agent: String,
    },
    /// `t:*`: all channels of one tenant.
    Tenant(String),
    /// `*:*`: all channels.
    All,
}

impl Selector {
    /// Whether it selects the channel of this key.
    #[must_use]
    pub fn selects(&self, tenant: &str, agent: &str) -> bool {
        match self {
            Self::Channel { tenant: t, agent: a } => t == tenant && a == agent,
            Self::Tenant(t) => t == tenant,
            Self::All => true,
        }
    }
}

impl std::fmt::Display for Selector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Channel { tenant, agent } if agent.is_empty() => f.write_str(tenant),
            Self::Channel { tenant, agent } => write!(f, "{tenant}:{agent}"),
            Self::Tenant(tenant) => write!(f, "{tenant}:*"),
            Self::All => f.write_str("*:*"),
        }
    }
}

/// Where a group begins. Fixed when it is created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Start {
    /// With the earliest message retained.
    #[default]
    Earliest,
    /// With what is published after its creation.
    Latest,
    /// At this offset of its one channel.
    Offset(Offset),
}

/// What a group is made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupSpec {
    /// Its full name.
    pub name: GroupRef,
    /// What it reads.
    pub selector: Selector,
    /// Where it begins.
    pub start: Start,
    /// Whether its members may begin executions. Projections, audits and ad-hoc readers do not.
    pub executes: bool,
    /// Whether requests whose execution is definite are settled by the broker. Needs `executes`.
    pub skip_if_final: bool,
    /// Whether its depth counts for the limits of the channels it reads.
    pub pressure: bool,
    /// Most messages in flight for the whole group; 0 means no bound.
    pub window: u32,
    /// Attempts after which a message is parked.
    pub max_attempts: u32,
}

impl GroupSpec {
    /// The first setting, as the protos name it, that the other one has otherwise.
    #[must_use]
    pub fn first_difference(&self, other: &Self) -> Option<&'static str> {
        let Self { name, selector, start, executes, skip_if_final, pressure, window, max_attempts } = self;
        let settings = [
            ("group", *name == other.name),
            ("settings.selector", *selector == other.selector),
            ("settings.start", *start == other.start),
            ("settings.executes", *executes == other.executes),
            ("settings.skip_if_final", *skip_if_final == other.skip_if_final),
            ("settings.pressure", *pressure == other.pressure),
            ("settings.window", *window == other.window),
            ("settings.max_attempts", *max_attempts == other.max_attempts),
        ];
        settings.into_iter().find(|(_, same)| !same).map(|(setting, _)| setting)
    }
}

/// How a message left a group's backlog as settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SettledCause {
    /// Settled DONE, or completed.
    Done,
    /// Settled by the broker, its execution being definite.
    SkippedFinal,
    /// Not wanted by the group's filter.
    Filtered,
    /// Called off before anybody began.
    Cancelled,
    /// Parked, then thrown away.
    Discarded,
    /// Passed over by a seek.
    Sought,
    /// A note about an UNKNOWN execution that is no longer UNKNOWN.
    Resolved,
}

/// How a message left a group's backlog unsettled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum GoneCause {
    /// Its time to live ran out.
    Ttl,
    /// Its deadline passed before anybody began.
    Deadline,
    /// It outlived its policy's retention.
    Retention,
    /// Trimmed.
    Trimmed,
    /// Purged.
    Purged,
}

/// The books of a group (promise 7): `offered` = all settled + waiting + delayed + in flight + held + parked + all gone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupCounts {
    /// Published at or after the group's start.
    pub offered: u64,
    /// By [`SettledCause`], in its order.
    pub settled: [u64; 7],
    /// By [`GoneCause`], in its order.
    pub gone: [u64; 5],
    /// Deliveries after the first of a message.
    pub redelivered: u64,
    /// Leases given.
    pub delivered: u64,
}

impl GroupCounts {
    /// All settled, whatever the cause.
    #[must_use]
    pub fn settled_total(&self) -> u64 {
        self.settled.iter().sum()
    }

    /// All gone, whatever the cause.
    #[must_use]
    pub fn gone_total(&self) -> u64 {
        self.gone.iter().sum()
    }
}

/// A group as of now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupInfo {
    /// What it is made of.
    pub spec: GroupSpec,
    /// When it was made.
    pub made_at: UnixMillis,
    /// Its books.
    pub counts: GroupCounts,
    /// Neither delayed, in flight, held nor parked; includes what stands behind such a message of its task.
    pub waiting: u64,
    /// What could be granted now, as far as the group's backlog is in memory.
    pub ready: u64,
    /// Waiting for a time.
    pub delayed: u64,
    /// Under a live lease.
    pub in_flight: u64,
    /// Waiting for the ledger.
    pub held: u64,
    /// Set aside.
    pub parked: u64,
    /// Sessions that are alive.
    pub members: u64,
    /// How long the oldest held message has been held, in milliseconds; 0 if none is.
    pub oldest_held_ms: u64,
}

impl GroupInfo {
    /// Depth as design section 1 defines it.
    #[must_use]
    pub const fn depth(&self) -> u64 {
        self.waiting + self.delayed + self.in_flight + self.held
    }
}

/// The books of one group, counted twice: by the running counters, and by walking what is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupAudit {
    /// The group as its counters have it.
    pub info: GroupInfo,
    /// Unsettled messages found by walking the channels.
    pub counted_unsettled: u64,
    /// Whether both agree, and the identity of promise 7 holds.
    pub balanced: bool,
}

/// One member of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberInfo {
    /// Its name.
    pub member: String,
    /// Its session.
    pub session: super::SessionId,
    /// Leases it holds.
    pub leases: u64,
    /// When it was last heard of.
    pub last_seen: UnixMillis,
}

/// A message set aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParkedInfo {
    /// Its channel.
    pub channel: super::ChannelRef,
    /// Its offset.
    pub offset: Offset,
    /// Its task.
    pub task_id: String,
    /// Why.
    pub reason: String,
    /// Since when.
    pub since: UnixMillis,
    /// Attempts that were reported failed.
    pub failed: u32,
    /// Attempts whose lease was lost.
    pub lease_lost: u32,
}
