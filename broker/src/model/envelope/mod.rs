//! A message as its producer encoded it, read where it lies (design, section 5).
//!
//! The broker stores and delivers a `weir.v1.Message` byte for byte, so nothing here owns or copies anything. Reading
//! walks the whole message once and is stricter than a decoder of protobuf has to be:
//!
//! - a singular field occurs at most once, so that two readers cannot see two values;
//! - text is UTF-8, nested messages are well formed, numbers fit their fields, enum numbers are known ones;
//! - lists are bounded, and so is the number of fields;
//! - fields with unknown numbers pass through unread.
//!
//! What is accepted decodes with any decoder, to the same values. Which values are admitted is
//! [`admission`](super::admission)'s question.

mod field;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod list;
mod recipient;
#[cfg(test)]
mod tests;
mod wire;

pub use list::{Attributes, Texts};
pub use recipient::{Recipient, RecipientMode};

use super::fault::{FieldFault, Rule};
use super::limits::{COMPATIBLE_WITH_MAX, FIELDS_MAX, INVALIDATES_MAX};
use super::{Effect, Epoch, FinalState, UnixMillis};
use field::{SINGULAR, effect, final_state, moment, name_of};
use wire::{Field, Fields, Seen};

/// A borrowed view of one encoded message. Texts that were not set are empty. `message.proto` says what each field means.
#[derive(Clone, Copy, Debug, Default)]
pub struct Envelope<'a> {
    /// The whole message, as encoded.
    pub encoded: &'a [u8],

    /// Names the message within its task.
    pub message_id: &'a str,
    /// Names the task.
    pub task_id: &'a str,
    /// The sender.
    pub agent_id: &'a str,
    /// Names the attempt to act; empty if it is about none.
    pub execution_id: &'a str,
    /// The conversation or session.
    pub context_id: &'a str,
    /// The model's own id of a tool call.
    pub tool_call_id: &'a str,
    /// A ticket, order or case outside.
    pub ticket_id: &'a str,
    /// The key under which the effect is idempotent at its target.
    pub idempotency_key: &'a str,
    /// Who the agent acts for.
    pub on_behalf_of: &'a str,

    /// What this is.
    pub kind: &'a str,
    /// What it is meant to do.
    pub intent: &'a str,
    /// Schema of the payload.
    pub schema: &'a str,
    /// Other schemas a reader may use.
    pub compatible_with: Texts<'a>,

    /// How the execution ended; `None` if this is no final report.
    pub final_state: Option<FinalState>,
    /// Where the product lies.
    pub artifact_ref: &'a str,
    /// What acting may do to the world.
    pub effect: Effect,
    /// Attempts left over all layers.
    pub retry_budget: Option<u32>,
    /// The begin a report was made under.
    pub fencing_token: Option<Epoch>,

    /// The role in which the sender speaks.
    pub sender_role: &'a str,
    /// Whom it is for.
    pub recipient: Option<Recipient<'a>>,

    /// The trace, over tasks.
    pub trace_id: &'a str,
    /// W3C `traceparent`.
    pub traceparent: &'a str,
    /// W3C `tracestate`.
    pub tracestate: &'a str,
    /// The message that caused this one.
    pub parent_message_id: &'a str,
    /// The step of the plan.
    pub step_id: &'a str,
    /// Earlier messages that this one makes void.
    pub invalidates_message_ids: Texts<'a>,

    /// Who may see it.
    pub visibility: &'a str,
    /// How sensitive the payload is.
    pub sensitivity: &'a str,
    /// Time to live from its publish, in milliseconds; 0 means no bound of its own.
    pub ttl_ms: u64,
    /// Earliest moment to hand it out.
    pub not_before: Option<UnixMillis>,
    /// Moment after which it must not be begun.
    pub deadline: Option<UnixMillis>,
    /// Whether the sender waits for an answer.
    pub requires_response: bool,
    /// When the sender made it, by the sender's clock.
    pub created_at: Option<UnixMillis>,

    /// Media type of the payload.
    pub content_type: &'a str,
    /// Free pairs.
    pub attributes: Attributes<'a>,
    /// The body.
    pub payload: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Reads an encoded `weir.v1.Message`.
    ///
    /// # Errors
    /// The first field that is not encoded as the module's documentation asks, and the rule it breaks.
    pub fn parse(encoded: &'a [u8]) -> Result<Self, FieldFault> {
        let mut envelope = Self { encoded, ..Self::default() };
        let (mut seen, mut left) = (Seen::default(), FIELDS_MAX);
        let mut fields = Fields::of(encoded);
        loop {
            let from = fields.rest();
            let Some(field) = fields.next() else {
                return Ok(envelope);
            };
            let field = field.map_err(|broken| broken.rule.broken_by(name_of(broken.number)))?;
            left = left.checked_sub(1).ok_or(Rule::Count(FIELDS_MAX).broken_by("message"))?;
            let fault = |rule: Rule| rule.broken_by(name_of(field.number));
            seen.note(field.number, SINGULAR).map_err(fault)?;
            match field.number {
                33 => envelope.recipient = Some(Recipient::parse(field.value.bytes().map_err(fault)?)?),
                65 => envelope.attributes.push(from, field)?,
                _ => envelope.take(from, field).map_err(fault)?,
            }
        }
    }

    /// Whether it asks for an execution: it names one, reports no end of it, and is of a requesting type.
    #[must_use]
    pub fn is_request(&self) -> bool {
        let own = || self.kind.strip_prefix("x.").and_then(|rest| rest.strip_suffix(".request"));
        let asks = matches!(self.kind, "task.request" | "action.preview") || own().is_some_and(|name| !name.is_empty());
        asks && !self.execution_id.is_empty() && self.final_state.is_none()
    }

    /// Whether it calls its task off.
    #[must_use]
    pub fn is_cancellation(&self) -> bool {
        self.kind == "task.cancelled"
    }

    /// Takes in one field, except the nested ones; `from` is the message from it on.
    fn take(&mut self, from: &'a [u8], field: Field<'a>) -> Result<(), Rule> {
        let value = field.value;
        match field.number {
            1 => self.message_id = value.text()?,
            2 => self.task_id = value.text()?,
            3 => self.agent_id = value.text()?,
            4 => self.execution_id = value.text()?,
            5 => self.context_id = value.text()?,
            6 => self.tool_call_id = value.text()?,
            7 => self.ticket_id = value.text()?,
            8 => self.idempotency_key = value.text()?,
            9 => self.on_behalf_of = value.text()?,
            16 => self.kind = value.text()?,
            17 => self.intent = value.text()?,
            18 => self.schema = value.text()?,
            19 => self.compatible_with.push(from, field, COMPATIBLE_WITH_MAX)?,
            24 => self.final_state = final_state(value.number()?)?,
            25 => self.artifact_ref = value.text()?,
            26 => self.effect = effect(value.number()?)?,
            27 => self.retry_budget = Some(value.number_u32()?),
            28 => self.fencing_token = Some(value.number()?).filter(|token| *token != 0).map(Epoch),
            32 => self.sender_role = value.text()?,
            40 => self.trace_id = value.text()?,
            41 => self.traceparent = value.text()?,
            42 => self.tracestate = value.text()?,
            43 => self.parent_message_id = value.text()?,
            44 => self.step_id = value.text()?,
            45 => self.invalidates_message_ids.push(from, field, INVALIDATES_MAX)?,
            52 => self.visibility = value.text()?,
            53 => self.sensitivity = value.text()?,
            54 => self.ttl_ms = value.number()?,
            55 => self.not_before = moment(value.number()?),
            56 => self.deadline = moment(value.number()?),
            57 => self.requires_response = value.flag()?,
            58 => self.created_at = moment(value.number()?),
            64 => self.content_type = value.text()?,
            66 => self.payload = value.bytes()?,
            _ => {}
        }
        Ok(())
    }
}
