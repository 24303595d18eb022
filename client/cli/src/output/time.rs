//! Moments as people read them.

const DAY_MS: u64 = 24 * 3_600_000;

/// A moment in milliseconds since the Unix epoch as `2024-05-19T12:00:01.700Z`.
pub(crate) fn rfc3339(unix_ms: u64) -> String {
    let (year, month, day) = date(unix_ms / DAY_MS);
    let ms = unix_ms % DAY_MS;
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    let millis = ms % 1_000;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// The date so many days after 1970-01-01, in the Gregorian calendar.
///
/// Counts from 0000-03-01, so that a leap day is the last day of its year: 400 years have 146,097 days, a year from March
/// on has months in a pattern of 153 days every five.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_utc() {
        let cases = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_716_120_001_700, "2024-05-19T12:00:01.700Z"),
            (1_735_689_599_999, "2024-12-31T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ];
        for (unix_ms, text) in cases {
            assert_eq!(rfc3339(unix_ms), text);
        }
    }

    #[test]
    fn the_greatest_moment_is_shown_too() {
        assert!(rfc3339(u64::MAX).ends_with('Z'));
    }
}
