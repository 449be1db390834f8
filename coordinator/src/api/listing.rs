//! `GET /instances`

use axum::Json;
use axum::extract::State;
use futures::StreamExt;
use futures::stream;
use serde::Deserialize;
use serde_json::{Value, json};
use swirl_model::attribute::Attributes;
use swirl_model::ids::InstanceId;
use swirl_model::instance::Status;
use swirl_ports::{Filter, SavedView, Summary};
use swirl_presentation::place::{is_waiting, place as place_in};
use swirl_query::Declared;

use super::Api;
use super::paging::{self, CURSOR};
use super::problem::{Problem, cut};
use super::request::Parameters;

/// The maximum number of instances that are examined for conditions without an index in the store. The response has the
/// position to continue from.
const EXAMINED_MAX: usize = 20_000;
/// The number of instances that are examined at a time.
const AT_ONCE: usize = 16;

/// The statuses in the store, and two conditions of running instances.
const WORDS: [&str; 7] = [
    "running",
    "waiting",
    "suspended",
    "completed",
    "faulted",
    "cancelled",
    "terminated",
];

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Query {
    workflow: Option<String>,
    version: Option<String>,
    status: Option<String>,
    key: Option<String>,
    prefix: Option<String>,
    query: Option<String>,
    after: Option<String>,
    limit: Option<u32>,
}

impl Query {
    /// The search of a saved view.
    pub(super) fn of(view: &SavedView) -> Query {
        Query {
            workflow: view.workflow.clone(),
            status: view.status.clone(),
            key: view.key.clone(),
            query: view.query.clone(),
            ..Query::default()
        }
    }

    /// Whether it is a search for all instances.
    pub(super) fn is_empty(&self) -> bool {
        let parts = [
            &self.workflow,
            &self.version,
            &self.status,
            &self.key,
            &self.prefix,
            &self.query,
        ];
        parts.iter().all(|part| part.is_none())
    }
}

/// An instance, and where it is unless it has ended. Its data isn't kept: a listing has many rows.
struct Row {
    summary: Summary,
    is_waiting: bool,
    /// Its state, and what it does there.
    place: Value,
}

/// Conditions on a row in addition to the store's filter.
#[derive(Clone, Copy, PartialEq)]
enum Only {
    All,
    Waiting,
    Suspended,
}

pub async fn list(
    State(api): State<Api>,
    Parameters(query): Parameters<Query>,
) -> Result<Json<Value>, Problem> {
    let limit = paging::limit(query.limit)?;
    let only = match query.status.as_deref() {
        None => Only::All,
        Some(word) => status(word)?.1,
    };
    let asked = ListingQuery::new(&api, &query).await?;
    let mut filter = asked.filter();
    if let Some(place) = query.after {
        match place.strip_prefix(CURSOR) {
            Some(cursor) => filter.from = Some(cursor.to_owned()),
            None => filter.after = Some(InstanceId::new(place)),
        }
    }
    let mut rows: Vec<Row> = Vec::new();
    let mut examined = 0;
    loop {
        filter.limit = limit - rows.len();
        filter.examined_max = EXAMINED_MAX - examined;
        let page = api.queries.page(&filter, &|row| asked.means(row)).await?;
        examined += page.examined.max(1);
        let found = stream::iter(page.rows)
            .map(|summary| row(&api, summary))
            .buffered(AT_ONCE)
            .collect::<Vec<_>>()
            .await;
        for row in found {
            let row = row?;
            if row.passes(only) && (!asked.query.waiting() || row.passes(Only::Waiting)) {
                rows.push(row);
            }
        }
        filter.from = page.next;
        if filter.from.is_none() || rows.len() >= limit || examined >= EXAMINED_MAX {
            break;
        }
    }
    let instances: Vec<Value> = rows.iter().map(line).collect();
    let next = filter.from.map(|next| format!("{CURSOR}{next}"));
    Ok(Json(json!({
        "instances": instances,
        "complete": next.is_none(),
        "next": next,
        "scanned": examined,
    })))
}

/// The parameters of a request combined with its query.
pub(super) struct ListingQuery {
    query: swirl_query::Query,
    declared: Declared,
    params: Filter,
    suspended: bool,
}

impl ListingQuery {
    pub async fn new(api: &Api, asked: &Query) -> Result<ListingQuery, Problem> {
        let text = asked.query.as_deref().unwrap_or_default();
        let declared = declared(api, text).await?;
        let (statuses, only) = match asked.status.as_deref() {
            None => (Vec::new(), Only::All),
            Some(word) => {
                let (status, only) = status(word)?;
                (vec![status], only)
            }
        };
        Ok(ListingQuery {
            query: parse(api, text, &declared)?,
            declared,
            params: Filter {
                workflow: asked.workflow.clone(),
                version: asked.version.clone(),
                statuses,
                key: asked.key.clone(),
                prefix: asked.prefix.clone(),
                ..Filter::default()
            },
            suspended: only == Only::Suspended,
        })
    }

    /// The part that the store can answer from an index. [`ListingQuery::means`] checks the rest.
    pub fn filter(&self) -> Filter {
        let mut filter = self.query.filter(&self.declared);
        let params = self.params.clone();
        filter.workflow = filter.workflow.or(params.workflow);
        filter.version = filter.version.or(params.version);
        filter.key = filter.key.or(params.key);
        filter.prefix = filter.prefix.or(params.prefix);
        if filter.statuses.is_empty() {
            filter.statuses = params.statuses;
        }
        filter
    }

    pub fn means(&self, row: &Summary) -> bool {
        self.params.passes(row) && (!self.suspended || row.suspended) && self.query.matches(row)
    }
}

/// The attributes that deployed workflows declare, if the query seems to use any.
pub(super) async fn declared(api: &Api, query: &str) -> Result<Declared, Problem> {
    if !query.contains('@') {
        return Ok(Declared::default());
    }
    Ok(Declared(api.service.registry.search_attributes().await?))
}

/// A client's query, checked against the declared attributes.
pub(super) fn parse(
    api: &Api,
    text: &str,
    declared: &Declared,
) -> Result<swirl_query::Query, Problem> {
    let query = swirl_query::Query::parse(text, api.service.clock.now());
    let checked = query.and_then(|query| query.check(declared).map(|()| query));
    checked.map_err(|error| {
        let code = match error.unknown_attribute {
            true => "unknown-attribute",
            false => "invalid-search",
        };
        Problem::bad_request(code, error.to_string())
            .with(|more| (more.position, more.length) = (Some(error.at), Some(error.length)))
    })
}

fn status(word: &str) -> Result<(Status, Only), Problem> {
    Ok(match word {
        "running" => (Status::Running, Only::All),
        "waiting" => (Status::Running, Only::Waiting),
        "suspended" => (Status::Running, Only::Suspended),
        "completed" => (Status::Completed, Only::All),
        "faulted" => (Status::Faulted, Only::All),
        "cancelled" => (Status::Cancelled, Only::All),
        "terminated" => (Status::Terminated, Only::All),
        _ => {
            let message = format!(
                "there is no status '{}'; they are {}",
                cut(word),
                WORDS.join(", ")
            );
            return Err(Problem::bad_request("invalid-query", message));
        }
    })
}

/// Which of these instances wait for something.
pub(super) async fn waiting(api: &Api, rows: Vec<Summary>) -> Result<Vec<Summary>, Problem> {
    let rows = stream::iter(rows).map(|summary| row(api, summary));
    let rows: Vec<_> = rows.buffered(AT_ONCE).collect().await;
    let rows: Result<Vec<Row>, Problem> = rows.into_iter().collect();
    let waiting = rows?.into_iter().filter(|row| row.passes(Only::Waiting));
    Ok(waiting.map(|row| row.summary).collect())
}

async fn row(api: &Api, summary: Summary) -> Result<Row, Problem> {
    let stands = matches!(summary.status, Status::Running | Status::Faulted);
    let root = match stands {
        true => api.queries.root(&summary.header.id).await?,
        false => None,
    };
    let mut place = Value::Null;
    if let Some(root) = root.as_ref().filter(|root| !root.ended())
        && let Ok(definition) = api.service.registry.get(&summary.header.definition).await
    {
        let found = place_in(&definition.workflow, root);
        place = json!({"state": found["state"], "doing": found["doing"]});
    }
    Ok(Row {
        is_waiting: root.as_ref().is_some_and(is_waiting),
        summary,
        place,
    })
}

impl Row {
    fn passes(&self, only: Only) -> bool {
        match only {
            Only::All => true,
            Only::Suspended => self.summary.suspended,
            Only::Waiting => !self.summary.suspended && self.is_waiting,
        }
    }
}

/// Search attributes as clients see them.
pub(super) fn shown(attributes: &Attributes) -> Value {
    let pairs = attributes.iter();
    pairs
        .map(|(name, value)| (name.to_string(), value.shown()))
        .collect()
}

/// Leaves out the current state if the instance's definition cannot be read.
fn line(row: &Row) -> Value {
    let Summary {
        header,
        status,
        suspended,
        ended_at,
        error,
        attributes,
    } = &row.summary;
    let mut line = json!({
        "id": header.id.as_str(),
        "workflow": &*header.definition.workflow,
        "version": header.version,
        "status": status.as_str(),
        "suspended": suspended,
        "key": header.key,
        "instanceKey": header.instance_key,
        "startedAt": format!("{:.3}", header.started_at),
        "scheduledAt": header.scheduled_at.map(|at| format!("{at:.3}")),
        "endedAt": ended_at.map(|at| format!("{at:.3}")),
    });
    if !attributes.is_empty() {
        line["attributes"] = shown(attributes);
    }
    if let Some(error) = error {
        line["error"] = Value::from(&error.to_data());
    }
    if !row.place.is_null() {
        for name in ["state", "doing"] {
            if !row.place[name].is_null() {
                line[name] = row.place[name].clone();
            }
        }
        line["waiting"] = json!(*status == Status::Running && !suspended && row.is_waiting);
    }
    line
}
