//! `swirl schedule`

use swirl_api::schedules::{
    self, BACKFILL, Backfilled, FIRE, LIST, ListQuery, PAUSE, PausedSchedule, PlannedStart, RESUME,
    Schedule, Workflow,
};
use swirl_api::{Endpoint, Nothing};
use swirl_presentation::timeline::clean;

use crate::arguments::Reason;
use crate::client::Server;
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
    /// Resumes the schedule. Starts that were missed while it was paused are not caught up.
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
        Task::List(list) => list.server.run(async |client| {
            let query = ListQuery {
                next: Some(list.next),
                ..ListQuery::default()
            };
            let answer = client.ask_pages(LIST.ask().query(query)).await?;
            answer.show(terminal, |page| page.schedules.iter().map(row).collect())
        }),
        Task::Pause(target) => target.set(&PAUSE, "paused", terminal),
        Task::Resume(target) => target.set(&RESUME, "resumed", terminal),
        Task::Fire(target) => target.fire(terminal),
        Task::Backfill(backfill) => backfill.run(terminal),
    }
}

impl ScheduleArgs {
    fn workflow(&self) -> Workflow {
        Workflow {
            id: self.workflow.clone(),
        }
    }

    fn set(
        &self,
        route: &Endpoint<Workflow, swirl_api::Reason, Nothing, PausedSchedule>,
        word: &str,
        terminal: &Terminal,
    ) -> anyhow::Result<u8> {
        self.server.run(async |client| {
            let call = route.at(&self.workflow()).query(self.reason.asked());
            client.ask(call).await?.show(terminal, |schedule| {
                format!("the schedule of {} is {word}\n", clean(&schedule.id))
            })
        })
    }

    fn fire(&self, terminal: &Terminal) -> anyhow::Result<u8> {
        let key = super::start::drawn_key()?;
        self.server.run(async |client| {
            let call = FIRE.at(&self.workflow()).query(self.reason.asked());
            let answer = client.ask(call.key(&key)).await?;
            answer.show(terminal, |started| format!("{}\n", clean(&started.id)))
        })
    }
}

impl Backfill {
    fn run(&self, terminal: &Terminal) -> anyhow::Result<u8> {
        let asked = schedules::Backfill {
            from: self.from.clone(),
            to: self.to.clone(),
            dry_run: self.dry_run,
        };
        self.target.server.run(async |client| {
            let call = BACKFILL.at(&self.target.workflow()).body(&asked);
            let answer = client.ask(call.query(self.target.reason.asked())).await?;
            answer.show(terminal, filled)
        })
    }
}

fn row(schedule: &Schedule) -> String {
    let Schedule {
        kind,
        schedule: text,
        ..
    } = schedule;
    let zone = schedule.timezone.as_ref().map(|zone| format!(" ({zone})"));
    let (zone, paused) = (
        zone.unwrap_or_default(),
        if schedule.paused { "  paused" } else { "" },
    );
    let (workflow, version) = (&schedule.workflow, &schedule.version);
    let mut lines = clean(&format!(
        "{workflow} {version}  {kind} {text}{zone}{paused}"
    )) + "\n";
    if schedule.by_events {
        lines.push_str("  starts nothing: the workflow begins with events\n");
    }
    for at in &schedule.next {
        lines.push_str(&format!("  {at}\n"));
    }
    lines
}

fn filled(filled: &Backfilled) -> String {
    let mut text = String::new();
    for PlannedStart { at, id, new } in &filled.starts {
        let outcome = match (new, filled.dry_run) {
            (true, true) => "would be started",
            (true, false) => "started",
            (false, _) => "existed already",
        };
        text.push_str(&format!("{at}  {}  {outcome}\n", clean(id)));
    }
    if filled.starts.is_empty() {
        text.push_str("the schedule has no starts in this period\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn the_text_output() {
        let nightly = json!({"workflow": "report", "version": "1.0.0", "kind": "cron", "schedule": "0 2 * * *", "timezone": "Europe/Berlin",
            "paused": true, "byEvents": false, "next": ["2026-01-31T01:00:00.000Z"]});
        let events = json!({"workflow": "order", "version": "2", "kind": "interval", "schedule": "R/PT1H", "timezone": null,
            "paused": false, "byEvents": true, "next": []});
        let text = [nightly, events].map(|one| row(&from_value(one).unwrap()));
        insta::assert_snapshot!(text.concat(), @r"
        report 1.0.0  cron 0 2 * * * (Europe/Berlin)  paused
          2026-01-31T01:00:00.000Z
        order 2  interval R/PT1H
          starts nothing: the workflow begins with events
        ");
        let told = |dry_run: bool, ids: &[&str]| {
            let start =
                |id: &&str| json!({"at": "2026-01-31T01:00:00Z", "id": id, "new": *id == "1"});
            let starts: Vec<_> = ids.iter().map(start).collect();
            filled(
                &from_value(json!({"workflow": "w", "dryRun": dry_run, "starts": starts})).unwrap(),
            )
        };
        let at = "2026-01-31T01:00:00.000Z";
        let (done, dry) = (told(false, &["1", "2"]), told(true, &["1", "2"]));
        assert_eq!(
            done,
            format!("{at}  1  started\n{at}  2  existed already\n")
        );
        assert_eq!(
            dry,
            format!("{at}  1  would be started\n{at}  2  existed already\n")
        );
        assert!(told(false, &[]).contains("no start"));
    }
}
