//! The text format of Prometheus.

use super::catalogue::Metric;
use std::fmt::{Display, Write as _};

/// Metrics as text. Samples of one metric are written together, after its head.
#[derive(Debug, Default)]
pub(crate) struct Exposition(String);

impl Exposition {
    /// A metric with one sample and no labels.
    pub(crate) fn single(&mut self, metric: Metric, value: impl Display) {
        self.head(metric);
        self.sample(metric, &[], value);
    }

    /// The lines that say what a metric is.
    pub(crate) fn head(&mut self, metric: Metric) {
        let Metric { name, help, kind, .. } = metric;
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {}\n", kind.word()));
    }

    /// One sample. `values` are those of the metric's labels, in their order.
    pub(crate) fn sample(&mut self, metric: Metric, values: &[&str], value: impl Display) {
        self.0.push_str(metric.name);
        let mut separator = '{';
        for (label, value) in metric.labels.iter().zip(values) {
            self.0.push(separator);
            self.0.push_str(label);
            self.0.push_str("=\"");
            self.escaped(value);
            self.0.push('"');
            separator = ',';
        }
        if separator == ',' {
            self.0.push('}');
        }
        self.line(format_args!(" {value}\n"));
    }

    pub(crate) fn into_text(self) -> String {
        self.0
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.0.write_fmt(line);
    }

    /// A value as it may stand in quotes. Names may hold any text, so what ends a quote or a line is escaped.
    fn escaped(&mut self, value: &str) {
        for c in value.chars() {
            match c {
                '\\' => self.0.push_str("\\\\"),
                '"' => self.0.push_str("\\\""),
                '\n' => self.0.push_str("\\n"),
                c => self.0.push(c),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::catalogue::{GROUP_DEPTH, LEASES};

    #[test]
    fn a_metric_has_a_head_and_its_samples_have_their_labels_escaped() {
        let mut text = Exposition::default();
        text.single(LEASES, 3);
        text.head(GROUP_DEPTH);
        text.sample(GROUP_DEPTH, &["acme", "events", "a\"b\\c\nd"], 7);
        let expected = "# HELP weir_leases Live leases.\n# TYPE weir_leases gauge\nweir_leases 3\n\
            # HELP weir_group_depth Messages still to be settled: waiting, delayed, in flight, held.\n\
            # TYPE weir_group_depth gauge\n\
            weir_group_depth{tenant=\"acme\",policy=\"events\",group=\"a\\\"b\\\\c\\nd\"} 7\n";
        assert_eq!(text.into_text(), expected);
    }
}
