//! `swirl dead-letters`

use clap::Subcommand;
use serde_json::Value;
use swirl_presentation::timeline::shown;

use crate::arguments::Reason;
use crate::client::{Repeat, Server};
use crate::terminal::Terminal;

/// Lists, shows, resends and drops messages that could not be processed.
///
/// A message becomes a dead letter when it is not a CloudEvent, when an event keeps failing or is too large to be
/// published, and when a task failed twenty times or crashed five workers. After failed tasks, the instance is
/// suspended. Fix the cause, then retry.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl dead-letters list
  swirl dead-letters show 7
  swirl dead-letters retry 7
  swirl dead-letters drop 7")]
pub struct Args {
    #[command(subcommand)]
    command: DeadLettersCommand,
}

#[derive(Debug, Subcommand)]
enum DeadLettersCommand {
    /// Lists them, oldest first.
    #[command(disable_version_flag = true)]
    List(List),
    /// Shows one with its headers and payload.
    Show(One),
    /// Sends the message again and drops the letter. If an instance was suspended because of it, it continues.
    Retry(Change),
    /// Drops one.
    Drop(Change),
}

#[derive(Debug, clap::Args)]
struct List {
    /// Only those with a higher number than this.
    #[arg(long, value_name = "NUMBER")]
    after: Option<u64>,

    /// The maximum number, up to 500.
    #[arg(long, default_value_t = 50, value_name = "COUNT")]
    limit: u32,

    #[command(flatten)]
    server: Server,
}

#[derive(Debug, clap::Args)]
struct Change {
    #[command(flatten)]
    one: One,

    #[command(flatten)]
    reason: Reason,
}

#[derive(Debug, clap::Args)]
struct One {
    /// The letter's number.
    #[arg(value_name = "NUMBER")]
    number: u64,

    #[command(flatten)]
    server: Server,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    match &args.command {
        DeadLettersCommand::List(list) => list.run(terminal),
        DeadLettersCommand::Show(one) => one.server.run(async |client| {
            let number = one.number.to_string();
            let answer = client.get(&["dead-letters", &number], &[]).await?;
            answer.show(terminal, whole)
        }),
        DeadLettersCommand::Retry(Change { one, reason }) => one.server.run(async |client| {
            let number = one.number.to_string();
            let path = ["dead-letters", number.as_str(), "retry"];
            let query = reason.query();
            let answer = client.post(&path, &query, &[], Vec::new(), Repeat::Never);
            answer.await?.show(terminal, |_| "sent again\n".to_owned())
        }),
        DeadLettersCommand::Drop(Change { one, reason }) => one.server.run(async |client| {
            let number = one.number.to_string();
            let path = ["dead-letters", number.as_str()];
            let answer = client.delete(&path, &reason.query()).await?;
            answer.show(terminal, |body| format!("dropped: {}", line(body)))
        }),
    }
}

impl List {
    fn run(&self, terminal: &Terminal) -> anyhow::Result<u8> {
        let (limit, after) = (self.limit.to_string(), self.after.map(|n| n.to_string()));
        let mut query = vec![("limit", limit.as_str())];
        query.extend(after.as_deref().map(|after| ("after", after)));
        self.server.run(async |client| {
            let answer = client.get(&["dead-letters"], &query).await?;
            answer.show_page(terminal, text, more)
        })
    }
}

fn text(body: &Value) -> String {
    let letters = body["deadLetters"].as_array().into_iter().flatten();
    letters.map(line).collect()
}

fn more(body: &Value) -> Option<String> {
    let next = body["next"].as_u64()?;
    Some(format!("there may be more: --after {next}"))
}

fn about(letter: &Value) -> String {
    if letter["instance"].is_string() {
        return format!("task of {}", shown(&letter["instance"]));
    }
    let event = &letter["event"];
    match event["id"].is_string() {
        true => format!(
            "event {} of {} ({})",
            shown(&event["id"]),
            shown(&event["source"]),
            shown(&event["type"])
        ),
        false => format!("message to {}", shown(&letter["subject"])),
    }
}

fn line(letter: &Value) -> String {
    let (number, at) = (shown(&letter["sequence"]), shown(&letter["at"]));
    let reason = shown(&letter["reason"]);
    format!("{number}  {at}  {}: {reason}\n", about(letter))
}

fn whole(letter: &Value) -> String {
    let mut text = line(letter);
    let mut row = |name: &str, value: String| text.push_str(&format!("{name:<12} {value}\n"));
    row("subject", shown(&letter["subject"]));
    for header in letter["headers"].as_array().into_iter().flatten() {
        let (name, value) = (shown(&header["name"]), shown(&header["value"]));
        row("header", format!("{name}: {value}"));
    }
    if letter["cut"] == true {
        row(
            "payload",
            "without its data, which was too large".to_owned(),
        );
    }
    row("payload", shown(&letter["payload"]));
    text
}
