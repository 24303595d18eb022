//! Servers that take turns under the same load, so that all see the same machine.

use super::measuring;
use super::quiet::Quiet;
use crate::command_line::RunArgs;
use crate::report::{Machine, Measured, Ratio, Report, Run};
use crate::server::{Place, Target};
use crate::workload::{Pattern, Workload};

/// What a message went through.
const PUBLISHED: &str = "published";

/// Runs each target in its turn, for each payload, as often as asked. `compare` sees the runs by target, in order.
pub(super) async fn take(
    verb: &'static str,
    (run, pattern, payloads): (&RunArgs, &Pattern, &[usize]),
    targets: &[Target],
    compare: impl Fn(usize, &[Vec<Run>]) -> Vec<Ratio>,
) -> anyhow::Result<Report> {
    let place = Place::new(run.weir.clone(), run.folder.clone())?;
    let machine = Machine::look(place.folder())?;
    let (mut measured, mut ratios) = (Vec::new(), Vec::new());
    for payload in payloads {
        let workload = Workload::prepare(pattern, *payload)?;
        let mut runs = vec![Vec::new(); targets.len()];
        let mut quiet = Quiet::new(run.quiet);
        let mut rounds = 0;
        while rounds < run.runs {
            quiet.wait().await?;
            let mut round = Vec::with_capacity(targets.len());
            for target in targets {
                let run = measuring::publish(&place, target, pattern, &workload).await?;
                measuring::tell(&format!("{}, {payload} B: {:.0} messages/s", target.name(), run.rate));
                round.push(run);
            }
            if quiet.was_kept(&round)? {
                runs.iter_mut().zip(round).for_each(|(runs, run)| runs.push(run));
                rounds += 1;
            }
        }
        for (target, runs) in targets.iter().zip(&runs) {
            let size = workload.request_bytes;
            measured.push(Measured::new((target.name(), PUBLISHED), *payload, size, workload.messages, runs));
        }
        ratios.extend(compare(*payload, &runs));
    }
    Ok(Report { verb, machine, pattern: pattern.clone(), runs: run.runs, measured, ratios })
}
