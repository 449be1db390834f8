//! `swirl cancel`, `suspend`, `resume`, `retry`, `skip`, `rerun` and `remove`

use anyhow::Context;
use serde_json::json;
use swirl_presentation::timeline::shown;

use crate::arguments::json_argument;
use crate::client::{Repeat, Server};
use crate::terminal::Terminal;

/// Cancels an instance.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:\n  swirl cancel 2f6c0d9b")]
pub struct Cancel {
    #[command(flatten)]
    of: Of,
}

/// Suspends an instance: nothing in it continues until it is resumed.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:\n  swirl suspend 2f6c0d9b")]
pub struct Suspend {
    #[command(flatten)]
    of: Of,
}

/// Resumes a suspended instance.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:\n  swirl resume 2f6c0d9b")]
pub struct Resume {
    #[command(flatten)]
    of: Of,
}

/// Retries what failed in a faulted instance.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:\n  swirl retry 2f6c0d9b")]
pub struct Retry {
    #[command(flatten)]
    of: Of,
}

/// Continues a faulted instance after the action that failed.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Example:
  swirl skip 2f6c0d9b --result '{\"payment\": 7}'")]
pub struct Skip {
    #[command(flatten)]
    of: Of,

    /// The value to use as the action's result: JSON as it is, '@FILE', or '-' for stdin.
    #[arg(long, default_value = "null", value_name = "JSON")]
    result: String,
}

/// Continues a faulted instance at a state, with its data as it is.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:\n  swirl rerun 2f6c0d9b --state Charge")]
pub struct Rerun {
    #[command(flatten)]
    of: Of,

    /// The state's name.
    #[arg(long, value_name = "NAME")]
    state: String,
}

/// Removes an instance that has ended or failed, with its history.
///
/// Servers do so by themselves some time after the end. One that still runs is to be cancelled first.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:\n  swirl remove 2f6c0d9b --reason 'a test'")]
pub struct Remove {
    /// The instance's id or its beginning, or WORKFLOW/KEY.
    #[arg(value_name = "ID")]
    id: String,

    /// The reason, for the server's log: the instance's history is removed, too.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    #[command(flatten)]
    server: Server,
}

#[derive(Debug, clap::Args)]
struct Of {
    /// The instance's id or its beginning, or WORKFLOW/KEY.
    #[arg(value_name = "ID")]
    id: String,

    /// The reason, for the instance's history.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    #[command(flatten)]
    server: Server,
}

pub fn cancel(args: &Cancel, terminal: &Terminal) -> anyhow::Result<u8> {
    args.of.ask("cancel", String::new(), terminal)
}

pub fn suspend(args: &Suspend, terminal: &Terminal) -> anyhow::Result<u8> {
    args.of.ask("suspend", String::new(), terminal)
}

pub fn resume(args: &Resume, terminal: &Terminal) -> anyhow::Result<u8> {
    args.of.ask("resume", String::new(), terminal)
}

pub fn retry(args: &Retry, terminal: &Terminal) -> anyhow::Result<u8> {
    args.of.ask("retry", String::new(), terminal)
}

pub fn skip(args: &Skip, terminal: &Terminal) -> anyhow::Result<u8> {
    let result = json_argument(&args.result).context("--result")?;
    args.of.ask("skip", result.to_string(), terminal)
}

pub fn rerun(args: &Rerun, terminal: &Terminal) -> anyhow::Result<u8> {
    let body = json!({"state": args.state}).to_string();
    args.of.ask("rerun", body, terminal)
}

pub fn remove(args: &Remove, terminal: &Terminal) -> anyhow::Result<u8> {
    args.server.run(async |client| {
        let id = client.instance(&args.id).await?;
        let query = reason(args.reason.as_deref());
        let answer = client.delete(&["instances", &id], &query).await?;
        answer.show(terminal, |body| {
            let text = |name: &str| shown(&body[name]);
            let (workflow, version) = (text("workflow"), text("version"));
            let (id, status) = (text("id"), text("status"));
            format!("{id} of {workflow}:{version}, which was {status}, is removed\n")
        })
    })
}

fn reason(given: Option<&str>) -> Vec<(&str, &str)> {
    given.map(|reason| ("reason", reason)).into_iter().collect()
}

impl Of {
    fn ask(&self, action: &str, body: String, terminal: &Terminal) -> anyhow::Result<u8> {
        self.server.run(async |client| {
            let id = client.instance(&self.id).await?;
            let path = ["instances", &id, action];
            let headers = [("content-type", "application/json")];
            let query = reason(self.reason.as_deref());
            let answer = client
                .post(&path, &query, &headers, body.into_bytes(), Repeat::Never)
                .await?;
            answer.show(terminal, |_| format!("{action} is accepted\n"))
        })
    }
}
