//! `swirl start`

use std::time::Duration;

use anyhow::Context;
use swirl_api::Status;
use swirl_api::actions::Json;
use swirl_api::instance::{GET, GetQuery, InstanceId};
use swirl_api::schedules::{Started, Workflow};
use swirl_api::start::{Begun, START, StartQuery};
use swirl_presentation::timeline::{self, clean};

use super::get;
use crate::arguments::json_argument;
use crate::client::{Answered, Client, Patience, Server, TIMED_OUT, Timeout};
use crate::terminal::{Output, Terminal};

/// The time that one request waits for the end.
const WAIT: Duration = Duration::from_secs(30);
/// The pause before an unreachable server is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// Starts an instance on a server.
///
/// Prints its id. With '--wait' the id goes to stderr at once, and the output to stdout at the end, however long that
/// takes; if the server is unreachable meanwhile, the command keeps trying. Exit code 1 if the instance ended without
/// completing.
#[derive(Debug, clap::Args)]
#[command(
    disable_version_flag = true,
    after_long_help = "\
Examples:
  swirl start hello --input '{\"name\": \"Ada\"}' --wait
  swirl start order --input @order.json --key order-7   # at most once for this key"
)]
pub struct Args {
    /// The workflow's id.
    #[arg(value_name = "WORKFLOW")]
    workflow: String,

    /// The input, a JSON object or, for DSL 1.0, any JSON value: as it is, '@FILE', or '-' for stdin.
    #[arg(long, short, default_value = "{}", value_name = "JSON")]
    input: String,

    /// Wait for the end.
    #[arg(long)]
    wait: bool,

    #[command(flatten)]
    timeout: Timeout,

    /// The same key always gives the same instance [default: a random key].
    #[arg(long, value_name = "KEY")]
    key: Option<String>,

    /// The workflow's version; the latest if absent.
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,

    #[command(flatten)]
    server: Server,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    let input = Json(json_argument(&args.input).context("--input")?);
    args.server.run(async |client| {
        let query = StartQuery {
            version: args.version.clone(),
            wait: None,
        };
        let key = match &args.key {
            Some(key) => key.clone(),
            None => drawn_key()?,
        };
        let id = args.workflow.clone();
        let call = START.at(&Workflow { id }).query(query).body(&input);
        let answer = client.ask(call.key(&key)).await?;
        match &answer.0 {
            Ok(begun) if args.wait => ended(&client, begun, args.timeout.begin(), terminal).await,
            _ => answer.show(terminal, |begun| format!("{}\n", clean(begun.id()))),
        }
    })
}

/// A random key, so that a start can be repeated when it is unknown whether it was carried out.
pub(super) fn drawn_key() -> anyhow::Result<String> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).context("no random key can be generated")?;
    Ok(format!("drawn-{:032x}", u128::from_be_bytes(bytes)))
}

async fn ended(
    client: &Client,
    begun: &Begun,
    mut patience: Patience,
    terminal: &Terminal,
) -> anyhow::Result<u8> {
    let id = clean(begun.id());
    terminal.message(&match begun {
        Begun::Started(Started { new: false, .. }) => {
            format!("instance {id} was started before with this key")
        }
        _ => format!("instance {id} is started"),
    });
    let call = GET.at(&InstanceId { id: id.clone() });
    let found = loop {
        let wait = patience.left().unwrap_or(WAIT).min(WAIT);
        let wait = format!("PT{:.3}S", wait.as_secs_f64());
        let query = GetQuery {
            wait: Some(wait),
            at: None,
        };
        match client.ask(call.clone().query(query)).await {
            Ok(Answered(Ok(found))) if found.status != Status::Running => break found,
            Ok(Answered(Ok(_))) => patience.answered(),
            Ok(refused) => return refused.show(terminal, get::text),
            Err(error) => {
                patience.failed(error, terminal)?;
                patience.pause(AGAIN).await;
            }
        }
        if patience.is_over() {
            terminal.still_running(&id);
            return Ok(TIMED_OUT);
        }
    };
    let completed = found.status == Status::Completed;
    if terminal.output == Output::Json {
        terminal.result(&format!("{}\n", serde_json::to_string_pretty(&found)?))?;
    } else if completed {
        let output = found.output.unwrap_or_default();
        terminal.result(&format!("{output:#}\n"))?;
    } else {
        let error = found.error.as_ref();
        let error = error.map(|error| format!(": {}", timeline::told(error)));
        let (status, error) = (found.status, error.unwrap_or_default());
        terminal.message(&format!("error: instance {id} is {status}{error}"));
    }
    Ok(u8::from(!completed))
}
