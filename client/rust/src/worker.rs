//! Acts on requests.

use crate::connect::Client;
use crate::consumer::{OnAlreadyFinal, Role, Setup};
use crate::error::ClientError;
use crate::job::{Job, handler};
use crate::options::ConsumerOptions;
use crate::outcome::{HandlerError, Outcome};
use crate::running::Running;
use std::fmt;
use std::future::Future;
use tokio_util::sync::CancellationToken;
use weir_proto::v1::{AlreadyFinal, Delivery};

/// A member of a group that acts on requests.
///
/// Each request is begun before its handler runs, so that of all who are ever handed it only one acts; what the handler
/// returns is reported and settles the request in one step. Where the broker does not give leave, the handler does not
/// run. Other messages are handled without a begin, and replays are settled without a handler.
///
/// Handlers of different tasks run at the same time. One may block its thread without losing its lease, but it blocks
/// others of the runtime: hand long computing to `tokio::task::spawn_blocking`.
#[must_use = "a worker does nothing until it runs"]
pub struct Worker {
    setup: Setup,
    on_already_final: Option<OnAlreadyFinal>,
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("options", &self.setup.options).finish_non_exhaustive()
    }
}

impl Client {
    /// A worker of a group whose settings let members execute. `function` is called for every message it is to handle.
    ///
    /// ```no_run
    /// # async fn charge(_: &[u8], _: u64) -> Result<String, std::io::Error> { Ok(String::new()) }
    /// # async fn demo(client: weir_client::Client) -> Result<(), weir_client::ClientError> {
    /// use std::time::Duration;
    /// use weir_client::{ConsumerOptions, HandlerError, Outcome};
    ///
    /// let options = ConsumerOptions::new("acme", "task_events", "refunds", "worker-1");
    /// let worker = client.worker(options, |job| async move {
    ///     let Some(token) = job.fencing_token else { return Ok(Outcome::done()) };
    ///     if job.message().payload.is_empty() {
    ///         return Err(HandlerError::not_executed("no amount yet", Duration::from_secs(5)));
    ///     }
    ///     // An error from here on says nothing about the money: the broker holds the execution as UNKNOWN.
    ///     let receipt = charge(&job.message().payload, token).await?;
    ///     Ok(Outcome::completed(receipt))
    /// });
    /// worker.run().await
    /// # }
    /// ```
    pub fn worker<F, Work>(&self, options: ConsumerOptions, function: F) -> Worker
    where
        F: Fn(Job) -> Work + Send + Sync + 'static,
        Work: Future<Output = Result<Outcome, HandlerError>> + Send + 'static,
    {
        let setup = Setup {
            client: self.clone(),
            options,
            role: Role::Works(None),
            handler: handler(function),
            stop: CancellationToken::new(),
        };
        Worker { setup, on_already_final: None }
    }
}

impl Worker {
    /// Is told of each request that is not worked on because its execution has ended before, with its first result. It
    /// must not block.
    pub fn on_already_final(mut self, told: impl Fn(&Delivery, &AlreadyFinal) + Send + Sync + 'static) -> Self {
        self.on_already_final = Some(Box::new(told));
        self
    }

    /// Fires to stop it; clones share it.
    #[must_use]
    pub fn stopper(&self) -> CancellationToken {
        self.setup.stop.clone()
    }

    /// Runs until it is stopped. It goes on through broken connections and restarts of the broker.
    ///
    /// Stopped, it fetches no more and lets running handlers end, up to [`drain`](ConsumerOptions::drain); then it fires
    /// their tokens, and after a short grace gives them up. What was begun and not reported is UNKNOWN then; the rest is
    /// given back. Last, it leaves.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if an option is out of its bounds or the group does not execute; else what the broker refuses
    /// for good: the group is not there, this is not allowed, a newer session of the instance took over.
    pub async fn run(self) -> Result<(), ClientError> {
        self.ready().run().await
    }

    /// As [`run`](Self::run), on a task of its own. It must be called within a tokio runtime.
    pub fn start(self) -> Running {
        Running::start(self.ready())
    }

    fn ready(self) -> Setup {
        Setup { role: Role::Works(self.on_already_final), ..self.setup }
    }
}
