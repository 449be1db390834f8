//! A dead letter: shown, sent again, dropped.

use askama::Template;
use axum::extract::Path;
use serde_json::Value;
use swirl_api::dead_letters::{DROP, DeadLetter, GET, Letter, RETRY};

use crate::answer::{Answer, Failure, go_to, page};
use crate::asking::segment;
use crate::shell::Shell;
use crate::tree::tree;
use crate::visitor::{Form, Visitor};

#[derive(Template)]
#[template(path = "letter.html")]
struct Page {
    shell: Shell,
    letter: DeadLetter,
    payload: String,
}

pub async fn show(visitor: Visitor, Path(number): Path<String>) -> Answer {
    let shell = Shell::new(&visitor, "events", format!("Dead letter {number}")).await?;
    let call = GET.at(&Letter { sequence: number });
    let mut letter = visitor.asking.ask(call).await?;
    let payload = letter.payload.take().unwrap_or_default();
    let payload = serde_json::from_str(&payload).unwrap_or(Value::String(payload));
    page(&Page {
        shell,
        letter,
        payload: tree(&payload),
    })
}

pub async fn act(
    visitor: Visitor,
    Path((sequence, action)): Path<(String, String)>,
    form: Form,
) -> Answer {
    let letter = Letter { sequence };
    let done = match action.as_str() {
        "retry" => {
            let call = RETRY.at(&letter).query(form.reason_query());
            visitor.asking.ask(call).await?;
            "sent-again"
        }
        "drop" => {
            let call = DROP.at(&letter).query(form.reason_query());
            visitor.asking.ask(call).await?;
            "dropped"
        }
        _ => return Err(Failure::not_found("unknown action")),
    };
    go_to(&format!("/console/events?done={done}"))
}
