//! Events: sent, explained, recent ones, and dead letters.

use askama::Template;
use axum::extract::Query;
use axum::http::{StatusCode, Uri};
use serde_json::Map;
use swirl_api::Instant;
use swirl_api::dead_letters::{self, DeadLetter, Kind};
use swirl_api::events::{
    self, CloudEvent, Consumed, Explained, NonReceiver, Outcome, Reach, RecentEvent, RecentQuery,
};
use url::form_urlencoded;

use super::Done;
use crate::answer::{Answer, with_status};
use crate::asking::segment;
use crate::shell::Shell;
use crate::visitor::{Form, Visitor, draw};
use crate::words::{Awaited, short};

/// How many of those that would not receive an event are shown at once.
const NEAR: usize = 3;

/// The type of an event to begin with, if there has been none yet.
const KIND: &str = "org.example.paid";

#[derive(Template)]
#[template(path = "events.html")]
struct Page {
    shell: Shell,
    draft: String,
    refused: String,
    sent: Option<Reach>,
    explained: Option<Explained>,
    /// Those that would not receive it: the nearest ones, and the others.
    near: Vec<Miss>,
    far: Vec<Miss>,
    recent: Vec<RecentEvent>,
    letters: Vec<Letter>,
    /// Only recent events of this type and with this outcome are shown; empty: all.
    only: String,
    outcome: String,
    outcomes: Vec<(&'static str, &'static str, bool)>,
}

/// Something that would not receive an event.
struct Miss {
    whom: String,
    /// Empty: an instance that would not be started.
    path: String,
    why: String,
}

/// The parameters in the page's address.
#[derive(Default)]
struct Look {
    only: String,
    outcome: String,
    /// The attributes of the event to begin with.
    draft: Vec<(String, String)>,
}

impl Look {
    /// `type`, `source`, `subject` and `with-NAME` are attributes of the draft, so that a page that knows what is waited for
    /// can lead here.
    fn read(query: &str) -> Look {
        let mut look = Look::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let value = value.trim().to_owned();
            match &*name {
                "only" => look.only = value,
                "outcome" => look.outcome = value,
                "type" | "source" | "subject" => look.draft.push((name.to_string(), value)),
                name => {
                    if let Some(name) = name.strip_prefix("with-") {
                        look.draft.push((name.to_owned(), value));
                    }
                }
            }
        }
        look
    }
}

/// The address of the page with an event that something waits for, as far as it is known; empty if too little is.
pub fn address(awaited: &Awaited) -> String {
    if awaited.kind.is_empty() {
        return String::new();
    }
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("type", &awaited.kind);
    if !awaited.source.is_empty() {
        query.append_pair("source", &awaited.source);
    }
    for (name, value) in awaited.by.iter().filter(|(_, value)| !value.is_empty()) {
        query.append_pair(&format!("with-{name}"), value);
    }
    format!("/console/events?{}#send", query.finish())
}

struct Letter {
    number: u64,
    at: Instant,
    kind: Kind,
    about: String,
    reason: String,
}

pub async fn show(visitor: Visitor, uri: Uri, Query(done): Query<Done>) -> Answer {
    let look = Look::read(uri.query().unwrap_or_default());
    let mut page = Page::new(&visitor, look).await?;
    page.shell = page.shell.with_done(done.done.as_deref());
    with_status(StatusCode::OK, &page)
}

impl Page {
    async fn new(visitor: &Visitor, look: Look) -> Result<Page, crate::answer::Failure> {
        let shell = Shell::new(visitor, "events", "Events").await?;
        let filled = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let query = RecentQuery {
            limit: Some(50),
            kind: filled(&look.only),
            outcome: filled(&look.outcome).as_deref().map(Outcome::from),
        };
        let recent = visitor
            .asking
            .ask(events::RECENT.ask().query(query))
            .await?;
        let letters = visitor.asking.ask(dead_letters::LIST.ask()).await?;
        let kind = recent.events.first().map(|event| event.kind.as_str());
        let outcomes = Outcome::WORDS.iter().map(|word| {
            let name = outcome_name(&Outcome::from(*word));
            (*word, name, *word == look.outcome)
        });
        Ok(Page {
            shell,
            draft: draft(&draw()?[..16], kind.unwrap_or(KIND), look.draft),
            refused: String::new(),
            sent: None,
            explained: None,
            near: Vec::new(),
            far: Vec::new(),
            outcomes: outcomes.collect(),
            recent: recent.events,
            letters: letters.dead_letters.into_iter().map(letter).collect(),
            only: look.only,
            outcome: look.outcome,
        })
    }

    /// Shows what would become of an event, the nearest misses before the others.
    fn explain(&mut self, mut explained: Explained) {
        let misses = std::mem::take(&mut explained.not_taken_by).into_iter();
        self.near = misses.map(miss).collect();
        if self.near.len() > NEAR + 1 {
            self.far = self.near.split_off(NEAR);
        }
        self.explained = Some(explained);
    }
}

/// An event to begin with.
fn draft(id: &str, kind: &str, attributes: Vec<(String, String)>) -> String {
    let draft = CloudEvent {
        specversion: "1.0".to_owned(),
        id: id.to_owned(),
        source: "/console".to_owned(),
        kind: kind.to_owned(),
        data: Some(Map::new().into()),
        ..CloudEvent::default()
    };
    let mut draft = serde_json::to_value(&draft).unwrap_or_default();
    if let Some(draft) = draft.as_object_mut() {
        for (name, value) in attributes {
            draft.insert(name, value.into());
        }
    }
    format!("{draft:#}")
}

fn outcome_name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Received => "received",
        Outcome::Collected => "collected, others are missing",
        Outcome::Kept => "kept for later",
        Outcome::Duplicate => "received before",
        Outcome::NotReceived => "not received by anything",
        Outcome::Refused => "refused",
        Outcome::Other(_) => "unknown",
    }
}

fn is_bad(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::NotReceived | Outcome::Refused)
}

/// The definition that consumes an event.
fn of(consumed: &Consumed) -> String {
    format!("{} {}", consumed.workflow, consumed.version)
}

fn miss(miss: NonReceiver) -> Miss {
    let of = of(&miss.consumed);
    let why: Vec<String> = miss.why.into_iter().map(|why| why.text).collect();
    Miss {
        whom: match (&miss.instance, miss.others) {
            (None, _) => format!("{of} starts nothing"),
            (Some(id), 0) => format!("{} of {of}", short(id)),
            (Some(id), 1) => format!("{} and 1 other of {of}", short(id)),
            (Some(id), others) => format!("{} and {others} others of {of}", short(id)),
        },
        path: miss.instance.as_deref().map(segment).unwrap_or_default(),
        why: why.join("; "),
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
    let mut page = Page::new(&visitor, Look::default()).await?;
    (page.draft, page.sent) = (event, sent);
    if let Some(explained) = explained {
        page.explain(explained);
    }
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn an_address_fills_in_an_event() {
        let look = Look::read("type=org.example.paid&source=%2Fbank&with-order=A-1&done=x&only=a");
        assert_eq!((look.only.as_str(), look.outcome.as_str()), ("a", ""));
        let draft = draft("1", "other", look.draft);
        let draft: Value = serde_json::from_str(&draft).unwrap();
        let expected = json!({"specversion": "1.0", "id": "1", "source": "/bank", "type": "org.example.paid",
            "order": "A-1", "data": {}});
        assert_eq!(draft, expected);
    }

    #[test]
    fn what_is_awaited_leads_to_an_event_that_fits() {
        let awaited = |kind: &str| Awaited {
            name: "paid".to_owned(),
            kind: kind.to_owned(),
            source: "/bank?a=1".to_owned(),
            by: vec![
                ("order".to_owned(), "A&1".to_owned()),
                ("customer".to_owned(), String::new()),
            ],
        };
        let address = address(&awaited("org.example.paid"));
        let query = address.strip_prefix("/console/events?").unwrap();
        let look = Look::read(query.strip_suffix("#send").unwrap());
        let draft: Value = serde_json::from_str(&draft("1", "other", look.draft)).unwrap();
        let expected = json!({"specversion": "1.0", "id": "1", "source": "/bank?a=1", "type": "org.example.paid",
            "order": "A&1", "data": {}});
        assert_eq!(draft, expected);
        assert_eq!(super::address(&awaited("")), "");
    }

    #[test]
    fn a_miss_says_who_and_why() {
        let one = json!({"workflow": "order", "version": "1", "event": "paid", "instance": "i/1", "others": 2,
            "why": [{"text": "its 'order' is 'A-2', and 'A-1' is expected", "attribute": "order", "expected": "A-1",
                     "found": "A-2"}, {"text": "it is late"}]});
        let one = miss(serde_json::from_value(one).unwrap());
        assert_eq!(one.whom, "i/1 and 2 others of order 1");
        assert_eq!(one.path, "i%2F1");
        assert_eq!(
            one.why,
            "its 'order' is 'A-2', and 'A-1' is expected; it is late"
        );
    }
}
