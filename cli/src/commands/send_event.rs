//! `swirl send-event`

use std::io::Read;

use anyhow::Context;
use swirl_api::events::{BATCHED, PUBLISH, Reach, STRUCTURED, Started};
use swirl_presentation::timeline::clean;

use crate::client::Server;
use crate::terminal::Terminal;

/// Sends CloudEvents to a server.
///
/// When it returns, the effects of the events are committed. An event is identified by its source and id, so sending it
/// again changes nothing.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl send-event approved.json
  echo '{\"specversion\": \"1.0\", \"id\": \"1\", \"source\": \"/me\", \"type\": \"t\"}' | swirl send-event -")]
pub struct Args {
    /// A CloudEvent in JSON, or an array of up to 100; '-' for stdin.
    #[arg(value_name = "FILE")]
    file: String,

    #[command(flatten)]
    server: Server,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    let text = read_file_or_stdin(&args.file)?;
    let kind = match text.trim_ascii_start().starts_with(b"[") {
        true => BATCHED,
        false => STRUCTURED,
    };
    args.server.run(async |client| {
        let answer = client.ask(PUBLISH.ask().sending(kind, text)).await?;
        answer.show(terminal, |done| {
            let accepted = done.accepted.iter();
            accepted.map(|event| outcome(event, "accepted")).collect()
        })
    })
}

/// The content of a file, or of stdin.
pub(super) fn read_file_or_stdin(file: &str) -> anyhow::Result<Vec<u8>> {
    let mut text = Vec::new();
    if file == "-" {
        std::io::stdin().lock().read_to_end(&mut text)?;
    } else {
        text = swirl_documents::files::read(
            std::path::Path::new(file),
            swirl_documents::files::BYTES_MAX,
        )
        .with_context(|| format!("{file} cannot be read"))?;
    }
    Ok(text)
}

/// The outcome of an event, one fact per line. The first line is about the event itself.
pub(super) fn outcome(event: &Reach, became: &str) -> String {
    let (source, id) = (clean(&event.source), clean(&event.id));
    let mut text = match source.is_empty() && id.is_empty() {
        true => format!("an event that could not be read {became}\n"),
        false => format!("{source} {id} {became}\n"),
    };
    let mut add_line = |line: String| text.push_str(&format!("  {line}\n"));
    if event.duplicate {
        add_line("it was received before, so nothing was done".to_owned());
    }
    for Started { id, workflow } in &event.started {
        add_line(format!("started {} {}", clean(workflow), clean(id)));
    }
    for id in &event.instances {
        add_line(format!("reached {}", clean(id)));
    }
    for workflow in &event.collected_by {
        add_line(format!(
            "waits for other events to start {}",
            clean(workflow)
        ));
    }
    for reason in &event.reasons {
        add_line(format!("nothing received it: {}", clean(reason)));
    }
    if event.kept {
        add_line("it is kept for instances that wait for it later".to_owned());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn outcomes_are_described() {
        let all = json!([
            {"source": "/shop", "id": "7", "outcome": "received", "duplicate": false,
                "started": [{"id": "2f6c", "workflow": "order"}], "instances": ["88ab"], "collectedBy": ["pair"],
                "kept": true, "reasons": []},
            {"source": "/shop", "id": "8", "outcome": "not-received", "duplicate": false, "started": [],
                "instances": [], "collectedBy": [], "kept": false,
                "reasons": ["no deployed workflow consumes the type 't'"]},
            {"source": "/shop", "id": "7", "outcome": "duplicate", "duplicate": true, "started": [],
                "instances": [], "collectedBy": [], "kept": false, "reasons": []},
        ]);
        let all: Vec<Reach> = serde_json::from_value(all).unwrap();
        let text: String = all.iter().map(|one| outcome(one, "accepted")).collect();
        insta::assert_snapshot!(text, @r"
        /shop 7 accepted
          started order 2f6c
          reached 88ab
          waits for other events to start pair
          it is kept for instances that wait for it later
        /shop 8 accepted
          nothing received it: no deployed workflow consumes the type 't'
        /shop 7 accepted
          it was received before, so nothing was done
        ");
    }
}
