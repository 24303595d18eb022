//! JSON without its spaces, and otherwise as it was written.

/// `json` without the space between its parts. Order, repeated names and the digits of numbers stay as they are.
///
/// `json` must be valid: strings are skipped by their quotes alone.
pub(crate) fn compact(json: &str) -> String {
    let mut short = String::with_capacity(json.len());
    let mut in_string = false;
    let mut escaped = false;
    for c in json.chars() {
        if in_string {
            short.push(c);
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => in_string = false,
                _ => {}
            }
        } else if !matches!(c, ' ' | '\t' | '\n' | '\r') {
            in_string = c == '"';
            short.push(c);
        }
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_space_between_parts_goes() {
        assert_eq!(
            compact(" { \"b\" : [ 1.0 , 1e400 ] ,\n\"a b\": \"x \\\" y\\\\\" , \"a b\":null } "),
            "{\"b\":[1.0,1e400],\"a b\":\"x \\\" y\\\\\",\"a b\":null}"
        );
    }
}
