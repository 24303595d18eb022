//! The recorder of the server binary. A library must not choose one for its host, so only `weir` installs it.

use super::catalogue::COUNTED;
use super::process;
use metrics::SetRecorderError;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

/// What the process counts, as text.
#[derive(Clone)]
pub struct ProcessMetrics(PrometheusHandle);

/// Makes counters count from now on, for the whole process.
///
/// # Errors
/// If the process has a recorder already.
pub fn install() -> Result<ProcessMetrics, SetRecorderError<PrometheusRecorder>> {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder)?;
    for metric in COUNTED {
        metrics::describe_counter!(metric.name, metric.help);
    }
    Ok(ProcessMetrics(handle))
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

    #[test]
    fn calls_are_counted_by_what_became_of_them() {
        let recorder = PrometheusBuilder::new().build_recorder();
        let metrics = ProcessMetrics(recorder.handle());
        ::metrics::with_local_recorder(&recorder, || {
            counted::settled(&[SettleResult::Ok, SettleResult::LeaseLost, SettleResult::Ok]);
            counted::publish_rejected(&Refusal::new(Reason::TooLarge, "a message"));
        });
        let text = metrics.render();
        for line in [
            "weir_settles_total{result=\"ok\"} 2",
            "weir_settles_total{result=\"lease_lost\"} 1",
            "weir_fenced_calls_total{call=\"settle\"} 1",
            "weir_publish_rejected_total{reason=\"TOO_LARGE\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
