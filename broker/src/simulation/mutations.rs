//! Ways to break the storage of the whole broker by hand are found within 50 seeds. Those of the journal alone are tested
//! beside it.

use super::power_cuts::run;

const SEEDS: u64 = 50;

#[tokio::test]
async fn an_applied_lsn_written_apart_from_its_rows_is_noticed() {
    for seed in 0..SEEDS {
        let broken = tokio::spawn(async move { run(seed, |machine| machine.applied_apart = true).await });
        if broken.await.is_err() {
            return;
        }
    }
    panic!("not noticed in {SEEDS} seeds");
}
