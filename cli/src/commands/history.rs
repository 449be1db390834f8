//! `swirl history`

use std::time::Duration;

use serde_json::Value;
use swirl_presentation::timeline::Timeline;

use crate::client::{Answer, Client, Server, TIMED_OUT, Timeout};
use crate::terminal::{Output, Terminal};

/// The interval at which the server is polled for new entries.
const LOOK: Duration = Duration::from_millis(500);

/// Shows what happened to an instance.
///
/// One line per entry: the time since the start, the branch (empty for the main path), and what happened.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl history 2f6c0d9b
  swirl history 2f6c0d9b --data     # with arguments, results and events
  swirl history 2f6c0d9b --follow
  swirl history 2f6c0d9b --output json")]
pub struct Args {
    /// The instance's id or its beginning, or WORKFLOW/KEY.
    #[arg(value_name = "ID")]
    id: String,

    /// Show arguments, results and events, as far as the server records them ('history.data').
    #[arg(long)]
    data: bool,

    /// Follow the history until the instance is no longer running.
    #[arg(long, short)]
    follow: bool,

    #[command(flatten)]
    timeout: Timeout,

    #[command(flatten)]
    server: Server,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    args.server.run(async |client| {
        let id = client.instance(&args.id).await?;
        if args.follow {
            return follow(&id, args, &client, terminal).await;
        }
        whole(&id, &client).await?.show(terminal, |body| {
            Timeline::new(terminal.colours(), args.data).lines(entries(body))
        })
    })
}

/// All pages of a history, as one answer.
///
/// # Errors
/// The request failed.
pub async fn whole(id: &str, client: &Client) -> anyhow::Result<Answer> {
    let path = ["instances", id, "history"];
    let mut whole = client.get(&path, &[]).await?;
    while whole.body["more"] == true {
        let known = whole.body["before"].as_u64().unwrap_or(0) + entries(&whole.body).len() as u64;
        let mut next = client.get(&path, &[("after", &known.to_string())]).await?;
        if next.refused() {
            return Ok(next);
        }
        let mut all = whole.body["entries"].take();
        if let (Some(all), Some(new)) = (all.as_array_mut(), next.body["entries"].as_array_mut()) {
            all.append(new);
        }
        next.body["before"] = whole.body["before"].take();
        next.body["entries"] = all;
        whole = next;
    }
    Ok(whole)
}

fn entries(body: &Value) -> &[Value] {
    body["entries"].as_array().map_or(&[], Vec::as_slice)
}

/// Follows in JSON: one line per entry.
async fn follow(id: &str, args: &Args, client: &Client, terminal: &Terminal) -> anyhow::Result<u8> {
    let mut patience = args.timeout.begin();
    let mut timeline = Timeline::new(terminal.colours(), args.data);
    let mut known = 0_u64;
    loop {
        let after = known.to_string();
        let path = ["instances", id, "history"];
        match client.get(&path, &[("after", &after)]).await {
            Ok(answer) if answer.refused() => return answer.show(terminal, |_| String::new()),
            Ok(answer) => {
                patience.answered();
                let new = entries(&answer.body);
                let before = answer.body["before"].as_u64().unwrap_or(known);
                if before > known {
                    let gone = before - known;
                    terminal.message(&format!("the next {gone} entries are no longer kept"));
                }
                known = before + new.len() as u64;
                let text = match terminal.output {
                    Output::Json => new.iter().map(|entry| format!("{entry}\n")).collect(),
                    _ => timeline.lines(new),
                };
                terminal.result(&text)?;
                if answer.body["more"] == true {
                    continue;
                }
                if answer.body["status"] != "running" {
                    return Ok(0);
                }
            }
            Err(error) => patience.failed(error, terminal)?,
        }
        if patience.is_over() {
            terminal.message(&format!("error: instance {id} is still running"));
            return Ok(TIMED_OUT);
        }
        patience.pause(LOOK).await;
    }
}
