//! Families of rows.

/// A kind of row. Its number is the first byte of each of its keys, is part of the format on disk and never changes; a
/// family that goes leaves its number unused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[allow(dead_code, reason = "a family keeps its number from before its first row to after its last")]
pub(crate) enum Family {
    /// Channel policies and their totals, by number. Layout: `rows/policy.rs`.
    Policies = 1,
    /// Channels by number. Layout: `rows/channel.rs`.
    Channels = 2,
    /// Numbers of channels by policy, tenant and agent. Layout: `rows/channel.rs`.
    ChannelNames = 3,
    /// Which segments hold messages of a channel, by first offset. Layout: `read/extent.rs`.
    Extents = 4,
    /// Messages of a task, packed by checkpoint. Layout: `rows/task.rs`.
    Tasks = 5,
    /// First messages of <execution, final state> pairs. Layout: `rows/dedup.rs`.
    Dedup = 6,
    /// The ledger of executions. Layout: `rows/execution.rs`.
    Executions = 7,
    /// First unsettled messages of partitions that are not untouched. Layout: `rows/delivery.rs`.
    Deliveries = 8,
    /// Groups and their books. Layout: `rows/group.rs`.
    Groups = 9,
    /// How far a group is through a channel. Layout: `rows/cursor.rs`.
    Cursors = 10,
    /// Live sessions. Layout: `rows/session.rs`.
    Sessions = 11,
    /// How leases ended, for repeated settles. Layout: `rows/settles.rs`.
    Settles = 12,
    /// What is due at a time. Layout: the engine's timers.
    Timers = 13,
    /// What a tenant ever published to a policy. Layout: `rows/totals.rs`.
    Totals = 14,
    /// Journal segments and what keeps them. Layout: the engine's reclaim.
    Segments = 15,
    /// The one row that says up to which LSN all others are true. Layout: `applied.rs`.
    Applied = 16,
}

impl Family {
    /// Every family, in the order of keys.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 16] = [
        Self::Policies,
        Self::Channels,
        Self::ChannelNames,
        Self::Extents,
        Self::Tasks,
        Self::Dedup,
        Self::Executions,
        Self::Deliveries,
        Self::Groups,
        Self::Cursors,
        Self::Sessions,
        Self::Settles,
        Self::Timers,
        Self::Totals,
        Self::Segments,
        Self::Applied,
    ];

    /// The first byte of its keys.
    pub(crate) const fn byte(self) -> u8 {
        self as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_pinned_and_ascend_from_one() {
        let bytes: Vec<u8> = Family::ALL.iter().map(|family| family.byte()).collect();
        assert_eq!(bytes, (1..=16).collect::<Vec<u8>>());
        assert_eq!((Family::Extents.byte(), Family::Settles.byte(), Family::Applied.byte()), (4, 12, 16));
    }
}
