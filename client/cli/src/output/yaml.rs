//! YAML: block style, names in order, every text quoted that another reader could take for something else.

use crate::output::escape;
use crate::output::tree::Tree;
use std::borrow::Cow;
use std::io::{self, Write};

/// Writes a whole document.
pub(crate) fn document(out: &mut impl Write, value: &Tree) -> io::Result<()> {
    match value {
        Tree::Map(entries) if !entries.is_empty() => block(out, value, 0),
        Tree::List(items) if !items.is_empty() => block(out, value, 0),
        value => writeln!(out, "{}", scalar(value)),
    }
}

/// Writes `value` as the value of a name or of a dash that stands `indent` spaces in.
pub(crate) fn item(out: &mut impl Write, value: &Tree, indent: usize) -> io::Result<()> {
    let dash = format!("{:indent$}- ", "");
    let Tree::Map(entries) = value else {
        return writeln!(out, "{dash}{}", scalar(value));
    };
    if entries.is_empty() {
        return writeln!(out, "{dash}{{}}");
    }
    let mut lines = Vec::new();
    block(&mut lines, value, indent + 2)?;
    // The first name stands behind the dash, in the place of its indentation.
    out.write_all(dash.as_bytes())?;
    out.write_all(lines.get(indent + 2..).unwrap_or_default())
}

/// Writes a name and its value.
pub(crate) fn named(out: &mut impl Write, name: &str, value: &Tree, indent: usize) -> io::Result<()> {
    write!(out, "{:indent$}{}:", "", text(name))?;
    match value {
        Tree::Map(entries) if !entries.is_empty() => {
            writeln!(out)?;
            block(out, value, indent + 2)
        }
        Tree::List(items) if !items.is_empty() => {
            writeln!(out)?;
            block(out, value, indent)
        }
        value => writeln!(out, " {}", scalar(value)),
    }
}

fn block(out: &mut impl Write, value: &Tree, indent: usize) -> io::Result<()> {
    match value {
        Tree::Map(entries) => entries.iter().try_for_each(|(name, value)| named(out, name, value, indent)),
        Tree::List(items) => items.iter().try_for_each(|value| item(out, value, indent)),
        value => writeln!(out, "{:indent$}{}", "", scalar(value)),
    }
}

/// A value on one line. Nested values, which only an item of a list can have here, are in JSON, which is YAML too.
fn scalar(value: &Tree) -> String {
    match value {
        Tree::Null => "null".to_owned(),
        Tree::Bool(value) => value.to_string(),
        Tree::Number(value) => value.to_string(),
        Tree::Text(value) => text(value),
        Tree::Raw(json) => escape::json_controls(json.get()),
        Tree::List(items) => {
            format!("[{}]", items.iter().map(scalar).collect::<Vec<_>>().join(", "))
        }
        Tree::Map(entries) => {
            let pair = |(name, value): &(Cow<'static, str>, Tree)| format!("{}: {}", text(name), scalar(value));
            format!("{{{}}}", entries.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
    }
}

fn text(value: &str) -> String {
    let mut bytes = value.bytes();
    let first = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    let rest = bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/'));
    if first && rest && !is_reserved(value) {
        return value.to_owned();
    }
    let quoted = serde_json::Value::from(value).to_string();
    escape::json_controls(&quoted)
}

/// Words that some reader of YAML takes for a truth value or for nothing.
fn is_reserved(word: &str) -> bool {
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    words.iter().any(|reserved| word.eq_ignore_ascii_case(reserved))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::output::tree::Map;

    fn written(tree: &Tree) -> String {
        let mut out = Vec::new();
        document(&mut out, tree).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn names_keep_their_order_and_nest() {
        let tree = Map::new()
            .with("z", "plain")
            .with("group", Map::new().with("scope", "*").with("depth", 3_u64))
            .with("story", vec![Map::new().with("at", 1_u64).with("text", "a: b")])
            .with("none", Tree::Null)
            .with("empty", Map::new())
            .with("list", vec!["x", "1"])
            .done();
        assert_eq!(
            written(&tree),
            "z: plain\ngroup:\n  scope: \"*\"\n  depth: 3\nstory:\n- at: 1\n  text: \"a: b\"\nnone: null\nempty: {}\n\
             list:\n- x\n- \"1\"\n"
        );
    }

    #[test]
    fn a_text_is_never_taken_for_something_else() {
        for word in ["no", "True", "null", "", "1e3", "~", "- a", "a #b", "2024-05-19", "@x", "a\nb", "\u{85}"] {
            let line = text(word);
            assert!(line.starts_with('"') && line.ends_with('"'), "{line}");
            assert!(!line.contains(['\n', '\u{85}']));
        }
        assert_eq!(text("task_events"), "task_events");
    }
}
