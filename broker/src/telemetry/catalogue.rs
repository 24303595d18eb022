//! Every metric: name, kind, labels, meaning. Units are base units and stand in the name; counters end in `_total`. No
//! label ever holds a task or an execution.

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Only grows, but for a restart of whoever counts.
    Counter,
    /// Goes up and down.
    Gauge,
    /// How many there were up to each of some bounds, and their sum.
    Histogram,
}

impl Kind {
    /// As the exposition format calls it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// One metric.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) labels: &'static [&'static str],
    pub(crate) help: &'static str,
}

const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Counter, labels, help }
}

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Gauge, labels, help }
}

const fn histogram(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: Kind::Histogram, labels, help }
}

const NONE: &[&str] = &[];
const CHANNELS: &[&str] = &["tenant", "policy"];
const GROUP: &[&str] = &["tenant", "policy", "group"];
const GROUP_CAUSE: &[&str] = &["tenant", "policy", "group", "cause"];

// Calls, counted by this process.
pub(crate) const PUBLISH_MESSAGES: Metric =
    counter("weir_publish_messages_total", CHANNELS, "Messages stored for callers.");
pub(crate) const DUPLICATES: Metric =
    counter("weir_duplicates_total", CHANNELS, "Messages answered as duplicates of stored ones.");
pub(crate) const PUBLISH_REJECTED: Metric =
    counter("weir_publish_rejected_total", &["reason"], "Publishes refused, nothing stored.");
pub(crate) const SETTLES: Metric = counter("weir_settles_total", &["result"], "Settlements answered.");
pub(crate) const BEGINS: Metric = counter("weir_begins_total", &["result"], "Begins answered.");
pub(crate) const COMPLETES: Metric = counter("weir_completes_total", &["result"], "Outcomes answered.");
pub(crate) const FENCED_CALLS: Metric =
    counter("weir_fenced_calls_total", &["call"], "Calls from a lease or begin that was over; they changed nothing.");
pub(crate) const DATA_LOSS: Metric = counter(
    "weir_data_loss_total",
    NONE,
    "Reads of stored messages that failed; each message is parked where it was met.",
);
pub(crate) const CONNECTIONS_REFUSED: Metric =
    counter("weir_connections_refused_total", &["port"], "Connections closed at once, because there were too many.");

/// The counters that go through the facade.
pub(crate) const COUNTED: [Metric; 9] = [
    PUBLISH_MESSAGES,
    DUPLICATES,
    PUBLISH_REJECTED,
    SETTLES,
    BEGINS,
    COMPLETES,
    FENCED_CALLS,
    DATA_LOSS,
    CONNECTIONS_REFUSED,
];

// The journal's writer, counted by this process.
pub(crate) const JOURNAL_SYNC: Metric =
    histogram("weir_journal_sync_seconds", NONE, "How long a sync of the journal took.");
pub(crate) const GROUP_COMMIT_FRAMES: Metric = histogram(
    "weir_group_commit_frames",
    NONE,
    "Commands that one group of the journal holds, and one sync makes durable.",
);

/// The histograms, each with its bounds: from a fast NVMe disk to one in trouble, and from no sharing to all of it.
pub(crate) const OBSERVED: [(Metric, &[f64]); 2] = [
    (JOURNAL_SYNC, &[0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0]),
    (GROUP_COMMIT_FRAMES, &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0]),
];

// Groups, from the snapshot. `tenant` is the group's scope.
pub(crate) const GROUP_DEPTH: Metric =
    gauge("weir_group_depth", GROUP, "Messages still to be settled: waiting, delayed, in flight, held.");
pub(crate) const GROUP_WAITING: Metric = gauge("weir_group_waiting", GROUP, "Messages not yet handed out.");
pub(crate) const GROUP_READY: Metric = gauge(
    "weir_group_ready",
    GROUP,
    "Messages that could be handed out now; found by looking, so 0 while no member is there.",
);
pub(crate) const GROUP_INFLIGHT: Metric = gauge("weir_group_inflight", GROUP, "Messages under a live lease.");
pub(crate) const GROUP_DELAYED: Metric = gauge("weir_group_delayed", GROUP, "Messages that wait for a moment.");
pub(crate) const GROUP_HELD: Metric =
    gauge("weir_group_held", GROUP, "Messages whose execution is unknown or begun elsewhere.");
pub(crate) const GROUP_PARKED: Metric = gauge("weir_group_parked", GROUP, "Messages set aside for an operator.");
pub(crate) const GROUP_OLDEST_HELD: Metric =
    gauge("weir_group_oldest_held_seconds", GROUP, "How long the oldest held message has been held.");
pub(crate) const MEMBERS: Metric = gauge("weir_members", GROUP, "Members with a live session.");
pub(crate) const GROUP_OFFERED: Metric =
    counter("weir_group_offered_total", GROUP, "Messages published at or after the group's start.");
pub(crate) const GROUP_SETTLED: Metric = counter("weir_group_settled_total", GROUP_CAUSE, "Messages settled.");
pub(crate) const GROUP_GONE: Metric = counter("weir_group_gone_total", GROUP_CAUSE, "Messages gone unsettled.");
pub(crate) const DELIVERIES: Metric = counter("weir_deliveries_total", GROUP, "Messages handed out, repeats included.");
pub(crate) const REDELIVERIES: Metric =
    counter("weir_redeliveries_total", GROUP, "Messages handed out again after their first time.");

// The broker, from the snapshot.
pub(crate) const SERVING: Metric = gauge("weir_serving", NONE, "1 while every call is taken.");
pub(crate) const FAILED: Metric = gauge("weir_failed", NONE, "1 once a write or sync has failed for good.");
pub(crate) const PUBLISHED: Metric = counter("weir_published_total", NONE, "Messages ever stored in this data folder.");
pub(crate) const LEASES: Metric = gauge("weir_leases", NONE, "Live leases.");
pub(crate) const SESSIONS: Metric = gauge("weir_sessions", NONE, "Live sessions.");
pub(crate) const WAITING_FETCHES: Metric = gauge("weir_waiting_fetches", NONE, "Fetches that wait for a message.");
pub(crate) const POLICIES: Metric = gauge("weir_policies", NONE, "Channel policies declared.");
pub(crate) const CHANNEL_COUNT: Metric = gauge("weir_channels", NONE, "Channels made.");
pub(crate) const GROUP_COUNT: Metric = gauge("weir_groups", NONE, "Groups made.");
pub(crate) const UNKNOWN_ENTERED: Metric =
    counter("weir_unknown_entered_total", NONE, "Executions that became UNKNOWN, since the process started.");
pub(crate) const UNKNOWN_RESOLVED: Metric =
    counter("weir_unknown_resolved_total", NONE, "Executions that ceased to be UNKNOWN, since the process started.");
pub(crate) const JOURNAL_APPLIED: Metric =
    gauge("weir_journal_applied_lsn", NONE, "Place in the journal of the last command that took effect.");
pub(crate) const JOURNAL_DURABLE: Metric =
    gauge("weir_journal_durable_lsn", NONE, "Place in the journal up to which all is synced.");
pub(crate) const JOURNAL_SEGMENTS: Metric =
    gauge("weir_journal_segments", NONE, "Segments of the journal on disk, spares not counted.");
pub(crate) const STORAGE_FULL: Metric =
    gauge("weir_storage_full", NONE, "1 while new work is refused for want of room on the disk.");
pub(crate) const ROWS: Metric = gauge("weir_state_rows_in_memory", NONE, "Rows of state in memory.");
pub(crate) const DIRTY_ROWS: Metric =
    gauge("weir_state_dirty_rows", NONE, "Rows of state that a checkpoint has yet to write.");

// The process.
pub(crate) const RESIDENT: Metric =
    gauge("process_resident_memory_bytes", NONE, "Memory of the process that is in RAM.");
pub(crate) const OPEN_FILES: Metric = gauge("process_open_fds", NONE, "Open files and sockets.");
pub(crate) const THREADS: Metric = gauge("process_threads", NONE, "Threads.");

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Metric; 34] = [
        GROUP_DEPTH,
        GROUP_WAITING,
        GROUP_READY,
        GROUP_INFLIGHT,
        GROUP_DELAYED,
        GROUP_HELD,
        GROUP_PARKED,
        GROUP_OLDEST_HELD,
        MEMBERS,
        GROUP_OFFERED,
        GROUP_SETTLED,
        GROUP_GONE,
        DELIVERIES,
        REDELIVERIES,
        SERVING,
        FAILED,
        PUBLISHED,
        LEASES,
        SESSIONS,
        WAITING_FETCHES,
        POLICIES,
        CHANNEL_COUNT,
        GROUP_COUNT,
        UNKNOWN_ENTERED,
        UNKNOWN_RESOLVED,
        JOURNAL_APPLIED,
        JOURNAL_DURABLE,
        JOURNAL_SEGMENTS,
        STORAGE_FULL,
        ROWS,
        DIRTY_ROWS,
        RESIDENT,
        OPEN_FILES,
        THREADS,
    ];

    #[test]
    fn names_are_unique_and_counters_end_in_total() {
        let observed = OBSERVED.map(|(metric, _)| metric);
        let every = || ALL.iter().chain(&COUNTED).chain(&observed);
        let mut names: Vec<_> = every().map(|metric| metric.name).collect();
        for metric in every() {
            assert_eq!(metric.name.ends_with("_total"), metric.kind == Kind::Counter, "{}", metric.name);
            assert!(metric.name.starts_with("weir_") || metric.name.starts_with("process_"), "{}", metric.name);
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), every().count());
    }
}
