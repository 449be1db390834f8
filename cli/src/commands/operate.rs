//! `swirl cancel`, `suspend`, `resume`, `retry`, `skip` and `rerun`

use anyhow::Context;
use serde_json::json;

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

impl Of {
    fn ask(&self, action: &str, body: String, terminal: &Terminal) -> anyhow::Result<u8> {
        self.server.run(async |client| {
            let id = client.instance(&self.id).await?;
            let path = ["instances", &id, action];
            let headers = [("content-type", "application/json")];
            let reason = self.reason.as_deref();
            let query: Vec<_> = reason
                .map(|reason| ("reason", reason))
                .into_iter()
                .collect();
            let answer = client
                .post(&path, &query, &headers, body.into_bytes(), Repeat::Never)
                .await?;
            answer.show(terminal, |_| format!("{action} is accepted\n"))
        })
    }
}
