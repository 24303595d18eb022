//! What clients know: what they sent, what was confirmed to them, what they were shown.

use crate::model::{Epoch, ExecutionState, Offset};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// A place of a message: agent and offset. There is one tenant and one policy.
pub(super) type At = (String, Offset);

/// A message that was sent, whatever came of it.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) agent: String,
    pub(super) bytes: Bytes,
    /// Its execution and whether it reports its end; `None` for an event.
    pub(super) execution: Option<(String, bool)>,
    /// Where it is, once confirmed.
    pub(super) place: Option<At>,
}

/// What is known of an execution.
#[derive(Clone, Debug, Default)]
pub(super) struct Acts {
    /// A begin was answered OK.
    pub(super) begun: bool,
    /// Somebody tried to report COMPLETED, the only end in these stories.
    pub(super) reported: bool,
    /// A report of COMPLETED was confirmed, or the state was shown.
    pub(super) completed: bool,
}

/// The books of all clients together.
#[derive(Default)]
pub(super) struct Books {
    /// By message id.
    pub(super) sent: BTreeMap<String, Sent>,
    pub(super) executions: BTreeMap<String, Acts>,
    /// What was delivered.
    pub(super) shown: BTreeMap<At, Bytes>,
    /// End of a channel as it was shown.
    pub(super) ends: BTreeMap<String, Offset>,
    /// Settled as done, confirmed, in the group that works.
    pub(super) done: BTreeSet<At>,
    /// Settles as done were sent, whatever came of them.
    pub(super) done_sent: BTreeSet<At>,
    /// The greatest epoch or token anybody was shown in this life, and in those before.
    pub(super) epoch: Epoch,
    pub(super) earlier_epoch: Epoch,
    /// Messages sent and readers made so far.
    pub(super) count: u64,
}

impl Books {
    pub(super) fn next(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// A publish named this place for this message, as stored or as a repeat of what is stored.
    pub(super) fn place(&mut self, id: &str, at: At) {
        let sent = self.sent.get_mut(id).expect("only what was sent is answered");
        assert!(sent.place.as_ref().is_none_or(|before| *before == at), "{id} was at {:?}, now at {at:?}", sent.place);
        sent.place = Some(at.clone());
        if let Some((execution, true)) = sent.execution.clone() {
            self.executions.entry(execution).or_default().completed = true;
        }
        self.end_is_behind(&at);
    }

    /// A message was handed out.
    pub(super) fn show(&mut self, at: At, bytes: Bytes) {
        let before = self.shown.insert(at.clone(), bytes.clone());
        assert!(before.is_none_or(|before| before == bytes), "{at:?} was shown with other bytes before");
        self.end_is_behind(&at);
    }

    fn end_is_behind(&mut self, at: &At) {
        let end = self.ends.entry(at.0.clone()).or_default();
        *end = (*end).max(at.1.next());
    }

    /// An epoch or token was shown that came to be in this life.
    pub(super) fn epoch(&mut self, epoch: Epoch) {
        assert!(
            epoch > self.earlier_epoch,
            "{epoch} is not greater than {}, shown in an earlier life",
            self.earlier_epoch
        );
        self.epoch = self.epoch.max(epoch);
    }

    /// The state of an execution was shown.
    pub(super) fn state(&mut self, execution: &str, state: ExecutionState) {
        let acts = self.executions.entry(execution.to_owned()).or_default();
        match state {
            ExecutionState::Completed => {
                assert!(acts.reported, "{execution} is COMPLETED and nobody reported that");
                acts.completed = true;
            }
            ExecutionState::Begun | ExecutionState::Unknown => {
                assert!(!acts.completed, "{execution} was COMPLETED and is {}", state.name());
            }
            ExecutionState::Requested => {
                assert!(!acts.completed && !acts.begun, "{execution} was begun or COMPLETED and is REQUESTED again");
            }
            other => panic!("{execution} is {}, which nobody ever said", other.name()),
        }
    }

    /// The broker ends; what it has shown is history.
    pub(super) fn life_ends(&mut self) {
        self.earlier_epoch = self.epoch;
    }
}
