//! `weirctl policy`: looks at the declared kinds of channels.

use crate::connection::Connection;
use crate::exit::Failure;
use crate::output::{Column, Map, Output, Tree};
use crate::verbs::PAGE_SIZE;
use weir_proto::v1::{GetPolicyRequest, ListPoliciesRequest, Policy};

const COLUMNS: &[Column] = &[
    Column::new("POLICY", "name"),
    Column::new("KEY", "key_template"),
    Column::new("RETENTION MS", "retention_ms"),
    Column::new("MAX DEPTH", "max_depth"),
    Column::new("DEPTH ALERT", "depth_alert"),
    Column::new("FROM FILE", "owned_by_file"),
    Column::wide("REPLAY", "replay"),
    Column::wide("PAYLOAD MAX", "payload_bytes_max"),
    Column::wide("NEEDS ARTIFACT", "require_artifact"),
    Column::wide("REMEMBER MS", "remember_ms"),
];

/// The verbs of policies.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// List policies
    Ls,
    /// Show one policy
    Get {
        /// Its name
        name: String,
    },
}

/// Does what was asked about policies.
///
/// # Errors
/// What the broker refused.
pub(crate) async fn run(verb: Verb, connection: &Connection, output: &mut Output) -> Result<(), Failure> {
    match verb {
        Verb::Ls => ls(connection, output).await,
        Verb::Get { name } => {
            let request = GetPolicyRequest { name };
            let answer = connection.call(connection.channels().get_policy(request)).await?;
            Ok(output.one(&record(answer.policy.unwrap_or_default()))?)
        }
    }
}

async fn ls(connection: &Connection, output: &mut Output) -> Result<(), Failure> {
    let mut request = ListPoliciesRequest { page_size: PAGE_SIZE, page_token: String::new() };
    let mut list = output.list("policies", COLUMNS);
    loop {
        let page = connection.call(connection.channels().list_policies(request.clone())).await?;
        let records: Vec<_> = page.policies.into_iter().map(record).collect();
        list.page(&records)?;
        if page.next_page_token.is_empty() {
            return Ok(list.finish(&[])?);
        }
        request.page_token = page.next_page_token;
    }
}

fn record(policy: Policy) -> Tree {
    Map::new()
        .with("name", policy.name)
        .with("key_template", policy.key_template)
        .with("retention_ms", policy.retention_ms)
        .with("replay", policy.replay.unwrap_or(true))
        .with("depth_alert", policy.depth_alert)
        .with("max_depth", policy.max_depth)
        .with("payload_bytes_max", policy.payload_bytes_max)
        .with("require_artifact", policy.require_artifact)
        .with("remember_ms", policy.remember_ms)
        .with("owned_by_file", policy.owned_by_file)
        .done()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_shows_a_value_there_is() {
        let record = record(Policy::default());
        for column in COLUMNS {
            assert_ne!(record.at(column.path()), &Tree::Null, "{}", column.path());
        }
    }
}
