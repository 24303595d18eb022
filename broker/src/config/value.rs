//! Single values from text, the same for a flag, an environment variable and a field of the file.

use super::node::shown;

/// A whole number within bounds, both included.
///
/// # Errors
/// What would be right.
pub(super) fn count(text: &str, min: u64, max: u64) -> Result<u64, String> {
    let digits_only = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits_only {
        return Err(format!("expected a whole number from {min} to {max}, found `{}`", shown(text)));
    }
    match text.parse::<u64>() {
        Ok(number) if (min..=max).contains(&number) => Ok(number),
        _ => Err(format!("{} is out of bounds: from {min} to {max}", shown(text))),
    }
}

/// A truth value in YAML's own spelling.
///
/// # Errors
/// What would be right.
pub(super) fn truth(text: &str) -> Result<bool, String> {
    match text {
        "true" | "True" | "TRUE" => Ok(true),
        "false" | "False" | "FALSE" => Ok(false),
        _ => Err(format!("expected true or false, found `{}`", shown(text))),
    }
}

/// Whether YAML takes an unquoted word for a number: `7`, `-1.5`, `1e3`, `0x1f`.
pub(super) fn is_number(text: &str) -> bool {
    let digits = |digits: &str, radix| !digits.is_empty() && digits.chars().all(|c: char| c.is_digit(radix));
    match (text.strip_prefix("0x"), text.strip_prefix("0o")) {
        (Some(hex), _) => digits(hex, 16),
        (_, Some(octal)) => digits(octal, 8),
        // Rust knows `inf` and `nan` as numbers, YAML does not.
        _ => text.contains(|c: char| c.is_ascii_digit()) && text.parse::<f64>().is_ok(),
    }
}

/// A list of words as it stands in a sentence: `a`, `b` or `c`.
pub(super) fn one_of(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => format!("`{only}`"),
        [most @ .., last] => {
            let most: Vec<String> = most.iter().map(|word| format!("`{word}`")).collect();
            format!("{} or `{last}`", most.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_told_from_words() {
        for number in ["7", "-1", "+1.5", "1e3", "0x1F", "0o17", ".5", "007"] {
            assert!(is_number(number), "{number}");
        }
        for word in ["", "inf", "nan", "0x", "0o9", "1-2", "a1", "127.0.0.1", "1_000"] {
            assert!(!is_number(word), "{word}");
        }
    }
}
