//! Reports how a begun execution ended, and settles its request with it.
//!
//! A report is sent even if its lease was lost meanwhile: it counts while its begin stands.

use super::Consumer;
use crate::backoff::Backoff;
use crate::ending::Settle;
use crate::error::ClientError;
use crate::job::message_of;
use crate::lease::Lease;
use crate::outcome::Report;
use std::sync::Arc;
use tokio::time::sleep;
use weir_proto::v1::complete_response::Result as Answer;
use weir_proto::v1::{ChannelRef, CompleteAccepted, CompleteRequest, CompleteResponse, Delivery, FollowUp, Message};

/// The type of a result, unless it has one of its own.
const RESULT_TYPE: &str = "task.result";

/// A begun request: what a report of it has to name.
#[derive(Debug)]
pub(super) struct Begun {
    channel: ChannelRef,
    message_id: String,
    task_id: String,
    execution_id: String,
    token: u64,
}

impl Begun {
    pub(super) fn new(delivery: &Delivery, token: u64) -> Self {
        let message = message_of(delivery);
        Self {
            channel: ChannelRef {
                policy: delivery.policy.clone(),
                tenant: delivery.tenant.clone(),
                agent_id: delivery.agent_id.clone(),
            },
            message_id: message.message_id.clone(),
            task_id: message.task_id.clone(),
            execution_id: message.execution_id.clone(),
            token,
        }
    }

    /// The result, with all filled in that follows from the request and the report.
    fn result(&self, report: &Report, message: Message) -> FollowUp {
        let or = |own: String, other: &str| if own.is_empty() { other.to_owned() } else { own };
        FollowUp {
            policy: self.channel.policy.clone(),
            tenant: self.channel.tenant.clone(),
            agent_id: self.channel.agent_id.clone(),
            message: Some(Message {
                task_id: or(message.task_id, &self.task_id),
                r#type: or(message.r#type, RESULT_TYPE),
                parent_message_id: or(message.parent_message_id, &self.message_id),
                artifact_ref: or(message.artifact_ref, &report.artifact_ref),
                execution_id: self.execution_id.clone(),
                final_state: report.final_state.into(),
                fencing_token: self.token,
                ..message
            }),
        }
    }

    fn publishes(&self, report: &Report) -> Vec<FollowUp> {
        let result = report.result.clone().map(|message| self.result(report, message));
        result.into_iter().chain(report.follow_ups.iter().cloned()).collect()
    }
}

/// What became of a report.
enum Reported {
    Taken(CompleteAccepted),
    /// Neither lease nor begin stands; kept as evidence at most.
    TooLate(String),
    Refused(ClientError),
    Unanswered,
}

impl Consumer {
    /// Reports until that is answered.
    ///
    /// A result that is refused (too large, say) is left out and the broker writes a plain one: that the execution ended,
    /// and where its product is, must not be lost over it. Follow-ups are never left out: if they are refused the
    /// execution is held as UNKNOWN, with the reason.
    pub(super) async fn report(&self, lease: &Arc<Lease>, begun: &Begun, mut report: Report) {
        let execution = &begun.execution_id;
        loop {
            match self.complete(lease, begun, &report).await {
                Reported::Taken(accepted) => {
                    if accepted.contradiction {
                        tracing::warn!(execution, state = ?report.final_state, "reported, but another state stands");
                    }
                    return;
                }
                Reported::TooLate(text) => {
                    tracing::warn!(execution, text, "reported too late: the begin no longer stands");
                    return self.session.leases.lose(lease);
                }
                Reported::Refused(error) if report.follow_ups.is_empty() && report.result.is_some() => {
                    tracing::error!(execution, %error, "report refused; repeated without its result message");
                    report.result = None;
                }
                Reported::Refused(error) => {
                    tracing::error!(execution, %error, "report refused; held as UNKNOWN");
                    let reason = format!("its report {} was refused: {error}", report.final_state.as_str_name());
                    return self.settle(lease, Settle::unknown(reason)).await;
                }
                Reported::Unanswered => {
                    tracing::warn!(execution, "not reported before the session was closed");
                    return;
                }
            }
        }
    }

    async fn complete(&self, lease: &Lease, begun: &Begun, report: &Report) -> Reported {
        let closed = &self.session.end.closed;
        let mut backoff = Backoff::new(self.client.settings().backoff);
        loop {
            let epoch = lease.epoch();
            let error = match self.send(lease, begun, report).await {
                Ok(response) => match response.result {
                    Some(Answer::Accepted(accepted)) => return Reported::Taken(accepted),
                    Some(Answer::Fenced(fenced)) => return Reported::TooLate(fenced.text),
                    // The lease went on under another epoch while the call was on its way.
                    Some(Answer::LeaseLost(_)) if lease.epoch() != epoch => continue,
                    Some(Answer::LeaseLost(_)) => return Reported::TooLate("the lease is over".to_owned()),
                    Some(Answer::Refused(refusal)) => ClientError::from(refusal),
                    None => ClientError::nonsense("the answer to a complete says nothing"),
                },
                Err(_) if closed.is_cancelled() => return Reported::Unanswered,
                Err(error) => error,
            };
            if !error.retryable {
                return Reported::Refused(error);
            }
            tokio::select! {
                () = sleep(backoff.next(error.retry_after)) => {}
                () = closed.cancelled() => return Reported::Unanswered,
            }
        }
    }

    async fn send(&self, lease: &Lease, begun: &Begun, report: &Report) -> Result<CompleteResponse, ClientError> {
        let complete = || {
            let request = CompleteRequest {
                session: Some(self.session.wire(None)),
                epoch: lease.epoch(),
                offset: lease.offset,
                execution_id: begun.execution_id.clone(),
                final_state: report.final_state.into(),
                artifact_ref: report.artifact_ref.clone(),
                fencing_token: begun.token,
                publishes: begun.publishes(report),
                tenant: lease.tenant.clone(),
            };
            let mut service = self.client.consume_service();
            async move { service.complete(request).await }
        };
        self.client.patience(None, self.session.end.closed.clone()).call(complete).await
    }
}
