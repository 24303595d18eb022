//! How a member takes part in its group.

use rand::RngExt as _;
use std::time::Duration;
use weir_proto::v1;

/// How a member takes part in its group. Every setting but the names has a default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerOptions {
    /// Its group: scope, policy and name.
    pub group: v1::GroupRef,
    /// Its own name.
    pub member: String,
    /// A static member's id: a newer session with the same id takes over from the older. Empty unless set.
    pub instance_id: String,
    /// Silence after which the broker takes the session for lost, in milliseconds; 0, the default, is the broker's 30 s.
    pub session_timeout_ms: u64,
    /// Duration of leases of their own, in milliseconds; with 0, the default, they live as long as the session.
    pub lease_ms: u64,
    /// Messages handled at the same time, each of another task; 16 unless set.
    pub concurrency: usize,
    /// Most messages of one fetch; 64 unless set.
    pub fetch_messages: u32,
    /// Before a message comes again whose handler failed without a begin; 1 s unless set.
    pub retry_delay: Duration,
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
            group: v1::GroupRef { scope: scope.into(), policy: policy.into(), name: group.into() },
            member: member.into(),
            instance_id: String::new(),
            session_timeout_ms: 0,
            lease_ms: 0,
            concurrency: 16,
            fetch_messages: 64,
            retry_delay: Duration::from_secs(1),
            drain: Duration::from_secs(10),
        }
    }

    /// Another session timeout, in milliseconds.
    #[must_use]
    pub const fn session_timeout_ms(mut self, millis: u64) -> Self {
        self.session_timeout_ms = millis;
        self
    }

    /// So many messages at the same time; at least 1.
    #[must_use]
    pub fn concurrency(mut self, messages: usize) -> Self {
        self.concurrency = messages.max(1);
        self
    }

    /// A new session, under an id nobody can guess.
    pub(super) fn session(&self) -> v1::Session {
        let id: [u8; 16] = rand::rng().random();
        v1::Session {
            session_id: id.to_vec().into(),
            group: Some(self.group.clone()),
            member: self.member.clone(),
            instance_id: self.instance_id.clone(),
            held: None,
            session_timeout_ms: self.session_timeout_ms,
        }
    }
}
