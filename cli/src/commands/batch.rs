//! `swirl batch`

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::{Value, json};
use swirl_presentation::timeline::{error, shown};

use super::list;
use super::operate::changed;
use super::start::drawn_key;
use crate::arguments::{Reason, json_argument};
use crate::client::{Answer, Client, Patience, Repeat, Server, TIMED_OUT, Timeout};
use crate::listing;
use crate::terminal::{Output, Terminal};
use crate::text::table;

/// The interval at which a batch is polled.
const AGAIN: Duration = Duration::from_millis(500);

/// Carries out an operation on all instances that match a query.
///
/// The server records the matching instances when the batch is created, and acts on each of them once; instances that
/// match later don't belong to it. If the operation isn't possible for an instance by then, that instance is refused,
/// and the batch continues. Begin with '--dry-run': it counts the instances, shows some of them, and changes nothing.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl batch create retry --query 'workflow = order and status = faulted and started > -1h' --dry-run
  swirl batch create retry --query 'workflow = order and status = faulted and started > -1h' --reason 'bank is back' --wait
  swirl batch create cancel --query 'workflow = order and @customer = c-7' --rate 5
  swirl batch create skip --query 'status = faulted and state = Notify' --result '{\"sent\": false}'
  swirl batch create rerun --query 'status = faulted and workflow = order' --state Charge
  swirl batch create retry --query 'status = faulted and workflow = order' --patch '.amount |= tonumber' --dry-run
  swirl batch create migrate --query 'workflow = order and version = \"1.0\"' --to-version 1.1 --dry-run
  swirl batch list
  swirl batch show 2f6c0d9b
  swirl batch results 2f6c0d9b --outcome refused
  swirl batch pause 2f6c0d9b")]
pub struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, clap::Subcommand)]
enum Task {
    /// Creates a batch, or with '--dry-run' shows what it would act on.
    Create(Box<Create>),
    /// Lists the batches, newest first.
    List(List),
    /// Shows a batch: its progress, and the present statuses of its instances.
    Show(BatchArgs),
    /// Lists the instances of a batch with their outcomes.
    Results(Results),
    /// Pauses a batch, until it is resumed.
    Pause(Change),
    /// Resumes a paused batch.
    Resume(Change),
    /// Stops a batch early; completed operations stay in effect.
    Stop(Change),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Operation {
    Cancel,
    /// Retry what failed in faulted instances.
    Retry,
    /// Continue faulted instances after the action that failed.
    Skip,
    /// Continue faulted instances at a state.
    Rerun,
    Suspend,
    Resume,
    /// Move instances to another version of their definition.
    Migrate,
    /// Remove instances that have ended or failed.
    Remove,
}

#[derive(Debug, clap::Args)]
struct Create {
    /// The operation for each instance.
    #[arg(value_enum)]
    operation: Operation,

    /// The instances: a query as in 'swirl list --query'. An empty one is refused.
    #[arg(long, value_name = "QUERY")]
    query: String,

    /// Show how many instances match and for how many the operation is possible, why not for the others, and some of
    /// them; do nothing.
    #[arg(long)]
    dry_run: bool,

    /// The reason, for the history of each instance.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// The maximum number of instances per second, up to 1000 [default: 50].
    #[arg(long, value_name = "COUNT")]
    rate: Option<u32>,

    /// For 'skip': the value to use as the action's result: JSON as it is, '@FILE', or '-' for stdin [default: null].
    #[arg(long, value_name = "JSON")]
    result: Option<String>,

    /// For 'rerun': the state's name.
    #[arg(long, value_name = "NAME")]
    state: Option<String>,

    /// For 'retry' and 'rerun': a jq expression that changes the state data of each instance, such as '.amount = 7'.
    /// '--dry-run' shows the changes.
    #[arg(long, value_name = "JQ")]
    patch: Option<String>,

    /// For 'migrate': the version that the instances are moved to.
    #[arg(long, value_name = "VERSION")]
    to_version: Option<String>,

    /// Wait until each instance has ended, failed again or waits for something, and show what has become of them. Exit
    /// code 1 if any instance was refused or failed again, or the batch was stopped.
    #[arg(long, conflicts_with = "dry_run")]
    wait: bool,

    #[command(flatten)]
    timeout: Timeout,

    /// Creating a batch with the same key again returns the same batch [default: a random key].
    #[arg(long, value_name = "KEY")]
    key: Option<String>,

    #[command(flatten)]
    server: Server,
}

#[derive(Debug, clap::Args)]
struct List {
    #[command(flatten)]
    server: Server,
}

#[derive(Debug, clap::Args)]
struct Change {
    #[command(flatten)]
    target: BatchArgs,

    #[command(flatten)]
    reason: Reason,
}

#[derive(Debug, clap::Args)]
struct BatchArgs {
    /// The batch's id.
    #[arg(value_name = "ID")]
    id: String,

    #[command(flatten)]
    server: Server,
}

#[derive(Debug, clap::Args)]
struct Results {
    /// Only instances with this outcome: done, refused, failed or waiting.
    #[arg(long, value_name = "OUTCOME")]
    outcome: Option<String>,

    /// Continue where another listing ended.
    #[arg(long, value_name = "PLACE")]
    after: Option<String>,

    /// The maximum number of instances, up to 1000.
    #[arg(long, default_value_t = 100, value_name = "COUNT")]
    limit: u32,

    #[command(flatten)]
    target: BatchArgs,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    match &args.task {
        Task::Create(create) => create.run(terminal),
        Task::List(list) => list.server.run(async |client| {
            let answer = client.get_pages(&["batches"], &[], "batches");
            answer.await?.show(terminal, listed)
        }),
        Task::Show(batch) => batch.server.run(async |client| {
            let query = [("afterwards", "true")];
            let answer = client.get(&["batches", &batch.id], &query).await?;
            answer.show(terminal, described)
        }),
        Task::Results(results) => results.run(terminal),
        Task::Pause(change) => change.run("pause", terminal),
        Task::Resume(change) => change.run("resume", terminal),
        Task::Stop(change) => change.run("stop", terminal),
    }
}

impl Create {
    fn body(&self) -> anyhow::Result<Value> {
        let operation = clap::ValueEnum::to_possible_value(&self.operation);
        let word = operation.map(|value| value.get_name().to_owned());
        let mut body = json!({"operation": word, "query": self.query, "dryRun": self.dry_run});
        let result = match (&self.result, self.operation) {
            (Some(text), Operation::Skip) => {
                Some(Value::from(&json_argument(text).context("--result")?))
            }
            (None, Operation::Skip) => Some(Value::Null),
            (Some(_), _) => bail!("--result is for 'skip' only"),
            (None, _) => None,
        };
        for (name, value) in [
            ("result", result),
            ("state", self.state.as_ref().map(|state| json!(state))),
            ("patch", self.patch.as_ref().map(|patch| json!(patch))),
            (
                "version",
                self.to_version.as_ref().map(|version| json!(version)),
            ),
            ("reason", self.reason.as_ref().map(|reason| json!(reason))),
            ("rate", self.rate.map(|rate| json!(rate))),
        ] {
            if let Some(value) = value {
                body[name] = value;
            }
        }
        Ok(body)
    }

    fn run(&self, terminal: &Terminal) -> anyhow::Result<u8> {
        let body = self.body()?;
        let key = match &self.key {
            Some(key) => key.clone(),
            None => drawn_key()?,
        };
        self.server.run(async |client| {
            let headers = [
                ("content-type", "application/json"),
                ("idempotency-key", key.as_str()),
            ];
            let body = body.to_string().into_bytes();
            let answer = client
                .post(&["batches"], &[], &headers, body, Repeat::Safe)
                .await?;
            if self.wait && !answer.refused() {
                return ended(&client, &answer, self.timeout.begin(), terminal).await;
            }
            answer.show(terminal, |body| match body["dryRun"] == true {
                true => tried(body),
                false => format!("{}\n", shown(&body["id"])),
            })
        })
    }
}

async fn ended(
    client: &Client,
    created: &Answer,
    mut patience: Patience,
    terminal: &Terminal,
) -> anyhow::Result<u8> {
    let id = shown(&created.body["id"]);
    terminal.message(&format!("batch {id} is created"));
    let mut told = String::new();
    let mut batch = created.body.clone();
    loop {
        let begun = Instant::now();
        // Each instance is read for what has become of it, so only when all had their turn.
        let query: &[(&str, &str)] = match has_ended(&batch) {
            true => &[("afterwards", "true")],
            false => &[],
        };
        match client.get(&["batches", &id], query).await {
            Ok(answer) if answer.refused() => return answer.show(terminal, described),
            Ok(answer) => {
                patience.answered();
                batch = answer.body;
                let progress = progress(&batch);
                if progress != told {
                    terminal.message(&progress);
                    told = progress;
                }
            }
            Err(error) => patience.failed(error, terminal)?,
        }
        let is_settled = batch["afterwards"]["settled"] == true;
        let is_over = patience.is_over();
        if is_settled || is_over {
            match terminal.output {
                Output::Json => terminal.result(&format!("{batch:#}\n"))?,
                _ => terminal.result(&described(&batch))?,
            }
            if !is_settled {
                terminal.message(&match &batch["afterwards"]["pending"] {
                    Value::Null => format!("error: batch {id} has not ended"),
                    pending => {
                        format!("error: {pending} instances of batch {id} are still at work")
                    }
                });
                return Ok(TIMED_OUT);
            }
            return Ok(u8::from(succeeded(&batch) != batch["matched"].as_u64()));
        }
        patience.pause(AGAIN.max(begun.elapsed() * 3)).await;
    }
}

fn has_ended(batch: &Value) -> bool {
    batch["status"] == "completed" || batch["status"] == "stopped"
}

/// The instances that the operation succeeded for: it was carried out, and they have not failed again. None as long as
/// that isn't known.
fn succeeded(batch: &Value) -> Option<u64> {
    let failed_again = batch["afterwards"]["failedAgain"].as_u64()?;
    Some(batch["done"].as_u64()?.saturating_sub(failed_again))
}

impl Results {
    fn run(&self, terminal: &Terminal) -> anyhow::Result<u8> {
        let limit = self.limit.to_string();
        let filters = [("outcome", &self.outcome), ("after", &self.after)];
        let query = listing::query(&limit, &filters);
        self.target.server.run(async |client| {
            let answer = client
                .get(&["batches", &self.target.id, "results"], &query)
                .await?;
            answer.show_page(terminal, results, listing::more)
        })
    }
}

impl Change {
    fn run(&self, word: &str, terminal: &Terminal) -> anyhow::Result<u8> {
        self.target.server.run(async |client| {
            let path = ["batches", &self.target.id, word];
            let query = self.reason.query();
            let answer = client.post(&path, &query, &[], Vec::new(), Repeat::Never);
            answer.await?.show(terminal, |body| {
                format!(
                    "batch {} is {}\n",
                    shown(&body["id"]),
                    shown(&body["status"])
                )
            })
        })
    }
}

fn tried(body: &Value) -> String {
    let (matched, fit) = (&body["matched"], &body["fit"]);
    let operation = shown(&body["operation"]);
    let possible = match body["version"].as_str() {
        Some(version) => format!("fit version {version}"),
        None => format!("are in a state for {operation}"),
    };
    let checked = &body["checked"];
    let mut text = match checked == matched {
        true => format!("{matched} instances match; {fit} of them {possible}\n"),
        false => format!(
            "{matched} instances match; {checked} of them were checked in time, of which {fit} {possible}\n"
        ),
    };
    text.push_str(&misfits(body));
    let rows = body["sample"].as_array().map_or(&[][..], Vec::as_slice);
    if rows.is_empty() {
        return text;
    }
    let header = ["ID", "WORKFLOW", "STATUS", "STARTED", "ERROR"].map(str::to_owned);
    let mut table_rows = vec![header];
    table_rows.extend(rows.iter().map(|row| {
        let found = &row["error"];
        [
            shown(&row["id"]),
            format!("{}:{}", shown(&row["workflow"]), shown(&row["version"])),
            list::status(
                &shown(&row["status"]).as_str().into(),
                row["suspended"] == true,
                row["waiting"] == true,
            ),
            shown(&row["startedAt"]),
            if found.is_null() {
                String::new()
            } else {
                error(found)
            },
        ]
    }));
    text.push_str(&table(&table_rows));
    for row in rows.iter().filter(|row| !row["data"].is_null()) {
        text.push_str(&format!(
            "{}:\n{}",
            shown(&row["id"]),
            serde_json::from_value(row["data"].clone()).map_or_else(
                |_| format!("{}\n", shown(&row["data"])),
                |data| changed(&data)
            )
        ));
    }
    text
}

/// The reasons why the operation isn't possible for some instances.
fn misfits(body: &Value) -> String {
    let mut text = String::new();
    for misfit in body["misfits"].as_array().into_iter().flatten() {
        let (count, reason) = (&misfit["count"], shown(&misfit["reason"]));
        let example = match misfit["instance"].as_str() {
            Some(id) => format!(" (such as {id})"),
            None => String::new(),
        };
        text.push_str(&format!("  {count} don't: {reason}{example}\n"));
    }
    text
}

fn listed(body: &Value) -> String {
    let header = [
        "ID",
        "OPERATION",
        "STATUS",
        "DONE",
        "REFUSED",
        "FAILED",
        "OF",
        "CREATED",
        "QUERY",
    ];
    let mut rows = vec![header.map(str::to_owned)];
    rows.extend(body["batches"].as_array().into_iter().flatten().map(|row| {
        [
            "id",
            "operation",
            "status",
            "done",
            "refused",
            "failed",
            "matched",
            "createdAt",
            "query",
        ]
        .map(|name| shown(&row[name]))
    }));
    table(&rows)
}

fn progress(batch: &Value) -> String {
    let turns = ["done", "refused", "failed"];
    let turns: u64 = turns.iter().filter_map(|name| batch[*name].as_u64()).sum();
    let (status, matched) = (shown(&batch["status"]), &batch["matched"]);
    let progress = format!("{status}: {turns} of {matched}");
    match (succeeded(batch), &batch["afterwards"]["settled"]) {
        (Some(succeeded), Value::Bool(true)) => {
            let others = batch["matched"].as_u64().unwrap_or_default() - succeeded;
            match others {
                0 => format!("{turns} of {matched}: all succeeded"),
                _ => format!("{turns} of {matched}: {succeeded} succeeded, {others} did not"),
            }
        }
        (Some(_), _) => match batch["afterwards"]["pending"].as_u64() {
            Some(pending) if pending > 0 => format!("{progress}, {pending} are still at work"),
            _ => progress,
        },
        (None, _) => progress,
    }
}

fn described(batch: &Value) -> String {
    let text = |name: &str| shown(&batch[name]);
    let mut lines = vec![
        format!("{} {}: {}", text("operation"), text("id"), progress(batch)),
        format!("  query    {}", text("query")),
    ];
    for (title, name) in [
        ("result", "result"),
        ("state", "state"),
        ("patch", "patch"),
        ("version", "version"),
        ("reason", "reason"),
        ("by", "by"),
        ("created", "createdAt"),
        ("ended", "endedAt"),
    ] {
        if !batch[name].is_null() {
            lines.push(format!("  {title:<8} {}", text(name)));
        }
    }
    lines.push(format!("  done     {}", text("done")));
    let codes = batch["refusals"].as_object().into_iter().flatten();
    let codes: Vec<String> = codes
        .map(|(code, count)| format!("{code} {count}"))
        .collect();
    let codes = match codes.is_empty() {
        true => String::new(),
        false => format!(" ({})", codes.join(", ")),
    };
    lines.push(format!("  refused  {}{codes}", text("refused")));
    lines.push(format!("  failed   {}", text("failed")));
    let now = became(&batch["afterwards"]);
    if !now.is_empty() {
        lines.push(format!("  now      {}", now.join(", ")));
    }
    lines.join("\n") + "\n"
}

/// What has become of the instances that were acted on.
fn became(afterwards: &Value) -> Vec<String> {
    let count = |name: &str| afterwards[name].as_u64().unwrap_or_default();
    let (waiting, again) = (count("waiting"), count("failedAgain"));
    let some = [
        (count("completed"), "completed"),
        (count("running").saturating_sub(waiting), "running"),
        (waiting, "waiting"),
        (again, "failed again"),
        (count("faulted").saturating_sub(again), "faulted"),
        (count("cancelled"), "cancelled"),
        (count("terminated"), "terminated"),
        (count("gone"), "gone"),
    ];
    let some = some.iter().filter(|(count, _)| *count > 0);
    some.map(|(count, word)| format!("{count} {word}"))
        .collect()
}

fn results(body: &Value) -> String {
    let mut rows = vec![["INSTANCE", "OUTCOME", "NOW", "REASON"].map(str::to_owned)];
    rows.extend(body["results"].as_array().into_iter().flatten().map(|row| {
        let reason = match row["code"].as_str() {
            Some(code) => format!("{code}: {}", shown(&row["detail"])),
            None => shown(&row["detail"]),
        };
        let status = match row["status"].is_null() {
            true => "gone".to_owned(),
            false => shown(&row["status"]),
        };
        [
            shown(&row["instance"]),
            shown(&row["outcome"]),
            status,
            reason,
        ]
    }));
    table(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_output() {
        let batch = json!({"id": "b1", "operation": "retry", "status": "stopped", "query": "status = faulted",
            "reason": "bank is back", "by": null, "createdAt": "2026-01-31T01:00:00.000Z", "endedAt": null, "matched": 9,
            "done": 5, "refused": 2, "failed": 0, "refusals": {"key-in-use": 1, "wrong-status": 1},
            "afterwards": {"running": 2, "completed": 2, "faulted": 1, "cancelled": 0, "terminated": 0, "gone": 0,
                "waiting": 1, "failedAgain": 1, "pending": 0, "settled": true}});
        insta::assert_snapshot!(described(&batch), @r"
        retry b1: 7 of 9: 4 succeeded, 5 did not
          query    status = faulted
          reason   bank is back
          created  2026-01-31T01:00:00.000Z
          done     5
          refused  2 (key-in-use 1, wrong-status 1)
          failed   0
          now      2 completed, 1 running, 1 waiting, 1 failed again
        ");
        insta::assert_snapshot!(listed(&json!({"batches": [batch]})), @r"
        ID  OPERATION  STATUS   DONE  REFUSED  FAILED  OF  CREATED                   QUERY
        b1  retry      stopped  5     2        0       9   2026-01-31T01:00:00.000Z  status = faulted
        ");
        let rows = json!({"results": [{"instance": "i1", "outcome": "done", "status": null},
            {"instance": "i2", "outcome": "refused", "status": "running", "code": "wrong-status", "detail": "it runs"}]});
        insta::assert_snapshot!(results(&rows), @r"
        INSTANCE  OUTCOME  NOW      REASON
        i1        done     gone
        i2        refused  running  wrong-status: it runs
        ");
        let trial = json!({"dryRun": true, "operation": "retry", "matched": 2, "fit": 1, "checked": 2,
            "misfits": [{"code": "key-in-use", "reason": "instance b runs under the key 'k' by now", "count": 1,
                "instance": "c"}], "sample": [
            {"id": "a", "workflow": "order", "version": "1", "status": "faulted", "suspended": false,
                "startedAt": "2026-01-31T01:00:00.000Z", "error": {"name": "FunctionError", "message": "busy"},
                "data": {"complete": true, "changes": [{"path": "/n", "kind": "changed", "before": "0", "after": "7"}]}}]});
        insta::assert_snapshot!(tried(&trial), @r"
        2 instances match; 1 of them are in a state for retry
          1 don't: instance b runs under the key 'k' by now (such as c)
        ID  WORKFLOW  STATUS   STARTED                   ERROR
        a   order:1   faulted  2026-01-31T01:00:00.000Z  FunctionError: busy
        a:
          ~ /n: 0 -> 7
        ");
        let trial = json!({"dryRun": true, "operation": "migrate", "version": "2", "matched": 9, "checked": 9, "fit": 4,
            "misfits": [{"code": "does-not-fit", "reason": "state 'Pay' does not exist in version 2", "count": 5,
                "instance": "i1"}], "sample": []});
        insta::assert_snapshot!(tried(&trial), @r"
        9 instances match; 4 of them fit version 2
          5 don't: state 'Pay' does not exist in version 2 (such as i1)
        ");
    }
}
