//! Whom a message is for.

use super::super::fault::{FieldFault, Rule};
use super::super::limits::{FIELDS_MAX, RECIPIENTS_MAX};
use super::list::Texts;
use super::wire::{Fields, Seen};

/// Whom a message is for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recipient<'a> {
    /// How the agents are meant.
    pub mode: RecipientMode,
    /// Agents by name.
    pub agent_ids: Texts<'a>,
}

/// How the recipients of a message are meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecipientMode {
    /// Not said: any consumer of the channel.
    #[default]
    Unspecified,
    /// Only the named agents.
    Direct,
    /// Every agent.
    Broadcast,
    /// Whoever has subscribed.
    Subscribe,
}

impl<'a> Recipient<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, FieldFault> {
        const SINGULAR: Seen = Seen::set(&[1]);
        let mut recipient = Self::default();
        let (mut seen, mut left) = (Seen::default(), FIELDS_MAX);
        let mut fields = Fields::of(bytes);
        loop {
            let from = fields.rest();
            let Some(field) = fields.next() else {
                return Ok(recipient);
            };
            let field = field.map_err(|broken| broken.rule.broken_by(name_of(broken.number)))?;
            let fault = |rule: Rule| rule.broken_by(name_of(field.number));
            left = left.checked_sub(1).ok_or(Rule::Count(FIELDS_MAX).broken_by("recipient"))?;
            seen.note(field.number, SINGULAR).map_err(fault)?;
            match field.number {
                1 => recipient.mode = field.value.number().and_then(mode).map_err(fault)?,
                2 => recipient.agent_ids.push(from, field, RECIPIENTS_MAX).map_err(fault)?,
                _ => {}
            }
        }
    }
}

const fn mode(number: u64) -> Result<RecipientMode, Rule> {
    Ok(match number {
        0 => RecipientMode::Unspecified,
        1 => RecipientMode::Direct,
        2 => RecipientMode::Broadcast,
        3 => RecipientMode::Subscribe,
        _ => return Err(Rule::EnumNumber),
    })
}

const fn name_of(number: u32) -> &'static str {
    match number {
        1 => "recipient.mode",
        2 => "recipient.agent_ids",
        _ => "recipient",
    }
}
