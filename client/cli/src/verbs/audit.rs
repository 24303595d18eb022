//! `weirctl audit`: what became of every message each group was ever offered.

use crate::connection::Connection;
use crate::exit::Failure;
use crate::names::Scope;
use crate::output::{Column, Map, Output, Tree};
use crate::verbs::{PAGE_SIZE, reference};
use weir_proto::v1::{AuditRequest, GroupAudit};

const COLUMNS: &[Column] = &[
    Column::new("SCOPE", "scope"),
    Column::new("POLICY", "policy"),
    Column::new("GROUP", "name"),
    Column::new("OFFERED", "offered"),
    Column::new("SETTLED", "settled"),
    Column::new("WAITING", "waiting"),
    Column::new("DELAYED", "delayed"),
    Column::new("IN FLIGHT", "in_flight"),
    Column::new("HELD", "held"),
    Column::new("PARKED", "parked"),
    Column::new("GONE", "gone"),
    Column::new("BALANCED", "balanced"),
    Column::wide("COUNTED", "counted_unsettled"),
    Column::wide("SETTLED BY CAUSE", "settled_by_cause"),
    Column::wide("GONE BY CAUSE", "gone_by_cause"),
];

/// What `audit` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only groups of this policy
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,
    /// Only groups of this scope
    #[arg(long, value_name = "TENANT|*")]
    scope: Option<Scope>,
    /// Only groups of this name
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
}

/// Shows the account of each group.
///
/// # Errors
/// If the broker denies it, if there is none of the groups that were named, or if an account is not balanced.
pub(crate) async fn run(args: Args, connection: &Connection, output: &mut Output) -> Result<(), Failure> {
    let asked = [
        args.scope.as_ref().map(|scope| format!("--scope {}", scope.0)),
        args.policy.as_ref().map(|policy| format!("--policy {policy}")),
        args.group.as_ref().map(|group| format!("--group {group}")),
    ];
    let asked: Vec<_> = asked.into_iter().flatten().collect();
    let mut request = AuditRequest {
        scope: args.scope.map(|scope| scope.0).unwrap_or_default(),
        policy: args.policy.unwrap_or_default(),
        name: args.group.unwrap_or_default(),
        page_size: PAGE_SIZE,
        page_token: String::new(),
    };
    let mut list = output.list("groups", COLUMNS);
    let (mut unbalanced, mut groups) = (0_u64, 0);
    loop {
        let page = connection.call(connection.admin().audit(request.clone())).await?;
        unbalanced += page.groups.iter().map(|group| u64::from(!group.balanced)).sum::<u64>();
        groups += page.groups.len();
        let records: Vec<_> = page.groups.into_iter().map(record).collect();
        list.page(&records)?;
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    list.finish(&[("balanced", Tree::Bool(unbalanced == 0))])?;
    match unbalanced {
        // Asked for by name, and misspelt, it would pass for balanced.
        0 if groups == 0 && !asked.is_empty() => {
            Err(Failure::not_found(format!("there is no group with {}", asked.join(" "))))
        }
        0 => Ok(()),
        1 => Err(Failure::error("the account of a group is not balanced")),
        many => Err(Failure::error(format!("the accounts of {many} groups are not balanced"))),
    }
}

fn record(audit: GroupAudit) -> Tree {
    reference::group_names(Map::new(), audit.group.unwrap_or_default())
        .with("offered", audit.offered)
        .with("settled", audit.settled)
        .with("settled_by_cause", audit.settled_by_cause)
        .with("waiting", audit.waiting)
        .with("delayed", audit.delayed)
        .with("in_flight", audit.in_flight)
        .with("held", audit.held)
        .with("parked", audit.parked)
        .with("gone", audit.gone)
        .with("gone_by_cause", audit.gone_by_cause)
        .with("counted_unsettled", audit.counted_unsettled)
        .with("balanced", audit.balanced)
        .done()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_account_names_each_cause() {
        let audit = GroupAudit {
            settled: 2,
            settled_by_cause: [("done".to_owned(), 1), ("discarded".to_owned(), 1)].into(),
            ..GroupAudit::default()
        };
        let json = serde_json::to_string(record(audit).at("settled_by_cause")).unwrap();
        assert_eq!(json, r#"{"discarded":1,"done":1}"#);
    }

    #[test]
    fn every_column_shows_a_value_there_is() {
        let record = record(GroupAudit { group: Some(Default::default()), ..Default::default() });
        for column in COLUMNS {
            assert_ne!(record.at(column.path()), &Tree::Null, "{}", column.path());
        }
    }
}
