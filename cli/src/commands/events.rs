//! `swirl events`

use serde_json::Value;
use swirl_presentation::timeline::shown;

use super::send_event::{outcome, read};
use crate::client::{Repeat, Server};
use crate::terminal::Terminal;

/// Shows recent events, and explains which instances would receive one.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl events recent
  swirl events explain approved.json
  swirl events explain approved.json --instance 2f6c...   # why this one doesn't take it")]
pub struct Args {
    #[command(subcommand)]
    command: EventsCommand,
}

#[derive(Debug, clap::Subcommand)]
enum EventsCommand {
    /// Lists the last events that a server received since it started, newest first.
    ///
    /// Each coordinator of a cluster knows only the events that it received itself.
    Recent(Recent),
    /// Explains which instances would receive an event, and which attributes exclude the others.
    ///
    /// The event is not sent. Running instances are examined, newest first, up to 500.
    Explain(Explain),
}

#[derive(Debug, clap::Args)]
struct Recent {
    /// The maximum number, up to 500.
    #[arg(long, default_value_t = 50, value_name = "COUNT")]
    limit: u32,

    #[command(flatten)]
    server: Server,
}

#[derive(Debug, clap::Args)]
struct Explain {
    /// A CloudEvent in JSON; '-' for stdin.
    #[arg(value_name = "FILE")]
    file: String,

    /// Only explain this instance.
    #[arg(long, value_name = "ID")]
    instance: Option<String>,

    #[command(flatten)]
    server: Server,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    match &args.command {
        EventsCommand::Recent(recent) => recent.server.run(async |client| {
            let limit = recent.limit.to_string();
            let answer = client.get(&["events"], &[("limit", &limit)]).await?;
            answer.show(terminal, |body| {
                let events = body["events"].as_array().into_iter().flatten();
                let line =
                    |event: &Value| format!("{}  {}", shown(&event["at"]), outcome(event, "came"));
                events.map(line).collect()
            })
        }),
        EventsCommand::Explain(explain) => {
            let event = read(&explain.file)?;
            let instance = explain.instance.as_deref().map(|id| ("instance", id));
            let query: Vec<(&str, &str)> = instance.into_iter().collect();
            explain.server.run(async |client| {
                let headers = [("content-type", "application/cloudevents+json")];
                let path = ["events", "explain"];
                let answer = client.post(&path, &query, &headers, event, Repeat::Safe);
                answer.await?.show(terminal, explained)
            })
        }
    }
}

fn explained(body: &Value) -> String {
    let all = |name: &str| body[name].as_array().map_or(&[][..], Vec::as_slice);
    let of = |row: &Value| format!("{} {}", shown(&row["workflow"]), shown(&row["version"]));
    let mut text = String::new();
    let mut add_line = |line: String| text.push_str(&format!("{line}\n"));
    for row in all("starts") {
        let with = match row["alone"] == true {
            true => "",
            false => ", together with others",
        };
        add_line(format!(
            "starts {}, as {}{with}",
            of(row),
            shown(&row["event"])
        ));
    }
    for row in all("takenBy") {
        let state = match row["state"].as_str() {
            Some(_) => format!(" in state {}", shown(&row["state"])),
            None => String::new(),
        };
        let (id, event) = (shown(&row["instance"]), shown(&row["event"]));
        add_line(format!("received by {id} ({}){state}, as {event}", of(row)));
    }
    if all("starts").is_empty() && all("takenBy").is_empty() {
        add_line("nothing would receive it".to_owned());
    }
    for row in all("notTakenBy") {
        let whom = match row["instance"].as_str() {
            Some(_) => format!("{} ({})", shown(&row["instance"]), of(row)),
            None => format!("{}, which starts nothing", of(row)),
        };
        add_line(format!("not received by {whom}"));
        for why in row["why"].as_array().into_iter().flatten() {
            add_line(format!("  {}", shown(&why["text"])));
        }
    }
    if body["kept"] == true {
        add_line("it would be kept for instances that wait for it later".to_owned());
    }
    if body["complete"] == false {
        add_line(format!(
            "only the newest {} running instances were examined: name one with --instance",
            shown(&body["instancesSeen"])
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_explanation() {
        let text = explained(&json!({
            "starts": [{"workflow": "pair", "version": "1", "event": "Left", "alone": false}],
            "takenBy": [{"workflow": "order", "version": "2", "event": "Paid", "instance": "2f6c", "state": "Wait"}],
            "notTakenBy": [
                {"workflow": "order", "version": "2", "event": "Paid", "instance": "88ab",
                    "why": [{"text": "its 'order' is '7', and '8' is expected"}]},
                {"workflow": "audit", "version": "1", "event": "Any", "instance": null, "why": [{"text": "it has no 'user'"}]},
            ],
            "kept": true, "instancesSeen": 500, "complete": false,
        }));
        insta::assert_snapshot!(text, @r"
        starts pair 1, as Left, together with others
        received by 2f6c (order 2) in state Wait, as Paid
        not received by 88ab (order 2)
          its 'order' is '7', and '8' is expected
        not received by audit 1, which starts nothing
          it has no 'user'
        it would be kept for instances that wait for it later
        only the newest 500 running instances were examined: name one with --instance
        ");
        assert_eq!(explained(&json!({})), "nothing would receive it\n");
    }
}
