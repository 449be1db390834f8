//! `swirl schedule`

use serde_json::{Value, json};
use swirl_presentation::timeline::shown;

use crate::arguments::Reason;
use crate::client::{Repeat, Server};
use crate::terminal::Terminal;

/// Shows schedules, pauses and resumes them, and starts instances for them.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl schedule list
  swirl schedule pause nightly-report --reason 'the printer is broken'
  swirl schedule resume nightly-report
  swirl schedule fire nightly-report
  swirl schedule backfill nightly-report --from 2026-01-30T00:00:00Z --to 2026-02-01T00:00:00Z --dry-run")]
pub struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, clap::Subcommand)]
enum Task {
    /// Lists the schedules of the latest versions, with their next starts.
    List(List),
    /// Pauses the schedule of a workflow, in all versions, until it is resumed.
    Pause(ScheduleArgs),
    /// Resumes the schedule. Starts that were missed while it was paused are not made up for.
    Resume(ScheduleArgs),
    /// Starts an instance now, in addition to those that the schedule starts.
    Fire(ScheduleArgs),
    /// Starts the instances that the schedule had in a past period.
    ///
    /// Each instant is started only once: if a request failed, repeating the command continues there.
    Backfill(Backfill),
}

#[derive(Debug, clap::Args)]
struct List {
    /// The number of next starts to show, up to 100.
    #[arg(long, default_value_t = 3, value_name = "COUNT")]
    next: u32,

    #[command(flatten)]
    server: Server,
}

#[derive(Debug, clap::Args)]
struct ScheduleArgs {
    /// The workflow's id.
    #[arg(value_name = "WORKFLOW")]
    workflow: String,

    #[command(flatten)]
    reason: Reason,

    #[command(flatten)]
    server: Server,
}

#[derive(Debug, clap::Args)]
struct Backfill {
    /// The first instant, such as 2026-01-31T00:00:00Z or 2026-01-31 (its beginning in UTC).
    #[arg(long, value_name = "INSTANT")]
    from: String,

    /// The end of the period; it isn't included, and must not be in the future.
    #[arg(long, value_name = "INSTANT")]
    to: String,

    /// Show what would be started, and start nothing.
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    target: ScheduleArgs,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    match &args.task {
        Task::List(list) => list.run(terminal),
        Task::Pause(target) => target.post("pause", terminal, |body| {
            format!("the schedule of {} is paused\n", shown(&body["id"]))
        }),
        Task::Resume(target) => target.post("resume", terminal, |body| {
            format!("the schedule of {} is resumed\n", shown(&body["id"]))
        }),
        Task::Fire(target) => target.fire(terminal),
        Task::Backfill(backfill) => backfill.run(terminal),
    }
}

impl List {
    fn run(&self, terminal: &Terminal) -> anyhow::Result<u8> {
        let next = self.next.to_string();
        self.server.run(async |client| {
            let query = [("next", next.as_str())];
            let answer = client.get_pages(&["schedules"], &query, "schedules");
            answer.await?.show(terminal, |body| {
                let rows = body["schedules"].as_array().into_iter().flatten();
                rows.map(row).collect()
            })
        })
    }
}

impl ScheduleArgs {
    fn post(
        &self,
        word: &str,
        terminal: &Terminal,
        text: fn(&Value) -> String,
    ) -> anyhow::Result<u8> {
        self.server.run(async |client| {
            let path = ["workflows", self.workflow.as_str(), "schedule", word];
            // Repeating the request changes nothing.
            let query = self.reason.query();
            let answer = client.post(&path, &query, &[], Vec::new(), Repeat::Safe);
            answer.await?.show(terminal, text)
        })
    }

    fn fire(&self, terminal: &Terminal) -> anyhow::Result<u8> {
        let key = super::start::drawn_key()?;
        self.server.run(async |client| {
            let path = ["workflows", self.workflow.as_str(), "schedule", "fire"];
            let headers = [("idempotency-key", key.as_str())];
            let query = self.reason.query();
            let answer = client.post(&path, &query, &headers, Vec::new(), Repeat::Safe);
            answer
                .await?
                .show(terminal, |body| format!("{}\n", shown(&body["id"])))
        })
    }
}

impl Backfill {
    fn run(&self, terminal: &Terminal) -> anyhow::Result<u8> {
        let asked = json!({"from": self.from, "to": self.to, "dryRun": self.dry_run});
        self.target.server.run(async |client| {
            let workflow = self.target.workflow.as_str();
            let path = ["workflows", workflow, "schedule", "backfill"];
            let headers = [("content-type", "application/json")];
            let body = asked.to_string().into_bytes();
            let query = self.target.reason.query();
            let answer = client.post(&path, &query, &headers, body, Repeat::Safe);
            answer.await?.show(terminal, filled)
        })
    }
}

fn row(schedule: &Value) -> String {
    let word = |name: &str| shown(&schedule[name]);
    let zone = match schedule["timezone"].as_str() {
        Some(_) => format!(" ({})", word("timezone")),
        None => String::new(),
    };
    let (workflow, version) = (word("workflow"), word("version"));
    let (kind, text) = (word("kind"), word("schedule"));
    let paused = if schedule["paused"] == true {
        "  paused"
    } else {
        ""
    };
    let mut lines = format!("{workflow} {version}  {kind} {text}{zone}{paused}\n");
    if schedule["byEvents"] == true {
        lines.push_str("  starts nothing: the workflow begins with events\n");
    }
    for at in schedule["next"].as_array().into_iter().flatten() {
        lines.push_str(&format!("  {}\n", shown(at)));
    }
    lines
}

fn filled(body: &Value) -> String {
    let starts = body["starts"].as_array().map_or(&[][..], Vec::as_slice);
    let would = body["dryRun"] == true;
    let mut text = String::new();
    for start in starts {
        let outcome = match (start["new"] == true, would) {
            (true, true) => "would be started",
            (true, false) => "started",
            (false, _) => "was there already",
        };
        let (at, id) = (shown(&start["at"]), shown(&start["id"]));
        text.push_str(&format!("{at}  {id}  {outcome}\n"));
    }
    if starts.is_empty() {
        text.push_str("the schedule has no start in this time\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_output() {
        let nightly = json!({"workflow": "report", "version": "1.0.0", "kind": "cron", "schedule": "0 2 * * *", "timezone": "Europe/Berlin",
            "paused": true, "byEvents": false, "next": ["2026-01-31T01:00:00.000Z"]});
        let events = json!({"workflow": "order", "version": "2", "kind": "interval", "schedule": "R/PT1H", "timezone": null,
            "paused": false, "byEvents": true, "next": []});
        let text = row(&nightly) + &row(&events);
        insta::assert_snapshot!(text, @r"
        report 1.0.0  cron 0 2 * * * (Europe/Berlin)  paused
          2026-01-31T01:00:00.000Z
        order 2  interval R/PT1H
          starts nothing: the workflow begins with events
        ");
        let starts =
            json!([{"at": "a", "id": "1", "new": true}, {"at": "b", "id": "2", "new": false}]);
        let done = filled(&json!({"dryRun": false, "starts": starts}));
        let dry = filled(&json!({"dryRun": true, "starts": starts}));
        assert_eq!(done, "a  1  started\nb  2  was there already\n");
        assert_eq!(dry, "a  1  would be started\nb  2  was there already\n");
        assert!(filled(&json!({"starts": []})).contains("no start"));
    }
}
