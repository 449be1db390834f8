//! A dead letter: shown, sent again, dropped.

use askama::Template;
use axum::extract::Path;
use serde_json::Value;

use crate::answer::{Answer, Failure, go_to, list, page, text};
use crate::asking::segment;
use crate::shell::Shell;
use crate::tree::tree;
use crate::visitor::{Form, Visitor};

#[derive(Template)]
#[template(path = "letter.html")]
struct Page {
    shell: Shell,
    number: String,
    at: String,
    subject: String,
    reason: String,
    instance: String,
    instance_path: String,
    cut: bool,
    headers: Vec<(String, String)>,
    payload: String,
}

pub async fn show(visitor: Visitor, Path(number): Path<String>) -> Answer {
    let shell = Shell::new(&visitor, "events", format!("Dead letter {number}")).await?;
    let found = visitor.asking.get(&["dead-letters", &number], &[]).await?;
    let headers = list(&found, "headers").iter();
    let payload = text(&found, "payload");
    let payload = serde_json::from_str(&payload).unwrap_or(Value::String(payload));
    let instance = text(&found, "instance");
    page(&Page {
        shell,
        number: text(&found, "sequence"),
        at: text(&found, "at"),
        subject: text(&found, "subject"),
        reason: text(&found, "reason"),
        instance_path: segment(&instance),
        instance,
        cut: found["cut"] == true,
        headers: headers
            .map(|header| (text(header, "name"), text(header, "value")))
            .collect(),
        payload: tree(&payload),
    })
}

pub async fn act(
    visitor: Visitor,
    Path((number, action)): Path<(String, String)>,
    form: Form,
) -> Answer {
    let done = match action.as_str() {
        "retry" => {
            let path = ["dead-letters", number.as_str(), "retry"];
            visitor.asking.post(&path, &form.reason(), &[], "").await?;
            "sent-again"
        }
        "drop" => {
            let path = ["dead-letters", number.as_str()];
            visitor.asking.delete(&path, &form.reason()).await?;
            "dropped"
        }
        _ => return Err(Failure::not_found("unknown action")),
    };
    go_to(&format!("/console/events?done={done}"))
}
