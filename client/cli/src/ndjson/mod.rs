//! Input lines: one JSON object a line, one message an object.
//!
//! Fields go by the names of `weir.v1.Message`; beside them `channel` names the channel (`tenant:agent`), `tenant` its
//! owner, and `payload` is any JSON, published as compact JSON of content type `application/json`. A body that is no JSON
//! goes into `payload_base64`. What is `null` counts as left out, but for `payload`. A field nobody knows, or one that
//! stands twice, is refused: a typing error must not vanish into a message that looks well.

mod compact;
mod fields;
mod value;

pub(crate) use compact::compact;

use crate::names::ChannelKey;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use weir_proto::v1::Message;

/// What holds for all lines of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    /// The channel of all lines; `channel` and `tenant` of a line then count for nothing.
    pub(crate) channel: Option<ChannelKey>,
    /// Give each message a new id.
    pub(crate) fresh_ids: bool,
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldFault {
    /// The field at fault; empty if it is the line as a whole.
    pub(crate) field: String,
    /// The rule it breaks.
    pub(crate) reason: String,
}

impl FieldFault {
    /// A fault of one field.
    pub(crate) fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { field: field.into(), reason: reason.into() }
    }

    /// A fault of a whole line.
    pub(crate) fn of_line(reason: impl Into<String>) -> Self {
        Self::new("", reason)
    }
}

impl Rules {
    /// Reads one line.
    ///
    /// # Errors
    /// The field at fault and the rule it breaks. Rules on the form of names are the broker's, not looked at here.
    pub(crate) fn read(&self, line: &[u8]) -> Result<(ChannelKey, Message), FieldFault> {
        let text = std::str::from_utf8(line).map_err(|_| FieldFault::of_line("is not UTF-8"))?;
        let object: Object<'_> = serde_json::from_str(text).map_err(|error| {
            let words = error.to_string();
            let what = words.split(" at line ").next().unwrap_or_default();
            FieldFault::of_line(format!("is not a JSON object: {what}, column {}", error.column()))
        })?;
        let mut line = fields::LineFields::default();
        for (name, raw) in &object.0 {
            line.set(name, raw)?;
        }
        let channel = self.channel(&line)?;
        let mut message = line.into_message()?;
        if self.fresh_ids {
            message.message_id = fresh_id();
        }
        check_required(&message)?;
        Ok((channel, message))
    }

    fn channel(&self, line: &fields::LineFields) -> Result<ChannelKey, FieldFault> {
        if let Some(channel) = &self.channel {
            return Ok(channel.clone());
        }
        let text =
            line.channel.as_deref().ok_or_else(|| FieldFault::new("channel", "is required without --channel"))?;
        let channel: ChannelKey = text.parse().map_err(|fault| FieldFault::new("channel", format!("{fault}")))?;
        match &line.tenant {
            Some(tenant) if *tenant != channel.tenant => {
                Err(FieldFault::new("tenant", format!("is not that of channel `{channel}`")))
            }
            _ => Ok(channel),
        }
    }
}

/// The rules that would cost a whole batch a round trip for each line that breaks them.
fn check_required(message: &Message) -> Result<(), FieldFault> {
    let required = [
        ("message_id", &message.message_id),
        ("task_id", &message.task_id),
        ("agent_id", &message.agent_id),
        ("type", &message.r#type),
    ];
    for (field, value) in required {
        if value.is_empty() {
            return Err(FieldFault::new(field, "is required"));
        }
    }
    if message.final_state != 0 && message.execution_id.is_empty() {
        return Err(FieldFault::new("execution_id", "is required beside final_state"));
    }
    Ok(())
}

fn fresh_id() -> String {
    format!("{:032x}", rand::random::<u128>())
}

/// The fields of an object in their order, each once.
#[derive(Debug)]
struct Object<'a>(Vec<(String, &'a RawValue)>);

impl<'de> serde::Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut fields = Vec::with_capacity(16);
                while let Some(entry) = map.next_entry::<String, &'de RawValue>()? {
                    fields.push(entry);
                }
                Ok(Object(fields))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

#[cfg(test)]
mod tests;
