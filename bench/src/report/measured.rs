//! Figures of one server under one load, over all runs.

use crate::cpu::CpuTime;
use crate::load::Driven;
use crate::spread::{Spread, percentile};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What one run came to.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// Messages a second.
    pub(crate) rate: f64,
    /// Messages a call, or a request of a stream.
    pub(crate) per_call: f64,
    /// From a call handed over to its answer, in milliseconds.
    pub(crate) wait_ms: Percentiles,
    /// CPU of the server's threads, microseconds a message.
    pub(crate) server: BTreeMap<String, CpuTime>,
    /// CPU of this process, microseconds a message.
    pub(crate) client: CpuTime,
    /// Cores that anything else kept busy meanwhile.
    pub(crate) others: f64,
}

/// CPU that was used while something was driven, in microseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct CpuUsed {
    /// By the server, by thread.
    pub(crate) server: BTreeMap<String, CpuTime>,
    /// By this process.
    pub(crate) client: CpuTime,
    /// By all processes and the kernel.
    pub(crate) machine: f64,
}

/// Some points of a distribution.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Percentiles {
    /// Half of all are below.
    pub(crate) p50: f64,
    /// 99 of 100 are below.
    pub(crate) p99: f64,
    /// All are below or at it.
    pub(crate) max: f64,
}

/// CPU of the threads of one name.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ThreadCpu {
    /// Their name.
    pub(crate) thread: String,
    /// Microseconds a message in the program's code.
    pub(crate) user_us: Spread,
    /// Microseconds a message in the kernel.
    pub(crate) system_us: Spread,
    /// Both.
    pub(crate) total_us: Spread,
}

/// Figures of one server under one load; each over all runs.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Measured {
    /// `weir`, `pipe`, ...
    pub(crate) server: &'static str,
    /// Bytes of each payload.
    pub(crate) payload_bytes: usize,
    /// Bytes of a request, the envelopes included; a mean.
    pub(crate) request_bytes: u64,
    /// Messages a run.
    pub(crate) messages: u64,
    /// What a message went through, in one word: `published`, `settled`.
    pub(crate) what: &'static str,
    /// Messages a second, confirmed after the sync.
    pub(crate) per_second: Spread,
    /// Messages that a call, or a request of a stream, was about; a mean.
    pub(crate) per_call: Spread,
    /// From a call handed over to its answer: half of them took no longer.
    pub(crate) wait_p50_ms: Spread,
    /// 99 of 100 took no longer.
    pub(crate) wait_p99_ms: Spread,
    /// The longest.
    pub(crate) wait_max_ms: Spread,
    /// CPU of the server, microseconds a message.
    pub(crate) server_cpu_us: Spread,
    /// The same by thread.
    pub(crate) server_threads: Vec<ThreadCpu>,
    /// CPU of the client, microseconds a message.
    pub(crate) client_cpu_us: Spread,
    /// Cores that other processes and the kernel on its own kept busy meanwhile.
    pub(crate) others_busy_cores: Spread,
}

/// One figure of some runs, in the order they ran.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    /// Server and figure.
    name: String,
    values: Vec<f64>,
}

/// One figure over another.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Ratio {
    /// Bytes of each payload.
    pub(crate) payload_bytes: usize,
    /// What is divided.
    pub(crate) of: String,
    /// By what.
    pub(crate) to: String,
    /// Medians over each other; least and greatest of the runs, each over that which ran beside it.
    pub(crate) ratio: Spread,
}

impl Run {
    /// Of what was driven, and the CPU it took.
    #[expect(clippy::cast_precision_loss, reason = "messages of a run fit")]
    pub(crate) fn new(driven: &Driven, used: CpuUsed) -> Self {
        let CpuUsed { server, client, machine } = used;
        let ours = client.total() + server.values().map(|time| time.total()).sum::<f64>();
        let messages = driven.confirmed as f64;
        let each = |time: CpuTime| CpuTime { user: time.user / messages, system: time.system / messages };
        let at = |hundredths| f64::from(percentile(&driven.waits_us, hundredths)) / 1e3;
        Self {
            rate: messages / driven.elapsed.as_secs_f64(),
            per_call: messages / driven.waits_us.len() as f64,
            wait_ms: Percentiles { p50: at(50), p99: at(99), max: at(100) },
            server: server.into_iter().map(|(name, time)| (name, each(time))).collect(),
            client: each(client),
            others: ((machine - ours) / 1e6 / driven.elapsed.as_secs_f64()).max(0.0),
        }
    }

    fn server_total(&self) -> f64 {
        self.server.values().map(|time| time.total()).sum()
    }
}

impl Measured {
    /// Over these runs.
    pub(crate) fn new(
        (server, what): (&'static str, &'static str),
        payload_bytes: usize,
        request_bytes: u64,
        messages: u64,
        runs: &[Run],
    ) -> Self {
        let over = |figure: &dyn Fn(&Run) -> f64| Spread::of(runs.iter().map(figure));
        let names: BTreeSet<&String> = runs.iter().flat_map(|run| run.server.keys()).collect();
        let mut server_threads: Vec<_> = names.into_iter().map(|name| ThreadCpu::new(name, runs)).collect();
        server_threads.sort_by(|a, b| b.total_us.median.total_cmp(&a.total_us.median));
        Self {
            server,
            payload_bytes,
            request_bytes,
            messages,
            what,
            per_second: over(&|run| run.rate),
            per_call: over(&|run| run.per_call),
            wait_p50_ms: over(&|run| run.wait_ms.p50),
            wait_p99_ms: over(&|run| run.wait_ms.p99),
            wait_max_ms: over(&|run| run.wait_ms.max),
            server_cpu_us: over(&Run::server_total),
            server_threads,
            client_cpu_us: over(&|run| run.client.total()),
            others_busy_cores: over(&|run| run.others),
        }
    }
}

impl ThreadCpu {
    fn new(name: &str, runs: &[Run]) -> Self {
        let over = |figure: &dyn Fn(CpuTime) -> f64| {
            Spread::of(runs.iter().map(|run| figure(run.server.get(name).copied().unwrap_or_default())))
        };
        Self {
            thread: name.to_owned(),
            user_us: over(&|time| time.user),
            system_us: over(&|time| time.system),
            total_us: over(&CpuTime::total),
        }
    }
}

impl Figure {
    /// Takes it out of the runs.
    pub(crate) fn new(name: impl Into<String>, runs: &[Run], of_run: impl Fn(&Run) -> f64) -> Self {
        Self { name: name.into(), values: runs.iter().map(of_run).collect() }
    }

    fn median(&self) -> f64 {
        Spread::of(self.values.iter().copied()).median
    }
}

impl Ratio {
    /// One over the other.
    pub(crate) fn new(payload_bytes: usize, of: &Figure, to: &Figure) -> Self {
        let pairs = Spread::of(of.values.iter().zip(&to.values).map(|(of, to)| of / to));
        let ratio = Spread { median: of.median() / to.median(), ..pairs };
        Self { payload_bytes, of: of.name.clone(), to: to.name.clone(), ratio }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn run(rate: u64, sequencer: f64) -> Run {
        let driven = Driven { elapsed: Duration::from_secs(1), confirmed: rate, waits_us: vec![1000, 2000, 9000] };
        let threads = BTreeMap::from([("weir-sequencer".to_owned(), CpuTime { user: sequencer, system: 0.0 })]);
        let client = CpuTime { user: 100.0, system: 100.0 };
        Run::new(&driven, CpuUsed { server: threads, client, machine: 500_200.0 + sequencer })
    }

    #[test]
    fn cpu_is_told_a_message_and_by_thread() {
        let runs = [run(100, 200.0), run(200, 200.0)];
        let measured = Measured::new(("weir", "published"), 256, 300, 100, &runs);
        assert_eq!(measured.per_second, Spread { median: 150.0, min: 100.0, max: 200.0 });
        assert_eq!(measured.server_cpu_us, Spread { median: 1.5, min: 1.0, max: 2.0 });
        assert_eq!(measured.client_cpu_us.max, 2.0);
        assert_eq!((measured.wait_p50_ms.median, measured.wait_max_ms.median), (2.0, 9.0));
        assert_eq!(measured.server_threads.len(), 1);
        assert_eq!(measured.others_busy_cores.median, 0.5);
        assert_eq!(measured.per_call, Spread { median: 50.0, min: 100.0 / 3.0, max: 200.0 / 3.0 });
    }

    #[test]
    fn a_ratio_is_that_of_the_medians_and_its_spread_that_of_neighbours() {
        let figure = |name: &str, rates: [u64; 3]| {
            let runs: Vec<_> = rates.into_iter().map(|rate| run(rate, 1.0)).collect();
            Figure::new(name, &runs, |run| run.rate)
        };
        let ratio = Ratio::new(256, &figure("weir", [80, 90, 70]), &figure("pipe", [100, 100, 100]));
        assert_eq!(ratio.ratio, Spread { median: 0.8, min: 0.7, max: 0.9 });
    }
}
