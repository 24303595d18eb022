//! `weirctl channel`: looks at channels.

use crate::connection::Connection;
use crate::exit::Failure;
use crate::names::ChannelKey;
use crate::output::{Column, Map, Output, Tree};
use crate::verbs::{PAGE_SIZE, reference};
use weir_proto::v1::{Channel, GetChannelRequest, ListChannelsRequest};

const COLUMNS: &[Column] = &[
    Column::new("POLICY", "policy"),
    Column::new("CHANNEL", "channel"),
    Column::new("EARLIEST", "earliest_offset"),
    Column::new("END", "end_offset"),
    Column::new("DEPTH", "depth"),
    Column::new("LAST PUBLISH", "last_publish_unix_ms"),
    Column::wide("PUBLISHED BYTES", "published_bytes"),
    Column::wide("CREATED", "created_unix_ms"),
];

/// The verbs of channels.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// List channels
    Ls {
        /// Only channels of this policy
        #[arg(long, value_name = "POLICY")]
        policy: Option<String>,
        /// Only channels of this tenant
        #[arg(long, value_name = "TENANT")]
        tenant: Option<String>,
    },
    /// Show one channel
    Get {
        /// Its policy
        #[arg(long, value_name = "POLICY")]
        policy: String,
        /// Its key: `tenant:agent`, or `tenant` where the policy's key is the tenant alone
        #[arg(value_name = "TENANT:AGENT")]
        channel: ChannelKey,
    },
}

/// Does what was asked about channels.
///
/// # Errors
/// What the broker refused.
pub(crate) async fn run(verb: Verb, connection: &Connection, output: &mut Output) -> Result<(), Failure> {
    match verb {
        Verb::Ls { policy, tenant } => {
            let request = ListChannelsRequest {
                policy: policy.unwrap_or_default(),
                tenant: tenant.unwrap_or_default(),
                page_size: PAGE_SIZE,
                page_token: String::new(),
            };
            ls(request, connection, output).await
        }
        Verb::Get { policy, channel } => {
            let request = GetChannelRequest { policy, tenant: channel.tenant, agent_id: channel.agent_id };
            let answer = connection.call(connection.channels().get_channel(request)).await?;
            Ok(output.one(&record(answer.channel.unwrap_or_default()))?)
        }
    }
}

async fn ls(mut request: ListChannelsRequest, connection: &Connection, output: &mut Output) -> Result<(), Failure> {
    let mut list = output.list("channels", COLUMNS);
    loop {
        let page = connection.call(connection.channels().list_channels(request.clone())).await?;
        let records: Vec<_> = page.channels.into_iter().map(record).collect();
        list.page(&records)?;
        if page.next_page_token.is_empty() {
            return Ok(list.finish(&[])?);
        }
        request.page_token = page.next_page_token;
    }
}

fn record(channel: Channel) -> Tree {
    reference::channel_names(Map::new(), channel.channel.unwrap_or_default())
        .with("earliest_offset", channel.earliest_offset)
        .with("end_offset", channel.end_offset)
        .with("depth", channel.depth)
        .with("published_bytes", channel.published_bytes)
        .with("created_unix_ms", channel.created_unix_ms)
        .with("last_publish_unix_ms", channel.last_publish_unix_ms)
        .done()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_shows_a_value_there_is() {
        let record = record(Channel::default());
        for column in COLUMNS {
            assert_ne!(record.at(column.path()), &Tree::Null, "{}", column.path());
        }
    }
}
