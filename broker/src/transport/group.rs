//! `GroupService`: groups, their members, what they set aside.

use super::paging::{Paging, key_of};
use super::{decode, encode, status};
use crate::broker::Broker;
use crate::model::{GroupInfo, ParkedInfo, Refusal};
use tonic::{Request, Response, Status};
use weir_proto::server::{self as wire, group_service_server::GroupService};

#[derive(Clone)]
pub(super) struct Groups {
    pub(super) broker: Broker,
    /// Attempts at a message where a group names no number.
    pub(super) attempts: u32,
}

#[tonic::async_trait]
impl GroupService for Groups {
    async fn create_group(
        &self,
        request: Request<wire::CreateGroupRequest>,
    ) -> Result<Response<wire::CreateGroupResponse>, Status> {
        answered(self.create(request.into_inner()).await)
    }

    async fn get_group(
        &self,
        request: Request<wire::GetGroupRequest>,
    ) -> Result<Response<wire::GetGroupResponse>, Status> {
        let group = decode::group_ref("group", request.into_inner().group).map_err(|r| status::status(&r))?;
        let found = self.broker.group(group).await;
        answered(found.map(|info| wire::GetGroupResponse { group: Some(encode::group(info)) }))
    }

    async fn list_groups(
        &self,
        request: Request<wire::ListGroupsRequest>,
    ) -> Result<Response<wire::ListGroupsResponse>, Status> {
        answered(self.list(request.into_inner()).await)
    }

    async fn list_members(
        &self,
        request: Request<wire::ListMembersRequest>,
    ) -> Result<Response<wire::ListMembersResponse>, Status> {
        answered(self.members(request.into_inner()).await)
    }

    async fn list_parked(
        &self,
        request: Request<wire::ListParkedRequest>,
    ) -> Result<Response<wire::ListParkedResponse>, Status> {
        answered(self.parked(request.into_inner()).await)
    }
}

impl Groups {
    async fn create(&self, request: wire::CreateGroupRequest) -> Result<wire::CreateGroupResponse, Refusal> {
        let spec = decode::group_spec(request, self.attempts)?;
        let (info, created) = self.broker.create_group(spec).await?;
        Ok(wire::CreateGroupResponse { group: Some(encode::group(info)), created })
    }

    async fn list(&self, request: wire::ListGroupsRequest) -> Result<wire::ListGroupsResponse, Refusal> {
        let paging = Paging::read(request.page_size, &request.page_token)?;
        let mut groups = self.broker.groups(&request.scope).await?;
        groups.retain(|info| request.policy.is_empty() || info.spec.name.policy == request.policy);
        let (page, next) = paging.cut(groups, group_key);
        Ok(wire::ListGroupsResponse { groups: page.into_iter().map(encode::group).collect(), next_page_token: next })
    }

    async fn members(&self, request: wire::ListMembersRequest) -> Result<wire::ListMembersResponse, Refusal> {
        let paging = Paging::read(request.page_size, &request.page_token)?;
        let members = self.broker.members(decode::group_ref("group", request.group)?).await?;
        let (page, next) = paging.cut(members, |member| {
            // Names need not be unique, and a session must not be told: its digest tells two of a name apart.
            let session = member.session.0.to_be_bytes();
            [member.member.as_bytes(), b"\0", &crc32fast::hash(&session).to_be_bytes()].concat()
        });
        Ok(wire::ListMembersResponse { members: page.into_iter().map(encode::member).collect(), next_page_token: next })
    }

    async fn parked(&self, request: wire::ListParkedRequest) -> Result<wire::ListParkedResponse, Refusal> {
        let paging = Paging::read(request.page_size, &request.page_token)?;
        let parked = self.broker.parked(decode::group_ref("group", request.group)?).await?;
        let (page, next) = paging.cut(parked, parked_key);
        Ok(wire::ListParkedResponse { parked: page.into_iter().map(encode::parked).collect(), next_page_token: next })
    }
}

/// In order of scope, policy and name.
pub(super) fn group_key(info: &GroupInfo) -> Vec<u8> {
    let name = &info.spec.name;
    key_of(&[&name.scope, &name.policy, &name.name])
}

/// In order of channel and offset.
fn parked_key(parked: &ParkedInfo) -> Vec<u8> {
    let channel = &parked.channel;
    let mut key = key_of(&[&channel.policy, &channel.tenant, &channel.agent, ""]);
    key.extend(parked.offset.get().to_be_bytes());
    key
}

fn answered<T>(answer: Result<T, Refusal>) -> Result<Response<T>, Status> {
    answer.map(Response::new).map_err(|refusal| status::status(&refusal))
}
