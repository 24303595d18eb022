//! One measured run.

use crate::command_line::RunArgs;
use crate::cpu::{CpuSample, MachineSample};
use crate::load::{Driven, Load};
use crate::report::{CpuUsed, Run};
use crate::server::{Place, Server, Target};
use crate::stopwatch::Stopwatch;
use crate::workload::{Pattern, Workload};
use anyhow::ensure;
use std::io::Write as _;
use std::time::Duration;

/// Looks in a row at which a server at rest has used nothing.
const CALM_LOOKS: usize = 4;
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Longest wait for a server to be at rest.
const REST_WITHIN: Duration = Duration::from_secs(15);

/// The CPU of a server, of this process and of all else, from its making on.
pub(super) struct Meter {
    pid: u32,
    server: CpuSample,
    client: CpuSample,
    machine: MachineSample,
}

impl Meter {
    /// Begins.
    pub(super) fn start(server: &Server) -> anyhow::Result<Self> {
        let pid = server.pid();
        let client = CpuSample::of(std::process::id())?;
        Ok(Self { pid, server: CpuSample::of(pid)?, client, machine: MachineSample::now()? })
    }

    /// What it took until now.
    pub(super) fn stop(&self, driven: &Driven) -> anyhow::Result<Run> {
        let machine = MachineSample::now()?.since(self.machine);
        let client = CpuSample::of(std::process::id())?.whole_since(&self.client);
        Ok(Run::new(driven, CpuUsed { server: CpuSample::of(self.pid)?.since(&self.server), client, machine }))
    }
}

/// Starts a server, warms it up, and publishes what is to be measured.
pub(super) async fn publish(
    place: &Place,
    target: &Target,
    pattern: &Pattern,
    workload: &Workload,
) -> anyhow::Result<Run> {
    let server = place.start(target)?;
    let load = Load::open(server.address(), pattern).await?;
    load.drive(&workload.warm_up).await?;
    at_rest(&server).await?;
    let meter = Meter::start(&server)?;
    let driven = load.drive(&workload.measured).await?;
    let run = meter.stop(&driven)?;
    ensure!(driven.confirmed == workload.messages, "{} of {} confirmed", driven.confirmed, workload.messages);
    Ok(run)
}

/// Waits until a server uses no CPU, at most [`REST_WITHIN`]: what its start and the warm-up left to do in the background
/// is none of the measured work.
pub(super) async fn at_rest(server: &Server) -> anyhow::Result<()> {
    let clock = Stopwatch::start();
    let mut before = CpuSample::of(server.pid())?;
    let mut calm = 0;
    while calm < CALM_LOOKS && clock.elapsed() < REST_WITHIN {
        tokio::time::sleep(LOOK_EVERY).await;
        let now = CpuSample::of(server.pid())?;
        calm = if now.whole_since(&before).total() > 0.0 { 0 } else { calm + 1 };
        before = now;
    }
    Ok(())
}

/// The server under measurement.
pub(super) fn weir(run: &RunArgs) -> Target {
    let checkpoint = run.checkpoint_mib.map(|mib| ["--checkpoint-mib".to_owned(), mib.to_string()]);
    Target::Weir { flags: checkpoint.into_iter().flatten().collect() }
}

/// Tells whoever waits how far it is; not part of the figures.
pub(super) fn tell(words: &str) {
    // Without a standard error nobody waits for it.
    drop(writeln!(std::io::stderr(), "{words}"));
}
