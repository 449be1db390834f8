//! `swirl cancel`, `suspend`, `resume`, `retry`, `skip`, `rerun`, `move` and `remove`

use anyhow::Context;
use swirl_api::actions::{
    self, Accepted, ActionPreview, CANCEL, Continuation, Continue, Continued, DataPreview, Json,
    MIGRATE, Migrated, Plain, REMOVE, RERUN, RESUME, RETRY, RemovedInstance, SKIP, SUSPEND,
};
use swirl_api::instance::InstanceId;
use swirl_presentation::timeline::clean;

use crate::arguments::json_argument;
use crate::client::{Client, Server};
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

    /// The state's name; in DSL 1.0 the name of a task of the main list. One inside of another task cannot be rerun
    /// alone: rerun the task of the main list that it is part of.
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
    fn body(&self, state: Option<&str>) -> anyhow::Result<Continuation> {
        let json = |text: &Option<String>, option| {
            let json = text
                .as_ref()
                .map(|text| json_argument(text).context(option));
            json.transpose().map(|json| json.map(Json))
        };
        Ok(Continuation {
            state: state.map(str::to_owned),
            version: self.to_version.clone(),
            data: json(&self.data, "--data")?,
            context: json(&self.context, "--context")?,
            patch: self.patch.clone(),
            dry_run: self.dry_run,
        })
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
    args.target.ask(&CANCEL, terminal)
}

pub fn suspend(args: &Suspend, terminal: &Terminal) -> anyhow::Result<u8> {
    args.target.ask(&SUSPEND, terminal)
}

pub fn resume(args: &Resume, terminal: &Terminal) -> anyhow::Result<u8> {
    args.target.ask(&RESUME, terminal)
}

pub fn retry(args: &Retry, terminal: &Terminal) -> anyhow::Result<u8> {
    args.target
        .continue_with(&RETRY, None, &args.with, terminal)
}

pub fn skip(args: &Skip, terminal: &Terminal) -> anyhow::Result<u8> {
    let result = Json(json_argument(&args.result).context("--result")?);
    args.target.server.run(async |client| {
        let call = SKIP.at(&args.target.named(&client).await?).body(&result);
        let answer = client.ask(call.query(reason(&args.target.reason))).await?;
        answer.show(terminal, accepted)
    })
}

pub fn rerun(args: &Rerun, terminal: &Terminal) -> anyhow::Result<u8> {
    args.target
        .continue_with(&RERUN, Some(&args.state), &args.with, terminal)
}

pub fn move_to(args: &Move, terminal: &Terminal) -> anyhow::Result<u8> {
    let body = actions::Move {
        version: args.to_version.clone(),
        dry_run: args.dry_run,
    };
    args.target.server.run(async |client| {
        let call = MIGRATE.at(&args.target.named(&client).await?).body(&body);
        let answer = client.ask(call.query(reason(&args.target.reason))).await?;
        let is_misfit = answer.0.as_ref().is_ok_and(|moved| !moved.fits);
        let code = answer.show(terminal, moved)?;
        Ok(if is_misfit { 1 } else { code })
    })
}

fn moved(moved: &Migrated) -> String {
    let Migrated {
        id,
        workflow,
        from,
        to,
        ..
    } = moved;
    let line = match (moved.fits, moved.dry_run) {
        (false, _) => {
            let reason = moved.reason.as_deref().unwrap_or_default();
            format!("{id} can't be moved to {workflow}:{to}: {reason}")
        }
        (true, true) => format!("{id} can be moved from {workflow}:{from} to {workflow}:{to}"),
        (true, false) => format!("{id} is moved from {workflow}:{from} to {workflow}:{to}"),
    };
    clean(&line) + "\n"
}

pub fn remove(args: &Remove, terminal: &Terminal) -> anyhow::Result<u8> {
    args.server.run(async |client| {
        let id = client.instance(&args.id).await?;
        let call = REMOVE.at(&InstanceId { id }).query(reason(&args.reason));
        let answer = client.ask(call).await?;
        answer.show(terminal, |removed| {
            let RemovedInstance {
                id,
                workflow,
                version,
                status,
            } = removed;
            clean(&format!(
                "{id} of {workflow}:{version}, which was {status}, is removed"
            )) + "\n"
        })
    })
}

fn reason(given: &Option<String>) -> swirl_api::Reason {
    swirl_api::Reason {
        reason: given.clone(),
    }
}

fn accepted(accepted: &Accepted) -> String {
    format!("{} is accepted\n", clean(&accepted.accepted))
}

impl InstanceArgs {
    async fn named(&self, client: &Client) -> anyhow::Result<InstanceId> {
        let id = client.instance(&self.id).await?;
        Ok(InstanceId { id })
    }

    fn ask(&self, action: &Plain, terminal: &Terminal) -> anyhow::Result<u8> {
        self.server.run(async |client| {
            let call = action.at(&self.named(&client).await?);
            let answer = client.ask(call.query(reason(&self.reason))).await?;
            answer.show(terminal, accepted)
        })
    }

    fn continue_with(
        &self,
        route: &Continue,
        state: Option<&str>,
        with: &With,
        terminal: &Terminal,
    ) -> anyhow::Result<u8> {
        let body = Some(with.body(state)?);
        self.server.run(async |client| {
            let call = route.at(&self.named(&client).await?).body(&body);
            let answer = client.ask(call.query(reason(&self.reason))).await?;
            let code = answer.show(terminal, |answer| match answer {
                Continued::Accepted(answer) => accepted(answer),
                Continued::Preview(preview) => previewed(preview),
            })?;
            match &answer.0 {
                Ok(Continued::Preview(preview)) if !preview.fits => return Ok(1),
                Err(problem) => {
                    if let Some(state) = &problem.more.rerun_state {
                        let command = with.instead(&self.id, state);
                        terminal.message(&format!("  = hint: this works: {command}"));
                    }
                }
                _ => {}
            }
            Ok(code)
        })
    }
}

/// The answer to a dry run.
fn previewed(preview: &ActionPreview) -> String {
    let (id, operation) = (clean(&preview.id), clean(&preview.operation));
    if !preview.fits {
        let reason = clean(preview.reason.as_deref().unwrap_or_default());
        return format!("{id}: {operation} is not possible: {reason}\n");
    }
    let changes = preview.data.as_ref().map(changed).unwrap_or_default();
    format!("{id}: {operation} is possible; nothing has been done\n{changes}")
}

/// The changes in the data of an instance, one on a line.
pub fn changed(data: &DataPreview) -> String {
    let mut text = String::new();
    for change in data.changes.iter().flatten() {
        let path = match change.path.as_str() {
            "" => "(all)",
            path => path,
        };
        let line = match (&change.before, &change.after) {
            (None, after) => format!("  + {path}: {}\n", after.as_deref().unwrap_or_default()),
            (Some(before), None) => format!("  - {path}: {before}\n"),
            (Some(before), Some(after)) => format!("  ~ {path}: {before} -> {after}\n"),
        };
        text.push_str(&line);
    }
    if data.changes.as_ref().is_some_and(Vec::is_empty) {
        text.push_str("  the data stays as it is\n");
    }
    if !data.complete {
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
        let body = serde_json::json!({"id": "a", "operation": "retry", "dryRun": true, "fits": true, "data": {"complete": true,
            "changes": [{"path": "/amount", "kind": "changed", "before": "0", "after": "7"}, {"path": "/coupon", "kind": "removed", "before": "1"},
                {"path": "/new", "kind": "added", "after": "{}"}]}});
        insta::assert_snapshot!(previewed(&serde_json::from_value(body).unwrap()), @r"
        a: retry is possible; nothing has been done
          ~ /amount: 0 -> 7
          - /coupon: 1
          + /new: {}
        ");
    }
}
