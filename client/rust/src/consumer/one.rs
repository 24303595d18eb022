//! One delivery from its arrival to the answered end of its lease.

use super::END_PATIENCE;
use crate::connect::Client;
use crate::error::ClientError;
use crate::holding::Holding;
use crate::job::{Handler, HandlerError, Job, Outcome};
use std::future::Future;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::{Response, Status};
use weir_proto::v1::{self, SettleOutcome, begin_response, complete_response, settle_result};

/// What one delivery needs.
pub(super) struct Handling {
    pub(super) client: Client,
    pub(super) session: v1::Session,
    pub(super) holding: Holding,
    pub(super) handler: Handler,
    pub(super) begins: bool,
    pub(super) retry_delay: Duration,
}

/// Whether a message asks for an execution.
fn is_request(message: &v1::Message) -> bool {
    let own = || message.r#type.strip_prefix("x.").and_then(|rest| rest.strip_suffix(".request"));
    let asks = matches!(message.r#type.as_str(), "task.request" | "action.preview")
        || own().is_some_and(|name| !name.is_empty());
    asks && !message.execution_id.is_empty() && message.final_state == 0
}

impl Handling {
    /// Handles the delivery. The lease stays in the list until its end is answered.
    pub(super) async fn run(self, delivery: v1::Delivery, cancel: CancellationToken) {
        let epoch = delivery.epoch;
        let asks = delivery.message.as_ref().is_some_and(is_request);
        let outcome =
            if self.begins && asks { self.act(delivery, cancel).await } else { self.watch(delivery, cancel).await };
        if let Err(error) = outcome {
            tracing::warn!(%error, epoch, "a lease could not be ended; the broker will");
        }
        self.holding.let_go(epoch);
    }

    /// Begin, handle, complete.
    async fn act(&self, delivery: v1::Delivery, cancel: CancellationToken) -> Result<(), ClientError> {
        let request =
            v1::BeginRequest { session: Some(self.session.clone()), epoch: delivery.epoch, offset: delivery.offset };
        let begun = self
            .ask(|| {
                let (mut consume, request) = (self.client.consume_service(), request.clone());
                async move { consume.begin(request).await }
            })
            .await?;
        let token = match begun.result {
            Some(begin_response::Result::Granted(granted)) => granted.fencing_token,
            // It ended before: its result is the broker's, and nothing is done here.
            Some(begin_response::Result::AlreadyFinal(_)) => {
                return self.settle(&delivery, SettleOutcome::Done, String::new(), 0, false).await;
            }
            Some(begin_response::Result::Refused(refusal)) => return Err(ClientError::from(refusal)),
            // The lease is over in each of these; the broker hands the message out again when it may be.
            other => {
                tracing::debug!(?other, epoch = delivery.epoch, "must not act");
                return Ok(());
            }
        };
        match self.handle(delivery.clone(), Some(token), cancel).await {
            Ok(outcome) => self.complete(&delivery, token, outcome).await,
            Err(HandlerError::NotExecuted { reason, delay }) => {
                let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
                self.settle(&delivery, SettleOutcome::Retry, reason, delay_ms, true).await
            }
            Err(HandlerError::Failed(reason)) => self.settle(&delivery, SettleOutcome::Unknown, reason, 0, false).await,
        }
    }

    /// Handle, settle; never begin.
    async fn watch(&self, delivery: v1::Delivery, cancel: CancellationToken) -> Result<(), ClientError> {
        match self.handle(delivery.clone(), None, cancel).await {
            Ok(_) => self.settle(&delivery, SettleOutcome::Done, String::new(), 0, false).await,
            Err(error) => {
                let delay = match &error {
                    HandlerError::NotExecuted { delay, .. } => *delay,
                    HandlerError::Failed(_) => self.retry_delay,
                };
                let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
                self.settle(&delivery, SettleOutcome::Retry, error.to_string(), delay_ms, false).await
            }
        }
    }

    /// Runs the handler on a task of its own, so that a panic is an error like any other.
    async fn handle(
        &self,
        delivery: v1::Delivery,
        fencing_token: Option<u64>,
        cancel: CancellationToken,
    ) -> Result<Outcome, HandlerError> {
        let job = Job { delivery, fencing_token, cancel };
        match tokio::spawn((self.handler)(job)).await {
            Ok(outcome) => outcome,
            Err(panic) => Err(HandlerError::Failed(format!("the handler ended by a panic: {panic}"))),
        }
    }

    async fn complete(&self, delivery: &v1::Delivery, token: u64, outcome: Outcome) -> Result<(), ClientError> {
        let execution_id = delivery.message.as_ref().map(|message| message.execution_id.clone()).unwrap_or_default();
        let request = v1::CompleteRequest {
            session: Some(self.session.clone()),
            epoch: delivery.epoch,
            offset: delivery.offset,
            final_state: outcome.final_state.into(),
            artifact_ref: outcome.artifact_ref,
            fencing_token: token,
            publishes: outcome.publishes,
            tenant: delivery.tenant.clone(),
            execution_id,
        };
        let answer = self
            .ask(|| {
                let (mut consume, request) = (self.client.consume_service(), request.clone());
                async move { consume.complete(request).await }
            })
            .await?;
        match answer.result {
            Some(complete_response::Result::Refused(refusal)) => {
                // The effect happened and its report was refused: nobody may take it for undone.
                let error = ClientError::from(refusal);
                self.settle(delivery, SettleOutcome::Unknown, error.to_string(), 0, false).await?;
                Err(error)
            }
            other => {
                tracing::debug!(?other, epoch = delivery.epoch, "completed");
                Ok(())
            }
        }
    }

    async fn settle(
        &self,
        delivery: &v1::Delivery,
        outcome: SettleOutcome,
        reason: String,
        delay_ms: u64,
        not_executed: bool,
    ) -> Result<(), ClientError> {
        let settlement = v1::Settlement {
            epoch: delivery.epoch,
            offset: delivery.offset,
            outcome: outcome.into(),
            delay_ms,
            reason,
            not_executed,
        };
        let request = v1::SettleRequest { session: Some(self.session.clone()), settlements: vec![settlement] };
        let answer = self
            .ask(|| {
                let (mut consume, request) = (self.client.consume_service(), request.clone());
                async move { consume.settle(request).await }
            })
            .await?;
        match answer.results.into_iter().next().and_then(|result| result.result) {
            Some(settle_result::Result::Refused(refusal)) => Err(ClientError::from(refusal)),
            // A repeat of a settle that had been taken, or a lease that was lost: over, either way.
            _ => Ok(()),
        }
    }

    /// Repeats a call until it is answered: each of them may safely be.
    async fn ask<T, F, Answer>(&self, call: F) -> Result<T, ClientError>
    where
        F: FnMut() -> Answer,
        Answer: Future<Output = Result<Response<T>, Status>>,
    {
        self.client.patience(Some(Instant::now() + END_PATIENCE), CancellationToken::new()).call(call).await
    }
}
