//! The nearest known name to one that is not known.

/// Longest name for which a neighbour is looked for, in bytes. Longer ones are no slips of the pen.
const NAME_BYTES_MAX: usize = 64;

/// The known name that `name` most likely stands for, if one is near enough.
pub(super) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    let folded = name.to_ascii_lowercase().replace('-', "_");
    let reach = 1 + folded.chars().count() / 4;
    known
        .iter()
        .map(|candidate| (distance(&folded, candidate), *candidate))
        .filter(|(away, candidate)| *away <= reach || (folded.len() > 2 && candidate.starts_with(&folded)))
        .min_by_key(|(away, _)| *away)
        .map(|(_, candidate)| candidate)
}

/// Single-letter edits between two names; two neighbours that changed places are one.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    let mut previous_char = None;
    for (row, a) in from.chars().enumerate() {
        let mut next = vec![row + 1];
        for (column, b) in to.iter().enumerate() {
            let at = |line: &[usize], place: usize| line.get(place).copied().unwrap_or(usize::MAX - 1);
            let mut least =
                (at(&last, column) + usize::from(a != *b)).min(at(&last, column + 1) + 1).min(at(&next, column) + 1);
            let swapped = column > 0 && previous_char == Some(*b) && to.get(column - 1) == Some(&a);
            if swapped && !before_last.is_empty() {
                least = least.min(at(&before_last, column - 1) + 1);
            }
            next.push(least);
        }
        before_last = std::mem::replace(&mut last, next);
        previous_char = Some(a);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_pen_find_the_name_that_was_meant() {
        let known = ["retention_h", "remember_h", "replay", "key", "listen", "http_listen"];
        let table = [
            ("retention", Some("retention_h")),
            ("retenton_h", Some("retention_h")),
            ("Retention-H", Some("retention_h")),
            ("reply", Some("replay")),
            ("relpay", Some("replay")),
            ("kye", Some("key")),
            ("listne", Some("listen")),
            ("colour", None),
            ("", None),
        ];
        for (written, meant) in table {
            assert_eq!(nearest(written, &known), meant, "{written}");
        }
        assert_eq!(nearest(&"x".repeat(1_000_000), &known), None);
    }
}
