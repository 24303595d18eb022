//! Tables for people.

use super::Report;
use super::measured::Measured;
use crate::spread::Spread;
use std::io::{self, Write};

/// Threads that use less than this part of the server's CPU are left to the JSON.
const SMALLEST_PART: f64 = 0.002;

/// Writes all of a report.
pub(super) fn show(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let (machine, pattern) = (&report.machine, &report.pattern);
    writeln!(out, "{}: {} runs, figures are the median (least to greatest)", report.verb, report.runs)?;
    writeln!(
        out,
        "machine: {} cores shared by client and server, Linux {}, 4 KiB written and synced in {} ms",
        machine.cores,
        machine.kernel,
        told(machine.sync_ms, 3)
    )?;
    writeln!(
        out,
        "pattern: {} messages, {} a publish ({:?}), {} connections with {} in flight, {} channels x {} tasks{}",
        pattern.messages,
        pattern.batch,
        pattern.call,
        pattern.connections,
        pattern.in_flight,
        pattern.channels,
        pattern.tasks,
        if pattern.executions { ", executions and final states" } else { "" }
    )?;
    for measured in &report.measured {
        writeln!(out)?;
        one(measured, out)?;
    }
    if !report.ratios.is_empty() {
        writeln!(out)?;
    }
    for ratio in &report.ratios {
        let (of, to, bytes) = (&ratio.of, &ratio.to, ratio.payload_bytes);
        writeln!(out, "{of} / {to}, {bytes} B: {}", told(ratio.ratio, 3))?;
    }
    Ok(())
}

fn one(measured: &Measured, out: &mut impl Write) -> io::Result<()> {
    let Measured { server, what, payload_bytes, .. } = measured;
    writeln!(out, "{server}, payload {payload_bytes} B, requests of {} B", measured.request_bytes)?;
    let mut rows = vec![
        (what.to_string(), format!("{} messages/s", told(measured.per_second, 0))),
        ("messages a call".to_owned(), told(measured.per_call, 1)),
        ("answered, p50".to_owned(), format!("{} ms", told(measured.wait_p50_ms, 3))),
        ("answered, p99".to_owned(), format!("{} ms", told(measured.wait_p99_ms, 3))),
        ("answered, max".to_owned(), format!("{} ms", told(measured.wait_max_ms, 3))),
        ("others busy".to_owned(), format!("{} cores", told(measured.others_busy_cores, 2))),
        ("client CPU".to_owned(), format!("{} us/message", told(measured.client_cpu_us, 3))),
        ("server CPU".to_owned(), format!("{} us/message", told(measured.server_cpu_us, 3))),
    ];
    let smallest = measured.server_cpu_us.median * SMALLEST_PART;
    rows.extend(measured.server_threads.iter().filter(|thread| thread.total_us.median >= smallest).map(|thread| {
        let (user, system) = (thread.user_us.median, thread.system_us.median);
        let total = told(thread.total_us, 3);
        (format!("  {}", thread.thread), format!("{total} us/message: user {user:.3}, kernel {system:.3}"))
    }));
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    rows.iter().try_for_each(|(name, words)| writeln!(out, "  {name:width$}  {words}"))
}

fn told(spread: Spread, digits: usize) -> String {
    let Spread { median, min, max } = spread;
    if min.total_cmp(&max).is_eq() {
        return format!("{median:.digits$}");
    }
    format!("{median:.digits$} ({min:.digits$} to {max:.digits$})")
}
