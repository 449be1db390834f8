//! `swirl get`

use std::time::Duration;

use serde_json::Value;
use swirl_presentation::timeline;

use crate::client::{Client, Server, TIMED_OUT, Timeout};
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
        let answer = client.get(&["instances", &id], &[]).await?;
        answer.show(terminal, text)
    })
}

/// Watches in JSON: one line per change.
async fn watch(id: &str, args: &Args, client: &Client, terminal: &Terminal) -> anyhow::Result<u8> {
    let mut patience = args.timeout.begin();
    let mut last = Value::Null;
    loop {
        match client.get(&["instances", id], &[]).await {
            Ok(answer) if answer.refused() => return answer.show(terminal, text),
            Ok(answer) => {
                patience.answered();
                if answer.body != last {
                    let shown = match terminal.output {
                        Output::Json => format!("{}\n", answer.body),
                        _ if last.is_null() => text(&answer.body),
                        _ => format!("\n{}", text(&answer.body)),
                    };
                    terminal.result(&shown)?;
                }
                last = answer.body;
                if last["status"] != "running" {
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

/// A value on one line.
fn line(value: &Value) -> String {
    let text = timeline::shown(&Value::String(value.to_string()));
    short(text, VALUE_CHARS_MAX, "… (--output json shows all)")
}

/// An instance as text.
pub fn text(body: &Value) -> String {
    let mut text = String::new();
    let mut row = |name: &str, value: String| {
        if !value.is_empty() {
            text.push_str(&format!("{name:<12} {value}\n"));
        }
    };
    let word = |name: &str| timeline::shown(&body[name]);
    row("id", word("id"));
    row(
        "workflow",
        format!("{}:{}", word("workflow"), word("version")),
    );
    row("status", super::list::status(body));
    row("called", word("instanceKey"));
    row("key", word("key"));
    row("parent", word("parent"));
    row("found by", super::list::attributes(body));
    row("scheduled", word("scheduledAt"));
    row("started", word("startedAt"));
    row("ended", word("endedAt"));
    row("input", line(&body["input"]));
    if let Some(output) = body.get("output") {
        row("output", line(output));
    }
    if let Some(error) = body.get("error") {
        row("error", timeline::error(error));
    }
    for scope in body["scopes"].as_array().into_iter().flatten() {
        row("at", place(scope));
        for event in scope["waitsFor"].as_array().into_iter().flatten() {
            let with: Vec<String> = event["correlation"]
                .as_object()
                .into_iter()
                .flatten()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| format!("{name} = {}", timeline::shown(value)))
                .collect();
            let with = match with.is_empty() {
                true => String::new(),
                false => format!(" with {}", with.join(", ")),
            };
            let (name, kind) = (
                timeline::shown(&event["name"]),
                timeline::shown(&event["type"]),
            );
            row("", format!("waits for {name} ({kind}){with}"));
        }
        for timer in scope["timers"].as_array().into_iter().flatten() {
            let (kind, due) = (
                timeline::shown(&timer["kind"]),
                timeline::shown(&timer["due"]),
            );
            row("", format!("timer {kind} at {due}"));
        }
        if let Some(data) = scope.get("data") {
            row("data", line(data));
        } else if scope["dataLeftOut"] == true {
            row(
                "data",
                "left out: the instance's data is too long".to_owned(),
            );
        }
    }
    if let Some(left_out) = body["scopesLeftOut"].as_u64() {
        row("", format!("and {left_out} more"));
    }
    text
}

fn place(scope: &Value) -> String {
    let mut text = match (scope["name"].as_str(), scope["scope"].as_str()) {
        (Some(name), Some(id)) => format!("[{}] ({id}) ", timeline::shown(&name.into())),
        (_, Some("r") | None) => String::new(),
        (_, Some(id)) => format!("[{id}] "),
    };
    for (name, before, after) in [
        ("state", "", ": "),
        ("doing", "", ""),
        ("action", " (", ")"),
    ] {
        let value = timeline::shown(&scope[name]);
        if !value.is_empty() {
            text.push_str(&format!("{before}{value}{after}"));
        }
    }
    if let Some(attempt) = scope["attempt"].as_u64().filter(|attempt| *attempt > 1) {
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
        insta::assert_snapshot!(text(&body), @r#"
        id           2f6c0d9b31a84e57
        workflow     order:1.0
        status       faulted
        found by     customer = Ada Lovelace, total = 12, vip = true
        started      2024-01-31T09:00:00Z
        input        {"order":7}
        error        FunctionError (503): busy
        at           Charge: failed (charge)
        data         {"order":7,"note":"a\nb"}
        "#);
    }
}
