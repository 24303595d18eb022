//! Values of an input line as the types of a message.

use crate::enums;
use crate::ndjson::FieldFault;
use crate::output::Tree;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use weir_proto::v1::{Effect, FinalState, Recipient, RecipientMode};

type Read<T> = Result<T, String>;

/// A text.
pub(super) fn text(raw: &RawValue) -> Read<String> {
    parse(raw, "must be a text")
}

/// A list of texts.
pub(super) fn texts(raw: &RawValue) -> Read<Vec<String>> {
    parse(raw, "must be a list of texts")
}

/// Texts by name. A name that stands twice is refused by the broker's codec as little as by JSON: the last one counts.
pub(super) fn pairs(raw: &RawValue) -> Read<BTreeMap<String, String>> {
    parse(raw, "must be an object of texts")
}

/// A whole number.
pub(super) fn number(raw: &RawValue) -> Read<u64> {
    parse(raw, "must be a whole number from 0 to 18446744073709551615")
}

/// A smaller whole number.
pub(super) fn small_number(raw: &RawValue) -> Read<u32> {
    parse(raw, "must be a whole number from 0 to 4294967295")
}

/// A yes or no.
pub(super) fn truth(raw: &RawValue) -> Read<bool> {
    parse(raw, "must be true or false")
}

/// A final state by its name, with or without prefix.
pub(super) fn final_state(raw: &RawValue) -> Read<i32> {
    let names =
        [FinalState::Completed, FinalState::Failed, FinalState::Canceled, FinalState::Rejected, FinalState::Unknown];
    one_of(raw, &names.map(|state| (i32::from(state), state.as_str_name())), enums::final_state)
}

/// An effect by its name, with or without prefix.
pub(super) fn effect(raw: &RawValue) -> Read<i32> {
    let names = [Effect::None, Effect::Idempotent, Effect::Unsafe];
    one_of(raw, &names.map(|effect| (i32::from(effect), effect.as_str_name())), |number| match enums::effect(number) {
        Tree::Text(name) => Tree::from(name.trim_start_matches("EFFECT_")),
        other => other,
    })
}

/// Whom a message is for: `{"mode": "DIRECT", "agent_ids": ["desk"]}`.
pub(super) fn recipient(raw: &RawValue) -> Result<Recipient, FieldFault> {
    let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(raw.get())
        .map_err(|_| FieldFault::new("recipient", "must be an object of mode and agent_ids"))?;
    let mut recipient = Recipient::default();
    for (name, raw) in &fields {
        let at = |reason: String| FieldFault::new(format!("recipient.{name}"), reason);
        match name.as_str() {
            "mode" => recipient.mode = recipient_mode(raw).map_err(at)?,
            "agent_ids" => recipient.agent_ids = texts(raw).map_err(at)?,
            _ => return Err(at("is not known".to_owned())),
        }
    }
    Ok(recipient)
}

fn recipient_mode(raw: &RawValue) -> Read<i32> {
    let names = [RecipientMode::Direct, RecipientMode::Broadcast, RecipientMode::Subscribe];
    one_of(raw, &names.map(|mode| (i32::from(mode), mode.as_str_name())), enums::recipient_mode)
}

fn one_of(raw: &RawValue, known: &[(i32, &str)], short: impl Fn(i32) -> Tree) -> Read<i32> {
    let short_name = |number: i32| match short(number) {
        Tree::Text(name) => name,
        _ => String::new(),
    };
    let given = text(raw).ok();
    let found = known
        .iter()
        .find(|(number, full)| given.as_deref().is_some_and(|given| given == *full || given == short_name(*number)));
    found.map(|(number, _)| *number).ok_or_else(|| {
        let names: Vec<_> = known.iter().map(|(number, _)| short_name(*number)).collect();
        format!("must be one of {}", names.join(", "))
    })
}

fn parse<T: serde::de::DeserializeOwned>(raw: &RawValue, rule: &str) -> Read<T> {
    serde_json::from_str(raw.get()).map_err(|_| rule.to_owned())
}
