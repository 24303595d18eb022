//! One mapping of the file: its fields by name, and typed readings that tell what is wrong.

use super::fault::Findings;
use super::node::{Entry, Mark, Node, Value, shown};
use super::suggest::nearest;
use super::value;
use std::collections::BTreeMap;

/// A mapping whose fields are all known and there once; what is not has been told.
pub(super) struct Section<'n> {
    path: String,
    fields: BTreeMap<&'n str, &'n Entry>,
}

impl<'n> Section<'n> {
    /// Opens a mapping. Nothing comes back if it is none.
    pub(super) fn open(node: &'n Node, path: &str, known: &[&str], findings: &mut Findings) -> Option<Self> {
        let Value::Map(entries) = &node.value else {
            wrong_kind(node, path, "a mapping", findings);
            return None;
        };
        let mut fields: BTreeMap<&str, &Entry> = BTreeMap::new();
        for entry in entries {
            let place = join(path, &entry.key);
            if !known.contains(&entry.key.as_str()) {
                findings.fault(entry.key_at, &place, unknown(&entry.key, known));
            } else if let Some(first) = fields.get(entry.key.as_str()) {
                let message = format!("given twice; the first stands in line {}", first.key_at.line);
                findings.fault(entry.key_at, &place, message);
            } else {
                fields.insert(&entry.key, entry);
            }
        }
        Some(Self { path: path.to_owned(), fields })
    }

    /// A field, if it is written.
    pub(super) fn field(&self, name: &str) -> Option<Field<'n>> {
        let entry = self.fields.get(name)?;
        Some(Field { path: join(&self.path, name), key_at: entry.key_at, node: &entry.value })
    }
}

/// A field of a section.
pub(super) struct Field<'n> {
    pub(super) path: String,
    pub(super) key_at: Mark,
    pub(super) node: &'n Node,
}

impl<'n> Field<'n> {
    /// Tells a fault at the field's value.
    pub(super) fn fault(&self, message: impl Into<String>, findings: &mut Findings) {
        findings.fault(self.node.at, &self.path, message);
    }

    /// A word or text. `wanted` completes "expected ...". What YAML takes for a number or a truth value is neither
    /// unless it stands in quotes.
    pub(super) fn text(&self, wanted: &str, findings: &mut Findings) -> Option<&'n str> {
        let text = self.scalar(wanted, findings)?;
        let plain = matches!(self.node.value, Value::Scalar { plain: true, .. });
        if plain && (value::is_number(text) || value::truth(text).is_ok()) {
            let number = if value::is_number(text) { "the number " } else { "" };
            let message =
                format!("expected {wanted}, found {number}{}; as a text it stands in quotes", self.node.kind());
            self.fault(message, findings);
            return None;
        }
        Some(text)
    }

    /// A word without quotes, such as a number: in quotes it would be a text. `wanted` completes "expected ...".
    pub(super) fn plain(&self, wanted: &str, findings: &mut Findings) -> Option<&'n str> {
        let text = self.scalar(wanted, findings)?;
        if matches!(self.node.value, Value::Scalar { plain: false, .. }) {
            self.fault(format!("expected {wanted}, found {}: take the quotes away", self.node.kind()), findings);
            return None;
        }
        Some(text)
    }

    /// A whole number within bounds, both included.
    pub(super) fn count(&self, min: u64, max: u64, findings: &mut Findings) -> Option<u64> {
        let text = self.plain(&format!("a whole number from {min} to {max}"), findings)?;
        self.told(value::count(text, min, max), findings)
    }

    /// A truth value.
    pub(super) fn truth(&self, findings: &mut Findings) -> Option<bool> {
        let text = self.plain("true or false", findings)?;
        self.told(value::truth(text), findings)
    }

    fn scalar(&self, wanted: &str, findings: &mut Findings) -> Option<&'n str> {
        match &self.node.value {
            Value::Scalar { text, .. } if !self.node.is_null() => Some(text),
            _ => {
                wrong_kind(self.node, &self.path, wanted, findings);
                None
            }
        }
    }

    /// A list. `wanted` completes "expected ...".
    pub(super) fn list(&self, wanted: &str, findings: &mut Findings) -> Option<&'n [Node]> {
        match &self.node.value {
            Value::List(items) => Some(items),
            _ => {
                wrong_kind(self.node, &self.path, wanted, findings);
                None
            }
        }
    }

    /// What was read; an error becomes a fault at the value.
    pub(super) fn told<T>(&self, read: Result<T, String>, findings: &mut Findings) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(message) => {
                self.fault(message, findings);
                None
            }
        }
    }
}

/// The path of a key below `path`.
pub(super) fn join(path: &str, key: &str) -> String {
    let key = shown(key);
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

fn wrong_kind(node: &Node, path: &str, wanted: &str, findings: &mut Findings) {
    if node.value != Value::Refused {
        findings.fault(node.at, path, format!("expected {wanted}, found {}", node.kind()));
    }
}

fn unknown(key: &str, known: &[&str]) -> String {
    match nearest(key, known) {
        Some(meant) => format!("unknown field; did you mean `{meant}`?"),
        None => format!("unknown field; known here: {}", known.join(", ")),
    }
}
