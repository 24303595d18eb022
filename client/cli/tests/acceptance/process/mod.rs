//! What the tests are made of: real processes, members over unary calls, and short words for long messages.

mod counting;
mod data;
mod dice;
mod http;
mod member;
mod proxy;
mod server;
mod weirctl;
mod words;

pub(crate) use counting::Counting;
pub(crate) use data::airline;
pub(crate) use dice::{Dice, rounds};
pub(crate) use http::{gauge, get};
pub(crate) use member::{Member, message, retry, settlement};
pub(crate) use proxy::Proxy;
pub(crate) use server::{Server, weir_to_its_end};
pub(crate) use weirctl::{Guarded, words as words_of};
pub(crate) use words::*;

use std::time::{Duration, Instant};

/// Longest wait for anything that has no limit of its own.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at a condition.
const LOOK: Duration = Duration::from_millis(5);

/// Waits until `condition` holds, no longer than `limit`.
pub(crate) fn within(limit: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < limit, "not within {limit:?}: {what}");
        std::thread::sleep(LOOK);
    }
}

/// Waits until `condition` holds.
pub(crate) fn until(what: &str, condition: impl FnMut() -> bool) {
    within(PATIENCE, what, condition);
}
