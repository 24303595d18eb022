//! `AdminService`: the broker as a whole.

use super::group::group_key;
use super::paging::Paging;
use super::{encode, status};
use crate::broker::{Broker, Health, Status as BrokerStatus};
use crate::model::{Refusal, UnixMillis};
use std::time::Duration;
use tonic::{Request, Response, Status};
use weir_proto::server::{self as wire, admin_service_server::AdminService};

#[derive(Clone)]
pub(super) struct Admin {
    pub(super) broker: Broker,
    pub(super) started: Started,
}

/// How the broker came up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Started {
    /// When, in broker time.
    pub(super) at: UnixMillis,
    /// How long it took until it could serve.
    pub(super) recovery: Duration,
}

#[tonic::async_trait]
impl AdminService for Admin {
    async fn get_status(
        &self,
        _request: Request<wire::GetStatusRequest>,
    ) -> Result<Response<wire::GetStatusResponse>, Status> {
        match (self.broker.status().await, self.broker.health()) {
            // Its numbers are gone with it; that it failed, and why, is what there is to say.
            (Err(_), Health::Failed(cause)) => Ok(Response::new(wire::GetStatusResponse {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                state: wire::ServerState::Failed.into(),
                failure: cause,
                started_unix_ms: self.started.at.get(),
                ..Default::default()
            })),
            (now, _) => answered(now.map(|now| self.told(now))),
        }
    }

    async fn audit(&self, request: Request<wire::AuditRequest>) -> Result<Response<wire::AuditResponse>, Status> {
        answered(self.audit(request.into_inner()).await)
    }
}

impl Admin {
    fn told(&self, now: BrokerStatus) -> wire::GetStatusResponse {
        let (state, failure) = match now.health {
            Health::Serving => (wire::ServerState::Serving, String::new()),
            Health::Draining => (wire::ServerState::Draining, String::new()),
            Health::Failed(cause) => (wire::ServerState::Failed, cause),
            Health::Closed => (wire::ServerState::Failed, "closed".to_owned()),
        };
        wire::GetStatusResponse {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            state: state.into(),
            failure,
            started_unix_ms: self.started.at.get(),
            now_unix_ms: now.at.get(),
            applied_lsn: now.applied.get(),
            durable_lsn: now.durable.get(),
            policies: now.policies,
            channels: now.channels,
            groups: now.groups.len() as u64,
            members: now.sessions,
            leases: now.leases,
            waiting_fetches: now.waiting_fetches,
            published: now.published,
            recovery_ms: u64::try_from(self.started.recovery.as_millis()).unwrap_or(u64::MAX),
            segments: now.segments,
            unknown_entered: now.unknown_entered,
            unknown_resolved: now.unknown_left,
            storage_full: now.storage_full,
        }
    }

    async fn audit(&self, request: wire::AuditRequest) -> Result<wire::AuditResponse, Refusal> {
        let paging = Paging::read(request.page_size, &request.page_token)?;
        let mut groups = self.broker.groups(&request.scope).await?;
        groups.retain(|info| request.policy.is_empty() || info.spec.name.policy == request.policy);
        groups.retain(|info| request.name.is_empty() || info.spec.name.name == request.name);
        let (page, next) = paging.cut(groups, group_key);
        let mut audits = Vec::with_capacity(page.len());
        for info in page {
            audits.push(encode::audit(self.broker.audit(info.spec.name).await?));
        }
        Ok(wire::AuditResponse {
            balanced: audits.iter().all(|audit| audit.balanced),
            groups: audits,
            next_page_token: next,
        })
    }
}

fn answered<T>(answer: Result<T, Refusal>) -> Result<Response<T>, Status> {
    answer.map(Response::new).map_err(|refusal| status::status(&refusal))
}
