//! `weirctl execution`: what became of executions.

use crate::connection::Connection;
use crate::exit::Failure;
use crate::output::{Column, Map, Output, Tree};
use crate::verbs::PAGE_SIZE;
use crate::verbs::execution_view::{judgement, line, record, story};
use clap::builder::NonEmptyStringValueParser;
use weir_proto::v1::{
    Execution, ExecutionState, ExplainExecutionRequest, GetExecutionRequest, ListExecutionsRequest, Resolution,
    ResolveExecutionRequest,
};

/// The operator's name where nobody says one.
const NOBODY: &str = "weirctl";

const COLUMNS: &[Column] = &[
    Column::new("EXECUTION", "execution_id"),
    Column::new("STATE", "state"),
    Column::new("SINCE", "since_unix_ms"),
    Column::new("TASK", "task_id"),
    Column::new("EFFECT", "effect"),
    Column::new("BEGINS", "begins"),
    Column::new("DELIVERIES", "deliveries_total"),
    Column::new("DUPLICATES", "duplicates"),
    Column::wide("REASON", "reason"),
    Column::wide("ARTIFACT", "artifact_ref"),
    Column::wide("CONTRADICTION", "contradiction"),
    Column::wide("FIRST SEEN", "first_seen_unix_ms"),
];

/// What a story is told in.
const STORY: &[Column] = &[Column::new("AT", "at_unix_ms"), Column::words("WHAT", "text")];

/// The verbs of executions.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Show the ledger's row of one execution
    Get(NameArgs),
    /// List executions of a tenant
    Ls(LsArgs),
    /// Tell the whole story of one execution, and judge it
    Explain(NameArgs),
    /// End an UNKNOWN execution by an operator's word; a dry run without --yes
    Resolve(ResolveArgs),
}

/// Which execution.
#[derive(Debug, clap::Args)]
pub(crate) struct NameArgs {
    /// Owner
    #[arg(long, value_name = "TENANT")]
    tenant: String,
    /// Its id
    #[arg(value_name = "EXECUTION", value_parser = NonEmptyStringValueParser::new())]
    execution_id: String,
}

/// Which executions.
#[derive(Debug, clap::Args)]
pub(crate) struct LsArgs {
    /// Owner
    #[arg(long, value_name = "TENANT")]
    tenant: String,
    /// Only in this state
    #[arg(long, value_enum, ignore_case = true, value_name = "STATE")]
    state: Option<StateArg>,
    /// Only of this task
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// Only those whose state is not definite
    #[arg(long)]
    unfinished: bool,
}

/// A decision.
#[derive(Debug, clap::Args)]
pub(crate) struct ResolveArgs {
    #[command(flatten)]
    name: NameArgs,
    /// The decision
    #[arg(long, value_enum, ignore_case = true, value_name = "STATE")]
    state: ResolutionArg,
    /// What it rests on
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    evidence: String,
    /// Who decides; the user's name if left out
    #[arg(long, value_name = "NAME", env = "USER", default_value = NOBODY)]
    by: String,
    /// Where the product lies, for COMPLETED
    #[arg(long, value_name = "REF")]
    artifact_ref: Option<String>,
    /// Do it
    #[arg(long)]
    yes: bool,
}

/// A state of the ledger.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
#[value(rename_all = "SCREAMING_SNAKE_CASE")]
enum StateArg {
    Requested,
    Begun,
    Completed,
    Failed,
    Canceled,
    Rejected,
    Unknown,
    Expired,
}

impl From<StateArg> for ExecutionState {
    fn from(state: StateArg) -> Self {
        match state {
            StateArg::Requested => Self::Requested,
            StateArg::Begun => Self::Begun,
            StateArg::Completed => Self::Completed,
            StateArg::Failed => Self::Failed,
            StateArg::Canceled => Self::Canceled,
            StateArg::Rejected => Self::Rejected,
            StateArg::Unknown => Self::Unknown,
            StateArg::Expired => Self::Expired,
        }
    }
}

/// How an operator ends an execution.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
#[value(rename_all = "SCREAMING_SNAKE_CASE")]
enum ResolutionArg {
    /// It was done
    Completed,
    /// It was tried and did not succeed
    Failed,
    /// It was called off
    Canceled,
    /// It was refused
    Rejected,
    /// It was not executed and may be attempted anew
    NotExecuted,
}

impl From<ResolutionArg> for Resolution {
    fn from(resolution: ResolutionArg) -> Self {
        match resolution {
            ResolutionArg::Completed => Self::Completed,
            ResolutionArg::Failed => Self::Failed,
            ResolutionArg::Canceled => Self::Canceled,
            ResolutionArg::Rejected => Self::Rejected,
            ResolutionArg::NotExecuted => Self::NotExecuted,
        }
    }
}

/// Does what was asked about executions.
///
/// # Errors
/// What the broker refused.
pub(crate) async fn run(verb: Verb, connection: &Connection, output: &mut Output) -> Result<(), Failure> {
    match verb {
        Verb::Get(name) => Ok(output.one(&record(get(&name, connection).await?))?),
        Verb::Ls(args) => ls(args, connection, output).await,
        Verb::Explain(name) => explain(name, connection, output).await,
        Verb::Resolve(args) => resolve(args, connection, output).await,
    }
}

async fn get(name: &NameArgs, connection: &Connection) -> Result<Execution, Failure> {
    let request = GetExecutionRequest { tenant: name.tenant.clone(), execution_id: name.execution_id.clone() };
    let answer = connection.call(connection.executions().get_execution(request)).await?;
    Ok(answer.execution.unwrap_or_default())
}

async fn ls(args: LsArgs, connection: &Connection, output: &mut Output) -> Result<(), Failure> {
    let state = args.state.map_or(ExecutionState::Unspecified, Into::into);
    let mut request = ListExecutionsRequest {
        tenant: args.tenant,
        state: state.into(),
        task_id: args.task.unwrap_or_default(),
        unfinished: args.unfinished,
        page_size: PAGE_SIZE,
        page_token: String::new(),
    };
    let mut list = output.list("executions", COLUMNS);
    loop {
        let page = connection.call(connection.executions().list_executions(request.clone())).await?;
        let records: Vec<_> = page.executions.into_iter().map(record).collect();
        list.page(&records)?;
        if page.next_page_token.is_empty() {
            return Ok(list.finish(&[])?);
        }
        request.page_token = page.next_page_token;
    }
}

async fn explain(name: NameArgs, connection: &Connection, output: &mut Output) -> Result<(), Failure> {
    let request = ExplainExecutionRequest { tenant: name.tenant, execution_id: name.execution_id };
    let answer = connection.call(connection.executions().explain_execution(request)).await?;
    if !output.is_table() {
        return Ok(output.one(&story(answer))?);
    }
    output.one(&judgement(&answer))?;
    let lines: Vec<_> = answer.story.into_iter().map(line).collect();
    let mut list = output.list("story", STORY);
    list.page(&lines)?;
    Ok(list.finish(&[])?)
}

/// A dry run shows the execution as it is and what would be decided; it changes nothing and asks the broker for nothing
/// that could.
async fn resolve(args: ResolveArgs, connection: &Connection, output: &mut Output) -> Result<(), Failure> {
    let resolution = Resolution::from(args.state);
    let decision = Map::new()
        .with("resolution", resolution.as_str_name().trim_start_matches("RESOLUTION_"))
        .with("evidence", args.evidence.as_str())
        .with("by", args.by.as_str());
    if !args.yes {
        let before = get(&args.name, connection).await?;
        let state = before.state();
        output.one(&decided(true, decision, before))?;
        if state != ExecutionState::Unknown {
            let name = state.as_str_name().trim_start_matches("EXECUTION_STATE_");
            return Err(Failure::error(format!("dry run: it is {name}; only what is UNKNOWN can be resolved")));
        }
        eprintln!("dry run: nothing was changed; repeat with --yes to decide");
        return Ok(());
    }
    let request = ResolveExecutionRequest {
        tenant: args.name.tenant,
        execution_id: args.name.execution_id,
        resolution: resolution.into(),
        evidence: args.evidence,
        by: args.by,
        artifact_ref: args.artifact_ref.unwrap_or_default(),
    };
    let answer = connection.call(connection.executions().resolve_execution(request)).await?;
    Ok(output.one(&decided(false, decision, answer.execution.unwrap_or_default()))?)
}

fn decided(dry_run: bool, decision: Map, execution: Execution) -> Tree {
    Map::new().with("dry_run", dry_run).with("decision", decision).with("execution", record(execution)).done()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cli::Cli;
    use clap::Parser as _;

    #[test]
    fn states_go_by_the_names_that_are_shown() {
        for state in ["UNKNOWN", "unknown", "Completed"] {
            Cli::try_parse_from(["weirctl", "execution", "ls", "--tenant", "t", "--state", state]).unwrap();
        }
        let words = ["weirctl", "execution", "resolve", "x", "--tenant", "t", "--evidence", "e", "--state"];
        let with = |state| Cli::try_parse_from(words.into_iter().chain([state]));
        assert!(with("NOT_EXECUTED").is_ok());
        assert!(with("UNKNOWN").is_err());
    }

    #[test]
    fn a_decision_needs_evidence() {
        let words = ["weirctl", "execution", "resolve", "x", "--tenant", "t", "--state", "FAILED"];
        assert!(Cli::try_parse_from(words).is_err());
        assert!(Cli::try_parse_from(words.into_iter().chain(["--evidence", ""])).is_err());
    }

    #[test]
    fn every_column_shows_a_value_there_is() {
        let execution = Execution {
            state: ExecutionState::Unknown.into(),
            reason: "lease_lost".to_owned(),
            artifact_ref: "ref".to_owned(),
            effect: 3,
            ..Execution::default()
        };
        let record = record(execution);
        for column in COLUMNS {
            assert_ne!(record.at(column.path()), &Tree::Null, "{}", column.path());
        }
    }
}
