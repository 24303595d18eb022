//! Pages of lists: a token says after which key the next page begins, so that a list that changes between two pages
//! neither repeats nor skips what stayed.

use crate::model::{Refusal, limits};
use std::fmt::Write as _;

/// Longest token: any key in hexadecimal digits.
const TOKEN_BYTES_MAX: usize = 4096;

/// What a caller asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Paging {
    /// Most rows; 1 to [`limits::PAGE_SIZE_MAX`].
    pub(super) size: u32,
    /// The key of the last row the caller has.
    pub(super) after: Option<Vec<u8>>,
}

impl Paging {
    /// Reads `page_size` and `page_token` of a request.
    pub(super) fn read(page_size: u32, page_token: &str) -> Result<Self, Refusal> {
        let most = limits::PAGE_SIZE_MAX;
        let size = match page_size {
            0 => limits::PAGE_SIZE_DEFAULT,
            size if size <= most => size,
            _ => return Err(Refusal::invalid("page_size", format!("at most {most}"))),
        };
        let after = if page_token.is_empty() {
            None
        } else {
            let unknown = || Refusal::invalid("page_token", "not a token of this list");
            Some(bytes(page_token).ok_or_else(unknown)?)
        };
        Ok(Self { size, after })
    }

    /// Cuts a page out of a whole list. `key` orders the rows and is unique to each.
    pub(super) fn cut<T>(&self, rows: Vec<T>, key: impl Fn(&T) -> Vec<u8>) -> (Vec<T>, String) {
        let mut keyed: Vec<_> = rows.into_iter().map(|row| (key(&row), row)).collect();
        keyed.sort_by(|a, b| a.0.cmp(&b.0));
        if let Some(after) = &self.after {
            keyed.retain(|(key, _)| key > after);
        }
        let size = self.size as usize;
        let more = keyed.len() > size;
        keyed.truncate(size);
        let token = if more { keyed.last().map(|(key, _)| token(key)).unwrap_or_default() } else { String::new() };
        (keyed.into_iter().map(|(_, row)| row).collect(), token)
    }
}

/// The token that names `key`.
pub(super) fn token(key: &[u8]) -> String {
    key.iter().fold(String::with_capacity(key.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A key of several names, in order of the first, then the second. No name has a zero byte.
pub(super) fn key_of(names: &[&str]) -> Vec<u8> {
    names.join("\0").into_bytes()
}

fn bytes(token: &str) -> Option<Vec<u8>> {
    if token.len() > TOKEN_BYTES_MAX
        || !token.len().is_multiple_of(2)
        || !token.bytes().all(|digit| digit.is_ascii_hexdigit())
    {
        return None;
    }
    let digits = |at: usize| token.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    (0..token.len()).step_by(2).map(digits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(names: &[&'static str], size: u32) -> Vec<Vec<&'static str>> {
        let mut pages = Vec::new();
        let mut token = String::new();
        loop {
            let paging = Paging::read(size, &token).unwrap();
            let (page, next) = paging.cut(names.to_vec(), |name| name.as_bytes().to_vec());
            pages.push(page);
            if next.is_empty() {
                return pages;
            }
            token = next;
        }
    }

    #[test]
    fn a_list_comes_whole_and_in_order_over_its_pages() {
        assert_eq!(pages(&["c", "a", "b"], 2), [vec!["a", "b"], vec!["c"]]);
        assert_eq!(pages(&["b", "a"], 2), [vec!["a", "b"]]);
        assert_eq!(pages(&[], 2), [Vec::<&str>::new()]);
    }

    #[test]
    fn sizes_and_tokens_out_of_bounds_are_refused_by_name() {
        assert_eq!(Paging::read(1001, "").unwrap_err().field, "page_size");
        for token in ["0", "zz", "\u{e9}", "+1"] {
            assert_eq!(Paging::read(0, token).unwrap_err().field, "page_token", "{token}");
        }
        assert_eq!(Paging::read(0, "").unwrap().size, limits::PAGE_SIZE_DEFAULT);
    }
}
