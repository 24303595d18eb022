//! Watches channels.

use crate::connect::Client;
use crate::consumer::{Role, Setup};
use crate::error::ClientError;
use crate::job::{Job, handler};
use crate::options::ConsumerOptions;
use crate::outcome::{HandlerError, Outcome};
use crate::running::Running;
use std::fmt;
use std::future::Future;
use tokio_util::sync::CancellationToken;

/// A member of a group that begins nothing: for projections, audits, and whatever else only looks on.
///
/// Its handler sees all messages, requests and replays too, and says how each is settled; a report is not its to give.
#[must_use = "a subscriber does nothing until it runs"]
pub struct Subscriber {
    setup: Setup,
}

impl fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriber").field("options", &self.setup.options).finish_non_exhaustive()
    }
}

impl Client {
    /// A subscriber of a group. `function` is called for every message.
    ///
    /// ```no_run
    /// # async fn demo(client: weir_client::Client) -> Result<(), weir_client::ClientError> {
    /// use weir_client::v1::GroupSettings;
    /// use weir_client::{ConsumerOptions, Outcome};
    ///
    /// let watches = GroupSettings { executes: Some(false), ..Default::default() };
    /// let options = ConsumerOptions::new("acme", "task_events", "audit", "auditor").create(watches);
    /// let subscriber = client.subscriber(options, |job| async move {
    ///     println!("{} {}", job.delivery.offset, job.message().r#type);
    ///     Ok(Outcome::done())
    /// });
    /// subscriber.run().await
    /// # }
    /// ```
    pub fn subscriber<F, Work>(&self, options: ConsumerOptions, function: F) -> Subscriber
    where
        F: Fn(Job) -> Work + Send + Sync + 'static,
        Work: Future<Output = Result<Outcome, HandlerError>> + Send + 'static,
    {
        Subscriber {
            setup: Setup {
                client: self.clone(),
                options,
                role: Role::Watches,
                handler: handler(function),
                stop: CancellationToken::new(),
            },
        }
    }
}

impl Subscriber {
    /// Fires to stop it; clones share it.
    #[must_use]
    pub fn stopper(&self) -> CancellationToken {
        self.setup.stop.clone()
    }

    /// Runs until it is stopped. It goes on through broken connections and restarts of the broker.
    ///
    /// Stopped, it fetches no more and lets running handlers end, up to [`drain`](ConsumerOptions::drain); then it fires
    /// their tokens, and after a short grace gives their messages back. Last, it leaves.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if an option is out of its bounds; else what the broker refuses for good: the group is not
    /// there, this is not allowed, a newer session of the instance took over.
    pub async fn run(self) -> Result<(), ClientError> {
        self.setup.run().await
    }

    /// As [`run`](Self::run), on a task of its own. It must be called within a tokio runtime.
    pub fn start(self) -> Running {
        Running::start(self.setup)
    }
}
