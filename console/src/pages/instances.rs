//! Instances, newest first; the search is part of the address.

use askama::Template;
use axum::extract::Query;
use serde::Deserialize;
use serde_json::Value;
use url::form_urlencoded::Serializer;

use super::Done;
use crate::answer::{Answer, list, page, text};
use crate::asking::segment;
use crate::shell::Shell;
use crate::visitor::Visitor;
use crate::words::{Pill, short, status};

/// How many are on a page.
const PAGE: &str = "50";

const STATUSES: [&str; 7] = [
    "running",
    "waiting",
    "suspended",
    "faulted",
    "completed",
    "cancelled",
    "terminated",
];

#[derive(Template)]
#[template(path = "instances.html")]
struct Page {
    shell: Shell,
    asked: Asked,
    statuses: Vec<Choice>,
    workflows: Vec<Choice>,
    rows: Vec<Row>,
    /// Why the query cannot be carried out; empty if it can.
    wrong: String,
    /// The number of instances examined for this page.
    scanned: u64,
    /// The address of the next page; empty if there is none.
    next: String,
    /// The whole search as a query, for a batch; empty if nothing is searched for, or no query says the same.
    all: String,
    /// The search as fields, for a view; empty if nothing is searched for.
    saved: Vec<(String, String)>,
    views: Vec<View>,
}

/// A saved view.
struct View {
    name: String,
    by: String,
    address: String,
    /// It is the search that the page shows.
    chosen: bool,
}

struct Choice {
    value: String,
    chosen: bool,
}

struct Row {
    id: String,
    short: String,
    path: String,
    workflow: String,
    version: String,
    key: String,
    /// Search attributes with their values.
    attributes: Vec<(String, String)>,
    pill: Pill,
    state: String,
    error: String,
    started: String,
    ended: String,
}

#[derive(Deserialize, Default)]
pub struct Asked {
    #[serde(default)]
    workflow: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    key: String,
    #[serde(default)]
    query: String,
    #[serde(default)]
    after: String,
}

/// The fields of a search, in the order of [`Asked::given`].
pub const FIELDS: [&str; 4] = ["workflow", "status", "key", "query"];

impl Asked {
    /// The fields that were filled in, for the API and for addresses.
    fn given(&self) -> Vec<(&str, &str)> {
        let values = [&self.workflow, &self.status, &self.key, &self.query];
        FIELDS
            .into_iter()
            .zip(values)
            .map(|(name, value)| (name, value.trim()))
            .filter(|(_, value)| !value.is_empty())
            .collect()
    }
}

/// The address of a search.
pub fn address(given: &[(&str, &str)]) -> String {
    let query = Serializer::new(String::new()).extend_pairs(given).finish();
    format!("/console/instances?{query}")
}

impl View {
    fn new(row: &Value, asked: &Asked) -> View {
        let parts = FIELDS.map(|name| (name, text(row, name)));
        let given = parts.iter().map(|(name, value)| (*name, value.as_str()));
        let given: Vec<_> = given.filter(|(_, value)| !value.is_empty()).collect();
        View {
            name: text(row, "name"),
            by: text(row, "by"),
            chosen: given == asked.given(),
            address: address(&given),
        }
    }
}

impl Asked {
    /// The search as one query.
    fn as_query(&self) -> Option<String> {
        let mut parts = Vec::new();
        for (name, value) in self.given() {
            parts.push(match (name, value) {
                // The query language has no word for waiting.
                ("status", "waiting") => return None,
                ("status", "suspended") => "suspended = true".to_owned(),
                ("status", word) => format!("status = {word}"),
                ("query", query) => format!("({query})"),
                (name, value) => format!("{name} = {}", quoted(value)),
            });
        }
        match parts.as_slice() {
            [one] if !self.query.trim().is_empty() => {
                let inner = one.strip_prefix('(').and_then(|one| one.strip_suffix(')'));
                inner.map(str::to_owned)
            }
            _ => Some(parts.join(" and ")),
        }
    }
}

/// A text of a query.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

pub async fn show(
    visitor: Visitor,
    Query(asked): Query<Asked>,
    Query(done): Query<Done>,
) -> Answer {
    let shell = Shell::new(&visitor, "instances", "Instances").await?;
    let mut query = asked.given();
    query.push(("limit", PAGE));
    if !asked.after.is_empty() {
        query.push(("after", &asked.after));
    }
    let (found, wrong) = match visitor.asking.get(&["instances"], &query).await {
        Ok(found) => (found, String::new()),
        Err(refusal)
            if ["invalid-search", "unknown-attribute"].contains(&&*refusal.problem.code) =>
        {
            (Value::Null, refusal.problem.detail)
        }
        Err(refusal) => return Err(refusal.into()),
    };
    let definitions = visitor
        .asking
        .rows(&["definitions"], &[], "definitions")
        .await?;
    let mut workflows: Vec<String> = definitions.iter().map(|row| text(row, "id")).collect();
    if !asked.workflow.is_empty() {
        workflows.push(asked.workflow.clone());
    }
    workflows.sort();
    workflows.dedup();
    let workflows = workflows.into_iter().map(|value| Choice {
        chosen: value == asked.workflow,
        value,
    });
    let views = visitor.asking.get(&["views"], &[]).await?;
    let views = list(&views, "views").iter();
    let statuses = STATUSES.iter().map(|word| Choice {
        value: (*word).to_owned(),
        chosen: *word == asked.status,
    });
    let next = match found["next"].as_str() {
        None => String::new(),
        Some(next) => {
            let mut given = asked.given();
            given.push(("after", next));
            address(&given)
        }
    };
    let shell = shell.with_done(done.done.as_deref());
    page(&Page {
        shell: if asked.after.is_empty() {
            shell.with_news()
        } else {
            shell
        },
        statuses: statuses.collect(),
        workflows: workflows.collect(),
        rows: list(&found, "instances").iter().map(row).collect(),
        scanned: found["scanned"].as_u64().unwrap_or(0),
        wrong,
        next,
        all: asked.as_query().unwrap_or_default(),
        saved: asked
            .given()
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        views: views.map(|row| View::new(row, &asked)).collect(),
        asked,
    })
}

fn row(row: &Value) -> Row {
    let id = text(row, "id");
    let key = match row["instanceKey"].is_null() {
        true => text(row, "key"),
        false => text(row, "instanceKey"),
    };
    Row {
        short: short(&id),
        path: segment(&id),
        id,
        workflow: text(row, "workflow"),
        version: text(row, "version"),
        // A random key says nothing.
        key: if key.starts_with("drawn-") {
            String::new()
        } else {
            key
        },
        attributes: row["attributes"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), swirl_presentation::timeline::shown(value)))
            .collect(),
        pill: status(row),
        state: text(row, "state"),
        error: match &row["error"] {
            Value::Null => String::new(),
            error => swirl_presentation::timeline::error(error),
        },
        started: text(row, "startedAt"),
        ended: text(row, "endedAt"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_becomes_one_query() {
        let query = |workflow: &str, status: &str, key: &str, query: &str| {
            let asked = Asked {
                workflow: workflow.to_owned(),
                status: status.to_owned(),
                key: key.to_owned(),
                query: query.to_owned(),
                after: String::new(),
            };
            asked.as_query()
        };
        let same = |text: &str| Some(text.to_owned());
        assert_eq!(query("", "", "", ""), same(""));
        assert_eq!(query("", "", "", "a = 1 or b = 2"), same("a = 1 or b = 2"));
        assert_eq!(
            query("order", "faulted", "say \"x\"", "a = 1 or b = 2"),
            same(
                r#"workflow = "order" and status = faulted and key = "say \"x\"" and (a = 1 or b = 2)"#
            )
        );
        assert_eq!(query("", "suspended", "", ""), same("suspended = true"));
        assert_eq!(query("order", "waiting", "", ""), None);
        assert_eq!(query("", "", "'\\", ""), same(r#"key = "'\\""#));
    }
}
