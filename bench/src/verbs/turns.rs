//! Servers that take turns under the same load, so that all see the same machine.

use super::measuring;
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
        for _ in 0..run.runs {
            for (target, runs) in targets.iter().zip(&mut runs) {
                let run = measuring::publish(&place, target, pattern, &workload).await?;
                let name = target.name();
                measuring::tell(&format!("{name}, {payload} B: {:.0} messages/s", run.rate));
                runs.push(run);
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
