//! Repeated fields: checked when the message is walked, read again from its bytes when asked for.

use super::super::fault::{FieldFault, Rule};
use super::super::limits::ATTRIBUTES_MAX;
use super::wire::{Field, Fields, Seen, Value};

/// The entries of a repeated text field, in their order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Texts<'a> {
    entries: Entries<'a>,
}

impl<'a> Texts<'a> {
    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.count as usize
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.count == 0
    }

    /// The entries.
    pub fn iter(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.entries.values().filter_map(|value| value.text().ok())
    }

    /// Takes in one more entry; `from` is the message from it on.
    pub(super) fn push(&mut self, from: &'a [u8], field: Field<'a>, max: u32) -> Result<(), Rule> {
        field.value.text()?;
        self.entries.push(from, field.number, max)
    }
}

/// The attributes, in the order they stand in the message. Each key occurs once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attributes<'a> {
    entries: Entries<'a>,
}

impl<'a> Attributes<'a> {
    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.count as usize
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.count == 0
    }

    /// Keys and values.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.entries.values().filter_map(|value| pair(value.bytes().ok()?).ok())
    }

    /// The value of `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    pub(super) fn push(&mut self, from: &'a [u8], field: Field<'a>) -> Result<(), FieldFault> {
        let fault = |rule: Rule| rule.broken_by("attributes");
        let (key, _) = pair(field.value.bytes().map_err(fault)?)?;
        if self.get(key).is_some() {
            return Err(Rule::RepeatedKey.broken_by("attributes.key"));
        }
        self.entries.push(from, field.number, ATTRIBUTES_MAX).map_err(fault)
    }
}

/// Reads one entry of a map. It has two fields and no others.
fn pair(entry: &[u8]) -> Result<(&str, &str), FieldFault> {
    const SINGULAR: Seen = Seen::set(&[1, 2]);
    let (mut key, mut value) = ("", "");
    let mut seen = Seen::default();
    for field in Fields::of(entry) {
        let Field { number, value: wire } = field.map_err(|broken| broken.rule.broken_by("attributes"))?;
        let (name, place) = match number {
            1 => ("attributes.key", &mut key),
            2 => ("attributes.value", &mut value),
            _ => return Err(Rule::FieldNumber.broken_by("attributes")),
        };
        *place = seen.note(number, SINGULAR).and_then(|()| wire.text()).map_err(|rule| rule.broken_by(name))?;
    }
    Ok((key, value))
}

/// Where the entries of one repeated field are found again.
#[derive(Clone, Copy, Debug, Default)]
struct Entries<'a> {
    /// The message from the first entry on, other fields among the entries.
    wire: &'a [u8],
    number: u32,
    count: u32,
}

impl<'a> Entries<'a> {
    fn push(&mut self, from: &'a [u8], number: u32, max: u32) -> Result<(), Rule> {
        if self.count == max {
            return Err(Rule::Count(max));
        }
        if self.count == 0 {
            self.wire = from;
            self.number = number;
        }
        self.count += 1;
        Ok(())
    }

    fn values(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        let Self { wire, number, count } = *self;
        let fields = Fields::of(wire).filter_map(Result::ok);
        fields.filter(move |field| field.number == number).take(count as usize).map(|field| field.value)
    }
}
