//! `swirl send-event`

use std::io::Read;

use anyhow::Context;

use crate::client::{Repeat, Server, timeline::shown};
use crate::terminal::Terminal;

/// Sends CloudEvents to a server.
///
/// When it returns, what came of the events is committed. An event is known by its source and id:
/// sending it again changes nothing.
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
    let mut text = Vec::new();
    if args.file == "-" {
        std::io::stdin().lock().read_to_end(&mut text)?;
    } else {
        text =
            std::fs::read(&args.file).with_context(|| format!("{} cannot be read", args.file))?;
    }
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
            accepted
                .map(|event| {
                    format!(
                        "{} {} accepted\n",
                        shown(&event["source"]),
                        shown(&event["id"])
                    )
                })
                .collect()
        })
    })
}
