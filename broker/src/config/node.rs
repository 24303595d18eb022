//! A YAML document as a tree in which every node knows its place.

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mark {
    /// From 1.
    pub(super) line: usize,
    /// In characters, from 1.
    pub(super) column: usize,
}

impl Mark {
    /// The first character of a file.
    pub(super) const START: Self = Self { line: 1, column: 1 };
}

/// A value and where it starts. A value that is not written (`key:` alone) starts where its key does.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) at: Mark,
    pub(super) value: Value,
}

/// What a node is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// A word, number or text; `plain` if it stands without quotes.
    Scalar { text: String, plain: bool },
    /// `[a, b]`, or lines that begin with a dash.
    List(Vec<Node>),
    /// `{a: 1}`, or lines of keys; repeated keys are still there.
    Map(Vec<Entry>),
    /// Something that was refused when it was read. Its fault is told already, so nobody looks at it again.
    Refused,
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) key_at: Mark,
    pub(super) value: Node,
}

impl Node {
    /// Whether nothing is written, or YAML's word for nothing.
    pub(super) fn is_null(&self) -> bool {
        match &self.value {
            Value::Scalar { text, plain } => *plain && matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"),
            _ => false,
        }
    }

    /// What this is, in the words of a fault.
    pub(super) fn kind(&self) -> String {
        match &self.value {
            _ if self.is_null() => "nothing".to_owned(),
            Value::Scalar { text, plain: true } => format!("`{}`", shown(text)),
            Value::Scalar { text, plain: false } => format!("the text \"{}\"", shown(text)),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a mapping".to_owned(),
            Value::Refused => "what was refused above".to_owned(),
        }
    }
}

/// Most characters of the file's own text that are repeated in a message.
const SHOWN_CHARS_MAX: usize = 60;

/// Text of the file as it may stand in a message: short, on one line, nothing that moves a terminal's cursor.
pub(super) fn shown(text: &str) -> String {
    let mut out = String::new();
    for (at, c) in text.chars().enumerate() {
        if at == SHOWN_CHARS_MAX {
            out.push_str("...");
            break;
        }
        if c.is_control() {
            out.extend(c.escape_debug());
        } else {
            out.push(c);
        }
    }
    out
}
