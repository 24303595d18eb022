//! One message from its delivery to the end of its lease.

use super::begin::{Begin, begin};
use super::report::Begun;
use super::{Consumer, Role};
use crate::ending::{Ending, Settle, Worked};
use crate::job::{Job, is_request, message_of};
use crate::lease::Lease;
use crate::outcome::{HandlerError, Outcome};
use std::any::Any;
use std::sync::Arc;
use tokio::task::{JoinError, JoinSet};
use weir_proto::v1::Delivery;

impl Consumer {
    /// Works on a message and ends its lease.
    pub(super) async fn work(&self, lease: &Arc<Lease>, delivery: Delivery) {
        match &self.role {
            Role::Watches => self.handle(lease, delivery).await,
            // A replay is never acted on.
            Role::Works(_) if delivery.replay => self.settle(lease, Settle::done()).await,
            Role::Works(_) if is_request(message_of(&delivery)) => self.execute(lease, delivery).await,
            Role::Works(_) => self.handle(lease, delivery).await,
        }
    }

    /// A message that needs no begin.
    async fn handle(&self, lease: &Arc<Lease>, delivery: Delivery) {
        // A report is not possible without a begin, so there is none.
        if let Ending::Settle(settle) = self.run_handler(lease, delivery, None).await {
            self.settle(lease, settle).await;
        }
    }

    /// A request: begun before its handler runs, and reported after.
    async fn execute(&self, lease: &Arc<Lease>, delivery: Delivery) {
        let (epoch, offset) = (lease.epoch(), lease.offset);
        match begin(&self.client, &self.session, lease).await {
            Begin::Granted(token) => {
                let begun = Begun::new(&delivery, token);
                match self.run_handler(lease, delivery, Some(token)).await {
                    Ending::Report(report) => self.report(lease, &begun, *report).await,
                    Ending::Settle(settle) => self.settle(lease, settle).await,
                }
            }
            Begin::Final(first) => {
                if let Role::Works(Some(on_final)) = &self.role {
                    on_final(&delivery, &first);
                }
                self.settle(lease, Settle::done()).await;
            }
            Begin::Over(why) => {
                tracing::info!(epoch, offset, why, "not begun, and the lease is over");
                self.session.leases.lose(lease);
            }
            Begin::Refused(error) => {
                tracing::error!(epoch, offset, %error, "begin refused");
                let delay = self.options.retry.wait(delivery.failed);
                let settle = Settle::retry(delay, format!("begin refused: {error}"));
                self.settle(lease, settle.not_executed()).await;
            }
            Begin::Stopped => {
                // Whether the begin came through is not known; that nothing was executed is.
                self.settle(lease, Settle::release("stopped before it was begun").not_executed()).await;
            }
        }
    }

    /// Runs the handler, on a task of its own, so that its panic ends nothing but itself.
    async fn run_handler(&self, lease: &Arc<Lease>, delivery: Delivery, token: Option<u64>) -> Ending {
        let usual = self.options.retry.wait(delivery.failed);
        let (handler, job) = (Arc::clone(&self.handler), Job::new(delivery, token, Arc::clone(lease)));
        let mut running = JoinSet::new();
        running.spawn(async move { handler(job).await });
        let worked = tokio::select! {
            biased;
            joined = running.join_next() => joined.map_or(Worked::Abandoned, worked),
            () = self.session.end.abandoned.cancelled() => Worked::Abandoned,
        };
        if let Worked::Returned(Err(error)) = &worked {
            tracing::warn!(epoch = lease.epoch(), offset = lease.offset, %error, "the handler failed");
        }
        Ending::of(worked, token.is_some(), usual)
    }
}

fn worked(joined: Result<Result<Outcome, HandlerError>, JoinError>) -> Worked {
    match joined {
        Ok(returned) => Worked::Returned(returned),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => Worked::Panicked(words(panic.as_ref())),
            Err(_) => Worked::Abandoned,
        },
    }
}

/// What a panic said.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without words".to_owned())
}
