//! Lengths of time as people type them: `30`, `30s`, `500ms`, `2m`, `1h`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The longest length of time taken, 30 days.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);

/// A length of time from the command line; a bare number counts seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DurationArg(pub(crate) Duration);

/// Why a text is no length of time.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotADuration;

impl fmt::Display for NotADuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a whole number with ms, s, m or h behind it (seconds without), at most 30 days")
    }
}

impl std::error::Error for NotADuration {}

impl FromStr for DurationArg {
    type Err = NotADuration;

    fn from_str(text: &str) -> Result<Self, NotADuration> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let number: u64 = number.parse().map_err(|_| NotADuration)?;
        let unit_ms = match unit {
            "ms" => 1,
            "" | "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return Err(NotADuration),
        };
        let millis = number.checked_mul(unit_ms).ok_or(NotADuration)?;
        Some(Duration::from_millis(millis)).filter(|length| *length <= LONGEST).map(Self).ok_or(NotADuration)
    }
}

/// The whole milliseconds of `length`; lengths beyond what a `u64` holds come out as its greatest value.
pub(crate) fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_has_a_unit_or_counts_seconds() {
        let cases = [("0", 0), ("30", 30_000), ("30s", 30_000), ("500ms", 500), ("2m", 120_000), ("1h", 3_600_000)];
        for (text, millis) in cases {
            assert_eq!(text.parse(), Ok(DurationArg(Duration::from_millis(millis))), "{text}");
        }
    }

    #[test]
    fn anything_else_is_no_length_of_time() {
        for text in ["", "s", "-1", "1.5", "1 s", "1d", "99999999999999999999", "721h"] {
            assert_eq!(text.parse::<DurationArg>(), Err(NotADuration), "{text}");
        }
    }
}
