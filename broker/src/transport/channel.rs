//! `ChannelService`: policies and channels.

use super::paging::{Paging, key_of, token};
use super::{decode, encode, status};
use crate::broker::Broker;
use crate::model::policy::ChannelPolicy;
use crate::model::{ChannelInfo, Reason, Refusal, names};
use tonic::{Request, Response, Status};
use weir_proto::server::{self as wire, channel_service_server::ChannelService};

#[derive(Clone)]
pub(super) struct Channels {
    pub(super) broker: Broker,
}

#[tonic::async_trait]
impl ChannelService for Channels {
    async fn put_policy(
        &self,
        request: Request<wire::PutPolicyRequest>,
    ) -> Result<Response<wire::PutPolicyResponse>, Status> {
        answered(self.put(request.into_inner()).await)
    }

    async fn get_policy(
        &self,
        request: Request<wire::GetPolicyRequest>,
    ) -> Result<Response<wire::GetPolicyResponse>, Status> {
        let found = self.policy(&request.into_inner().name).await;
        answered(found.map(|policy| wire::GetPolicyResponse { policy: Some(encode::policy(policy)) }))
    }

    async fn list_policies(
        &self,
        request: Request<wire::ListPoliciesRequest>,
    ) -> Result<Response<wire::ListPoliciesResponse>, Status> {
        answered(self.list_policies(request.into_inner()).await)
    }

    async fn get_channel(
        &self,
        request: Request<wire::GetChannelRequest>,
    ) -> Result<Response<wire::GetChannelResponse>, Status> {
        let request = request.into_inner();
        let channel = decode::channel(request.policy, request.tenant, request.agent_id);
        let found = self.broker.channel(channel).await;
        answered(found.map(|info| wire::GetChannelResponse { channel: Some(encode::channel(info)) }))
    }

    async fn list_channels(
        &self,
        request: Request<wire::ListChannelsRequest>,
    ) -> Result<Response<wire::ListChannelsResponse>, Status> {
        answered(self.list(request.into_inner()).await)
    }
}

impl Channels {
    async fn put(&self, request: wire::PutPolicyRequest) -> Result<wire::PutPolicyResponse, Refusal> {
        let policy = decode::policy(request.policy)?;
        let name = policy.name.clone();
        let known = self.broker.policies().await?.iter().any(|known| known.name == name);
        self.broker.put_policy(policy).await?;
        let stands = self.policy(&name).await?;
        Ok(wire::PutPolicyResponse { policy: Some(encode::policy(stands)), created: !known })
    }

    async fn policy(&self, name: &str) -> Result<ChannelPolicy, Refusal> {
        names::check_policy("name", name)?;
        let found = self.broker.policies().await?.into_iter().find(|policy| policy.name == name);
        found.ok_or_else(|| Refusal::new(Reason::NotFound, format!("there is no channel policy {name:?}")))
    }

    async fn list_policies(&self, request: wire::ListPoliciesRequest) -> Result<wire::ListPoliciesResponse, Refusal> {
        let paging = Paging::read(request.page_size, &request.page_token)?;
        let (page, next) = paging.cut(self.broker.policies().await?, |policy| key_of(&[&policy.name]));
        Ok(wire::ListPoliciesResponse {
            policies: page.into_iter().map(encode::policy).collect(),
            next_page_token: next,
        })
    }

    /// Channels policy by policy. A page's token names the policy and the place in it.
    async fn list(&self, request: wire::ListChannelsRequest) -> Result<wire::ListChannelsResponse, Refusal> {
        let paging = Paging::read(request.page_size, &request.page_token)?;
        let tenant = (!request.tenant.is_empty()).then_some(request.tenant.as_str());
        let mut from = paging.after.as_deref().map(place).transpose()?;
        let mut found: Vec<ChannelInfo> = Vec::new();
        for policy in self.policy_names(&request.policy).await? {
            let after = match &from {
                Some((at, _)) if policy < *at => continue,
                Some((at, _)) if policy > *at => None,
                Some(_) => from.take().map(|(_, after)| after).filter(|after| !after.is_empty()),
                None => None,
            };
            let left = paging.size.saturating_sub(u32::try_from(found.len()).unwrap_or(u32::MAX));
            if left == 0 {
                return Ok(listed(found, Some((&policy, &[]))));
            }
            let page = self.broker.channels(&policy, tenant, left, after).await?;
            found.extend(page.items);
            if let Some(next) = page.next {
                return Ok(listed(found, Some((&policy, &next))));
            }
        }
        Ok(listed(found, None))
    }

    async fn policy_names(&self, only: &str) -> Result<Vec<String>, Refusal> {
        if !only.is_empty() {
            return Ok(vec![only.to_owned()]);
        }
        let mut names: Vec<_> = self.broker.policies().await?.into_iter().map(|policy| policy.name).collect();
        names.sort_unstable();
        Ok(names)
    }
}

fn listed(found: Vec<ChannelInfo>, next: Option<(&str, &[u8])>) -> wire::ListChannelsResponse {
    let next = next.map(|(policy, after)| token(&[policy.as_bytes(), b"\0", after].concat()));
    wire::ListChannelsResponse {
        channels: found.into_iter().map(encode::channel).collect(),
        next_page_token: next.unwrap_or_default(),
    }
}

/// The policy and the place in it that a token names; an empty place is its beginning.
fn place(token: &[u8]) -> Result<(String, Vec<u8>), Refusal> {
    let mut parts = token.splitn(2, |byte| *byte == 0);
    let policy = parts.next().and_then(|policy| std::str::from_utf8(policy).ok());
    match (policy, parts.next()) {
        (Some(policy), Some(after)) => Ok((policy.to_owned(), after.to_vec())),
        _ => Err(Refusal::invalid("page_token", "not a token of this list")),
    }
}

fn answered<T>(answer: Result<T, Refusal>) -> Result<Response<T>, Status> {
    answer.map(Response::new).map_err(|refusal| status::status(&refusal))
}
