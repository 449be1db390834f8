//! `swirl history`

use std::time::Duration;

use swirl_api::Status;
use swirl_api::history::{History, HistoryQuery};
use swirl_api::instance::{HISTORY, InstanceId};
use swirl_presentation::timeline::Timeline;

use crate::client::{Answered, Client, Server, TIMED_OUT, Timeout};
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
            return follow(id, args, &client, terminal).await;
        }
        whole(id, &client).await?.show(terminal, |history| {
            Timeline::new(terminal.colours(), args.data).lines(&history.entries)
        })
    })
}

fn after(known: u64) -> HistoryQuery {
    HistoryQuery {
        after: Some(known),
        ..HistoryQuery::default()
    }
}

/// All pages of a history, as one answer.
///
/// # Errors
/// The request failed.
pub async fn whole(id: String, client: &Client) -> anyhow::Result<Answered<History>> {
    let call = HISTORY.at(&InstanceId { id });
    let mut whole = match client.ask(call.clone()).await? {
        Answered(Ok(first)) => first,
        refused => return Ok(refused),
    };
    while whole.more {
        match client.ask(call.clone().query(after(whole.known()))).await? {
            Answered(Ok(next)) => {
                let (before, mut entries) = (whole.before, whole.entries);
                entries.extend(next.entries);
                whole = History {
                    before,
                    entries,
                    ..next
                };
            }
            refused => return Ok(refused),
        }
    }
    Ok(Answered(Ok(whole)))
}

/// Follows in JSON: one line per entry.
async fn follow(
    id: String,
    args: &Args,
    client: &Client,
    terminal: &Terminal,
) -> anyhow::Result<u8> {
    let mut patience = args.timeout.begin();
    let mut timeline = Timeline::new(terminal.colours(), args.data);
    let mut known = 0;
    let call = HISTORY.at(&InstanceId { id: id.clone() });
    loop {
        match client.ask(call.clone().query(after(known))).await {
            Ok(Answered(Ok(history))) => {
                patience.answered();
                if history.before > known {
                    let gone = history.before - known;
                    terminal.message(&format!("the next {gone} entries are no longer kept"));
                }
                known = history.known();
                let mut text = String::new();
                match terminal.output {
                    Output::Json => {
                        for entry in &history.entries {
                            text.push_str(&(serde_json::to_string(entry)? + "\n"));
                        }
                    }
                    _ => text = timeline.lines(&history.entries),
                }
                terminal.result(&text)?;
                if history.more {
                    continue;
                }
                if history.status != Status::Running {
                    return Ok(0);
                }
            }
            Ok(refused) => return refused.show(terminal, |_| String::new()),
            Err(error) => patience.failed(error, terminal)?,
        }
        if patience.is_over() {
            match known {
                0 => terminal.still_running(&id),
                _ => terminal.message(&format!("error: instance {id} is still running")),
            }
            return Ok(TIMED_OUT);
        }
        patience.pause(LOOK).await;
    }
}
