//! The recorder of the server binary. A library must not choose one for its host, so only `weir` installs it.

use super::catalogue::{COUNTED, OBSERVED};
use super::process;
use metrics::SetRecorderError;
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

/// What the process counts, as text.
#[derive(Clone)]
pub struct ProcessMetrics(PrometheusHandle);

/// Why nothing is counted.
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    /// The process has a recorder already.
    #[error("this process has a metrics recorder already")]
    Taken(#[from] SetRecorderError<PrometheusRecorder>),
    /// The bounds of a histogram are none.
    #[error("metrics: {0}")]
    Bounds(#[from] BuildError),
}

/// Makes counters count from now on, for the whole process.
///
/// # Errors
/// If the process has a recorder already.
pub fn install() -> Result<ProcessMetrics, RecorderError> {
    let recorder = builder()?.build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder)?;
    for metric in COUNTED {
        metrics::describe_counter!(metric.name, metric.help);
    }
    for (metric, _) in OBSERVED {
        metrics::describe_histogram!(metric.name, metric.help);
    }
    Ok(ProcessMetrics(handle))
}

fn builder() -> Result<PrometheusBuilder, BuildError> {
    OBSERVED.into_iter().try_fold(PrometheusBuilder::new(), |builder, (metric, bounds)| {
        builder.set_buckets_for_metric(Matcher::Full(metric.name.to_owned()), bounds)
    })
}

impl ProcessMetrics {
    /// All counters, and what the system says of the process, in the text format of Prometheus.
    #[must_use]
    pub fn render(&self) -> String {
        self.0.run_upkeep();
        let mut text = self.0.render();
        text.push_str(&process::render());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Reason, Refusal, SettleResult};
    use crate::telemetry::metrics as counted;
    use std::time::Duration;

    #[test]
    fn calls_are_counted_by_what_became_of_them() {
        let recorder = builder().unwrap().build_recorder();
        let metrics = ProcessMetrics(recorder.handle());
        ::metrics::with_local_recorder(&recorder, || {
            counted::settled(&[SettleResult::Ok, SettleResult::LeaseLost, SettleResult::Ok]);
            counted::journal_synced(Duration::from_micros(300));
            counted::group_written(3);
            counted::publish_rejected(&Refusal::new(Reason::TooLarge, "a message"));
        });
        let text = metrics.render();
        for line in [
            "weir_settles_total{result=\"ok\"} 2",
            "weir_settles_total{result=\"lease_lost\"} 1",
            "weir_journal_sync_seconds_bucket{le=\"0.00025\"} 0",
            "weir_journal_sync_seconds_bucket{le=\"0.0005\"} 1",
            "weir_group_commit_frames_bucket{le=\"2\"} 0",
            "weir_group_commit_frames_bucket{le=\"4\"} 1",
            "weir_fenced_calls_total{call=\"settle\"} 1",
            "weir_publish_rejected_total{reason=\"TOO_LARGE\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
