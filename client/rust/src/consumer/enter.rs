//! Makes sure, before anything is fetched, that the group is there and is one for this kind of consumer.

use crate::connect::Client;
use crate::error::{ClientError, Code};
use crate::options::ConsumerOptions;
use crate::retry::Patience;
use tokio_util::sync::CancellationToken;
use weir_proto::v1::{CreateGroupRequest, GetGroupRequest, Group};

/// # Errors
/// `NOT_FOUND` without the group; `ALREADY_EXISTS` if it is there with other settings than those to make it with;
/// `INVALID_ARGUMENT` if its members may not begin and this one wants to.
pub(super) async fn enter(
    client: &Client,
    options: &ConsumerOptions,
    begins: bool,
    stop: &CancellationToken,
) -> Result<(), ClientError> {
    let patience = client.patience(None, stop.clone());
    let found = match &options.create {
        Some(_) => create(client, options, &patience).await?,
        None => match get(client, options, &patience).await {
            // Who may consume need not be allowed to look; a begin will say the same.
            Err(error) if matches!(error.code, Code::PermissionDenied | Code::Unimplemented) => None,
            found => found?,
        },
    };
    let executes = found.and_then(|found| found.settings).and_then(|settings| settings.executes);
    if begins && executes == Some(false) {
        let text = "this group does not execute, so its members cannot begin: subscribe instead";
        return Err(ClientError::invalid("group", text));
    }
    Ok(())
}

async fn create(client: &Client, options: &ConsumerOptions, patience: &Patience) -> Result<Option<Group>, ClientError> {
    let request = CreateGroupRequest { group: Some(options.group.clone()), settings: options.create.clone() };
    let create = || {
        let (mut service, request) = (client.group_service(), request.clone());
        async move { service.create_group(request).await }
    };
    Ok(patience.call(create).await?.group)
}

async fn get(client: &Client, options: &ConsumerOptions, patience: &Patience) -> Result<Option<Group>, ClientError> {
    let request = GetGroupRequest { group: Some(options.group.clone()) };
    let get = || {
        let (mut service, request) = (client.group_service(), request.clone());
        async move { service.get_group(request).await }
    };
    Ok(patience.call(get).await?.group)
}
