//! `swirl cancel`, `suspend`, `resume`, `retry`, `skip`, `rerun`, `move` and `remove`

use anyhow::Context;
use serde_json::{Value, json};
use swirl_presentation::timeline::shown;

use crate::arguments::json_argument;
use crate::client::{Repeat, Server};
use crate::terminal::Terminal;

/// Cancels an instance.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:\n  swirl cancel 2f6c0d9b")]
pub struct Cancel {
    #[command(flatten)]
    target: InstanceArgs,
}

/// Suspends an instance: nothing in it continues until it is resumed.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:\n  swirl suspend 2f6c0d9b")]
pub struct Suspend {
    #[command(flatten)]
    target: InstanceArgs,
}

/// Resumes a suspended instance.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:\n  swirl resume 2f6c0d9b")]
pub struct Resume {
    #[command(flatten)]
    target: InstanceArgs,
}

/// Retries what failed in a faulted instance.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl retry 2f6c0d9b
  swirl retry 2f6c0d9b --data '{\"amount\": 7}' --to-version 2.0
  swirl retry 2f6c0d9b --patch '.amount = 7' --dry-run")]
pub struct Retry {
    #[command(flatten)]
    target: InstanceArgs,

    #[command(flatten)]
    with: With,
}

/// Continues a faulted instance after the action that failed.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Example:
  swirl skip 2f6c0d9b --result '{\"payment\": 7}'")]
pub struct Skip {
    #[command(flatten)]
    target: InstanceArgs,

    /// The value to use as the action's result: JSON as it is, '@FILE', or '-' for stdin.
    #[arg(long, default_value = "null", value_name = "JSON")]
    result: String,
}

/// Continues a faulted instance at a state, with its current data or with data that you provide.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl rerun 2f6c0d9b --state Charge
  swirl rerun 2f6c0d9b --state Charge --data @order.json --to-version 2.0
  swirl rerun 2f6c0d9b --state Charge --patch 'del(.coupon)' --dry-run")]
pub struct Rerun {
    #[command(flatten)]
    target: InstanceArgs,

    #[command(flatten)]
    with: With,

    /// The state's name.
    #[arg(long, value_name = "NAME")]
    state: String,
}

/// Moves an instance to another version of its definition.
///
/// The instance keeps its position: completed work isn't repeated, and everything that follows is up to the other
/// version. If the version lacks a part that the instance is using, nothing is changed, and the reason is shown. 'swirl
/// batch create migrate' moves many instances. (Documents are converted by 'swirl migrate'.)
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl move 2f6c0d9b --to-version 2.0 --dry-run
  swirl move 2f6c0d9b --to-version 2.0 --reason 'the address was wrong'")]
pub struct Move {
    #[command(flatten)]
    target: InstanceArgs,

    /// The version, which must have been deployed.
    #[arg(long, value_name = "VERSION")]
    to_version: String,

    /// Say whether the instance fits the version, and if not, why. Change nothing. Exit code 1 if it doesn't.
    #[arg(long)]
    dry_run: bool,
}

/// Removes an instance that has ended or failed, with its history.
///
/// Servers remove instances by themselves some time after their end. Cancel a running instance first.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example:\n  swirl remove 2f6c0d9b --reason 'a test'")]
pub struct Remove {
    /// The instance's id or its beginning, or WORKFLOW/KEY.
    #[arg(value_name = "ID")]
    id: String,

    /// The reason, for the audit log, because the instance's history is removed too.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    #[command(flatten)]
    server: Server,
}

/// The data and the version with which a faulted instance continues.
#[derive(Debug, clap::Args)]
struct With {
    /// The state data to continue with, instead of the current data: JSON as it is, '@FILE', or '-' for stdin.
    #[arg(long, value_name = "JSON")]
    data: Option<String>,

    /// Of an instance of DSL 1.0, with --data: the '$context' to continue with.
    #[arg(long, value_name = "JSON", requires = "data")]
    context: Option<String>,

    /// A jq expression that changes the current state data, such as '.amount = 7'.
    #[arg(long, value_name = "JQ", conflicts_with = "data")]
    patch: Option<String>,

    /// Say whether this is possible, and what would change in the data. Change nothing. Exit code 1 if it isn't
    /// possible.
    #[arg(long)]
    dry_run: bool,

    /// The version of the definition to continue with; see 'swirl move'.
    #[arg(long, value_name = "VERSION")]
    to_version: Option<String>,
}

impl With {
    fn add(&self, body: &mut Value) -> anyhow::Result<()> {
        if let Some(text) = &self.data {
            body["data"] = Value::from(&json_argument(text).context("--data")?);
        }
        if let Some(text) = &self.context {
            body["context"] = Value::from(&json_argument(text).context("--context")?);
        }
        if let Some(patch) = &self.patch {
            body["patch"] = json!(patch);
        }
        if let Some(version) = &self.to_version {
            body["version"] = json!(version);
        }
        if self.dry_run {
            body["dryRun"] = json!(true);
        }
        Ok(())
    }

    /// The command that has the effect that was wanted, if the data doesn't reach what failed.
    fn instead(&self, id: &str, state: &str) -> String {
        let mut command = format!("swirl rerun {} --state {}", quoted(id), quoted(state));
        for (option, value) in [
            ("--data", &self.data),
            ("--context", &self.context),
            ("--patch", &self.patch),
            ("--to-version", &self.to_version),
        ] {
            if let Some(value) = value {
                command.push_str(&format!(" {option} {}", quoted(value)));
            }
        }
        command
    }
}

/// An argument as a shell reads it.
fn quoted(argument: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@".contains(c);
    match !argument.is_empty() && argument.chars().all(is_plain) {
        true => argument.to_owned(),
        false => format!("'{}'", argument.replace('\'', "'\\''")),
    }
}

#[derive(Debug, clap::Args)]
struct InstanceArgs {
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
    args.target.ask("cancel", String::new(), terminal)
}

pub fn suspend(args: &Suspend, terminal: &Terminal) -> anyhow::Result<u8> {
    args.target.ask("suspend", String::new(), terminal)
}

pub fn resume(args: &Resume, terminal: &Terminal) -> anyhow::Result<u8> {
    args.target.ask("resume", String::new(), terminal)
}

pub fn retry(args: &Retry, terminal: &Terminal) -> anyhow::Result<u8> {
    let mut body = json!({});
    args.with.add(&mut body)?;
    args.target
        .ask_with("retry", body.to_string(), Some(&args.with), terminal)
}

pub fn skip(args: &Skip, terminal: &Terminal) -> anyhow::Result<u8> {
    let result = json_argument(&args.result).context("--result")?;
    args.target.ask("skip", result.to_string(), terminal)
}

pub fn rerun(args: &Rerun, terminal: &Terminal) -> anyhow::Result<u8> {
    let mut body = json!({"state": args.state});
    args.with.add(&mut body)?;
    args.target
        .ask_with("rerun", body.to_string(), Some(&args.with), terminal)
}

pub fn move_to(args: &Move, terminal: &Terminal) -> anyhow::Result<u8> {
    let body = json!({"version": args.to_version, "dryRun": args.dry_run}).to_string();
    args.target.server.run(async |client| {
        let id = client.instance(&args.target.id).await?;
        let path = ["instances", &id, "migrate"];
        let headers = [("content-type", "application/json")];
        let query = reason(args.target.reason.as_deref());
        let answer = client
            .post(&path, &query, &headers, body.into_bytes(), Repeat::Never)
            .await?;
        let is_misfit = !answer.refused() && answer.body["fits"] == false;
        let code = answer.show(terminal, moved)?;
        Ok(if is_misfit { 1 } else { code })
    })
}

fn moved(body: &Value) -> String {
    let text = |name: &str| shown(&body[name]);
    let (id, workflow) = (text("id"), text("workflow"));
    let (from, to) = (text("from"), text("to"));
    match (body["fits"] == true, body["dryRun"] == true) {
        (false, _) => format!(
            "{id} can't be moved to {workflow}:{to}: {}\n",
            text("reason")
        ),
        (true, true) => format!("{id} can be moved from {workflow}:{from} to {workflow}:{to}\n"),
        (true, false) => format!("{id} is moved from {workflow}:{from} to {workflow}:{to}\n"),
    }
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

impl InstanceArgs {
    fn ask(&self, action: &str, body: String, terminal: &Terminal) -> anyhow::Result<u8> {
        self.ask_with(action, body, None, terminal)
    }

    fn ask_with(
        &self,
        action: &str,
        body: String,
        with: Option<&With>,
        terminal: &Terminal,
    ) -> anyhow::Result<u8> {
        self.server.run(async |client| {
            let id = client.instance(&self.id).await?;
            let path = ["instances", &id, action];
            let headers = [("content-type", "application/json")];
            let query = reason(self.reason.as_deref());
            let answer = client
                .post(&path, &query, &headers, body.into_bytes(), Repeat::Never)
                .await?;
            let is_misfit = !answer.refused() && answer.body["fits"] == false;
            let code = answer.show(terminal, |body| match body["dryRun"] == true {
                true => previewed(body),
                false => format!("{action} is accepted\n"),
            })?;
            if let Some(with) = with
                && answer.refused()
                && let Some(state) = answer.body["rerunState"].as_str()
            {
                let command = with.instead(&self.id, state);
                terminal.message(&format!("  = hint: this works: {command}"));
            }
            Ok(if is_misfit { 1 } else { code })
        })
    }
}

/// The answer to a dry run.
fn previewed(body: &Value) -> String {
    let (id, operation) = (shown(&body["id"]), shown(&body["operation"]));
    if body["fits"] != true {
        let reason = shown(&body["reason"]);
        return format!("{id}: {operation} is not possible: {reason}\n");
    }
    let changes = changed(&body["data"]);
    format!("{id}: {operation} is possible; nothing has been done\n{changes}")
}

/// The changes in the data of an instance, one on a line.
pub fn changed(data: &Value) -> String {
    let mut text = String::new();
    let changes = data["changes"].as_array();
    for change in changes.into_iter().flatten() {
        let path = match change["path"].as_str() {
            Some("") | None => "(all)",
            Some(path) => path,
        };
        let (before, after) = (change["before"].as_str(), change["after"].as_str());
        let line = match (before, after) {
            (None, after) => format!("  + {path}: {}\n", after.unwrap_or_default()),
            (Some(before), None) => format!("  - {path}: {before}\n"),
            (Some(before), Some(after)) => format!("  ~ {path}: {before} -> {after}\n"),
        };
        text.push_str(&line);
    }
    if changes.is_some_and(Vec::is_empty) {
        text.push_str("  the data stays as it is\n");
    }
    if data["complete"] == false {
        text.push_str("  (not all changes are shown)\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_is_a_command_that_a_shell_reads_back() {
        let with = With {
            data: Some("{\"name\": \"it's\"}".to_owned()),
            context: None,
            patch: None,
            dry_run: false,
            to_version: Some("2.0".to_owned()),
        };
        assert_eq!(
            with.instead("2f6c", "Pay and check"),
            r#"swirl rerun 2f6c --state 'Pay and check' --data '{"name": "it'\''s"}' --to-version 2.0"#
        );
    }

    #[test]
    fn a_preview_lists_the_changes() {
        let body = json!({"id": "a", "operation": "retry", "dryRun": true, "fits": true, "data": {"complete": true,
            "changes": [{"path": "/amount", "before": "0", "after": "7"}, {"path": "/coupon", "before": "1"},
                {"path": "/new", "after": "{}"}]}});
        insta::assert_snapshot!(previewed(&body), @r"
        a: retry is possible; nothing has been done
          ~ /amount: 0 -> 7
          - /coupon: 1
          + /new: {}
        ");
    }
}
