//! `swirl dead-letters`

use clap::Subcommand;
use swirl_api::dead_letters::{DROP, DeadLetter, DeadLetters, GET, LIST, Letter, ListQuery, RETRY};
use swirl_presentation::timeline::clean;

use crate::arguments::Reason;
use crate::client::Server;
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
    #[arg(value_name = "NUMBER", value_parser = number)]
    number: u64,

    #[command(flatten)]
    server: Server,
}

fn number(text: &str) -> Result<u64, &'static str> {
    text.parse()
        .map_err(|_| "expected the number of a dead letter, as 'swirl dead-letters list' shows it")
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    match &args.command {
        DeadLettersCommand::List(list) => list.server.run(async |client| {
            let query = ListQuery {
                after: list.after,
                limit: Some(list.limit),
            };
            let answer = client.ask(LIST.ask().query(query)).await?;
            answer.show_page(
                terminal,
                |page| page.dead_letters.iter().map(line).collect(),
                more,
            )
        }),
        DeadLettersCommand::Show(one) => one.server.run(async |client| {
            let answer = client.ask(GET.at(&one.letter())).await?;
            answer.show(terminal, whole)
        }),
        DeadLettersCommand::Retry(Change { one, reason }) => one.server.run(async |client| {
            let call = RETRY.at(&one.letter()).query(reason.asked());
            let answer = client.ask(call).await?;
            answer.show(terminal, |_| "sent again\n".to_owned())
        }),
        DeadLettersCommand::Drop(Change { one, reason }) => one.server.run(async |client| {
            let call = DROP.at(&one.letter()).query(reason.asked());
            let answer = client.ask(call).await?;
            answer.show(terminal, |letter| format!("dropped: {}", line(letter)))
        }),
    }
}

impl One {
    fn letter(&self) -> Letter {
        Letter {
            sequence: self.number.to_string(),
        }
    }
}

fn more(page: &DeadLetters) -> Option<String> {
    let next = page.next?;
    Some(format!("there may be more: --after {next}"))
}

fn about(letter: &DeadLetter) -> String {
    if let Some(instance) = &letter.instance {
        return format!("task of {instance}");
    }
    let event = letter.event.clone().unwrap_or_default();
    let (source, kind) = (
        event.source.unwrap_or_default(),
        event.kind.unwrap_or_default(),
    );
    match event.id {
        Some(id) => format!("event {id} of {source} ({kind})"),
        None => format!("message to {}", letter.subject),
    }
}

fn line(letter: &DeadLetter) -> String {
    let about = about(letter);
    let DeadLetter {
        sequence,
        at,
        reason,
        ..
    } = letter;
    clean(&format!("{sequence}  {at}  {about}: {reason}")) + "\n"
}

fn whole(letter: &DeadLetter) -> String {
    let mut text = line(letter);
    let mut row = |name: &str, value: &str| {
        text.push_str(&format!("{name:<12} {}\n", clean(value)));
    };
    row("subject", &letter.subject);
    for header in letter.headers.iter().flatten() {
        row("header", &format!("{}: {}", header.name, header.value));
    }
    if letter.cut {
        row("payload", "without its data, which was too large");
    }
    row("payload", letter.payload.as_deref().unwrap_or_default());
    text
}
