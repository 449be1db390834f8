//! Events: sent, explained, recent ones, and dead letters.

use askama::Template;
use axum::extract::Query;
use axum::http::StatusCode;
use serde_json::Map;
use swirl_api::Instant;
use swirl_api::dead_letters::{self, DeadLetter, Kind};
use swirl_api::events::{
    self, CloudEvent, Consumed, Explained, NonReceiver, Reach, RecentEvent, RecentQuery,
};

use super::Done;
use crate::answer::{Answer, with_status};
use crate::asking::segment;
use crate::shell::Shell;
use crate::visitor::{Form, Visitor, draw};
use crate::words::short;

#[derive(Template)]
#[template(path = "events.html")]
struct Page {
    shell: Shell,
    draft: String,
    refused: String,
    sent: Option<Reach>,
    explained: Option<Explained>,
    recent: Vec<RecentEvent>,
    letters: Vec<Letter>,
}

struct Letter {
    number: u64,
    at: Instant,
    kind: Kind,
    about: String,
    reason: String,
}

pub async fn show(visitor: Visitor, Query(done): Query<Done>) -> Answer {
    let mut page = Page::new(&visitor).await?;
    page.shell = page.shell.with_done(done.done.as_deref());
    with_status(StatusCode::OK, &page)
}

impl Page {
    async fn new(visitor: &Visitor) -> Result<Page, crate::answer::Failure> {
        let shell = Shell::new(visitor, "events", "Events").await?;
        let query = RecentQuery {
            limit: Some(50),
            ..RecentQuery::default()
        };
        let recent = visitor
            .asking
            .ask(events::RECENT.ask().query(query))
            .await?;
        let letters = visitor.asking.ask(dead_letters::LIST.ask()).await?;
        let draft = CloudEvent {
            specversion: "1.0".to_owned(),
            id: draw()?[..16].to_owned(),
            source: "/console".to_owned(),
            data: Some(Map::new().into()),
            ..CloudEvent::default()
        };
        Ok(Page {
            shell,
            draft: serde_json::to_string_pretty(&draft).unwrap_or_default(),
            refused: String::new(),
            sent: None,
            explained: None,
            recent: recent.events,
            letters: letters.dead_letters.into_iter().map(letter).collect(),
        })
    }
}

/// The definition that consumes an event.
fn of(consumed: &Consumed) -> String {
    format!("{} {}", consumed.workflow, consumed.version)
}

fn whom(miss: &NonReceiver) -> String {
    let of = of(&miss.consumed);
    match (&miss.instance, miss.others) {
        (None, _) => format!("{of} starts nothing"),
        (Some(id), 0) => format!("{} of {of}", short(id)),
        (Some(id), others) => format!("{} and {others} others of {of}", short(id)),
    }
}

fn letter(letter: DeadLetter) -> Letter {
    Letter {
        number: letter.sequence,
        at: letter.at,
        kind: letter.kind,
        about: match (letter.instance, letter.event) {
            (Some(id), _) => format!("a step of the instance {}", short(&id)),
            (None, Some(event)) => {
                let (kind, id) = (event.kind.unwrap_or_default(), event.id.unwrap_or_default());
                format!("{kind} {id}")
            }
            (None, None) => letter.subject,
        },
        reason: letter.reason,
    }
}

/// Sends an event, or explains its effects.
pub async fn send(visitor: Visitor, form: Form) -> Answer {
    let event = form.get("event").to_owned();
    let is_sent = form.get("do") != "explain";
    let body = event.clone().into_bytes();
    let (mut sent, mut explained) = (None, None);
    let asked = match is_sent {
        true => {
            let call = events::PUBLISH.ask().sending(events::STRUCTURED, body);
            let done = visitor.asking.ask(call).await;
            done.map(|done| sent = done.accepted.into_iter().next())
        }
        false => {
            let call = events::EXPLAIN.ask().sending(events::STRUCTURED, body);
            let found = visitor.asking.ask(call).await;
            found.map(|found| explained = Some(found))
        }
    };
    let mut page = Page::new(&visitor).await?;
    (page.draft, page.sent, page.explained) = (event, sent, explained);
    let mut status = StatusCode::OK;
    match asked {
        Ok(()) => {}
        Err(refusal)
            if refusal.status.is_client_error()
                && refusal.status != StatusCode::FORBIDDEN
                && refusal.status != StatusCode::UNAUTHORIZED =>
        {
            status = refusal.status;
            page.refused = refusal.problem.detail;
        }
        Err(refusal) => return Err(refusal.into()),
    }
    with_status(status, &page)
}
