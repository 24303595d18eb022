//! `weirctl sub`: a member of a group that prints what it is handed.
//!
//! Messages are printed, then settled; a crash between the two lets them come again. The session lives on a thread of its
//! own ([`heartbeat`]), so a reader that is slow to take our lines costs no lease.

mod consumer;
mod heartbeat;
mod idle;
mod leases;
mod line;
mod stop;

use crate::cli::Global;
use crate::connection::Connection;
use crate::duration::{DurationArg, millis};
use crate::exit::Failure;
use crate::names::{Scope, Selector};
use crate::output::{Output, escape};
use consumer::{Consumer, Ending};
use weir_proto::v1::{
    CreateGroupRequest, GetGroupRequest, Group, GroupRef, GroupSettings, GroupStart, SettleOutcome, StartFrom,
};

/// What `sub` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The channel policy to read
    #[arg(long, value_name = "POLICY")]
    policy: String,
    /// The group to be a member of
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    group: String,
    /// The group's scope: a tenant, or * for an operator's group; the selector's own if left out
    #[arg(long, value_name = "TENANT|*")]
    scope: Option<Scope>,
    /// The channels of a group made here: `tenant:agent`, `tenant:*` or `*:*`; all of its scope if left out
    #[arg(long, value_name = "SELECTOR")]
    selector: Option<Selector>,
    /// The member's name; made of the process id if left out
    #[arg(long, value_name = "NAME")]
    member: Option<String>,
    /// What to answer for each message once it is printed; none keeps it until the end
    #[arg(long, value_enum, value_name = "HOW", default_value = "done")]
    settle: SettleArg,
    /// With --settle retry: how long each message waits before it comes again
    #[arg(long, value_name = "TIME", default_value = "0s")]
    retry_delay: DurationArg,
    /// End after so many messages
    #[arg(long, value_name = "N")]
    max: Option<u64>,
    /// End once nothing of the group was ready, delayed or in flight for so long
    #[arg(long, value_name = "TIME")]
    idle_exit: Option<DurationArg>,
    /// How long this member may be silent before it loses what it holds, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 30_000, value_parser = clap::value_parser!(u64).range(1_000..=3_600_000))]
    session_timeout_ms: u64,
    /// Do not make the group if it is not there
    #[arg(long)]
    no_create: bool,
    /// Let the members of a group made here act on requests
    #[arg(long)]
    executes: bool,
    /// Write a second JSON line for each message when it is settled
    #[arg(long, short)]
    verbose: bool,
}

/// How messages are settled once they are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum SettleArg {
    /// Dealt with
    Done,
    /// Failed; comes again
    Retry,
    /// Not at all: kept until the end, and then given back
    None,
}

/// Consumes until it is told to stop, or has had enough.
///
/// # Errors
/// What the broker refused.
pub(crate) async fn run(
    args: Args,
    global: &Global,
    connection: &Connection,
    output: &mut Output,
) -> Result<(), Failure> {
    let scope = args.scope.or_else(|| args.selector.as_ref().map(Selector::scope)).unwrap_or_else(Scope::operator);
    let group = GroupRef { scope: scope.0, policy: args.policy, name: args.group };
    let settings = GroupSettings {
        selector: args.selector.as_ref().map(ToString::to_string).unwrap_or_default(),
        start: Some(GroupStart { from: StartFrom::Earliest.into(), offset: 0 }),
        executes: Some(args.executes),
        ..GroupSettings::default()
    };
    let asked = settings.selector.clone();
    let found = if args.no_create {
        get(connection, &group).await?
    } else {
        get_or_create(connection, &group, settings).await?
    };
    let real = found.settings.map(|settings| settings.selector).unwrap_or_default();
    if !asked.is_empty() && asked != real {
        let note = format!("group {} is there and reads `{real}`, not `{asked}`", group.name);
        eprintln!("{}", escape::controls(&note));
    }

    let stopped = stop::on_signals()?;
    let consumer = Consumer {
        connection: connection.clone(),
        group,
        member: args.member.unwrap_or_else(|| format!("weirctl-{}", std::process::id())),
        session_timeout_ms: args.session_timeout_ms,
        settle: match args.settle {
            SettleArg::Done => Some(SettleOutcome::Done),
            SettleArg::Retry => Some(SettleOutcome::Retry),
            SettleArg::None => None,
        },
        retry_delay_ms: millis(args.retry_delay.0),
        ending: Ending { max: args.max, idle: args.idle_exit.map(|time| time.0) },
        verbose: args.verbose,
    };
    consumer.run(global, stopped, output).await
}

async fn get(connection: &Connection, group: &GroupRef) -> Result<Group, crate::refused::Refused> {
    let request = GetGroupRequest { group: Some(group.clone()) };
    let answer = connection.call(connection.groups().get_group(request)).await?;
    Ok(answer.group.unwrap_or_default())
}

/// The group as it is, whatever its settings; made if it is not there.
async fn get_or_create(connection: &Connection, group: &GroupRef, settings: GroupSettings) -> Result<Group, Failure> {
    match get(connection, group).await {
        Err(refused) if refused.grpc == tonic::Code::NotFound => {}
        found => return Ok(found?),
    }
    let request = CreateGroupRequest { group: Some(group.clone()), settings: Some(settings) };
    match connection.call(connection.groups().create_group(request)).await {
        Ok(answer) => Ok(answer.group.unwrap_or_default()),
        // Someone made it in between, with settings of their own.
        Err(refused) if refused.grpc == tonic::Code::AlreadyExists => Ok(get(connection, group).await?),
        Err(refused) => Err(refused.into()),
    }
}
