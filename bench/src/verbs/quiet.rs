//! A machine that others use too: waiting for a quiet moment, and knowing a run that had none.

use super::measuring::tell;
use crate::cpu::MachineSample;
use crate::report::Run;
use crate::stopwatch::Stopwatch;
use anyhow::bail;
use std::time::Duration;

/// How long a machine has to be quiet before a round begins.
const LOOK: Duration = Duration::from_secs(2);
/// Rounds thrown away in a row before it is given up.
const ROUNDS_MAX: u32 = 50;
/// Longest wait for one quiet moment.
const WAIT_MAX: Duration = Duration::from_secs(3600);

/// What is asked of the machine.
pub(super) struct Quiet {
    /// Cores that others may keep busy; any number where nothing was said.
    cores: Option<f64>,
    thrown_away: u32,
}

impl Quiet {
    pub(super) const fn new(cores: Option<f64>) -> Self {
        Self { cores, thrown_away: 0 }
    }

    /// Waits until nobody uses more than is allowed. Only while none of the program's own servers runs.
    ///
    /// # Errors
    /// If that takes longer than [`WAIT_MAX`].
    pub(super) async fn wait(&self) -> anyhow::Result<()> {
        let Some(cores) = self.cores else { return Ok(()) };
        let waiting = Stopwatch::start();
        while waiting.elapsed() < WAIT_MAX {
            let (clock, before) = (Stopwatch::start(), MachineSample::now()?);
            tokio::time::sleep(LOOK).await;
            if MachineSample::now()?.since(before) / 1e6 <= cores * clock.elapsed().as_secs_f64() {
                return Ok(());
            }
        }
        bail!("others used more than {cores} cores for {WAIT_MAX:?}");
    }

    /// Whether the runs of a round count.
    ///
    /// # Errors
    /// If too many in a row did not.
    pub(super) fn was_kept<'a>(&mut self, round: impl IntoIterator<Item = &'a Run>) -> anyhow::Result<bool> {
        let Some(cores) = self.cores else { return Ok(true) };
        let most = round.into_iter().map(|run| run.others).fold(0.0, f64::max);
        if most <= cores {
            self.thrown_away = 0;
            return Ok(true);
        }
        self.thrown_away += 1;
        tell(&format!("others used {most:.2} cores: this round does not count"));
        if self.thrown_away == ROUNDS_MAX {
            bail!("others used more than {cores} cores in each of {ROUNDS_MAX} rounds");
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::CpuTime;
    use crate::report::Percentiles;
    use std::collections::BTreeMap;

    fn run(others: f64) -> Run {
        let (wait_ms, server, client) = (Percentiles::default(), BTreeMap::new(), CpuTime::default());
        Run { rate: 1.0, per_call: 1.0, wait_ms, server, client, others }
    }

    #[test]
    fn a_round_counts_only_if_all_its_runs_were_quiet() {
        let mut quiet = Quiet::new(Some(0.2));
        assert!(quiet.was_kept(&[run(0.0), run(0.2)]).unwrap());
        assert!(!quiet.was_kept(&[run(0.0), run(0.3)]).unwrap());
        assert!(Quiet::new(None).was_kept(&[run(2.0)]).unwrap());
    }

    #[test]
    fn too_many_noisy_rounds_in_a_row_are_an_error() {
        let mut quiet = Quiet::new(Some(0.2));
        let ends = (0..ROUNDS_MAX).find(|_| quiet.was_kept(&[run(1.0)]).is_err());
        assert_eq!(ends, Some(ROUNDS_MAX - 1));
    }
}
