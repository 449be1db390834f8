//! The audit log: the actions of operators, newest first.

use askama::Template;
use axum::extract::Query;
use serde::Deserialize;
use serde_json::Value;
use url::form_urlencoded::Serializer;

use crate::answer::{Answer, list, page, text};
use crate::asking::segment;
use crate::shell::Shell;
use crate::visitor::Visitor;
use crate::words::{deed, short};

/// How many are on a page.
const PAGE: &str = "100";

const ACTIONS: [&str; 23] = [
    "activate",
    "batch",
    "batch-pause",
    "batch-resume",
    "batch-stop",
    "cancel",
    "dead-letter-drop",
    "dead-letter-retry",
    "delete",
    "deploy",
    "edit",
    "migrate",
    "remove",
    "rerun",
    "resume",
    "retry",
    "schedule-backfill",
    "schedule-fire",
    "schedule-pause",
    "schedule-resume",
    "skip",
    "view-remove",
    "view-save",
];

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
    at: String,
    by: String,
    deed: &'static str,
    /// The object in words, its page, and its whole id.
    subject: String,
    path: String,
    id: String,
    reason: String,
    details: Vec<(String, String)>,
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
    let mut query = given.clone();
    query.push(("limit", PAGE));
    if !asked.after.is_empty() {
        query.push(("after", &asked.after));
    }
    let found = visitor.asking.get(&["audit"], &query).await?;
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
    let next = found["next"].as_str().map(|next| address(Some(next)));
    let choice = |value: &'static str, chosen: &str, word: String| Choice {
        value,
        word,
        chosen: value == chosen,
    };
    let actions = ACTIONS.map(|action| choice(action, &asked.action, deed(action).to_owned()));
    let kinds = KINDS.map(|(kind, word)| choice(kind, &asked.kind, word.to_owned()));
    page(&Page {
        shell: match asked.after.is_empty() {
            true => shell.with_news(),
            false => shell,
        },
        actions: actions.into(),
        kinds: kinds.into(),
        rows: list(&found, "entries").iter().map(row).collect(),
        narrowed: !given.is_empty(),
        first,
        next: next.unwrap_or_default(),
        asked,
    })
}

fn row(row: &Value) -> Row {
    let action = text(row, "action");
    let (subject, path) = subject(&row["subject"], &action);
    let details = row["details"].as_object().into_iter().flatten();
    Row {
        at: text(row, "at"),
        by: text(row, "by"),
        deed: deed(&action),
        subject,
        path,
        id: text(&row["subject"], "id"),
        reason: text(row, "reason"),
        details: details
            .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
            .collect(),
    }
}

/// The object of an action in words, and the address of its page; empty if it is gone.
fn subject(subject: &Value, action: &str) -> (String, String) {
    let (id, version) = (text(subject, "id"), text(subject, "version"));
    let path = segment(&id);
    let (words, address) = match &*text(subject, "kind") {
        "instance" => (short(&id), format!("/console/instances/{path}")),
        "batch" => (
            format!("batch {}", short(&id)),
            format!("/console/batches/{path}"),
        ),
        "definition" => (
            format!("{id} {version}"),
            format!("/console/definitions/{path}/{}", segment(&version)),
        ),
        "schedule" => (format!("schedule of {id}"), "/console/schedules".to_owned()),
        "dead-letter" => (
            format!("dead letter {id}"),
            format!("/console/dead-letters/{path}"),
        ),
        "view" => (
            format!("saved view “{id}”"),
            "/console/instances".to_owned(),
        ),
        kind => (format!("{kind} {id}"), String::new()),
    };
    let is_gone = matches!(
        action,
        "remove" | "delete" | "dead-letter-drop" | "dead-letter-retry"
    );
    (words, if is_gone { String::new() } else { address })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn each_action_has_words_of_its_own() {
        let words: BTreeSet<&str> = ACTIONS.iter().map(|action| deed(action)).collect();
        assert_eq!(words.len(), ACTIONS.len());
        assert!(!words.contains(deed("unknown")));
    }

    #[test]
    fn subjects_have_links_while_they_are_there() {
        let of = |kind: &str, action: &str| {
            let value = json!({"kind": kind, "id": "a/b", "version": "1.0"});
            subject(&value, action)
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
