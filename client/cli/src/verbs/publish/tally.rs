//! Counts what became of the lines, and puts it into words.

use crate::enums;
use crate::exit::{Code, Failure};
use crate::names::ChannelKey;
use crate::ndjson::FieldFault;
use crate::output::{Map, Tree};
use crate::refused::Refused;
use crate::verbs::publish::send::Outcome;
use crate::verbs::publish::verdict::own_field;
use weir_proto::v1::Duplicate;

/// The counts of a run.
#[derive(Debug)]
pub(super) struct Tally {
    verbose: bool,
    /// Messages stored.
    pub(super) stored: u64,
    /// Messages known already.
    pub(super) duplicates: u64,
    /// Lines that are neither.
    pub(super) rejected: u64,
    mismatches: u64,
    not_synced: u64,
    worst: Option<Code>,
}

/// What there is to say of an outcome.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// For stderr.
    pub(super) words: Option<String>,
    /// For stdout.
    pub(super) data: Option<Tree>,
}

impl Tally {
    /// Nothing counted yet; `verbose` shows each duplicate.
    pub(super) fn new(verbose: bool) -> Self {
        Self { verbose, stored: 0, duplicates: 0, rejected: 0, mismatches: 0, not_synced: 0, worst: None }
    }

    /// Counts an outcome.
    pub(super) fn take(&mut self, channel: &ChannelKey, outcome: Outcome) -> Told {
        match outcome {
            Outcome::Stored { durable } => {
                self.stored += 1;
                self.not_synced += u64::from(!durable);
                Told::default()
            }
            Outcome::Duplicate { line, first } => {
                self.duplicates += 1;
                self.mismatches += u64::from(!first.payload_matches);
                Told { words: None, data: self.verbose.then(|| duplicate(line, *first)) }
            }
            Outcome::Rejected { line, refused } => {
                self.reject(1, refused.code());
                let field = match own_field(&refused.field) {
                    "" => String::new(),
                    field => format!(", field `{field}`"),
                };
                let reason = Refused { field: String::new(), ..refused };
                Told { words: Some(format!("line {line}{field}: {reason}")), data: None }
            }
            Outcome::GivenUp { lines, refused } => {
                self.reject(lines.len(), refused.code());
                let away = if refused.is_away() { " (some may have been all the same)" } else { "" };
                let words = format!("{} not stored{away}: {refused}", these(channel, &lines));
                Told { words: Some(words), data: None }
            }
        }
    }

    /// Counts a line that is no message.
    pub(super) fn bad_line(&mut self, number: u64, fault: &FieldFault) -> String {
        self.reject(1, Code::Error);
        match fault.field.as_str() {
            "" => format!("line {number}: {}", fault.reason),
            field => format!("line {number}, field `{field}`: {}", fault.reason),
        }
    }

    /// Counts lines that were not sent because earlier ones of their channel were given up.
    pub(super) fn not_sent(&mut self, channel: &ChannelKey, lines: &[u64], refused: &Refused) -> String {
        self.reject(lines.len(), refused.code());
        format!("{} not sent: {refused}", these(channel, lines))
    }

    /// The input broke off.
    pub(super) fn input_failed(&mut self) {
        self.worst = self.worst.max(Some(Code::Error));
    }

    fn reject(&mut self, lines: usize, code: Code) {
        self.rejected += lines as u64;
        self.worst = self.worst.max(Some(code));
    }

    /// The counts as they end the output.
    pub(super) fn counts(&self) -> Tree {
        Map::new()
            .with("stored", self.stored)
            .with("duplicates", self.duplicates)
            .with("rejected", self.rejected)
            .done()
    }

    /// What is worth saying about the run as a whole, and how it ends.
    pub(super) fn result(&self) -> Result<(), Failure> {
        if self.mismatches > 0 {
            eprintln!("{} duplicates have another payload than the first one, which stays", self.mismatches);
        }
        if self.not_synced > 0 {
            eprintln!("{} messages were confirmed before they were synced, as this broker is set up", self.not_synced);
        }
        self.worst.map_or(Ok(()), |code| Err(Failure::Silent(code)))
    }
}

fn these(channel: &ChannelKey, lines: &[u64]) -> String {
    match lines {
        [line] => format!("line {line}, channel {channel}:"),
        [first, .., last] => {
            format!("{} lines of {first} to {last}, channel {channel}:", lines.len())
        }
        [] => format!("channel {channel}:"),
    }
}

fn duplicate(line: u64, first: Duplicate) -> Tree {
    let execution = first.execution.map(|execution| {
        Map::new()
            .with("execution_id", execution.execution_id)
            .with("state", enums::execution_state(execution.state))
            .with("artifact_ref", Tree::unless_empty(execution.artifact_ref))
    });
    Map::new()
        .with("line", line)
        .with("duplicate", enums::duplicate_kind(first.kind))
        .with("policy", first.policy)
        .with("channel", ChannelKey::new(first.tenant, first.agent_id).to_string())
        .with("offset", first.offset)
        .with("message_id", first.message_id)
        .with("retained", first.retained)
        .with("first_seen_unix_ms", first.first_seen_unix_ms)
        .with("payload_matches", first.payload_matches)
        .with("execution", execution)
        .done()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn full() -> Refused {
        Refused {
            grpc: tonic::Code::ResourceExhausted,
            reason: Some(weir_proto::v1::ErrorReason::DepthExceeded),
            field: String::new(),
            text: "full".to_owned(),
            retry_after: None,
        }
    }

    fn channel() -> ChannelKey {
        ChannelKey::new("a", "b")
    }

    #[test]
    fn a_clean_run_ends_well() {
        let mut tally = Tally::new(false);
        tally.take(&channel(), Outcome::Stored { durable: true });
        let first = Box::new(Duplicate { payload_matches: true, ..Duplicate::default() });
        assert!(tally.take(&channel(), Outcome::Duplicate { line: 2, first }).data.is_none());
        assert!(tally.result().is_ok());
        assert_eq!(serde_json::to_string(&tally.counts()).unwrap(), r#"{"stored":1,"duplicates":1,"rejected":0}"#);
    }

    #[test]
    fn a_rejected_line_is_told_with_number_field_and_reason() {
        let mut tally = Tally::new(false);
        let words = tally.bad_line(17, &FieldFault::new("effect", "must be one of NONE"));
        assert_eq!(words, "line 17, field `effect`: must be one of NONE");
        let mut refused = full();
        refused.field = "messages[3].task_id".to_owned();
        let told = tally.take(&channel(), Outcome::Rejected { line: 9, refused });
        assert_eq!(told.words.unwrap(), "line 9, field `task_id`: DEPTH_EXCEEDED: full");
    }

    #[test]
    fn the_gravest_refusal_decides_the_exit_code() {
        let mut tally = Tally::new(false);
        tally.not_sent(&channel(), &[4, 8], &full());
        tally.bad_line(9, &FieldFault::of_line("is no object"));
        assert_eq!(tally.rejected, 3);
        assert!(matches!(tally.result(), Err(Failure::Silent(Code::Backpressure))));
    }

    #[test]
    fn a_duplicate_names_the_first_one() {
        let mut tally = Tally::new(true);
        let first = Box::new(Duplicate {
            policy: "task_events".to_owned(),
            tenant: "a".to_owned(),
            agent_id: "b".to_owned(),
            offset: 7,
            kind: 2,
            message_id: "m".to_owned(),
            ..Duplicate::default()
        });
        let line = tally.take(&channel(), Outcome::Duplicate { line: 3, first }).data.unwrap();
        assert_eq!(line.at("channel"), &Tree::from("a:b"));
        assert_eq!(line.at("offset"), &Tree::Number(7));
        assert_eq!(line.at("duplicate"), &Tree::from("EXECUTION_PAIR"));
    }
}
