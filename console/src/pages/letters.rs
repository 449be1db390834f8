//! A dead letter: shown, corrected, sent again, dropped.

use askama::Template;
use axum::extract::Path;
use axum::http::StatusCode;
use serde_json::Value;
use swirl_api::dead_letters::{Correction, DROP, DeadLetter, GET, Kind, Letter, RETRY};

use crate::answer::{Answer, Failure, go_to, with_status};
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
    /// The message as it can be corrected.
    text: String,
    reason: String,
    /// Why a correction was not sent; otherwise empty.
    refused: String,
}

impl Page {
    async fn new(visitor: &Visitor, number: &str) -> Result<Page, Failure> {
        let shell = Shell::new(visitor, "events", format!("Dead letter {number}")).await?;
        let call = GET.at(&Letter {
            sequence: number.to_owned(),
        });
        let mut letter = visitor.asking.ask(call).await?;
        let payload = letter.payload.take().unwrap_or_default();
        let (text, payload) = match serde_json::from_str::<Value>(&payload) {
            Ok(value) => (format!("{value:#}"), value),
            Err(_) => (payload.clone(), Value::String(payload)),
        };
        Ok(Page {
            shell,
            letter,
            payload: tree(&payload),
            text,
            reason: String::new(),
            refused: String::new(),
        })
    }
}

pub async fn show(visitor: Visitor, Path(number): Path<String>) -> Answer {
    let page = Page::new(&visitor, &number).await?;
    with_status(StatusCode::OK, &page)
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
        "correct" => {
            let payload = form.get("payload").replace("\r\n", "\n");
            let body = Some(Correction {
                payload: payload.clone(),
            });
            let call = RETRY.at(&letter).query(form.reason_query()).body(&body);
            match visitor.asking.ask(call).await {
                Ok(_) => "sent-again",
                // The form keeps its text, so that it can be corrected once more.
                Err(refusal) if refusal.status == StatusCode::BAD_REQUEST => {
                    let page = Page {
                        text: payload,
                        reason: form.get("reason").to_owned(),
                        refused: refusal.problem.detail,
                        ..Page::new(&visitor, &letter.sequence).await?
                    };
                    return with_status(refusal.status, &page);
                }
                Err(refusal) => return Err(refusal.into()),
            }
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
