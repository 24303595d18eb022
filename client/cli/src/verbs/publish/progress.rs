//! How far a run is, on stderr.

use crate::output::escape;
use crate::verbs::publish::tally::Tally;
use indicatif::ProgressBar;
use std::io::{self, IsTerminal as _};
use std::time::Duration;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// How often the progress is told; shorter runs never hear of it.
const EVERY: Duration = Duration::from_secs(1);

/// Tells how far a run is: on a terminal in place, else line by line if asked to.
#[derive(Debug)]
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    by_lines: bool,
    ticks: Interval,
}

impl Progress {
    /// `asked` tells it also where stderr is no terminal.
    pub(super) fn new(asked: bool) -> Self {
        let terminal = io::stderr().is_terminal();
        let mut ticks = interval_at(Instant::now() + EVERY, EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { bar: terminal.then(ProgressBar::new_spinner), by_lines: asked && !terminal, ticks }
    }

    /// Waits until it is time to tell again.
    pub(super) async fn is_due(&mut self) {
        self.ticks.tick().await;
    }

    /// Tells how far the run is.
    pub(super) fn show(&self, tally: &Tally) {
        let words = format!("{} stored, {} duplicates, {} rejected", tally.stored, tally.duplicates, tally.rejected);
        if let Some(bar) = &self.bar {
            bar.set_message(words);
            bar.tick();
        } else if self.by_lines {
            eprintln!("{words}");
        }
    }

    /// Says something else beside it.
    pub(super) fn say(&self, words: &str) {
        let words = escape::controls(words);
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{words}")),
            None => eprintln!("{words}"),
        }
    }

    /// Clears what stands in place.
    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
