//! Prints a call.

use std::time::Duration;

use serde_json::{Value, json};
use swirl_functions::watch::{Body, Sent};
use swirl_model::workflow::Function;
use swirl_ports::{Exchange, ExchangeProtocol};

use super::Outcome;
use crate::terminal::{Output, Terminal};

/// A completed call.
pub(super) struct Shown<'a> {
    pub(super) function: &'a Function,
    pub(super) requests: Vec<Sent>,
    pub(super) exchange: Option<Exchange>,
    pub(super) outcome: Outcome,
    pub(super) took: Duration,
    pub(super) dry: bool,
}

pub(super) fn show(shown: &Shown<'_>, terminal: &Terminal) -> anyhow::Result<u8> {
    let code = match &shown.outcome {
        Outcome::Failed(_) => 1,
        Outcome::HeldBack | Outcome::Answered(_) => 0,
    };
    if terminal.output == Output::Json {
        terminal.result(&format!("{:#}\n", as_json(shown)))?;
        return Ok(code);
    }
    let requests: Vec<String> = shown.requests.iter().map(request).collect();
    let requests = requests.join("\n");
    if shown.dry {
        return dry(shown, &requests, terminal);
    }
    if !requests.is_empty() {
        terminal.message(&requests);
    }
    let time = milliseconds(shown.took);
    let status = status(shown).map_or_else(String::new, |status| format!("{status} "));
    match &shown.outcome {
        Outcome::Failed(error) => {
            terminal.message(&format!("error: {status}after {time} ms: {error}"))
        }
        Outcome::Answered(answer) => {
            terminal.message(&format!("\nanswer: {status}after {time} ms"));
            terminal.result(&format!("{:#}\n", Value::from(answer)))?;
        }
        Outcome::HeldBack => {}
    }
    Ok(code)
}

fn dry(shown: &Shown<'_>, requests: &str, terminal: &Terminal) -> anyhow::Result<u8> {
    match &shown.outcome {
        Outcome::Failed(error) => {
            terminal.message(&format!("error: the request cannot be made: {error}"));
            return Ok(1);
        }
        Outcome::Answered(_) if requests.is_empty() => {
            terminal.message("the function sends no request");
        }
        _ => terminal.result(requests)?,
    }
    Ok(0)
}

/// The text form: the request line, headers, an empty line, the body.
fn request(sent: &Sent) -> String {
    let mut text = match sent.protocol {
        "http" | "grpc" => format!("{}\n", sent.target),
        other => format!("{other}: {}\n", sent.target),
    };
    for (name, value) in &sent.headers {
        text += &format!("{name}: {value}\n");
    }
    match &sent.body {
        None => {}
        Some(Body::Text(body)) => text += &format!("\n{}\n", pretty(body)),
        Some(Body::Base64(body)) => text += &format!("\n(in Base64) {body}\n"),
        Some(Body::Parts(parts)) => text += &format!("\n{parts}\n"),
    }
    text
}

/// JSON on several lines, any other text unchanged.
fn pretty(body: &str) -> String {
    let value: Result<Value, _> = serde_json::from_str(body);
    value.map_or_else(|_| body.to_owned(), |value| format!("{value:#}"))
}

/// The status of the service's answer, if the protocol has one.
fn status(shown: &Shown<'_>) -> Option<i32> {
    match shown.exchange.as_ref()?.protocol {
        ExchangeProtocol::Http { status, .. } => status.map(i32::from),
        ExchangeProtocol::Grpc { status, .. } => status,
        ExchangeProtocol::Message { .. } => None,
    }
}

fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 10_000.0).round() / 10.0
}

fn as_json(shown: &Shown<'_>) -> Value {
    let request = |sent: &Sent| {
        let headers = sent.headers.iter();
        let headers = headers.map(|(name, value)| json!({"name": name, "value": value}));
        json!({
            "protocol": sent.protocol,
            "target": sent.target,
            "headers": headers.collect::<Vec<_>>(),
            "body": sent.body,
        })
    };
    let mut all = json!({
        "function": &*shown.function.name,
        "type": shown.function.kind.as_str(),
        "requests": shown.requests.iter().map(request).collect::<Vec<_>>(),
    });
    match &shown.outcome {
        Outcome::HeldBack => return all,
        Outcome::Answered(_) if shown.dry => return all,
        Outcome::Answered(answer) => all["answer"] = Value::from(answer),
        Outcome::Failed(error) => all["error"] = json!(error),
    }
    if !shown.dry {
        all["status"] = json!(status(shown));
        all["milliseconds"] = json!(milliseconds(shown.took));
    }
    all
}
