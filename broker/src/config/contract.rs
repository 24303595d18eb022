//! `contract:`, what the author of the file expects of the channels.
//!
//! weir keeps exactly one contract. A file may leave it out or say it; a file that says another one would be
//! disappointed later, so it is refused now.

use super::fault::Findings;
use super::section::{Field, Section};
use super::value::one_of;

/// The ids that every message carries.
pub(super) const IDS: [&str; 3] = ["agent_id", "task_id", "message_id"];

/// A promise that weir keeps: the words it is made of, and why another is refused.
pub(super) struct Promise {
    pub(super) key: &'static str,
    pub(super) parts: &'static [&'static str],
    pub(super) why: &'static str,
}

/// The promises besides the ids.
pub(super) const PROMISES: [Promise; 3] = [
    Promise {
        key: "ordering",
        parts: &["same_task_ordered"],
        why: "the messages of one task are handed out in order, and tasks are independent of each other",
    },
    Promise {
        key: "delivery",
        parts: &["at_least_once", "receiver_dedup"],
        why: "a message may come more than once, and the ledger tells a receiver what it has done already",
    },
    Promise {
        key: "resumption",
        parts: &["stream_checkpoint", "handle_query"],
        why: "a reader goes on from its offset, and an execution can be asked for at any time",
    },
];

impl Promise {
    /// As it is written.
    pub(super) fn text(&self) -> String {
        self.parts.join(" + ")
    }

    /// Every order of the words in which it may be written.
    pub(super) fn texts(&self) -> Vec<String> {
        let mut texts = vec![self.text()];
        if self.parts.len() > 1 {
            texts.push(self.parts.iter().rev().copied().collect::<Vec<_>>().join(" + "));
        }
        texts
    }

    /// Whether a text says this promise; order and spaces do not matter.
    fn is_said_by(&self, text: &str) -> bool {
        let mut said: Vec<&str> = text.split('+').map(str::trim).collect();
        said.sort_unstable();
        let mut kept = self.parts.to_vec();
        kept.sort_unstable();
        said == kept
    }
}

/// Checks the section.
pub(super) fn check(section: &Field<'_>, findings: &mut Findings) {
    let [ordering, delivery, resumption] = PROMISES.map(|promise| promise.key);
    let known = ["id", ordering, delivery, resumption];
    let Some(fields) = Section::open(section.node, &section.path, &known, findings) else {
        return;
    };
    if let Some(field) = fields.field("id") {
        check_ids(&field, findings);
    }
    for promise in &PROMISES {
        let Some(field) = fields.field(promise.key) else {
            continue;
        };
        let kept = promise.text();
        if let Some(text) = field.text(&format!("`{kept}`"), findings)
            && !promise.is_said_by(text)
        {
            field.fault(format!("weir keeps `{kept}` and no other: {}", promise.why), findings);
        }
    }
}

fn check_ids(id: &Field<'_>, findings: &mut Findings) {
    let Some(fields) = Section::open(id.node, &id.path, &IDS, findings) else {
        return;
    };
    for name in IDS {
        match fields.field(name) {
            Some(field) if !field.node.is_null() => {
                field
                    .fault(format!("expected no value, found {}: the name alone says it", field.node.kind()), findings);
            }
            Some(_) => {}
            None => {
                let message =
                    format!("`{name}` is missing: every message carries {}", one_of(&IDS).replace(" or ", " and "));
                findings.fault(id.key_at, &id.path, message);
            }
        }
    }
}
