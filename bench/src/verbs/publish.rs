//! `publish`, `pipe` and `gate`: many publishes in flight.

use super::{measuring, turns};
use crate::command_line::PublishArgs;
use crate::report::{Figure, Ratio, Report, Run};
use crate::server::Target;

/// Publishes to weir.
pub(super) async fn weir(arguments: &PublishArgs) -> anyhow::Result<Report> {
    let PublishArgs { run, pattern, payload } = arguments;
    turns::take("publish", (run, pattern, payload), &[measuring::weir(run)], |_, _| Vec::new()).await
}

/// Publishes to the pipe.
pub(super) async fn pipe(arguments: &PublishArgs) -> anyhow::Result<Report> {
    let PublishArgs { run, pattern, payload } = arguments;
    turns::take("pipe", (run, pattern, payload), &[bare(arguments)], |_, _| Vec::new()).await
}

/// Both in turns, and their ratio.
pub(super) async fn gate(arguments: &PublishArgs) -> anyhow::Result<Report> {
    let PublishArgs { run, pattern, payload } = arguments;
    turns::take("gate", (run, pattern, payload), &[bare(arguments), measuring::weir(run)], |payload, runs| {
        let [pipe, weir] = runs else { return Vec::new() };
        let rate = |name: &str, runs: &[Run]| Figure::new(format!("{name} messages/s"), runs, |run| run.rate);
        vec![Ratio::new(payload, &rate("weir", weir), &rate("pipe", pipe))]
    })
    .await
}

const fn bare(arguments: &PublishArgs) -> Target {
    Target::Pipe { results: arguments.pattern.batch }
}
