//! `swirl events`

use serde_json::Value;
use swirl_presentation::timeline::shown;

use super::send_event::{outcome, read};
use crate::client::{Repeat, Server};
use crate::listing;
use crate::terminal::Terminal;

/// Shows recent events, and explains which instances would receive one.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl events recent
  swirl events recent --outcome not-received
  swirl events explain approved.json
  swirl events explain approved.json --instance 2f6c...   # why this one doesn't take it")]
pub struct Args {
    #[command(subcommand)]
    command: EventsCommand,
}

#[derive(Debug, clap::Subcommand)]
enum EventsCommand {
    /// Lists the last events that the coordinators received, newest first, with what became of each.
    Recent(Recent),
    /// Explains which instances would receive an event, and which attributes exclude the others; the nearest miss comes
    /// first.
    ///
    /// The event is not sent. Running instances are examined, newest first, up to 500.
    Explain(Explain),
}

#[derive(Debug, clap::Args)]
struct Recent {
    /// The maximum number, up to 500.
    #[arg(long, default_value_t = 50, value_name = "COUNT")]
    limit: u32,

    /// Only events of this type.
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,

    /// Only events with this outcome: received, collected, kept, duplicate, not-received or refused.
    #[arg(long, value_name = "OUTCOME")]
    outcome: Option<String>,

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
            let filters = [("type", &recent.kind), ("outcome", &recent.outcome)];
            let query = listing::query(&limit, &filters);
            let answer = client.get(&["events"], &query).await?;
            answer.show(terminal, |body| {
                let events = body["events"].as_array().into_iter().flatten();
                events.map(recent_line).collect()
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

fn recent_line(event: &Value) -> String {
    let (at, kind) = (shown(&event["at"]), shown(&event["type"]));
    let (via, word) = (shown(&event["via"]), shown(&event["outcome"]));
    let became = match kind.is_empty() {
        true => format!("(via {via}): {word}"),
        false => format!("({kind}, via {via}): {word}"),
    };
    format!("{at}  {}", outcome(event, &became))
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
        match body["unknownType"].as_str() {
            Some(unknown) => add_line(format!("nothing would receive it: {unknown}")),
            None => add_line("nothing would receive it".to_owned()),
        }
    }
    for row in all("notTakenBy") {
        let others = match row["others"].as_u64() {
            Some(others) if others > 0 => format!(" and {others} others"),
            _ => String::new(),
        };
        let whom = match row["instance"].as_str() {
            Some(_) => format!("{}{others} ({})", shown(&row["instance"]), of(row)),
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
                {"workflow": "order", "version": "2", "event": "Paid", "instance": "88ab", "others": 11,
                    "why": [{"text": "its 'order' is '7', and '8' is expected"}]},
                {"workflow": "audit", "version": "1", "event": "Any", "instance": null, "why": [{"text": "it has no 'user'"}]},
            ],
            "kept": true, "instancesSeen": 500, "complete": false,
        }));
        insta::assert_snapshot!(text, @r"
        starts pair 1, as Left, together with others
        received by 2f6c (order 2) in state Wait, as Paid
        not received by 88ab and 11 others (order 2)
          its 'order' is '7', and '8' is expected
        not received by audit 1, which starts nothing
          it has no 'user'
        it would be kept for instances that wait for it later
        only the newest 500 running instances were examined: name one with --instance
        ");
        assert_eq!(explained(&json!({})), "nothing would receive it\n");
    }
}
