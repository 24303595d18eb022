//! The reader held against prost: what it accepts decodes, to equal values.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

use super::fuzzing::{assert_same, message as agrees_with_prost};
use super::*;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use prost::Message as _;
use weir_proto::v1;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "\\PC{1,12}"]
}

prop_compose! {
    /// Any message within the reader's bounds.
    fn any_message()(
        texts in vec(text(), 22),
        lists in vec(vec(text(), 0..5), 3),
        numbers in vec(prop_oneof![Just(0), any::<u64>()], 5),
        (state, effect, mode) in (0..6, 0..4, 0..4),
        (budget, wants, addressed) in (any::<Option<u32>>(), any::<bool>(), any::<bool>()),
        attributes in btree_map(text(), text(), 0..5),
        payload in vec(any::<u8>(), 0..64),
    ) -> v1::Message {
        let mut texts = texts.into_iter();
        let mut text = || texts.next().unwrap_or_default();
        let mut lists = lists.into_iter();
        let mut list = || lists.next().unwrap_or_default();
        let mut numbers = numbers.into_iter();
        let mut number = || numbers.next().unwrap_or_default();
        v1::Message {
            message_id: text(), task_id: text(), agent_id: text(), execution_id: text(), context_id: text(),
            tool_call_id: text(), ticket_id: text(), idempotency_key: text(), on_behalf_of: text(),
            r#type: text(), intent: text(), schema: text(), compatible_with: list(),
            final_state: state, artifact_ref: text(), effect, retry_budget: budget, fencing_token: number(),
            sender_role: text(), recipient: addressed.then(|| v1::Recipient { mode, agent_ids: list() }),
            trace_id: text(), traceparent: text(), tracestate: text(), parent_message_id: text(), step_id: text(),
            invalidates_message_ids: list(), visibility: text(), sensitivity: text(),
            ttl_ms: number(), not_before_unix_ms: number(), deadline_unix_ms: number(), requires_response: wants,
            created_at_unix_ms: number(), content_type: text(), attributes, payload: payload.into(),
        }
    }
}

/// A change somewhere in the bytes.
#[derive(Clone, Debug)]
enum Change {
    Set(prop::sample::Index, u8),
    Insert(prop::sample::Index, Vec<u8>),
    Cut(prop::sample::Index),
    /// Repeats a stretch at the end, as a careless concatenation would.
    Repeat(prop::sample::Index, prop::sample::Index),
}

fn any_change() -> impl Strategy<Value = Change> {
    let place = any::<prop::sample::Index>;
    prop_oneof![
        (place(), any::<u8>()).prop_map(|(at, byte)| Change::Set(at, byte)),
        (place(), vec(any::<u8>(), 1..12)).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        place().prop_map(Change::Cut),
        (place(), place()).prop_map(|(from, to)| Change::Repeat(from, to)),
    ]
}

fn changed(mut bytes: Vec<u8>, changes: Vec<Change>) -> Vec<u8> {
    for change in changes {
        let places = bytes.len() + 1;
        match change {
            Change::Set(at, byte) => {
                if let Some(place) = bytes.get_mut(at.index(places)) {
                    *place = byte;
                }
            }
            Change::Insert(at, more) => drop(bytes.splice(at.index(places)..at.index(places), more)),
            Change::Cut(at) => bytes.truncate(at.index(places)),
            Change::Repeat(from, to) => {
                let (from, to) = (from.index(places), to.index(places));
                bytes.extend_from_within(from.min(to)..from.max(to));
            }
        }
    }
    bytes
}

proptest! {
    #[test]
    fn every_encoded_message_is_read_as_it_was_meant(message in any_message()) {
        let encoded = message.encode_to_vec();
        assert_same(&Envelope::parse(&encoded).unwrap(), &message);
    }

    #[test]
    fn what_is_accepted_of_changed_bytes_decodes_to_the_same(
        message in any_message(),
        changes in vec(any_change(), 1..4),
    ) {
        agrees_with_prost(&changed(message.encode_to_vec(), changes));
    }

    #[test]
    fn what_is_accepted_of_any_bytes_decodes_to_the_same(bytes in vec(any::<u8>(), 0..200)) {
        agrees_with_prost(&bytes);
    }

    #[test]
    fn unknown_fields_pass_through(message in any_message(), number in 70u32..536_870_911, value in vec(any::<u8>(), 0..20)) {
        let mut encoded = message.encode_to_vec();
        prost::encoding::bytes::encode(number, &value, &mut encoded);
        prost::encoding::uint64::encode(number, &7, &mut encoded);
        prost::encoding::double::encode(number, &1.5, &mut encoded);
        prost::encoding::float::encode(number, &1.5, &mut encoded);
        encoded.extend_from_slice(&message_tail());
        assert_same(&Envelope::parse(&encoded).unwrap(), &v1::Message::decode(encoded.as_slice()).unwrap());
    }
}

/// One entry of each list, so that lists go on behind other fields.
fn message_tail() -> Vec<u8> {
    let mut tail = Vec::new();
    prost::encoding::string::encode(19, &"last schema".to_owned(), &mut tail);
    prost::encoding::string::encode(45, &"last id".to_owned(), &mut tail);
    tail
}

fn fault(bytes: &[u8]) -> FieldFault {
    Envelope::parse(bytes).unwrap_err()
}

#[test]
fn a_singular_field_occurs_once() {
    let message = v1::Message { task_id: "t".into(), recipient: Some(v1::Recipient::default()), ..Default::default() };
    let once = message.encode_to_vec();
    assert_eq!(fault(&[once.as_slice(), &once].concat()), Rule::Once.broken_by("task_id"));
    // Zero, given twice, is given twice all the same.
    assert_eq!(fault(&[0xc0, 0x01, 0, 0xc0, 0x01, 0]), Rule::Once.broken_by("final_state"));
}

#[test]
fn an_unknown_enum_number_is_refused() {
    let state = v1::Message { final_state: 6, ..Default::default() };
    assert_eq!(fault(&state.encode_to_vec()), Rule::EnumNumber.broken_by("final_state"));
    let effect = v1::Message { effect: -1, ..Default::default() };
    assert_eq!(fault(&effect.encode_to_vec()), Rule::EnumNumber.broken_by("effect"));
    let recipient = Some(v1::Recipient { mode: 4, agent_ids: vec![] });
    let mode = v1::Message { recipient, ..Default::default() };
    assert_eq!(fault(&mode.encode_to_vec()), Rule::EnumNumber.broken_by("recipient.mode"));
}

#[test]
fn text_is_utf8_and_of_the_right_wire_type() {
    assert_eq!(fault(&[0x0a, 1, 0xff]), Rule::Utf8.broken_by("message_id"));
    assert_eq!(fault(&[0x08, 1]), Rule::WireType.broken_by("message_id"));
    assert_eq!(fault(&[0x0b]), Rule::WireType.broken_by("message_id"));
}

#[test]
fn a_message_that_ends_early_is_refused() {
    let encoded = v1::Message { message_id: "m1".into(), ..Default::default() }.encode_to_vec();
    for end in 1..encoded.len() {
        assert_eq!(fault(&encoded[..end]).rule, Rule::Truncated, "{end}");
    }
}

#[test]
fn numbers_are_bounded() {
    let eleven = [[0xff; 10].as_slice(), &[1]].concat();
    assert_eq!(fault(&[&[0xb0, 0x03], eleven.as_slice()].concat()), Rule::Varint.broken_by("ttl_ms"));
    assert_eq!(fault(&[0xd8, 0x01, 0x80, 0x80, 0x80, 0x80, 0x10]), Rule::Range.broken_by("retry_budget"));
    assert_eq!(fault(&[0xc8, 0x03, 2]), Rule::Range.broken_by("requires_response"));
    assert_eq!(fault(&[0x02, 0]), Rule::FieldNumber.broken_by("message"));
}

#[test]
fn lists_and_fields_are_bounded() {
    let schemas = v1::Message { compatible_with: vec![String::new(); 17], ..Default::default() };
    assert_eq!(fault(&schemas.encode_to_vec()), Rule::Count(16).broken_by("compatible_with"));
    let unknown = [0xd8, 0x04, 0].repeat(1025);
    assert_eq!(fault(&unknown), Rule::Count(1024).broken_by("message"));
}

#[test]
fn an_attribute_key_occurs_once() {
    let attributes = [("k".to_owned(), "v".to_owned())].into();
    let once = v1::Message { attributes, ..Default::default() }.encode_to_vec();
    assert_eq!(Envelope::parse(&once).unwrap().attributes.get("k"), Some("v"));
    assert_eq!(fault(&[once.as_slice(), &once].concat()), Rule::RepeatedKey.broken_by("attributes.key"));
}

#[test]
fn a_request_asks_for_an_execution_and_reports_no_end() {
    let request = Envelope { kind: "task.request", execution_id: "x1", ..Default::default() };
    assert!(request.is_request());
    for kind in ["action.preview", "x.refund.request", "x.a.b.request"] {
        assert!(Envelope { kind, ..request }.is_request(), "{kind}");
    }
    for kind in ["event", "task.result", "x.refund", "x.request", "x..request", "y.refund.request"] {
        assert!(!Envelope { kind, ..request }.is_request(), "{kind}");
    }
    assert!(!Envelope { execution_id: "", ..request }.is_request());
    assert!(!Envelope { final_state: Some(FinalState::Failed), ..request }.is_request());
}
