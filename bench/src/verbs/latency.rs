//! `latency`: one publish in flight, beside a call that does nothing and a call that syncs.

use super::{measuring, turns};
use crate::command_line::LatencyArgs;
use crate::report::{Figure, Ratio, Report, Run};
use crate::server::Target;
use crate::workload::{Order, Pattern};

/// The bare call, the pipe and weir in turns.
pub(super) async fn latency(arguments: &LatencyArgs) -> anyhow::Result<Report> {
    let LatencyArgs { run, messages, channels, tasks, executions, call, payload } = arguments;
    let pattern = Pattern {
        messages: *messages,
        batch: 1,
        connections: 1,
        channels: *channels,
        tasks: *tasks,
        in_flight: 1,
        call: *call,
        order: Order::Turns,
        executions: *executions,
        warm_up: None,
    };
    let targets = [Target::BareCall { results: 1 }, Target::Pipe { results: 1 }, measuring::weir(run)];
    turns::take("latency", (run, &pattern, payload), &targets, |payload, runs| {
        let [_, pipe, weir] = runs else { return Vec::new() };
        let p50 = |name: &str, runs: &[Run]| Figure::new(format!("{name} p50"), runs, |run| run.wait_ms.p50);
        let p99 = Figure::new("weir p99", weir, |run| run.wait_ms.p99);
        vec![Ratio::new(payload, &p50("weir", weir), &p50("pipe", pipe)), Ratio::new(payload, &p99, &p50("weir", weir))]
    })
    .await
}
