//! The leases this process holds.

use std::collections::{BTreeMap, BTreeSet};
use weir_proto::v1::{Delivery, Held, HeldAnswer, SettleOutcome, Settlement};

/// Most leases `Held` may name.
pub(super) const HELD_MAX: usize = 10_000;

/// A message under a lease, by epoch and offset.
type Key = (u64, u64);

/// Where a leased message lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// Policy of its channel.
    pub(super) policy: String,
    /// Tenant of its channel.
    pub(super) tenant: String,
    /// Agent of its channel.
    pub(super) agent_id: String,
}

/// What this process was handed, and whose settle is not answered yet.
#[derive(Debug, Default)]
pub(super) struct Leases(BTreeMap<Key, Place>);

impl Leases {
    /// How many messages are held.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes a delivery.
    pub(super) fn add(&mut self, delivery: &Delivery) {
        let place = Place {
            policy: delivery.policy.clone(),
            tenant: delivery.tenant.clone(),
            agent_id: delivery.agent_id.clone(),
        };
        self.0.insert((delivery.epoch, delivery.offset), place);
    }

    /// A settle was answered.
    pub(super) fn remove(&mut self, epoch: u64, offset: u64) -> Option<Place> {
        self.0.remove(&(epoch, offset))
    }

    /// A lease is over.
    pub(super) fn lose(&mut self, epoch: u64) {
        self.0.retain(|(held, _), _| *held != epoch);
    }

    /// All leases are over.
    pub(super) fn lose_all(&mut self) {
        self.0.clear();
    }

    /// The leases this process really works on.
    pub(super) fn held(&self) -> Held {
        let epochs: BTreeSet<_> = self.0.keys().map(|(epoch, _)| *epoch).collect();
        Held { epochs: epochs.into_iter().collect() }
    }

    /// Takes the broker's answer to what is held: leases that go on, under new epochs, and leases that are over.
    pub(super) fn answered(&mut self, answer: HeldAnswer) {
        let moved: BTreeMap<_, _> = answer.kept.into_iter().map(|kept| (kept.epoch_before, kept.epoch)).collect();
        let before = std::mem::take(&mut self.0);
        self.0 = before
            .into_iter()
            .map(|((epoch, offset), place)| ((moved.get(&epoch).copied().unwrap_or(epoch), offset), place))
            .collect();
        for epoch in answer.lost_epochs {
            self.lose(epoch);
        }
    }

    /// Settlements of up to `most` messages that are held, in the order of their epochs.
    pub(super) fn settlements(&self, outcome: SettleOutcome, delay_ms: u64, most: usize) -> Vec<Settlement> {
        let retried = outcome == SettleOutcome::Retry;
        self.0
            .keys()
            .take(most)
            .map(|(epoch, offset)| Settlement {
                epoch: *epoch,
                offset: *offset,
                outcome: outcome.into(),
                delay_ms: if retried { delay_ms } else { 0 },
                reason: if retried { "weirctl sub --settle retry".to_owned() } else { String::new() },
                not_executed: false,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use weir_proto::v1::KeptLease;

    fn leases(keys: &[Key]) -> Leases {
        let mut leases = Leases::default();
        for (epoch, offset) in keys {
            leases.add(&Delivery { epoch: *epoch, offset: *offset, ..Delivery::default() });
        }
        leases
    }

    #[test]
    fn a_lease_is_held_until_its_settle_is_answered() {
        let mut leases = leases(&[(7, 1), (7, 2), (9, 4)]);
        assert_eq!(leases.held().epochs, [7, 9]);
        assert!(leases.remove(7, 1).is_some());
        assert!(leases.remove(7, 1).is_none());
        leases.remove(7, 2).unwrap();
        assert_eq!(leases.held().epochs, [9]);
    }

    #[test]
    fn leases_go_on_under_new_epochs_or_are_over() {
        let mut leases = leases(&[(7, 1), (8, 2), (9, 4)]);
        leases.answered(HeldAnswer {
            kept: vec![KeptLease { epoch_before: 7, epoch: 8 }, KeptLease { epoch_before: 8, epoch: 20 }],
            lost_epochs: vec![9],
        });
        let settlements = leases.settlements(SettleOutcome::Done, 5, 10);
        let named: Vec<_> = settlements.iter().map(|s| (s.epoch, s.offset, s.delay_ms)).collect();
        assert_eq!(named, [(8, 1, 0), (20, 2, 0)]);
    }

    #[test]
    fn a_retry_says_how_long_to_wait() {
        let settlements = leases(&[(7, 1)]).settlements(SettleOutcome::Retry, 50, 10);
        assert_eq!(settlements[0].delay_ms, 50);
        assert!(!settlements[0].reason.is_empty());
    }
}
