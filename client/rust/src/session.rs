//! One member of one group: who it is, what it holds, and how far its end has come.

use crate::error::ClientError;
use crate::lease::Leases;
use crate::options::ConsumerOptions;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use weir_proto::v1::{self, ErrorReason, GroupRef, Held, Notice, notice};

/// A member of a group. It lives as long as the process; its id changes only if the broker has forgotten it.
#[derive(Debug)]
pub(crate) struct Session {
    group: GroupRef,
    member: String,
    instance_id: String,
    timeout_ms: u64,
    /// 128 random bits. The lock guards the copy only.
    id: Mutex<u128>,
    pub(crate) leases: Leases,
    pub(crate) end: End,
}

/// The end of a session, step by step; each fires once and for all.
#[derive(Debug, Default)]
pub(crate) struct End {
    /// The tokens of all jobs have fired.
    pub(crate) stopping: CancellationToken,
    /// Handlers that still run are given up.
    pub(crate) abandoned: CancellationToken,
    /// Calls that are not answered yet are given up.
    pub(crate) closed: CancellationToken,
}

impl Session {
    pub(crate) fn new(options: &ConsumerOptions) -> Self {
        Self {
            group: options.group.clone(),
            member: options.member.clone(),
            instance_id: options.instance_id.clone(),
            timeout_ms: options.session_timeout_ms,
            id: Mutex::new(rand::random()),
            leases: Leases::default(),
            end: End::default(),
        }
    }

    pub(crate) fn id(&self) -> u128 {
        *self.id.lock()
    }

    /// The session as a call carries it; fetches and heartbeats say what is held.
    pub(crate) fn wire(&self, held: Option<Held>) -> v1::Session {
        v1::Session {
            session_id: self.id().to_be_bytes().to_vec().into(),
            group: Some(self.group.clone()),
            member: self.member.clone(),
            instance_id: self.instance_id.clone(),
            held,
            session_timeout_ms: self.timeout_ms,
        }
    }

    /// The epochs this process really works on.
    pub(crate) fn held(&self) -> Held {
        Held { epochs: self.leases.epochs() }
    }

    /// The broker says that session `id` is over, so what it held is too. A plain member joins anew under another id; a
    /// static one was replaced, and two of the same instance must not take turns.
    ///
    /// # Errors
    /// The same error, if that ends this member.
    pub(crate) fn is_stale(&self, id: u128, error: ClientError) -> Result<(), ClientError> {
        let mut current = self.id.lock();
        if *current == id {
            self.leases.lose_all();
            if !self.instance_id.is_empty() {
                return Err(error);
            }
            *current = rand::random();
        }
        Ok(())
    }

    /// Takes in what the broker says unasked.
    pub(crate) fn hear(&self, notices: Vec<Notice>) {
        for kind in notices.into_iter().filter_map(|notice| notice.kind) {
            match kind {
                notice::Kind::Revoked(revoked) => {
                    if let Some(lease) = revoked.lease {
                        self.leases.lose_epoch(lease.epoch, Some(lease.offset));
                    }
                }
                notice::Kind::Recall(recall) => {
                    for offset in recall.offsets {
                        self.leases.lose_epoch(recall.epoch, Some(offset));
                    }
                }
                notice::Kind::Cancelled(cancelled) => {
                    let elsewhere = cancelled.final_state();
                    if let Some(lease) = cancelled.lease {
                        self.leases.call_off(lease.epoch, lease.offset, elsewhere);
                    }
                }
                // Settles are taken until the revoking is done, and that is told by itself.
                notice::Kind::Revoking(revoking) => {
                    tracing::info!(epochs = ?revoking.epochs, reason = %revoking.reason, "leases will be taken away");
                }
                notice::Kind::Draining(_) => tracing::info!("the broker is draining"),
                notice::Kind::Assigned(_) | notice::Kind::Waiting(_) => {}
            }
        }
    }
}

/// Whether an error says that the session is over.
pub(crate) fn says_stale(error: &ClientError) -> bool {
    error.reason == ErrorReason::StaleSession
}
