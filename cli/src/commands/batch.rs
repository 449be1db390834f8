//! `swirl batch`

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use swirl_api::actions::Json;
use swirl_api::batches::{
    self, Batch, BatchAfterwards, BatchId, BatchOrder, BatchResults, BatchStatus, BatchTrial,
    CREATE, Created, GET, GetQuery, LIST, PAUSE, RESULTS, RESUME, ResultsQuery, STOP,
};
use swirl_model::Data;
use swirl_presentation::timeline::{clean, told};

use super::list;
use super::operate::changed;
use super::start::drawn_key;
use crate::arguments::{Reason, json_argument};
use crate::client::{Answered, Client, Patience, Server, TIMED_OUT, Timeout};
use crate::listing::after;
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
            let answer = client.ask_pages(LIST.ask()).await?;
            answer.show(terminal, |found| listed(&found.batches))
        }),
        Task::Show(batch) => batch.server.run(async |client| {
            let query = GetQuery { afterwards: true };
            let answer = client.ask(GET.at(&batch.at()).query(query)).await?;
            answer.show(terminal, described)
        }),
        Task::Results(results) => results.run(terminal),
        Task::Pause(change) => change.run(&PAUSE, terminal),
        Task::Resume(change) => change.run(&RESUME, terminal),
        Task::Stop(change) => change.run(&STOP, terminal),
    }
}

impl BatchArgs {
    fn at(&self) -> BatchId {
        BatchId {
            id: self.id.clone(),
        }
    }
}

impl Create {
    fn order(&self) -> anyhow::Result<BatchOrder> {
        let operation = clap::ValueEnum::to_possible_value(&self.operation);
        let operation = operation.context("the operation has no name")?;
        let result = match (&self.result, self.operation) {
            (Some(text), Operation::Skip) => Some(json_argument(text).context("--result")?),
            (None, Operation::Skip) => Some(Data::NULL),
            (Some(_), _) => bail!("--result is for 'skip' only"),
            (None, _) => None,
        };
        Ok(BatchOrder {
            operation: operation.get_name().into(),
            query: self.query.clone(),
            result: result.map(Json),
            state: self.state.clone(),
            patch: self.patch.clone(),
            version: self.to_version.clone(),
            reason: self.reason.clone(),
            rate: self.rate,
            dry_run: self.dry_run,
        })
    }

    fn run(&self, terminal: &Terminal) -> anyhow::Result<u8> {
        let order = self.order()?;
        let key = match &self.key {
            Some(key) => key.clone(),
            None => drawn_key()?,
        };
        self.server.run(async |client| {
            let call = CREATE.ask().body(&order).key(&key);
            match client.ask(call).await? {
                Answered(Ok(Created::Batch(batch))) if self.wait => {
                    ended(&client, *batch, self.timeout.begin(), terminal).await
                }
                answer => answer.show(terminal, |created| match created {
                    Created::Trial(trial) => tried(trial),
                    Created::Batch(batch) => format!("{}\n", clean(&batch.id)),
                }),
            }
        })
    }
}

async fn ended(
    client: &Client,
    mut batch: Batch,
    mut patience: Patience,
    terminal: &Terminal,
) -> anyhow::Result<u8> {
    let id = clean(&batch.id);
    terminal.message(&format!("batch {id} is created"));
    let mut told = String::new();
    let at = BatchId {
        id: batch.id.clone(),
    };
    loop {
        let begun = Instant::now();
        // Each instance is read for what has become of it, so only when all had their turn.
        let afterwards = [BatchStatus::Completed, BatchStatus::Stopped].contains(&batch.status);
        match client.ask(GET.at(&at).query(GetQuery { afterwards })).await {
            Ok(Answered(Ok(found))) => {
                patience.answered();
                batch = found;
                let progress = progress(&batch);
                if progress != told {
                    terminal.message(&progress);
                    told = progress;
                }
            }
            Ok(refused) => return refused.show(terminal, described),
            Err(error) => patience.failed(error, terminal)?,
        }
        let is_settled = batch.afterwards.as_ref().is_some_and(|now| now.settled);
        let is_over = patience.is_over();
        if is_settled || is_over {
            match terminal.output {
                Output::Json => {
                    terminal.result(&format!("{}\n", serde_json::to_string_pretty(&batch)?))?;
                }
                _ => terminal.result(&described(&batch))?,
            }
            if !is_settled {
                terminal.message(&match &batch.afterwards {
                    None => format!("error: batch {id} has not ended"),
                    Some(BatchAfterwards { pending, .. }) => {
                        format!("error: {pending} instances of batch {id} are still running")
                    }
                });
                return Ok(TIMED_OUT);
            }
            return Ok(u8::from(succeeded(&batch) != Some(batch.matched)));
        }
        patience.pause(AGAIN.max(begun.elapsed() * 3)).await;
    }
}

/// The instances that the operation succeeded for: it was carried out, and they have not failed again. None as long as
/// that isn't known.
fn succeeded(batch: &Batch) -> Option<u32> {
    let failed_again = batch.afterwards.as_ref()?.failed_again;
    Some(batch.done.saturating_sub(failed_again))
}

impl Results {
    fn run(&self, terminal: &Terminal) -> anyhow::Result<u8> {
        let query = ResultsQuery {
            outcome: self.outcome.as_deref().map(Into::into),
            after: self.after.clone(),
            limit: Some(self.limit),
        };
        self.target.server.run(async |client| {
            let call = RESULTS.at(&self.target.at()).query(query);
            let answer = client.ask(call).await?;
            answer.show_page(terminal, results, |page| after(page.next.as_deref()))
        })
    }
}

impl Change {
    fn run(&self, route: &batches::Change, terminal: &Terminal) -> anyhow::Result<u8> {
        self.target.server.run(async |client| {
            let call = route.at(&self.target.at()).query(self.reason.asked());
            client.ask(call).await?.show(terminal, |batch| {
                format!("batch {} is {}\n", clean(&batch.id), batch.status)
            })
        })
    }
}

fn tried(trial: &BatchTrial) -> String {
    let BatchTrial {
        matched,
        fit,
        checked,
        operation,
        sample,
        ..
    } = trial;
    let possible = match &trial.version {
        Some(version) => format!("fit version {version}"),
        None => format!("are in a state for {operation}"),
    };
    let mut text = match checked == matched {
        true => format!("{matched} instances match; {fit} of them {possible}\n"),
        false => format!(
            "{matched} instances match; {checked} of them were checked in time, of which {fit} {possible}\n"
        ),
    };
    for misfit in &trial.misfits {
        let (count, reason) = (misfit.count, clean(&misfit.reason));
        let example = match &misfit.instance {
            Some(id) => format!(" (such as {id})"),
            None => String::new(),
        };
        text.push_str(&format!("  {count} don't: {reason}{example}\n"));
    }
    if sample.is_empty() {
        return text;
    }
    let mut rows = vec![["ID", "WORKFLOW", "STATUS", "STARTED", "ERROR"].map(str::to_owned)];
    rows.extend(sample.iter().map(|row| {
        [
            clean(&row.id),
            format!("{}:{}", clean(&row.workflow), clean(&row.version)),
            list::status(&row.status, row.suspended, false),
            row.started_at.to_string(),
            row.error.as_ref().map(told).unwrap_or_default(),
        ]
    }));
    text.push_str(&table(&rows));
    for row in sample {
        if let Some(data) = &row.data {
            text.push_str(&format!("{}:\n{}", clean(&row.id), changed(data)));
        }
    }
    text
}

fn listed(batches: &[Batch]) -> String {
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
    rows.extend(batches.iter().map(|batch| {
        [
            clean(&batch.id),
            batch.operation.to_string(),
            batch.status.to_string(),
            batch.done.to_string(),
            batch.refused.to_string(),
            batch.failed.to_string(),
            batch.matched.to_string(),
            batch.created_at.to_string(),
            clean(&batch.query),
        ]
    }));
    table(&rows)
}

fn progress(batch: &Batch) -> String {
    let (turns, matched) = (batch.turns(), batch.matched);
    let progress = format!("{}: {turns} of {matched}", batch.status);
    match (succeeded(batch), &batch.afterwards) {
        (Some(succeeded), Some(BatchAfterwards { settled: true, .. })) => {
            match matched.saturating_sub(succeeded) {
                0 => format!("{turns} of {matched}: all succeeded"),
                others => format!("{turns} of {matched}: {succeeded} succeeded, {others} did not"),
            }
        }
        (_, Some(BatchAfterwards { pending, .. })) if *pending > 0 => {
            format!("{progress}, {pending} are still running")
        }
        _ => progress,
    }
}

fn described(batch: &Batch) -> String {
    let mut lines = vec![
        format!(
            "{} {}: {}",
            batch.operation,
            clean(&batch.id),
            progress(batch)
        ),
        format!("  query    {}", clean(&batch.query)),
    ];
    let result = batch.result.as_ref().map(|Json(result)| result.to_string());
    for (title, text) in [
        ("result", &result),
        ("state", &batch.state),
        ("patch", &batch.patch),
        ("version", &batch.version),
        ("reason", &batch.reason),
        ("by", &batch.by),
        ("created", &Some(batch.created_at.to_string())),
        ("ended", &batch.ended_at.map(|at| at.to_string())),
    ] {
        if let Some(text) = text {
            lines.push(format!("  {title:<8} {}", clean(text)));
        }
    }
    lines.push(format!("  done     {}", batch.done));
    let codes = batch.refusals.iter();
    let codes: Vec<String> = codes
        .map(|(code, count)| format!("{code} {count}"))
        .collect();
    let codes = match codes.is_empty() {
        true => String::new(),
        false => format!(" ({})", codes.join(", ")),
    };
    lines.push(format!("  refused  {}{codes}", batch.refused));
    lines.push(format!("  failed   {}", batch.failed));
    let now = batch
        .afterwards
        .as_ref()
        .map(|now| now.in_each_state("gone"));
    let now: Vec<String> = now
        .into_iter()
        .flatten()
        .map(|(word, count)| format!("{count} {word}"))
        .collect();
    if !now.is_empty() {
        lines.push(format!("  now      {}", now.join(", ")));
    }
    lines.join("\n") + "\n"
}

fn results(page: &BatchResults) -> String {
    let mut rows = vec![["INSTANCE", "OUTCOME", "NOW", "REASON"].map(str::to_owned)];
    rows.extend(page.results.iter().map(|row| {
        let detail = clean(row.detail.as_deref().unwrap_or_default());
        [
            clean(&row.instance),
            row.outcome.to_string(),
            match &row.status {
                Some(status) => status.to_string(),
                None => "gone".to_owned(),
            },
            match &row.code {
                Some(code) => format!("{code}: {detail}"),
                None => detail,
            },
        ]
    }));
    table(&rows)
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;

    fn read<T: DeserializeOwned>(answer: Value) -> T {
        serde_json::from_value(answer).unwrap()
    }

    #[test]
    fn the_text_output() {
        let batch = json!({"id": "b1", "operation": "retry", "status": "stopped", "query": "status = faulted",
            "reason": "bank is back", "by": null, "createdAt": "2026-01-31T01:00:00.000Z", "endedAt": null, "matched": 9,
            "rate": 50, "waiting": 2, "done": 5, "refused": 2, "failed": 0, "refusals": {"key-in-use": 1, "wrong-status": 1},
            "afterwards": {"running": 2, "completed": 2, "faulted": 1, "cancelled": 0, "terminated": 0, "gone": 0,
                "waiting": 1, "failedAgain": 1, "pending": 0, "counted": 5, "complete": true, "settled": true}});
        let batch: Batch = read(batch);
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
        insta::assert_snapshot!(listed(&[batch]), @r"
        ID  OPERATION  STATUS   DONE  REFUSED  FAILED  OF  CREATED                   QUERY
        b1  retry      stopped  5     2        0       9   2026-01-31T01:00:00.000Z  status = faulted
        ");
        let rows = json!({"results": [{"instance": "i1", "outcome": "done", "status": null},
            {"instance": "i2", "outcome": "refused", "status": "running", "code": "wrong-status", "detail": "it runs"}],
            "complete": true, "next": null});
        insta::assert_snapshot!(results(&read(rows)), @r"
        INSTANCE  OUTCOME  NOW      REASON
        i1        done     gone
        i2        refused  running  wrong-status: it runs
        ");
        let counts =
            json!({"running": 0, "completed": 0, "faulted": 0, "cancelled": 0, "terminated": 0});
        let trial = json!({"dryRun": true, "operation": "retry", "query": "", "counts": counts, "scanned": 2, "matched": 2, "fit": 1, "checked": 2,
            "misfits": [{"code": "key-in-use", "reason": "instance b runs under the key 'k' by now", "count": 1,
                "instance": "c"}], "sample": [
            {"id": "a", "workflow": "order", "version": "1", "status": "faulted", "suspended": false,
                "startedAt": "2026-01-31T01:00:00.000Z", "error": {"name": "FunctionError", "message": "busy"},
                "data": {"complete": true, "changes": [{"path": "/n", "kind": "changed", "before": "0", "after": "7"}]}}]});
        insta::assert_snapshot!(tried(&read(trial)), @r"
        2 instances match; 1 of them are in a state for retry
          1 don't: instance b runs under the key 'k' by now (such as c)
        ID  WORKFLOW  STATUS   STARTED                   ERROR
        a   order:1   faulted  2026-01-31T01:00:00.000Z  FunctionError: busy
        a:
          ~ /n: 0 -> 7
        ");
        let trial = json!({"dryRun": true, "operation": "migrate", "version": "2", "query": "", "counts": counts, "scanned": 9, "matched": 9, "checked": 9, "fit": 4,
            "misfits": [{"code": "does-not-fit", "reason": "state 'Pay' does not exist in version 2", "count": 5,
                "instance": "i1"}], "sample": []});
        insta::assert_snapshot!(tried(&read(trial)), @r"
        9 instances match; 4 of them fit version 2
          5 don't: state 'Pay' does not exist in version 2 (such as i1)
        ");
    }
}
