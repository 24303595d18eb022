//! A record as a tree of named values that keeps its order.

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A value, or values in it.
#[derive(Debug, Clone)]
pub(crate) enum Tree {
    /// Nothing is known.
    Null,
    /// A yes or no.
    Bool(bool),
    /// A whole number.
    Number(u64),
    /// A text.
    Text(String),
    /// JSON from elsewhere, shown as it is.
    Raw(Box<RawValue>),
    /// Values in order.
    List(Vec<Tree>),
    /// Named values in order.
    Map(Vec<(Cow<'static, str>, Tree)>),
}

impl Tree {
    /// The value at `path`, names joined by dots; [`Tree::Null`] if there is none.
    pub(crate) fn at(&self, path: &str) -> &Tree {
        let mut here = self;
        for name in path.split('.') {
            let Tree::Map(entries) = here else {
                return &Tree::Null;
            };
            let Some((_, below)) = entries.iter().find(|(key, _)| key == name) else {
                return &Tree::Null;
            };
            here = below;
        }
        here
    }

    /// `text`, or nothing if it is empty.
    pub(crate) fn unless_empty(text: impl Into<String>) -> Self {
        match text.into() {
            text if text.is_empty() => Self::Null,
            text => Self::Text(text),
        }
    }

    /// `value`, or nothing if it is 0.
    pub(crate) fn unless_zero(value: u64) -> Self {
        if value == 0 { Self::Null } else { Self::Number(value) }
    }
}

impl PartialEq for Tree {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Number(a), Self::Number(b)) => a == b,
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Raw(a), Self::Raw(b)) => a.get() == b.get(),
            (Self::List(a), Self::List(b)) => a == b,
            (Self::Map(a), Self::Map(b)) => a == b,
            _ => false,
        }
    }
}

/// Builds a [`Tree::Map`], name by name.
#[derive(Debug, Default)]
pub(crate) struct Map(Vec<(Cow<'static, str>, Tree)>);

impl Map {
    /// A map without values.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a value.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Tree>) -> Self {
        self.0.push((Cow::Borrowed(name), value.into()));
        self
    }

    /// Adds a value if there is one.
    pub(crate) fn with_some(self, name: &'static str, value: impl Into<Tree>) -> Self {
        match value.into() {
            Tree::Null => self,
            Tree::List(items) if items.is_empty() => self,
            value => self.with(name, value),
        }
    }

    /// The map as a value.
    pub(crate) fn done(self) -> Tree {
        Tree::Map(self.0)
    }
}

impl From<Map> for Tree {
    fn from(map: Map) -> Self {
        map.done()
    }
}

impl From<bool> for Tree {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<u32> for Tree {
    fn from(value: u32) -> Self {
        Self::Number(value.into())
    }
}

impl From<u64> for Tree {
    fn from(value: u64) -> Self {
        Self::Number(value)
    }
}

impl From<&str> for Tree {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Tree {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl<T: Into<Tree>> From<Option<T>> for Tree {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl<T: Into<Tree>> From<Vec<T>> for Tree {
    fn from(values: Vec<T>) -> Self {
        Self::List(values.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Tree>> From<BTreeMap<String, T>> for Tree {
    fn from(values: BTreeMap<String, T>) -> Self {
        let entry = |(name, value): (String, T)| (Cow::Owned(name), value.into());
        Self::Map(values.into_iter().map(entry).collect())
    }
}

impl Serialize for Tree {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(value) => serializer.serialize_u64(*value),
            Self::Text(value) => serializer.serialize_str(value),
            Self::Raw(value) => value.serialize(serializer),
            Self::List(values) => serializer.collect_seq(values),
            Self::Map(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (name, value) in entries {
                    map.serialize_entry(name.as_ref(), value)?;
                }
                map.end()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_keep_their_order_and_raw_json_its_form() {
        let raw = RawValue::from_string(r#"{"b":1.0,"a":18446744073709551616}"#.to_owned()).unwrap();
        let tree = Map::new()
            .with("z", "first")
            .with("a", 2_u64)
            .with("absent", Option::<u64>::None)
            .with("payload", Tree::Raw(raw))
            .done();
        assert_eq!(
            serde_json::to_string(&tree).unwrap(),
            r#"{"z":"first","a":2,"absent":null,"payload":{"b":1.0,"a":18446744073709551616}}"#
        );
    }

    #[test]
    fn a_path_leads_down_the_names() {
        let tree = Map::new().with("group", Map::new().with("name", "g")).done();
        assert_eq!(tree.at("group.name"), &Tree::from("g"));
        assert_eq!(tree.at("group.none"), &Tree::Null);
        assert_eq!(tree.at("group.name.deeper"), &Tree::Null);
    }

    #[test]
    fn what_is_not_there_may_be_left_out() {
        let tree = Map::new().with_some("a", Tree::unless_empty("")).with_some("b", Vec::<u64>::new());
        assert_eq!(tree.done(), Map::new().done());
    }
}
