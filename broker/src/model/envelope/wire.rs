//! The protobuf encoding, field by field, over borrowed bytes.
//!
//! A field is a key (number and wire type) and a value. Groups, the encoding's long-dead way of nesting, are refused.

use super::super::fault::Rule;

/// The fields of one encoded message, in the order they stand. After an error there are no more.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

/// One field.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field<'a> {
    pub(super) number: u32,
    pub(super) value: Value<'a>,
}

/// A value as it stands in the encoding.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    /// Four or eight bytes; no known field is encoded so.
    Fixed,
}

/// Where and why reading stopped; the number is 0 if the key itself was at fault.
#[derive(Clone, Copy, Debug)]
pub(super) struct Broken {
    pub(super) number: u32,
    pub(super) rule: Rule,
}

impl<'a> Fields<'a> {
    pub(super) const fn of(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes not read yet.
    pub(super) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn field(&mut self) -> Result<Field<'a>, Broken> {
        let key = self.varint().map_err(|rule| Broken { number: 0, rule })?;
        let Ok(key) = u32::try_from(key) else {
            return Err(Broken { number: 0, rule: Rule::FieldNumber });
        };
        let number = key >> 3;
        if number == 0 {
            return Err(Broken { number, rule: Rule::FieldNumber });
        }
        let value = match key & 7 {
            0 => self.varint().map(Value::Varint),
            1 => self.bytes(8).map(|_| Value::Fixed),
            2 => self.varint().and_then(|length| self.bytes(length)).map(Value::Bytes),
            5 => self.bytes(4).map(|_| Value::Fixed),
            _ => Err(Rule::WireType),
        };
        value.map(|value| Field { number, value }).map_err(|rule| Broken { number, rule })
    }

    fn varint(&mut self) -> Result<u64, Rule> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let Some((&byte, rest)) = self.rest.split_first() else {
                return Err(Rule::Truncated);
            };
            self.rest = rest;
            // The tenth byte holds the one bit that is left.
            if shift == 63 && byte > 1 {
                return Err(Rule::Varint);
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Rule::Varint)
    }

    fn bytes(&mut self, length: u64) -> Result<&'a [u8], Rule> {
        let split = usize::try_from(length).ok().and_then(|length| self.rest.split_at_checked(length));
        let Some((bytes, rest)) = split else {
            return Err(Rule::Truncated);
        };
        self.rest = rest;
        Ok(bytes)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, Broken>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

impl<'a> Value<'a> {
    pub(super) const fn bytes(self) -> Result<&'a [u8], Rule> {
        if let Self::Bytes(bytes) = self { Ok(bytes) } else { Err(Rule::WireType) }
    }

    pub(super) fn text(self) -> Result<&'a str, Rule> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Rule::Utf8)
    }

    pub(super) const fn number(self) -> Result<u64, Rule> {
        if let Self::Varint(number) = self { Ok(number) } else { Err(Rule::WireType) }
    }

    pub(super) fn number_u32(self) -> Result<u32, Rule> {
        u32::try_from(self.number()?).map_err(|_| Rule::Range)
    }

    pub(super) const fn flag(self) -> Result<bool, Rule> {
        match self.number() {
            Ok(0) => Ok(false),
            Ok(1) => Ok(true),
            Ok(_) => Err(Rule::Range),
            Err(rule) => Err(rule),
        }
    }
}

/// Which singular fields have been seen, by number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen(u128);

impl Seen {
    /// Notes `number`, once, if `singular` has it.
    pub(super) const fn note(&mut self, number: u32, singular: Self) -> Result<(), Rule> {
        if number >= u128::BITS {
            return Ok(());
        }
        let bit = 1 << number;
        if singular.0 & self.0 & bit != 0 {
            return Err(Rule::Once);
        }
        self.0 |= bit;
        Ok(())
    }

    /// The set of these numbers; each must be below 128.
    pub(super) const fn set(numbers: &[u32]) -> Self {
        let mut bits = 0;
        let mut rest = numbers;
        while let Some((&number, others)) = rest.split_first() {
            bits |= 1 << number;
            rest = others;
        }
        Self(bits)
    }
}
