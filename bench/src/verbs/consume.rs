//! `consume`: what was published is taken by members of a group, and settled message by message. What is measured begins
//! with a group that has never had a member.

use super::measuring::{self, Meter};
use super::quiet::Quiet;
use crate::command_line::ConsumeArgs;
use crate::consume::Members;
use crate::load::Load;
use crate::report::{Machine, Measured, Report, Run};
use crate::server::Place;
use crate::workload::Workload;

/// What a message went through.
const SETTLED: &str = "settled";

/// Publishes, then consumes.
pub(super) async fn consume(arguments: &ConsumeArgs) -> anyhow::Result<Report> {
    let ConsumeArgs { run, pattern, payload, .. } = arguments;
    let place = Place::new(run.weir.clone(), run.folder.clone())?;
    let machine = Machine::look(place.folder())?;
    let name = (measuring::weir(run).name(), SETTLED);
    let mut measured = Vec::new();
    for payload in payload {
        let workload = Workload::prepare(pattern, *payload)?;
        let mut runs = Vec::new();
        let mut quiet = Quiet::new(run.quiet);
        while runs.len() < run.runs as usize {
            quiet.wait().await?;
            let run = once(&place, arguments, &workload).await?;
            measuring::tell(&format!("weir, {payload} B: {:.0} messages/s settled", run.rate));
            if quiet.was_kept([&run])? {
                runs.push(run);
            }
        }
        measured.push(Measured::new(name, *payload, workload.request_bytes, workload.all_messages(), &runs));
    }
    let verb = "consume";
    Ok(Report { verb, machine, pattern: pattern.clone(), runs: run.runs, measured, ratios: Vec::new() })
}

async fn once(place: &Place, arguments: &ConsumeArgs, workload: &Workload) -> anyhow::Result<Run> {
    let server = place.start(&measuring::weir(&arguments.run))?;
    let load = Load::open(server.address(), &arguments.pattern).await?;
    load.drive(&workload.warm_up).await?;
    load.drive(&workload.measured).await?;
    let members = Members::open(server.address(), arguments.members, arguments.way, arguments.window).await?;
    measuring::at_rest(&server).await?;
    let meter = Meter::start(&server)?;
    let driven = members.settle(workload.all_messages()).await?;
    meter.stop(&driven)
}
