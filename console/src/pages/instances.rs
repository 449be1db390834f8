//! Instances, newest first; the search is part of the address.

use askama::Template;
use axum::extract::Query;
use serde::Deserialize;
use swirl_api::definitions;
use swirl_api::instance::{InstanceSummary, Instances, LIST, ListQuery};
use swirl_api::views::{self, SavedView};
use swirl_api::{Condition, Instant};
use swirl_presentation::timeline::{shown, told};
use url::form_urlencoded::Serializer;

use super::Done;
use crate::answer::{Answer, page};
use crate::asking::{Refusal, segment};
use crate::shell::Shell;
use crate::visitor::Visitor;
use crate::words::{Pill, pill_of, short};

/// How many are on a page.
const PAGE: u32 = 50;

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
    scanned: usize,
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
    started: Instant,
    ended: Option<Instant>,
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
    fn new(row: &SavedView, asked: &Asked) -> View {
        let status = row.status.as_ref().map(Condition::as_str);
        let (workflow, key, query) = (&row.workflow, &row.key, &row.query);
        let values = [
            workflow.as_deref(),
            status,
            key.as_deref(),
            query.as_deref(),
        ];
        let given = FIELDS.into_iter().zip(values);
        let given: Vec<_> = given
            .filter_map(|(name, value)| Some((name, value?)))
            .collect();
        View {
            name: row.name.clone(),
            by: row.by.clone().unwrap_or_default(),
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
    let filled = |value: &str| Some(value.trim().to_owned()).filter(|value| !value.is_empty());
    let query = ListQuery {
        workflow: filled(&asked.workflow),
        status: filled(&asked.status).as_deref().map(Condition::from),
        key: filled(&asked.key),
        query: filled(&asked.query),
        after: filled(&asked.after),
        limit: Some(PAGE),
        ..ListQuery::default()
    };
    let (found, wrong) = match visitor.asking.ask(LIST.ask().query(query)).await {
        Ok(found) => (found, String::new()),
        Err(Refusal { problem, .. })
            if ["invalid-search", "unknown-attribute"].contains(&&*problem.code) =>
        {
            (Instances::default(), problem.detail)
        }
        Err(refusal) => return Err(refusal.into()),
    };
    let deployed = visitor.asking.ask_pages(definitions::LIST.ask()).await?;
    let definitions = deployed.definitions.into_iter();
    let mut workflows: Vec<String> = definitions.map(|one| one.head.id).collect();
    if !asked.workflow.is_empty() {
        workflows.push(asked.workflow.clone());
    }
    workflows.sort();
    workflows.dedup();
    let workflows = workflows.into_iter().map(|value| Choice {
        chosen: value == asked.workflow,
        value,
    });
    let views = visitor.asking.ask(views::LIST.ask()).await?;
    let views = views.views.iter();
    let statuses = STATUSES.iter().map(|word| Choice {
        value: (*word).to_owned(),
        chosen: *word == asked.status,
    });
    let next = match &found.next {
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
        scanned: found.scanned,
        rows: found.instances.into_iter().map(row).collect(),
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

fn row(row: InstanceSummary) -> Row {
    let key = row.instance_key.or(row.key);
    Row {
        short: short(&row.id),
        path: segment(&row.id),
        id: row.id,
        workflow: row.workflow,
        version: row.version,
        // A random key says nothing.
        key: key
            .filter(|key| !key.starts_with("drawn-"))
            .unwrap_or_default(),
        attributes: row
            .attributes
            .iter()
            .map(|(name, value)| (name.clone(), shown(value)))
            .collect(),
        pill: pill_of(&row.status, row.suspended, row.waiting.unwrap_or(false)),
        state: row.state.unwrap_or_default(),
        error: row.error.as_ref().map(told).unwrap_or_default(),
        started: row.started_at,
        ended: row.ended_at,
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
