//! `GET /instances`

use futures::StreamExt;
use futures::stream;
use serde_json::{Map, Value};
use swirl_api::instance::{InstanceSummary, Instances, ListQuery, ScopePosition};
use swirl_api::{Condition, Nothing};
use swirl_instance_query::Declared;
use swirl_model::attribute::Attributes;
use swirl_model::ids::InstanceId;
use swirl_model::instance::Status;
use swirl_ports::{Filter, SavedView, Summary};
use swirl_presentation::place::{is_waiting, place as place_in};

use super::Api;
use super::paging::{self, CURSOR};
use super::problem::Problem;
use super::serve::Asked;

/// The maximum number of instances that are examined for conditions without an index in the store. The response has the
/// position to continue from.
const EXAMINED_MAX: usize = 20_000;
/// The number of instances that are examined at a time.
const AT_ONCE: usize = 16;
/// The number of awaited events that a row has.
const AWAITED_MAX: usize = 5;
/// The number of rows after which a page that has become large ends.
const PART: usize = 100;

/// The search of a saved view.
pub(super) fn search_of(view: &SavedView) -> ListQuery {
    ListQuery {
        workflow: view.workflow.clone(),
        status: view.status.as_deref().map(Condition::from),
        key: view.key.clone(),
        query: view.query.clone(),
        ..ListQuery::default()
    }
}

/// An instance, and where it is unless it has ended. Its data isn't kept: a listing has many rows.
struct Row {
    summary: Summary,
    is_waiting: bool,
    place: Option<ScopePosition>,
}

/// Conditions on a row in addition to the store's filter.
#[derive(Clone, Copy, PartialEq)]
enum Only {
    All,
    Waiting,
    Suspended,
}

pub async fn list(
    api: Api,
    Asked { query, .. }: Asked<Nothing, ListQuery, Nothing>,
) -> Result<Instances, Problem> {
    let limit = paging::limit(query.limit)?;
    let only = match &query.status {
        None => Only::All,
        Some(condition) => status(condition)?.1,
    };
    let asked = ListingQuery::new(&api, &query).await?;
    let mut filter = asked.filter();
    if let Some(place) = query.after {
        match place.strip_prefix(CURSOR) {
            Some(cursor) => filter.from = Some(cursor.to_owned()),
            None => filter.after = Some(InstanceId::new(place)),
        }
    }
    let mut rows: Vec<InstanceSummary> = Vec::new();
    let (mut examined, mut bytes) = (0, 0);
    loop {
        filter.limit = (limit - rows.len()).min(PART);
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
                let row = line(row);
                bytes += serde_json::to_vec(&row).map_or(0, |row| row.len());
                rows.push(row);
            }
        }
        filter.from = page.next;
        let is_full = rows.len() >= limit || bytes >= paging::BYTES_MAX;
        if filter.from.is_none() || is_full || examined >= EXAMINED_MAX {
            break;
        }
    }
    let next = filter.from.map(|next| format!("{CURSOR}{next}"));
    Ok(Instances {
        instances: rows,
        complete: next.is_none(),
        next,
        scanned: examined,
    })
}

/// The parameters of a request combined with its query.
pub(super) struct ListingQuery {
    query: swirl_instance_query::Query,
    declared: Declared,
    params: Filter,
    suspended: bool,
}

impl ListingQuery {
    pub async fn new(api: &Api, asked: &ListQuery) -> Result<ListingQuery, Problem> {
        let text = asked.query.as_deref().unwrap_or_default();
        let declared = declared(api, text).await?;
        let (statuses, only) = match &asked.status {
            None => (Vec::new(), Only::All),
            Some(condition) => {
                let (status, only) = status(condition)?;
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
) -> Result<swirl_instance_query::Query, Problem> {
    let query = swirl_instance_query::Query::parse(text, api.service.clock.now());
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

fn status(condition: &Condition) -> Result<(Status, Only), Problem> {
    Ok(match condition {
        Condition::Running => (Status::Running, Only::All),
        Condition::Waiting => (Status::Running, Only::Waiting),
        Condition::Suspended => (Status::Running, Only::Suspended),
        Condition::Completed => (Status::Completed, Only::All),
        Condition::Faulted => (Status::Faulted, Only::All),
        Condition::Cancelled => (Status::Cancelled, Only::All),
        Condition::Terminated => (Status::Terminated, Only::All),
        _ => {
            let word = condition.as_str();
            return Err(Problem::no_word("status", word, Condition::WORDS));
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

/// These instances as a listing shows them.
pub(super) async fn lines(api: &Api, rows: Vec<Summary>) -> Result<Vec<InstanceSummary>, Problem> {
    let rows = stream::iter(rows).map(|summary| row(api, summary));
    let rows: Vec<_> = rows.buffered(AT_ONCE).collect().await;
    rows.into_iter().map(|row| row.map(line)).collect()
}

async fn row(api: &Api, summary: Summary) -> Result<Row, Problem> {
    let stands = matches!(summary.status, Status::Running | Status::Faulted);
    let root = match stands {
        true => api.queries.root_outline(&summary.header.id).await?,
        false => None,
    };
    let mut place = None;
    if let Some(root) = root.as_ref().filter(|root| !root.ended())
        && let Ok(definition) = api.service.registry.get(&summary.header.definition).await
    {
        place = Some(place_in(&definition.workflow, root));
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
pub(super) fn shown(attributes: &Attributes) -> Map<String, Value> {
    let pairs = attributes.iter();
    pairs
        .map(|(name, value)| (name.to_string(), value.shown()))
        .collect()
}

/// Leaves out the current state if the instance's definition cannot be read.
fn line(row: Row) -> InstanceSummary {
    let Summary {
        header,
        status,
        suspended,
        ended_at,
        error,
        attributes,
    } = row.summary;
    let waiting = status == Status::Running && !suspended && row.is_waiting;
    let waiting = row.place.as_ref().map(|_| waiting);
    let mut place = row.place.unwrap_or_default();
    place.waits_for.truncate(AWAITED_MAX);
    let parent = header.parent.as_ref();
    InstanceSummary {
        id: header.id.to_string(),
        workflow: header.definition.workflow.to_string(),
        version: header.version.to_string(),
        status: status.into(),
        suspended,
        key: header.key.as_ref().map(ToString::to_string),
        instance_key: header.instance_key.as_ref().map(ToString::to_string),
        started_at: header.started_at.into(),
        scheduled_at: header.scheduled_at.map(Into::into),
        ended_at: ended_at.map(Into::into),
        attributes: shown(&attributes),
        error: error.as_ref().map(Into::into),
        state: place.state,
        doing: waiting.map(|_| place.doing),
        waiting,
        waits_for: place.waits_for,
        due: place.timers.iter().map(|timer| timer.due).min(),
        parent: parent.map(|parent| parent.scope.instance.to_string()),
    }
}
