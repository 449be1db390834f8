//! `swirl get`

use serde_json::Value;

use crate::client::{Server, timeline};
use crate::terminal::Terminal;

/// Shows an instance, and where it stands.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  swirl get 2f6c0d9b31a84e57
  swirl get orders/order-7                      # by workflow and key
  swirl get 2f6c0d9b31a84e57 --output json")]
pub struct Args {
    /// The instance's id, or WORKFLOW/KEY.
    #[arg(value_name = "ID")]
    id: String,

    #[command(flatten)]
    server: Server,
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    args.server.run(async |client| {
        let answer = client.get(&["instances", &args.id], &[]).await?;
        answer.show(terminal, text)
    })
}

/// An instance as people read it.
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
    let suspended = match body["suspended"].as_bool() {
        Some(true) => ", suspended",
        _ => "",
    };
    row("status", format!("{}{suspended}", word("status")));
    row("called", word("instanceKey"));
    row("key", word("key"));
    row("parent", word("parent"));
    row("started", word("startedAt"));
    row("ended", word("endedAt"));
    row("input", word("input"));
    if let Some(output) = body.get("output") {
        row("output", timeline::shown(output));
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
    }
    text
}

fn place(scope: &Value) -> String {
    let mut text = match scope["scope"].as_str() {
        Some("r") | None => String::new(),
        Some(id) => format!("[{id}] "),
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
