//! Foreign text made safe to show: no name can move a cursor, hide itself, or turn a line round.

/// `text` with every character that controls a terminal or the direction of text written as `\n` or `\u{202e}`.
pub(crate) fn controls(text: &str) -> String {
    escaped(text, is_control)
}

/// `text` as one cell of a table: escaped like [`controls`], and put in quotes where it could be taken for several cells,
/// for no cell, or for the sign of an absent value.
pub(crate) fn cell(text: &str) -> String {
    quoted_if(is_odd(text) || text.contains([' ', '"']), text)
}

/// `text` as the last thing on a line: words stay words, and only what could be taken for nothing is put in quotes.
pub(crate) fn words(text: &str) -> String {
    quoted_if(is_odd(text) || text.trim() != text || text.starts_with('"'), text)
}

fn is_odd(text: &str) -> bool {
    text.is_empty() || text == "-"
}

fn quoted_if(quoted: bool, text: &str) -> String {
    if quoted {
        let inner = escaped(text, |c| is_control(c) || matches!(c, '\\' | '"'));
        format!("\"{inner}\"")
    } else {
        escaped(text, |c| is_control(c) || c == '\\')
    }
}

/// `json` with the control characters JSON leaves alone written as JSON escapes.
pub(crate) fn json_controls(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        if is_control(c) {
            // The lengths of `\u` escapes allow for the basic plane; all of ours but the tags are in it.
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                safe.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            safe.push(c);
        }
    }
    safe
}

fn escaped(text: &str, must: impl Fn(char) -> bool) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if !must(c) => safe.push(c),
            '\n' | '\r' | '\t' | '\\' | '"' => safe.extend(c.escape_default()),
            c => safe.extend(c.escape_unicode()),
        }
    }
    safe
}

/// Controls, and the invisible characters that steer how text is shown.
fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_spelled_out() {
        assert_eq!(controls("a\u{1b}[2J\nb\u{202e}c\u{85}"), r"a\u{1b}[2J\nb\u{202e}c\u{85}");
        assert_eq!(controls("grüße: \"日本\" *"), "grüße: \"日本\" *");
    }

    #[test]
    fn a_cell_cannot_be_taken_for_another() {
        assert_eq!(cell("plain-name_1"), "plain-name_1");
        assert_eq!(cell("*"), "*");
        assert_eq!(cell("日本"), "日本");
        assert_eq!(cell("a b"), "\"a b\"");
        assert_eq!(cell(""), "\"\"");
        assert_eq!(cell("-"), "\"-\"");
        assert_eq!(cell("say \"hi\""), r#""say \"hi\"""#);
        assert_eq!(cell(r"a\nb"), r"a\\nb");
        assert_eq!(cell("a\nb"), r"a\nb");
        assert_eq!(cell("it's"), "it's");
    }

    #[test]
    fn words_at_the_end_of_a_line_stay_words() {
        assert_eq!(words("say \"hi\" twice"), "say \"hi\" twice");
        assert_eq!(words("\"a\""), r#""\"a\"""#);
        assert_eq!(words(" a"), "\" a\"");
        assert_eq!(words(""), "\"\"");
        assert_eq!(words("a\nb"), r"a\nb");
    }

    #[test]
    fn json_stays_json() {
        assert_eq!(json_controls("\"\u{7f}\u{2028}\u{e0001}\""), "\"\\u007f\\u2028\\udb40\\udc01\"");
    }
}
