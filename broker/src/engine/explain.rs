//! The whole story of an execution, and what it comes to.

use super::Engine;
use crate::journal::entry::ExecutionHash;
use crate::model::{
    EndedAs, Execution, ExecutionState, Explanation, FinalState, Remark, RemarkKind, UnixMillis, Verdict,
};

impl Engine {
    pub(super) fn explanation(&self, execution: ExecutionHash) -> Option<Explanation> {
        let row = self.memory.executions.get(&execution)?;
        let picture = self.picture(row);
        let verdict = verdict(&picture, row.completed_refused);
        Some(Explanation { verdict, summary: summary(&picture, verdict), story: story(&picture), execution: picture })
    }
}

/// Design, section 7.
fn verdict(x: &Execution, completed_refused: bool) -> Verdict {
    let standing = x.begins.saturating_sub(x.begins_withdrawn);
    if x.contradiction {
        return Verdict::Contradiction;
    }
    match x.state {
        ExecutionState::Completed if x.begins == 0 => Verdict::ReportedOnly,
        ExecutionState::Completed if completed_refused => Verdict::Contradiction,
        ExecutionState::Completed if standing > 1 => Verdict::EffectRepeated,
        ExecutionState::Completed if standing == 1 => Verdict::EffectOnce,
        // All its begins were withdrawn, and yet somebody reports that it was done.
        ExecutionState::Completed => Verdict::Contradiction,
        ExecutionState::Failed | ExecutionState::Canceled | ExecutionState::Rejected if standing == 0 => {
            Verdict::ReportedOnly
        }
        ExecutionState::Failed | ExecutionState::Canceled | ExecutionState::Rejected => Verdict::NoEffectReported,
        ExecutionState::Unknown => Verdict::EffectUnknown,
        ExecutionState::Begun if x.begin.as_ref().is_some_and(|begin| begin.live) => Verdict::InProgress,
        ExecutionState::Begun => Verdict::EffectUnknown,
        // Its begins were withdrawn, and one of those who began reports all the same that it was done.
        ExecutionState::Requested | ExecutionState::Expired if completed_refused => Verdict::Contradiction,
        ExecutionState::Requested | ExecutionState::Expired => Verdict::NeverBegun,
    }
}

fn times(n: u64) -> String {
    match n {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        n => format!("{n} times"),
    }
}

/// Whether an operator gave it the state it has.
fn is_resolved(x: &Execution) -> bool {
    x.state.definite().is_some_and(|state| x.remarks.iter().any(|r| r.kind == RemarkKind::Resolved(Some(state))))
}

fn summary(x: &Execution, verdict: Verdict) -> String {
    let delivered = match x.deliveries_total {
        0 => "not delivered to any executing group".to_owned(),
        n => format!("delivered {}", times(n)),
    };
    let requests = if x.requests < 2 { String::new() } else { format!("requested {}, ", times(x.requests.into())) };
    let repeats = if x.duplicates == 0 { String::new() } else { format!(", published again {}", times(x.duplicates)) };
    let (reported, completed) = match is_resolved(x) {
        true => ("resolved by an operator", "resolved by an operator as completed"),
        false => ("as reported", "completed"),
    };
    let end = match verdict {
        Verdict::EffectOnce => format!("begun once and {completed}: the effect happened once"),
        Verdict::EffectRepeated => {
            format!(
                "{completed} after {} begins that stand: the effect may have happened more than once",
                x.begins - x.begins_withdrawn
            )
        }
        Verdict::ReportedOnly => format!("{} {reported}, without a begin", x.state.name()),
        Verdict::NoEffectReported => format!("begun, and {} {reported}", x.state.name()),
        Verdict::EffectUnknown => format!(
            "begun or tried, and nobody knows what became of it ({})",
            x.unknown_reason.map_or("no report", |reason| reason.name())
        ),
        Verdict::Contradiction => "the reports contradict each other".to_owned(),
        Verdict::NeverBegun if x.begins > 0 => {
            format!("begun {} and withdrawn: no begin stands", times(x.begins.into()))
        }
        Verdict::NeverBegun if x.state == ExecutionState::Expired => "expired before anybody began".to_owned(),
        Verdict::NeverBegun => "nobody has begun it".to_owned(),
        Verdict::InProgress => "begun, and its holder is still at it".to_owned(),
    };
    format!("{}: {requests}{delivered}{repeats}; {end}", x.execution_id)
}

/// What happened, in order. Within one millisecond an operator's word comes before the delivery it set free.
fn story(x: &Execution) -> Vec<(UnixMillis, String)> {
    let mut story = vec![(x.first_seen, first_line(x))];
    let (words, other): (Vec<_>, Vec<_>) =
        x.remarks.iter().partition(|r| matches!(r.kind, RemarkKind::Resolved(_) | RemarkKind::NotExecuted));
    story.extend(words.into_iter().map(remark_line));
    if is_resolved(x) {
        story.extend(end_line(x));
    }
    let kept = x.deliveries.len() as u64;
    for (i, delivery) in x.deliveries.iter().enumerate() {
        if x.deliveries_total > kept && i == crate::state::rows::DELIVERIES_FIRST {
            story.push((delivery.at, format!("({} more deliveries)", x.deliveries_total - kept)));
        }
        let end = match delivery.ended {
            None => "still leased".to_owned(),
            Some((how, at)) => format!("{} after {} ms", ended(how), at.since(delivery.at)),
        };
        let begun = if delivery.begun { ", begun" } else { "" };
        story.push((
            delivery.at,
            format!(
                "delivered to {} of group {} as attempt {}{begun}; {end}",
                delivery.member, delivery.group, delivery.attempt
            ),
        ));
    }
    if let Some(begin) = &x.begin {
        let lives = if begin.live { "its lease lives" } else { "its lease is over" };
        story.push((begin.at, format!("begun by {} with token {}; {lives}", begin.member, begin.token)));
    }
    story.extend(other.into_iter().map(remark_line));
    if !is_resolved(x) {
        story.extend(end_line(x));
    }
    if let Some(at) = x.repeated_at {
        let repeats = match x.duplicates {
            1 => "a repeat was answered with the first one's place".to_owned(),
            n => format!("the last of {n} repeats, each answered with the first one's place"),
        };
        let other = match x.payload_mismatches {
            0 => String::new(),
            n if n == x.duplicates => "; with another payload".to_owned(),
            n => format!("; {n} with another payload"),
        };
        story.push((at, format!("{repeats}{other}")));
    }
    story.sort_by_key(|(at, _)| *at);
    story
}

fn first_line(x: &Execution) -> String {
    match &x.request {
        Some((channel, offset)) => {
            let more = match x.requests {
                0 | 1 => String::new(),
                n => format!(" (stored {} in all, under other message ids)", times(n.into())),
            };
            format!("requested as message {offset} of {channel}, task {}{more}", x.task_id)
        }
        None => format!("first heard of, in task {}; no request came", x.task_id),
    }
}

fn remark_line(remark: &Remark) -> (UnixMillis, String) {
    let what = match remark.kind {
        RemarkKind::BecameUnknown(reason) => format!("became UNKNOWN ({})", reason.name()),
        RemarkKind::Late(state) => format!("late report {}, taken", state.name()),
        RemarkKind::Fenced(state) => format!("report {} refused, its begin does not stand", state.name()),
        RemarkKind::Contradicting(state) => format!("contradicting report {}", state.name()),
        RemarkKind::Ignored(state) => format!("report {} changed nothing", state.name()),
        RemarkKind::Resolved(Some(state)) => format!("resolved as {}", state.name()),
        RemarkKind::Resolved(None) => "resolved as NOT_EXECUTED; its begin is withdrawn".to_owned(),
        RemarkKind::NotExecuted => "begin withdrawn".to_owned(),
        RemarkKind::Expired => "expired".to_owned(),
    };
    (remark.at, if remark.text.is_empty() { what } else { format!("{what}: {}", remark.text) })
}

fn end_line(x: &Execution) -> Option<(UnixMillis, String)> {
    let state = x.state.definite()?;
    let at = match &x.report {
        Some((channel, offset)) => format!("; message {offset} of {channel}"),
        None => String::new(),
    };
    let artifact = match (x.artifact_ref.as_str(), state) {
        ("", FinalState::Completed) => ", without an artifact_ref".to_owned(),
        ("", _) => String::new(),
        (artifact, _) => format!(", {artifact}"),
    };
    Some((x.since, format!("{}{artifact}{at}", state.name())))
}

const fn ended(how: EndedAs) -> &'static str {
    match how {
        EndedAs::Done => "settled done",
        EndedAs::Released => "given back",
        EndedAs::Retried => "reported failed",
        EndedAs::Rejected => "set aside",
        EndedAs::Unknown => "settled UNKNOWN",
        EndedAs::Lost => "lease over",
    }
}
