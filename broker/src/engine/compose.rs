//! Messages that weir itself appends. Their bytes are `weir.v1.Message` like any producer's; a test holds the field
//! numbers against the wire crate.

use super::hash::NameHasher;
use super::head::MessageHead;
use crate::model::names::{WEIR_AGENT, WEIR_MESSAGE};
use crate::model::{Effect, Epoch, FinalState, UnixMillis};
use bytes::Bytes;
use std::sync::Arc;

/// A message by weir.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnMessage<'a> {
    /// Unique in its task: what it is about.
    pub(super) message_id: String,
    pub(super) task_id: &'a str,
    pub(super) execution_id: &'a str,
    pub(super) kind: &'a str,
    pub(super) intent: &'a str,
    pub(super) final_state: Option<FinalState>,
    pub(super) artifact_ref: &'a str,
    pub(super) fencing_token: Option<Epoch>,
    pub(super) created_at: UnixMillis,
    pub(super) attributes: &'a [(&'a str, &'a str)],
}

impl OwnMessage<'_> {
    /// The id of weir's message of this kind about something, which may have ended in a state. No producer can take it.
    pub(super) fn id(kind: &str, about: &str, state: Option<FinalState>) -> String {
        let end = state.map(|state| format!("/{}", state.name())).unwrap_or_default();
        format!("{WEIR_MESSAGE}{kind}/{about}{end}")
    }

    /// Its bytes and head.
    pub(super) fn compose(&self, hasher: NameHasher) -> (Bytes, Arc<MessageHead>) {
        let mut bytes = Vec::with_capacity(256);
        text(&mut bytes, 1, &self.message_id);
        text(&mut bytes, 2, self.task_id);
        text(&mut bytes, 3, WEIR_AGENT);
        text(&mut bytes, 4, self.execution_id);
        text(&mut bytes, 16, self.kind);
        text(&mut bytes, 17, self.intent);
        number(&mut bytes, 24, self.final_state.map_or(0, state_number));
        text(&mut bytes, 25, self.artifact_ref);
        number(&mut bytes, 28, self.fencing_token.map_or(0, Epoch::get));
        number(&mut bytes, 58, self.created_at.get());
        for (key, value) in self.attributes {
            let mut entry = Vec::new();
            text(&mut entry, 1, key);
            text(&mut entry, 2, value);
            delimited(&mut bytes, 65, &entry);
        }
        let head = MessageHead {
            task: hasher.task(self.task_id),
            task_id: self.task_id.into(),
            id: hasher.message(&self.message_id),
            message_id: self.message_id.as_str().into(),
            agent_id: WEIR_AGENT.into(),
            execution_id: (!self.execution_id.is_empty()).then(|| self.execution_id.into()),
            final_state: self.final_state,
            is_request: false,
            effect: Effect::Unspecified,
            artifact_ref: self.artifact_ref.into(),
            fencing_token: self.fencing_token,
            ttl_ms: 0,
            not_before: None,
            deadline: None,
            body: hasher.body(&[], "", self.artifact_ref),
            bytes: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            payload_bytes: 0,
        };
        (Bytes::from(bytes), Arc::new(head))
    }
}

const fn state_number(state: FinalState) -> u64 {
    match state {
        FinalState::Completed => 1,
        FinalState::Failed => 2,
        FinalState::Canceled => 3,
        FinalState::Rejected => 4,
        FinalState::Unknown => 5,
    }
}

fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push((value & 0x7f) as u8);
}

fn number(bytes: &mut Vec<u8>, field: u64, value: u64) {
    if value != 0 {
        varint(bytes, field << 3);
        varint(bytes, value);
    }
}

fn delimited(bytes: &mut Vec<u8>, field: u64, value: &[u8]) {
    varint(bytes, field << 3 | 2);
    varint(bytes, value.len() as u64);
    bytes.extend_from_slice(value);
}

fn text(bytes: &mut Vec<u8>, field: u64, value: &str) {
    if !value.is_empty() {
        delimited(bytes, field, value.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;

    #[test]
    fn the_wire_crate_reads_what_weir_composes() {
        let own = OwnMessage {
            message_id: "~weir/1".to_owned(),
            task_id: "t",
            execution_id: "x",
            kind: "task.result",
            intent: "resolved",
            final_state: Some(FinalState::Failed),
            artifact_ref: "a",
            fencing_token: Some(Epoch(300)),
            created_at: UnixMillis(1_700_000_000_000),
            attributes: &[("by", "ops")],
        };
        let (bytes, head) = own.compose(NameHasher::new(1));
        let message = weir_proto::v1::Message::decode(bytes.clone()).unwrap();
        assert_eq!(message.message_id, "~weir/1");
        assert_eq!((message.task_id.as_str(), message.agent_id.as_str()), ("t", "~weir"));
        assert_eq!((message.execution_id.as_str(), message.r#type.as_str()), ("x", "task.result"));
        assert_eq!(message.final_state, 2);
        assert_eq!((message.fencing_token, message.created_at_unix_ms), (300, 1_700_000_000_000));
        assert_eq!(message.attributes["by"], "ops");
        assert_eq!(*head, *crate::engine::head_of(NameHasher::new(1), &bytes).unwrap());
    }
}
