//! Text to tree: one pass over the events of the YAML parser, with a stack of its own.
//!
//! Bounds: a text of [`TEXT_BYTES_MAX`], collections [`DEPTH_MAX`] deep, one document. Refused: anchors and aliases (a
//! few of them make a tree of any size, and a reader cannot see what a line means), tags (a value's type follows from
//! its key), keys that are no plain words. Planes that are left alone may hold all of these: nothing in them is ever
//! written out or looked at, only the bounds hold for them too.

use super::fault::Findings;
use super::node::{Entry, Mark, Node, Value};
use super::planes::{OTHER_PLANES, PATTERNS};
use saphyr_parser::{Event, Marker, Parser, ScalarStyle};

/// Most bytes of a configuration file: 1 MiB.
pub(super) const TEXT_BYTES_MAX: usize = 1024 * 1024;

/// How deep lists and mappings may be nested. The file itself needs five.
pub(super) const DEPTH_MAX: usize = 32;

/// A collection whose end has not been read.
enum Open {
    List { at: Mark, items: Vec<Node> },
    Map { at: Mark, entries: Vec<Entry>, key: Key },
}

/// What a mapping waits for.
enum Key {
    /// A key.
    Awaited,
    /// The value of this key.
    Read { text: String, at: Mark },
    /// The value of a key that was refused; it is dropped.
    Refused,
}

/// Reads a document. Nothing comes back for an empty one, or where a fault ends the reading; then it is in `findings`.
pub(super) fn parse(text: &str, findings: &mut Findings) -> Option<Node> {
    if text.len() > TEXT_BYTES_MAX {
        let message = format!("the file has {} bytes; at most {TEXT_BYTES_MAX} (1 MiB) are read", text.len());
        findings.fault(Mark::START, "", message);
        return None;
    }
    let mut tree = Tree { open: Vec::new(), root: None };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // What is missing at the end the parser misses in a line that is not there.
    let end = end(text);
    let mark = |marker: Marker| Mark { line: marker.line().max(1), column: marker.col() + 1 }.min(end);
    for event in Parser::new_from_str(text) {
        match event {
            Ok((event, span)) => {
                if !tree.take(event, mark(span.start), findings) {
                    return None;
                }
            }
            Err(fault) => {
                findings.fault(mark(*fault.marker()), "", format!("not valid YAML: {}", fault.info()));
                return None;
            }
        }
    }
    tree.root
}

/// The place behind the last character. A line ends with a line feed, a carriage return, or both.
fn end(text: &str) -> Mark {
    let breaks = |text: &str| text.matches(['\n', '\r']).count() - text.matches("\r\n").count();
    let last_line = text.rsplit(['\n', '\r']).next().unwrap_or_default();
    Mark { line: breaks(text) + 1, column: last_line.chars().count() + 1 }
}

struct Tree {
    open: Vec<Open>,
    root: Option<Node>,
}

impl Tree {
    /// Takes one event. Returns whether to read on.
    fn take(&mut self, event: Event<'_>, at: Mark, findings: &mut Findings) -> bool {
        match event {
            Event::Alias(_) => {
                self.refuse(at, "aliases (`*name`) are refused: write the value out", findings);
                self.place(Node { at, value: Value::Refused }, findings);
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_decoration(anchor, tag.is_some(), at, findings);
                let value = Value::Scalar { text: text.into_owned(), plain: style == ScalarStyle::Plain };
                self.place(Node { at, value }, findings);
            }
            Event::SequenceStart(anchor, tag) => {
                self.refuse_decoration(anchor, tag.is_some(), at, findings);
                self.open.push(Open::List { at, items: Vec::new() });
                return self.check_depth(at, findings);
            }
            Event::MappingStart(anchor, tag) => {
                self.refuse_decoration(anchor, tag.is_some(), at, findings);
                self.open.push(Open::Map { at, entries: Vec::new(), key: Key::Awaited });
                return self.check_depth(at, findings);
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List { at, items }) => self.place(Node { at, value: Value::List(items) }, findings),
                Some(Open::Map { at, entries, .. }) => self.place(Node { at, value: Value::Map(entries) }, findings),
                None => {}
            },
            Event::DocumentStart(_) if self.root.is_some() => {
                findings.fault(at, "", "a second document begins here: one file holds one");
                return false;
            }
            Event::DocumentStart(_) | Event::DocumentEnd | Event::StreamStart | Event::StreamEnd | Event::Nothing => {}
        }
        true
    }

    fn check_depth(&self, at: Mark, findings: &mut Findings) -> bool {
        let fits = self.open.len() <= DEPTH_MAX;
        if !fits {
            findings.fault(at, "", format!("nested deeper than {DEPTH_MAX} levels"));
        }
        fits
    }

    /// Whether what is read next belongs to a plane that is left alone.
    fn is_left_alone(&self) -> bool {
        let key_at = |depth: usize| match self.open.get(depth) {
            Some(Open::Map { key: Key::Read { text, .. }, .. }) => text.as_str(),
            _ => "",
        };
        let plane = if key_at(0) == PATTERNS { key_at(1) } else { key_at(0) };
        OTHER_PLANES.contains(&plane)
    }

    /// Tells a fault, unless it lies in a plane that is left alone.
    fn refuse(&self, at: Mark, message: impl Into<String>, findings: &mut Findings) {
        if !self.is_left_alone() {
            findings.fault(at, "", message);
        }
    }

    fn refuse_decoration(&self, anchor: usize, tagged: bool, at: Mark, findings: &mut Findings) {
        if anchor != 0 {
            self.refuse(at, "anchors (`&name`) are refused: write the value out where it is used", findings);
        }
        if tagged {
            self.refuse(at, "tags (`!name`) are refused: a value's type follows from its key", findings);
        }
    }

    /// Puts a finished node where it belongs: into the innermost open collection, or at the root.
    fn place(&mut self, mut node: Node, findings: &mut Findings) {
        if matches!(self.open.last(), Some(Open::Map { key: Key::Awaited, .. })) {
            self.place_key(node, findings);
            return;
        }
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::List { items, .. }) => items.push(node),
            Some(Open::Map { entries, key, .. }) => {
                if let Key::Read { text, at: key_at } = std::mem::replace(key, Key::Awaited) {
                    // An unwritten value has no place of its own: the parser would name the next token's.
                    if node.is_null() {
                        node.at = key_at;
                    }
                    entries.push(Entry { key: text, key_at, value: node });
                }
            }
        }
    }

    /// Takes a finished node as the key of the innermost mapping.
    fn place_key(&mut self, node: Node, findings: &mut Findings) {
        let Node { at, value } = node;
        let read = match value {
            Value::Scalar { text, .. } => Key::Read { text, at },
            Value::Refused => Key::Refused,
            Value::List(_) | Value::Map(_) => {
                let kind = if matches!(value, Value::List(_)) { "a list" } else { "a mapping" };
                let message = format!("a key has to be a word, not {kind}; a text with {{ or [ belongs into quotes");
                self.refuse(at, message, findings);
                Key::Refused
            }
        };
        if let Some(Open::Map { key, .. }) = self.open.last_mut() {
            *key = read;
        }
    }
}
