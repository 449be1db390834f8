//! `swirl send-event`

use std::io::Read;

use anyhow::Context;
use serde_json::Value;
use swirl_presentation::timeline::shown;

use crate::client::{Repeat, Server};
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
    let text = read(&args.file)?;
    let batch = text.trim_ascii_start().starts_with(b"[");
    let kind = if batch {
        "application/cloudevents-batch+json"
    } else {
        "application/cloudevents+json"
    };
    args.server.run(async |client| {
        let headers = [("content-type", kind)];
        let answer = client
            .post(&["events"], &[], &headers, text, Repeat::Safe)
            .await?;
        answer.show(terminal, |body| {
            let accepted = body["accepted"].as_array().into_iter().flatten();
            accepted.map(|event| outcome(event, "accepted")).collect()
        })
    })
}

/// The content of a file, or of stdin.
pub(super) fn read(file: &str) -> anyhow::Result<Vec<u8>> {
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
pub(super) fn outcome(event: &Value, became: &str) -> String {
    let (source, id) = (shown(&event["source"]), shown(&event["id"]));
    let mut text = match source.is_empty() && id.is_empty() {
        true => format!("an event that could not be read {became}\n"),
        false => format!("{source} {id} {became}\n"),
    };
    let mut add_line = |line: String| text.push_str(&format!("  {line}\n"));
    let all = |name: &str| event[name].as_array().map_or(&[][..], Vec::as_slice);
    if event["duplicate"] == true {
        add_line("it was received before, so nothing was done".to_owned());
    }
    for started in all("started") {
        let (workflow, id) = (shown(&started["workflow"]), shown(&started["id"]));
        add_line(format!("started {workflow} {id}"));
    }
    for id in all("instances") {
        add_line(format!("reached {}", shown(id)));
    }
    for workflow in all("collectedBy") {
        add_line(format!("waits for others to start {}", shown(workflow)));
    }
    for reason in all("reasons") {
        add_line(format!("nothing received it: {}", shown(reason)));
    }
    if event["kept"] == true {
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
        let taken = json!({"source": "/shop", "id": "7", "started": [{"id": "2f6c", "workflow": "order"}],
            "instances": ["88ab"], "collectedBy": ["pair"], "kept": true, "reasons": []});
        let lost = json!({"source": "/shop", "id": "8", "reasons": ["no deployed workflow consumes the type 't'"]});
        let again = json!({"source": "/shop", "id": "7", "duplicate": true});
        let all = [taken, lost, again];
        let text: String = all.iter().map(|one| outcome(one, "accepted")).collect();
        insta::assert_snapshot!(text, @r"
        /shop 7 accepted
          started order 2f6c
          reached 88ab
          waits for others to start pair
          it is kept for instances that wait for it later
        /shop 8 accepted
          nothing received it: no deployed workflow consumes the type 't'
        /shop 7 accepted
          it was received before, so nothing was done
        ");
    }
}
