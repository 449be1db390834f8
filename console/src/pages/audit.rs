//! The audit log: the actions of operators, newest first.

use std::collections::BTreeMap;

use askama::Template;
use axum::extract::Query;
use serde::Deserialize;
use swirl_api::Instant;
use swirl_api::audit::{Action, AuditEntry, Kind, LIST, ListQuery, Subject};
use url::form_urlencoded::Serializer;

use crate::answer::{Answer, page};
use crate::asking::segment;
use crate::shell::Shell;
use crate::visitor::Visitor;
use crate::words::{deed, short};

/// How many are on a page.
const PAGE: u32 = 100;

const KINDS: [(&str, &str); 6] = [
    ("batch", "batch"),
    ("dead-letter", "dead letter"),
    ("definition", "definition"),
    ("instance", "instance"),
    ("schedule", "schedule"),
    ("view", "saved view"),
];

#[derive(Template)]
#[template(path = "audit.html")]
struct Page {
    shell: Shell,
    actions: Vec<Choice>,
    kinds: Vec<Choice>,
    rows: Vec<Row>,
    /// Something is searched for.
    narrowed: bool,
    /// The address of the first page, and of the next one; empty if there is none.
    first: String,
    next: String,
    asked: Asked,
}

struct Choice {
    value: &'static str,
    word: String,
    chosen: bool,
}

struct Row {
    at: Instant,
    by: String,
    deed: &'static str,
    /// The object in words, its page, and its whole id.
    subject: String,
    path: String,
    id: String,
    reason: String,
    details: BTreeMap<String, String>,
}

#[derive(Deserialize, Default)]
pub struct Asked {
    #[serde(default)]
    action: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    by: String,
    #[serde(default)]
    subject: String,
    #[serde(default)]
    after: String,
}

impl Asked {
    /// The fields that were filled in, for the API and for addresses.
    fn given(&self) -> Vec<(&str, &str)> {
        let all = [
            ("action", &self.action),
            ("kind", &self.kind),
            ("by", &self.by),
            ("subject", &self.subject),
        ];
        let all = all.into_iter().map(|(name, value)| (name, value.trim()));
        all.filter(|(_, value)| !value.is_empty()).collect()
    }
}

pub async fn show(visitor: Visitor, Query(asked): Query<Asked>) -> Answer {
    let shell = Shell::new(&visitor, "audit", "Audit").await?;
    let given = asked.given();
    let filled = |value: &str| Some(value.trim().to_owned()).filter(|value| !value.is_empty());
    let query = ListQuery {
        action: filled(&asked.action).as_deref().map(Action::from),
        by: filled(&asked.by),
        kind: filled(&asked.kind).as_deref().map(Kind::from),
        subject: filled(&asked.subject),
        after: filled(&asked.after),
        limit: Some(PAGE),
    };
    let found = visitor.asking.ask(LIST.ask().query(query)).await?;
    let address = |after: Option<&str>| {
        let mut query = Serializer::new(String::new());
        query.extend_pairs(&given);
        query.extend_pairs(after.map(|after| ("after", after)));
        format!("/console/audit?{}", query.finish())
    };
    let first = match asked.after.is_empty() {
        true => String::new(),
        false => address(None),
    };
    let next = found.next.as_deref().map(|next| address(Some(next)));
    let choice = |value: &'static str, chosen: &str, word: String| Choice {
        value,
        word,
        chosen: value == chosen,
    };
    let actions = Action::WORDS.iter().map(|word| {
        let told = deed(&Action::from(*word)).to_owned();
        choice(word, &asked.action, told)
    });
    let kinds = KINDS.map(|(kind, word)| choice(kind, &asked.kind, word.to_owned()));
    page(&Page {
        shell: match asked.after.is_empty() {
            true => shell.with_news(),
            false => shell,
        },
        actions: actions.collect(),
        kinds: kinds.into(),
        rows: found.entries.into_iter().map(row).collect(),
        narrowed: !given.is_empty(),
        first,
        next: next.unwrap_or_default(),
        asked,
    })
}

fn row(row: AuditEntry) -> Row {
    let (subject, path) = subject(&row.subject, &row.action);
    Row {
        at: row.at,
        by: row.by.unwrap_or_default(),
        deed: deed(&row.action),
        subject,
        path,
        id: row.subject.id,
        reason: row.reason.unwrap_or_default(),
        details: row.details,
    }
}

/// The object of an action in words, and the address of its page; empty if it is gone.
fn subject(subject: &Subject, action: &Action) -> (String, String) {
    let Subject { kind, id, version } = subject;
    let (path, version) = (segment(id), version.as_deref().unwrap_or_default());
    let (words, address) = match kind {
        Kind::Instance => (short(id), format!("/console/instances/{path}")),
        Kind::Batch => (
            format!("batch {}", short(id)),
            format!("/console/batches/{path}"),
        ),
        Kind::Definition => (
            format!("{id} {version}"),
            format!("/console/definitions/{path}/{}", segment(version)),
        ),
        Kind::Schedule => (format!("schedule of {id}"), "/console/schedules".to_owned()),
        Kind::DeadLetter => (
            format!("dead letter {id}"),
            format!("/console/dead-letters/{path}"),
        ),
        Kind::View => (
            format!("saved view “{id}”"),
            "/console/instances".to_owned(),
        ),
        Kind::Other(kind) => (format!("{kind} {id}"), String::new()),
    };
    // One that was tried need not be there.
    let is_gone = matches!(
        action,
        Action::Remove
            | Action::Delete
            | Action::DeadLetterDrop
            | Action::DeadLetterRetry
            | Action::Rehearse
    );
    (words, if is_gone { String::new() } else { address })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_action_has_words_of_its_own() {
        let all = Action::WORDS.iter().chain([&"unknown"]);
        let words: BTreeSet<&str> = all.map(|word| deed(&Action::from(*word))).collect();
        assert_eq!(words.len(), Action::WORDS.len() + 1);
    }

    #[test]
    fn subjects_have_links_while_they_are_there() {
        let of = |kind: &str, action: &str| {
            let value = Subject {
                kind: kind.into(),
                id: "a/b".to_owned(),
                version: Some("1.0".to_owned()),
            };
            subject(&value, &action.into())
        };
        let both = |words: &str, path: &str| (words.to_owned(), path.to_owned());
        assert_eq!(
            of("instance", "cancel"),
            both("a/b", "/console/instances/a%2Fb")
        );
        assert_eq!(of("instance", "remove"), both("a/b", ""));
        assert_eq!(
            of("definition", "deploy"),
            both("a/b 1.0", "/console/definitions/a%2Fb/1.0")
        );
        assert_eq!(of("planet", "deploy"), both("planet a/b", ""));
    }
}
