//! Settings of workers and subscribers.

use crate::backoff::BackoffBounds;
use crate::error::ClientError;
use std::ops::RangeInclusive;
use std::time::Duration;
use weir_proto::v1::{GroupRef, GroupSettings};

/// Most leases that a `held` list can name.
const CONCURRENCY_MAX: usize = 10_000;
/// Most messages that one fetch may ask for.
const FETCH_MESSAGES_MAX: u32 = 1_000;
/// Shortest and longest wait a fetch may ask for: without a wait, an empty group would be asked again and again.
const FETCH_WAIT_MIN: Duration = Duration::from_millis(100);
const FETCH_WAIT_MAX: Duration = Duration::from_secs(60);
/// Most bytes of messages to ask for, so that the answer stays under the client's own message limit.
const FETCH_BYTES_MAX: u64 = 16 << 20;
/// Shortest and longest session timeout that a broker takes.
const SESSION_TIMEOUT_MS: RangeInclusive<u64> = 1_000..=3_600_000;
/// Shortest and longest lease of its own: a third of it must suffice for a renewal, and a day is what a broker takes.
const LEASE_MS: RangeInclusive<u64> = 30..=86_400_000;
/// Longest name of a member or instance.
const NAME_BYTES_MAX: usize = 256;

/// How a worker or subscriber takes part in its group. Every setting but the names has a default.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsumerOptions {
    /// Its group.
    pub group: GroupRef,
    /// The member's name, 1 to 256 bytes; for people.
    pub member: String,
    /// Names a static member, at most 256 bytes: a newer session with the same instance takes over from the older one,
    /// which then ends with `STALE_SESSION`. Empty unless set.
    pub instance_id: String,
    /// Makes the group with these settings if it is not there; not unless set.
    pub create: Option<GroupSettings>,
    /// How long the process may be silent before its leases are lost, in milliseconds, 1,000 to an hour; 30,000 unless set. It
    /// is heard of at least three times as often, whatever handlers do.
    pub session_timeout_ms: u64,
    /// Leases of a duration of their own, in milliseconds, 30 to a day, extended at a third of it; with 0, the default,
    /// they live as long as the session.
    pub lease_ms: u64,
    /// Most messages in hand, and so handlers at once, 1 to 10,000; 16 unless set. Each is of another task: a task's
    /// messages are handled one after the other.
    pub concurrency: usize,
    /// Most messages to take at once, 1 to 1,000; 64 unless set.
    pub fetch_messages: u32,
    /// Most bytes of messages to take at once, 1 to 16 MiB; 4 MiB unless set. One message always comes.
    pub fetch_bytes: u64,
    /// How long a fetch waits for a first message, 100 ms to 60 s; 20 s unless set.
    pub fetch_wait: Duration,
    /// Delay before a message comes again whose handler failed without a begin, by how often it failed; up to 1 s after
    /// the first time and up to 60 s after many, unless set.
    pub retry: BackoffBounds,
    /// How long handlers may go on once it is stopped; 10 s unless set.
    pub drain: Duration,
}

impl ConsumerOptions {
    /// A member of the group (scope, policy, name).
    pub fn new(
        scope: impl Into<String>,
        policy: impl Into<String>,
        group: impl Into<String>,
        member: impl Into<String>,
    ) -> Self {
        Self {
            group: GroupRef { scope: scope.into(), policy: policy.into(), name: group.into() },
            member: member.into(),
            instance_id: String::new(),
            create: None,
            session_timeout_ms: 30_000,
            lease_ms: 0,
            concurrency: 16,
            fetch_messages: 64,
            fetch_bytes: 4 << 20,
            fetch_wait: Duration::from_secs(20),
            retry: BackoffBounds { first: Duration::from_secs(1), longest: Duration::from_secs(60) },
            drain: Duration::from_secs(10),
        }
    }

    /// Another session timeout, in milliseconds.
    #[must_use]
    pub const fn session_timeout_ms(mut self, millis: u64) -> Self {
        self.session_timeout_ms = millis;
        self
    }

    /// So many messages in hand at most.
    #[must_use]
    pub const fn concurrency(mut self, messages: usize) -> Self {
        self.concurrency = messages;
        self
    }

    /// Makes the group with these settings if it is not there.
    #[must_use]
    pub fn create(mut self, settings: GroupSettings) -> Self {
        self.create = Some(settings);
        self
    }

    /// # Errors
    /// `INVALID_ARGUMENT` naming the first option that is out of its bounds.
    pub(crate) fn validate(&self) -> Result<(), ClientError> {
        let rules = [
            ("member", (1..=NAME_BYTES_MAX).contains(&self.member.len()), "is not of 1 to 256 bytes"),
            ("instance_id", self.instance_id.len() <= NAME_BYTES_MAX, "is longer than 256 bytes"),
            (
                "session_timeout_ms",
                SESSION_TIMEOUT_MS.contains(&self.session_timeout_ms),
                "is not within 1 s and an hour",
            ),
            (
                "lease_ms",
                self.lease_ms == 0 || LEASE_MS.contains(&self.lease_ms),
                "is neither 0 nor within 30 ms and a day",
            ),
            ("concurrency", (1..=CONCURRENCY_MAX).contains(&self.concurrency), "is not within 1 and 10,000"),
            ("fetch_messages", (1..=FETCH_MESSAGES_MAX).contains(&self.fetch_messages), "is not within 1 and 1,000"),
            ("fetch_bytes", (1..=FETCH_BYTES_MAX).contains(&self.fetch_bytes), "is not within 1 and 16 MiB"),
            (
                "fetch_wait",
                (FETCH_WAIT_MIN..=FETCH_WAIT_MAX).contains(&self.fetch_wait),
                "is not within 100 ms and 60 s",
            ),
        ];
        match rules.iter().find(|(_, holds, _)| !holds) {
            Some((name, _, rule)) => Err(ClientError::invalid(format!("options.{name}"), *rule)),
            None => Ok(()),
        }
    }
}

/// Milliseconds as the wire has them; what is longer than it can say is as long as it can say.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_out_of_its_bounds_is_named() {
        let good = || ConsumerOptions::new("acme", "task_events", "g", "me");
        assert!(good().validate().is_ok());
        let cases = [
            ("options.member", ConsumerOptions { member: String::new(), ..good() }),
            ("options.session_timeout_ms", good().session_timeout_ms(999)),
            ("options.lease_ms", ConsumerOptions { lease_ms: 29, ..good() }),
            ("options.concurrency", good().concurrency(0)),
            ("options.fetch_wait", ConsumerOptions { fetch_wait: Duration::ZERO, ..good() }),
        ];
        for (field, options) in cases {
            assert_eq!(options.validate().unwrap_err().field, field);
        }
    }
}
