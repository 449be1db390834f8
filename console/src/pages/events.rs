//! Events: sent, explained, recent ones, and dead letters.

use askama::Template;
use axum::extract::Query;
use axum::http::StatusCode;
use serde_json::{Value, json};
use swirl_api::Instant;
use swirl_api::dead_letters::{self, DeadLetter, Kind};

use super::Done;
use crate::answer::{Answer, list, text, with_status};
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
    sent: Option<Received>,
    explained: Option<Explained>,
    recent: Vec<Received>,
    letters: Vec<Letter>,
}

/// An event and its effects.
struct Received {
    at: String,
    id: String,
    source: String,
    kind: String,
    outcome: String,
    via: String,
    duplicate: bool,
    kept: bool,
    /// With a word before each.
    reached: Vec<Link>,
    collected: Vec<String>,
    reasons: Vec<String>,
}

struct Link {
    word: String,
    short: String,
    path: String,
}

struct Explained {
    starts: Vec<String>,
    takers: Vec<Taker>,
    misses: Vec<Miss>,
    unknown: String,
    kept: bool,
    complete: bool,
    seen: String,
}

struct Taker {
    link: Link,
    state: String,
}

struct Miss {
    who: String,
    path: String,
    why: Vec<Why>,
}

struct Why {
    text: String,
    attribute: String,
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
        let recent = visitor.asking.get(&["events"], &[("limit", "50")]).await?;
        let letters = visitor.asking.ask(dead_letters::LIST.ask()).await?;
        let draft = json!({
            "specversion": "1.0",
            "id": &draw()?[..16],
            "source": "/console",
            "type": "",
            "data": {},
        });
        Ok(Page {
            shell,
            draft: format!("{draft:#}"),
            refused: String::new(),
            sent: None,
            explained: None,
            recent: list(&recent, "events").iter().map(received).collect(),
            letters: letters.dead_letters.into_iter().map(letter).collect(),
        })
    }
}

fn link(word: &str, id: &str) -> Link {
    Link {
        word: word.to_owned(),
        short: short(id),
        path: segment(id),
    }
}

fn received(event: &Value) -> Received {
    let texts = |name: &str| {
        let all = list(event, name).iter().filter_map(Value::as_str);
        all.map(str::to_owned).collect::<Vec<_>>()
    };
    let started = list(event, "started").iter();
    let mut reached: Vec<Link> = started
        .map(|one| {
            link(
                &format!("started {}", text(one, "workflow")),
                &text(one, "id"),
            )
        })
        .collect();
    reached.extend(texts("instances").iter().map(|id| link("reached", id)));
    Received {
        at: text(event, "at"),
        id: text(event, "id"),
        source: text(event, "source"),
        kind: text(event, "type"),
        outcome: text(event, "outcome"),
        via: text(event, "via"),
        duplicate: event["duplicate"] == true,
        kept: event["kept"] == true,
        reached,
        collected: texts("collectedBy"),
        reasons: texts("reasons"),
    }
}

fn explained(body: &Value) -> Explained {
    let of = |row: &Value| format!("{} {}", text(row, "workflow"), text(row, "version"));
    let starts = list(body, "starts").iter().map(|row| {
        let with = match row["alone"] == true {
            true => "",
            false => ", together with other events that haven't arrived yet",
        };
        format!("{} (as “{}”){with}", of(row), text(row, "event"))
    });
    let takers = list(body, "takenBy").iter().map(|row| Taker {
        link: link(&of(row), &text(row, "instance")),
        state: text(row, "state"),
    });
    let misses = list(body, "notTakenBy").iter().map(|row| {
        let instance = text(row, "instance");
        Miss {
            who: match instance.is_empty() {
                true => format!("{} starts nothing", of(row)),
                false => match row["others"].as_u64().unwrap_or_default() {
                    0 => format!("{} of {}", short(&instance), of(row)),
                    others => format!("{} and {others} others of {}", short(&instance), of(row)),
                },
            },
            path: segment(&instance),
            why: list(row, "why")
                .iter()
                .map(|why| Why {
                    text: text(why, "text"),
                    attribute: text(why, "attribute"),
                })
                .collect(),
        }
    });
    Explained {
        starts: starts.collect(),
        takers: takers.collect(),
        misses: misses.collect(),
        unknown: text(body, "unknownType"),
        kept: body["kept"] == true,
        complete: body["complete"] == true,
        seen: text(body, "instancesSeen"),
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
    let headers = [("content-type", "application/cloudevents+json")];
    let is_sent = form.get("do") != "explain";
    let path: &[&str] = match is_sent {
        true => &["events"],
        false => &["events", "explain"],
    };
    let answer = visitor.asking.post(path, &[], &headers, &event).await;
    let mut page = Page::new(&visitor).await?;
    page.draft = event;
    let mut status = StatusCode::OK;
    match answer {
        Ok(body) if is_sent => page.sent = list(&body, "accepted").first().map(received),
        Ok(body) => page.explained = Some(explained(&body)),
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
