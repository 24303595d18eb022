//! `weirctl status`: how the broker is.

use crate::connection::Connection;
use crate::enums;
use crate::exit::Failure;
use crate::output::{Map, Output, Tree};
use weir_proto::v1::{GetStatusRequest, GetStatusResponse};

/// Shows how the broker is.
///
/// # Errors
/// If it does not answer, or denies it.
pub(crate) async fn run(connection: &Connection, output: &mut Output) -> Result<(), Failure> {
    let status = connection.call(connection.admin().get_status(GetStatusRequest {})).await?;
    Ok(output.one(&record(status))?)
}

fn record(status: GetStatusResponse) -> Tree {
    Map::new()
        .with("version", status.version)
        .with("state", enums::server_state(status.state))
        .with("failure", Tree::unless_empty(status.failure))
        .with("started_unix_ms", status.started_unix_ms)
        .with("now_unix_ms", status.now_unix_ms)
        .with("recovery_ms", status.recovery_ms)
        .with("applied_lsn", status.applied_lsn)
        .with("durable_lsn", status.durable_lsn)
        .with("segments", status.segments)
        .with("policies", status.policies)
        .with("channels", status.channels)
        .with("groups", status.groups)
        .with("members", status.members)
        .with("leases", status.leases)
        .with("waiting_fetches", status.waiting_fetches)
        .with("published", status.published)
        .with("unknown_entered", status.unknown_entered)
        .with("unknown_resolved", status.unknown_resolved)
        .with("storage_full", status.storage_full)
        .done()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_healthy_broker_has_no_failure() {
        let record = record(GetStatusResponse { state: 2, ..GetStatusResponse::default() });
        assert_eq!(record.at("state"), &Tree::from("SERVING"));
        assert_eq!(record.at("failure"), &Tree::Null);
    }
}
