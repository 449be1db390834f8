//! `swirl events`

use swirl_api::events::{
    Consumed, EXPLAIN, ExplainQuery, Explained, Outcome, RECENT, RecentEvent, RecentQuery,
    STRUCTURED, WouldStart,
};
use swirl_presentation::timeline::clean;

use super::send_event::{outcome, read_file_or_stdin};
use crate::client::Server;
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
            let query = RecentQuery {
                limit: Some(recent.limit),
                kind: recent.kind.clone(),
                outcome: recent.outcome.as_deref().map(Outcome::from),
            };
            let answer = client.ask(RECENT.ask().query(query)).await?;
            answer.show(terminal, |found| {
                found.events.iter().map(recent_line).collect()
            })
        }),
        EventsCommand::Explain(explain) => {
            let event = read_file_or_stdin(&explain.file)?;
            let instance = explain.instance.clone();
            explain.server.run(async |client| {
                let call = EXPLAIN.ask().query(ExplainQuery { instance });
                let answer = client.ask(call.sending(STRUCTURED, event));
                answer.await?.show(terminal, explained)
            })
        }
    }
}

fn recent_line(event: &RecentEvent) -> String {
    let RecentEvent {
        at,
        via,
        kind,
        reach,
    } = event;
    let (kind, via, word) = (
        clean(kind),
        clean(via.as_str()),
        clean(reach.outcome.as_str()),
    );
    let became = match kind.is_empty() {
        true => format!("(via {via}): {word}"),
        false => format!("({kind}, via {via}): {word}"),
    };
    format!("{at}  {}", outcome(reach, &became))
}

fn explained(found: &Explained) -> String {
    let of = |row: &Consumed| format!("{} {}", clean(&row.workflow), clean(&row.version));
    let mut text = String::new();
    let mut add_line = |line: String| text.push_str(&format!("{line}\n"));
    for WouldStart { consumed, alone } in &found.starts {
        let with = match alone {
            true => "",
            false => ", together with others",
        };
        let event = clean(&consumed.event);
        add_line(format!("starts {}, as {event}{with}", of(consumed)));
    }
    for row in &found.taken_by {
        let state = row.state.as_ref();
        let state = state.map(|state| format!(" in {}", clean(state)));
        let (id, event) = (clean(&row.instance), clean(&row.consumed.event));
        add_line(format!(
            "received by {id} ({}){}, as {event}",
            of(&row.consumed),
            state.unwrap_or_default()
        ));
    }
    if found.starts.is_empty() && found.taken_by.is_empty() {
        match &found.unknown_type {
            Some(unknown) => add_line(format!("nothing would receive it: {}", clean(unknown))),
            None => add_line("nothing would receive it".to_owned()),
        }
    }
    for row in &found.not_taken_by {
        let of = of(&row.consumed);
        let whom = match (&row.instance, row.others) {
            (Some(id), 0) => format!("{} ({of})", clean(id)),
            (Some(id), others) => format!("{} and {others} others ({of})", clean(id)),
            (None, _) => format!("{of}, which starts nothing"),
        };
        add_line(format!("not received by {whom}"));
        for why in &row.why {
            add_line(format!("  {}", clean(&why.text)));
        }
    }
    if found.kept {
        add_line("it would be kept for instances that wait for it later".to_owned());
    }
    if !found.complete {
        add_line(format!(
            "only the newest {} running instances were examined: name one with --instance",
            found.instances_seen
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
        let text = |found| explained(&serde_json::from_value(found).unwrap());
        let found = text(json!({
            "starts": [{"workflow": "pair", "version": "1", "event": "Left", "alone": false}],
            "takenBy": [{"workflow": "order", "version": "2", "event": "Paid", "instance": "2f6c", "state": "Wait"}],
            "notTakenBy": [
                {"workflow": "order", "version": "2", "event": "Paid", "instance": "88ab", "others": 11,
                    "why": [{"text": "its 'order' is '7', and '8' is expected"}]},
                {"workflow": "audit", "version": "1", "event": "Any", "instance": null, "others": 0, "why": [{"text": "it has no 'user'"}]},
            ],
            "kept": true, "instancesSeen": 500, "complete": false, "unknownType": null,
        }));
        insta::assert_snapshot!(found, @r"
        starts pair 1, as Left, together with others
        received by 2f6c (order 2) in Wait, as Paid
        not received by 88ab and 11 others (order 2)
          its 'order' is '7', and '8' is expected
        not received by audit 1, which starts nothing
          it has no 'user'
        it would be kept for instances that wait for it later
        only the newest 500 running instances were examined: name one with --instance
        ");
        let nothing = json!({"starts": [], "takenBy": [], "notTakenBy": [], "kept": false, "instancesSeen": 0,
            "complete": true, "unknownType": "no workflow consumes 't'"});
        assert_eq!(
            text(nothing),
            "nothing would receive it: no workflow consumes 't'\n"
        );
    }
}
