//! `swirl get`

use std::time::Duration;

use serde_json::Value;
use swirl_api::instance::{GET, InstanceId, ScopePosition};
use swirl_api::{Instance, Status};
use swirl_presentation::timeline::{clean, shown, told};

use crate::client::{Answered, Client, Server, TIMED_OUT, Timeout};
use crate::terminal::{Output, Terminal};
use crate::text::short;

/// The interval at which the server is polled.
const LOOK: Duration = Duration::from_millis(500);
/// The longest value in a line, in characters. JSON output has the whole value.
const VALUE_CHARS_MAX: usize = 2000;

/// Shows an instance: its progress and its state data.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl get 2f6c0d9b31a84e572f6c0d9b
  swirl get 2f6c                                # the instance whose id begins so
  swirl get orders/order-7                      # by workflow and key
  swirl get 2f6c0d9b --watch
  swirl get 2f6c0d9b --output json")]
pub struct Args {
    /// The instance's id or its beginning, or WORKFLOW/KEY.
    #[arg(value_name = "ID")]
    id: String,

    /// Show it again whenever it changes, until it is no longer running.
    #[arg(long, short)]
    watch: bool,

    #[command(flatten)]
    timeout: Timeout,

    #[command(flatten)]
    server: Server,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    args.server.run(async |client| {
        let id = client.instance(&args.id).await?;
        if args.watch {
            return watch(&id, args, &client, terminal).await;
        }
        let answer = client.ask(GET.at(&InstanceId { id })).await?;
        answer.show(terminal, text)
    })
}

/// Watches in JSON: one line per change.
async fn watch(id: &str, args: &Args, client: &Client, terminal: &Terminal) -> anyhow::Result<u8> {
    let mut patience = args.timeout.begin();
    let mut last: Option<Instance> = None;
    let call = GET.at(&InstanceId { id: id.to_owned() });
    loop {
        match client.ask(call.clone()).await {
            Ok(Answered(Ok(found))) => {
                patience.answered();
                let has_ended = found.status != Status::Running;
                if last.as_ref() != Some(&found) {
                    let shown = match terminal.output {
                        Output::Json => format!("{}\n", serde_json::to_string(&found)?),
                        _ if last.is_none() => text(&found),
                        _ => format!("\n{}", text(&found)),
                    };
                    terminal.result(&shown)?;
                }
                last = Some(found);
                if has_ended {
                    return Ok(0);
                }
            }
            Ok(refused) => return refused.show(terminal, text),
            Err(error) => patience.failed(error, terminal)?,
        }
        if patience.is_over() {
            match last {
                Some(_) => terminal.message(&format!("error: instance {id} is still running")),
                None => terminal.still_running(id),
            }
            return Ok(TIMED_OUT);
        }
        patience.pause(LOOK).await;
    }
}

/// A value on one line.
fn line(value: &Value) -> String {
    short(
        clean(&value.to_string()),
        VALUE_CHARS_MAX,
        "… (--output json shows all)",
    )
}

/// An instance as text.
pub fn text(found: &Instance) -> String {
    let mut text = String::new();
    let mut row = |name: &str, value: &str| {
        if !value.is_empty() {
            text.push_str(&format!("{name:<12} {}\n", clean(value)));
        }
    };
    let given = |value: &Option<String>| value.clone().unwrap_or_default();
    let instant = |at: Option<swirl_api::Instant>| at.map(|at| at.to_string()).unwrap_or_default();
    row("id", &found.id);
    row("workflow", &format!("{}:{}", found.workflow, found.version));
    row(
        "status",
        &super::list::status(&found.status, found.suspended, false),
    );
    row("called", &given(&found.instance_key));
    row("key", &given(&found.key));
    row("parent", &given(&found.parent));
    row("found by", &super::list::attributes(&found.attributes));
    row("scheduled", &instant(found.scheduled_at));
    row("started", &found.started_at.to_string());
    row("ended", &instant(found.ended_at));
    row("input", &line(&found.input));
    if let Some(output) = &found.output {
        row("output", &line(output));
    }
    if let Some(error) = &found.error {
        row("error", &told(error));
    }
    for scope in &found.scopes {
        row("at", &place(scope));
        for event in &scope.waits_for {
            let with = event.correlation.iter();
            let with: Vec<String> = with
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| format!("{name} = {}", shown(value)))
                .collect();
            let with = match with.is_empty() {
                true => String::new(),
                false => format!(" with {}", with.join(", ")),
            };
            let (name, kind) = (given(&event.name), given(&event.kind));
            row("", &format!("waits for {name} ({kind}){with}"));
        }
        for timer in &scope.timers {
            row("", &format!("timer {} at {}", timer.kind, timer.due));
        }
        match &scope.data {
            Some(data) => row("data", &line(data)),
            None if scope.data_left_out => {
                row("data", "left out: the instance's data is too long");
            }
            None => {}
        }
    }
    if let Some(left_out) = found.scopes_left_out {
        row("", &format!("and {left_out} more"));
    }
    text
}

fn place(scope: &ScopePosition) -> String {
    let mut text = match (&scope.name, scope.scope.as_str()) {
        (Some(name), id) => format!("[{name}] ({id}) "),
        (None, "r") => String::new(),
        (None, id) => format!("[{id}] "),
    };
    if let Some(state) = &scope.state {
        text.push_str(&format!("{state}: "));
    }
    text.push_str(&scope.doing);
    if let Some(action) = &scope.action {
        text.push_str(&format!(" ({action})"));
    }
    if let Some(attempt) = scope.attempt.filter(|attempt| *attempt > 1) {
        text.push_str(&format!(", attempt {attempt}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_instance() {
        let body = json!({
            "id": "2f6c0d9b31a84e57", "workflow": "order", "version": "1.0", "status": "faulted", "suspended": false,
            "attributes": {"customer": "Ada\nLovelace", "total": 12, "vip": true}, "startedAt": "2024-01-31T09:00:00Z", "input": {"order": 7},
            "error": {"name": "FunctionError", "code": "503", "message": "busy"},
            "scopes": [{"scope": "r", "state": "Charge", "doing": "failed", "action": "charge",
                "data": {"order": 7, "note": "a\nb"}}],
        });
        insta::assert_snapshot!(text(&serde_json::from_value(body).unwrap()), @r#"
        id           2f6c0d9b31a84e57
        workflow     order:1.0
        status       faulted
        found by     customer = Ada Lovelace, total = 12, vip = true
        started      2024-01-31T09:00:00.000Z
        input        {"order":7}
        error        FunctionError (503): busy
        at           Charge: failed (charge)
        data         {"order":7,"note":"a\nb"}
        "#);
    }
}
