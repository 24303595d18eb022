//! `weirctl group`: makes groups and looks at them.

use crate::connection::Connection;
use crate::exit::Failure;
use crate::names::{Scope, Selector};
use crate::output::Output;
use crate::verbs::PAGE_SIZE;
use crate::verbs::group_view::{GROUPS, MEMBERS, PARKED, member, parked_message, record};
use clap::builder::NonEmptyStringValueParser;
use std::str::FromStr;
use weir_proto::v1::{
    CreateGroupRequest, GetGroupRequest, GroupRef, GroupSettings, GroupStart, ListGroupsRequest, ListMembersRequest,
    ListParkedRequest, StartFrom,
};

/// The verbs of groups.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Make a group; again with the same settings is no fault
    Create(CreateArgs),
    /// List groups
    Ls(LsArgs),
    /// Show one group
    Get(NameArgs),
    /// List the members of a group
    Members(NameArgs),
    /// List the messages a group has set aside
    Parked(NameArgs),
}

/// Which group.
#[derive(Debug, clap::Args)]
pub(crate) struct NameArgs {
    /// The channel policy it reads
    #[arg(long, value_name = "POLICY")]
    policy: String,
    /// Its scope: a tenant, or * for an operator's group
    #[arg(long, value_name = "TENANT|*", default_value = "*")]
    scope: Scope,
    /// Its name
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    name: String,
}

/// Which groups.
#[derive(Debug, clap::Args)]
pub(crate) struct LsArgs {
    /// Only groups of this policy
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,
    /// Only groups of this scope
    #[arg(long, value_name = "TENANT|*")]
    scope: Option<Scope>,
}

/// What a group is to be.
#[derive(Debug, clap::Args)]
pub(crate) struct CreateArgs {
    /// The channel policy to read
    #[arg(long, value_name = "POLICY")]
    policy: String,
    /// A tenant, or * for an operator's group; the selector's own scope if left out
    #[arg(long, value_name = "TENANT|*")]
    scope: Option<Scope>,
    /// The channels to read: `tenant:agent`, `tenant:*` or `*:*`; all of the scope if left out
    #[arg(long, value_name = "SELECTOR")]
    selector: Option<Selector>,
    /// Where to start: earliest, latest, or an offset of its one channel
    #[arg(long, value_name = "WHERE", default_value = "earliest")]
    start: StartArg,
    /// Whether members act on requests; false for projections, audits and readers
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    executes: bool,
    /// Settle requests whose execution is definite without handing them out
    #[arg(long)]
    skip_if_final: bool,
    /// Whether the group's depth slows publishers down
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pressure: bool,
    /// Attempts before a message is set aside; 0 means 5
    #[arg(long, value_name = "N", default_value_t = 0)]
    max_attempts: u32,
    /// Most messages in flight for the whole group; 0 means no bound
    #[arg(long, value_name = "N", default_value_t = 0)]
    window: u32,
    /// Its name
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    name: String,
}

/// Where a group starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StartArg(StartFrom, u64);

impl FromStr for StartArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "earliest" => Ok(Self(StartFrom::Earliest, 0)),
            "latest" => Ok(Self(StartFrom::Latest, 0)),
            offset => offset
                .parse()
                .map(|offset| Self(StartFrom::Offset, offset))
                .map_err(|_| "expected earliest, latest, or an offset".to_owned()),
        }
    }
}

/// Does what was asked about groups.
///
/// # Errors
/// What the broker refused.
pub(crate) async fn run(verb: Verb, connection: &Connection, output: &mut Output) -> Result<(), Failure> {
    match verb {
        Verb::Create(args) => create(args, connection, output).await,
        Verb::Ls(args) => ls(args, connection, output).await,
        Verb::Get(args) => {
            let request = GetGroupRequest { group: Some(args.group()) };
            let answer = connection.call(connection.groups().get_group(request)).await?;
            Ok(output.one(&record(answer.group.unwrap_or_default()))?)
        }
        Verb::Members(args) => members(args, connection, output).await,
        Verb::Parked(args) => parked(args, connection, output).await,
    }
}

impl NameArgs {
    fn group(&self) -> GroupRef {
        GroupRef { scope: self.scope.0.clone(), policy: self.policy.clone(), name: self.name.clone() }
    }
}

async fn create(args: CreateArgs, connection: &Connection, output: &mut Output) -> Result<(), Failure> {
    let scope = args.scope.or_else(|| args.selector.as_ref().map(Selector::scope)).unwrap_or_else(Scope::operator);
    let StartArg(from, offset) = args.start;
    let request = CreateGroupRequest {
        group: Some(GroupRef { scope: scope.0, policy: args.policy, name: args.name }),
        settings: Some(GroupSettings {
            selector: args.selector.map(|selector| selector.to_string()).unwrap_or_default(),
            start: Some(GroupStart { from: from.into(), offset }),
            executes: Some(args.executes),
            skip_if_final: args.skip_if_final,
            pressure: Some(args.pressure),
            max_attempts: args.max_attempts,
            window: args.window,
        }),
    };
    let answer = connection.call(connection.groups().create_group(request)).await?;
    if !answer.created {
        eprintln!("it was there before, with the same settings");
    }
    Ok(output.one(&record(answer.group.unwrap_or_default()))?)
}

async fn ls(args: LsArgs, connection: &Connection, output: &mut Output) -> Result<(), Failure> {
    let mut request = ListGroupsRequest {
        scope: args.scope.map(|scope| scope.0).unwrap_or_default(),
        policy: args.policy.unwrap_or_default(),
        page_size: PAGE_SIZE,
        page_token: String::new(),
    };
    let mut list = output.list("groups", GROUPS);
    loop {
        let page = connection.call(connection.groups().list_groups(request.clone())).await?;
        let records: Vec<_> = page.groups.into_iter().map(record).collect();
        list.page(&records)?;
        if page.next_page_token.is_empty() {
            return Ok(list.finish(&[])?);
        }
        request.page_token = page.next_page_token;
    }
}

async fn members(args: NameArgs, connection: &Connection, output: &mut Output) -> Result<(), Failure> {
    let mut request = ListMembersRequest { group: Some(args.group()), page_size: PAGE_SIZE, page_token: String::new() };
    let mut list = output.list("members", MEMBERS);
    loop {
        let page = connection.call(connection.groups().list_members(request.clone())).await?;
        let records: Vec<_> = page.members.into_iter().map(member).collect();
        list.page(&records)?;
        if page.next_page_token.is_empty() {
            return Ok(list.finish(&[])?);
        }
        request.page_token = page.next_page_token;
    }
}

async fn parked(args: NameArgs, connection: &Connection, output: &mut Output) -> Result<(), Failure> {
    let mut request = ListParkedRequest { group: Some(args.group()), page_size: PAGE_SIZE, page_token: String::new() };
    let mut list = output.list("parked", PARKED);
    loop {
        let page = connection.call(connection.groups().list_parked(request.clone())).await?;
        let records: Vec<_> = page.parked.into_iter().map(parked_message).collect();
        list.page(&records)?;
        if page.next_page_token.is_empty() {
            return Ok(list.finish(&[])?);
        }
        request.page_token = page.next_page_token;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_a_word_or_an_offset() {
        assert_eq!("latest".parse(), Ok(StartArg(StartFrom::Latest, 0)));
        assert_eq!("12".parse(), Ok(StartArg(StartFrom::Offset, 12)));
        assert!("-1".parse::<StartArg>().is_err());
        assert!("first".parse::<StartArg>().is_err());
    }
}
