//! `GET /instances/{id}` and below.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::{Value, json};
use swirl_model::event::HistoryEntry;
use swirl_model::instance::Instance;
use swirl_ports::HistoryPart;
use swirl_presentation::{Names, timeline};

use super::Api;
use super::instance_view::shown;
use super::problem::Problem;
use super::request::Parameters;
use super::rewind;
use super::start;

/// The limit on state data in a response, in bytes of JSON. Scopes beyond the limit are shown without data.
const DATA_BYTES_MAX: usize = 1 << 20;
/// The maximum number of history entries in a response.
const ENTRIES_MAX: usize = 2_000;
/// How many earlier parts are read to find out where the branches in a part of a history belong.
const NAMES_READS_MAX: usize = 5;
/// The longest pause between two polls of an instance.
const PAUSE_MAX: Duration = Duration::from_millis(200);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ViewQuery {
    wait: Option<String>,
    /// The number of the history entry at which to show the instance.
    at: Option<u64>,
}

/// Everything about an instance except its history.
pub async fn one(
    State(api): State<Api>,
    Path(id): Path<String>,
    Parameters(query): Parameters<ViewQuery>,
) -> Result<Json<Value>, Problem> {
    let called = api.service.called(&id).await?;
    if let Some(at) = query.at {
        if query.wait.is_some() {
            let detail = "'wait' and 'at' exclude each other";
            return Err(Problem::bad_request("invalid-query", detail));
        }
        let found = api.queries.instance(&called).await?;
        let found = found.ok_or_else(|| Problem::no_instance(&id))?;
        return Ok(Json(rewind::view(&api, found, at).await?));
    }
    let found = match query.wait {
        Some(wait) => {
            let wait = start::parse_wait(&wait)?;
            start::until_end(&api, &called, wait, false, PAUSE_MAX).await?
        }
        None => {
            let found = api.queries.view(&called).await?;
            found.ok_or_else(|| Problem::no_instance(&id))?
        }
    };
    let mut view = shown(&api, &found).await?;
    let mut left = DATA_BYTES_MAX;
    let open = found.1.iter().filter(|scope| !scope.ended());
    let places = view["scopes"].as_array_mut().into_iter().flatten();
    for (place, scope) in places.zip(open) {
        if scope.data.exceeds(left) {
            place["dataLeftOut"] = json!(true);
        } else {
            left -= scope.data.to_string().len().min(left);
            place["data"] = Value::from(&scope.data);
        }
    }
    Ok(Json(view))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Since {
    /// The number of entries that the client already has.
    after: Option<u64>,
    /// The maximum number of entries.
    limit: Option<usize>,
    /// The number of last entries to return, instead of `after`.
    last: Option<usize>,
    /// The number of the last entry to consider, for `after` and `last`.
    to: Option<u64>,
}

/// The entries of branches with the names of those.
async fn named(
    api: &Api,
    instance: &Instance,
    entries: &[HistoryEntry],
    mut before: u64,
) -> Result<Vec<Value>, Problem> {
    let mut shown: Vec<Value> = entries.iter().map(timeline::entry).collect();
    let is_plain = entries.iter().all(|entry| entry.scope.is_root());
    // Without its definition, the history can be read nevertheless.
    let definition = match is_plain {
        true => return Ok(shown),
        false => api.service.registry.get(&instance.header.definition).await,
    };
    let Ok(definition) = definition else {
        return Ok(shown);
    };
    let mut names = Names::new(&definition.workflow);
    names.learn(entries);
    // Branches may have begun in an earlier part.
    for _ in 0..NAMES_READS_MAX {
        if before == 0 || !entries.iter().any(|entry| names.lacks(&entry.scope)) {
            break;
        }
        let known = before.saturating_sub(ENTRIES_MAX as u64);
        let part = HistoryPart::After {
            known,
            limit: (before - known) as usize,
        };
        let page = api.queries.history_page(&instance.header.id, part).await?;
        if page.entries.is_empty() || page.before >= before {
            break;
        }
        names.learn(&page.entries);
        before = page.before;
    }
    for (entry, shown) in entries.iter().zip(&mut shown) {
        if let Some(name) = names.of(&entry.scope) {
            shown["place"] = json!(name);
        }
    }
    Ok(shown)
}

pub async fn history(
    State(api): State<Api>,
    Path(id): Path<String>,
    Parameters(since): Parameters<Since>,
) -> Result<Json<Value>, Problem> {
    for (name, number) in [("limit", since.limit), ("last", since.last)] {
        if number.is_some_and(|number| number > ENTRIES_MAX) {
            let detail =
                format!("'{name}' is at most {ENTRIES_MAX}: ask for the rest with 'after'");
            return Err(Problem::bad_request("invalid-query", detail));
        }
    }
    let wide = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let known = match (since.last, since.after, since.to) {
        (Some(_), Some(_), _) => {
            let detail = "'after' and 'last' exclude each other";
            return Err(Problem::bad_request("invalid-query", detail));
        }
        (Some(last), None, None) => Err(last),
        (Some(last), None, Some(to)) => Ok(to.saturating_sub(wide(last))),
        (None, known, _) => Ok(known.unwrap_or(0)),
    };
    let limit = since.limit.unwrap_or(ENTRIES_MAX);
    let part = match known {
        Err(last) => HistoryPart::Last(last),
        Ok(known) => {
            let until = since.to.map(|to| to.saturating_sub(known));
            let until = until.and_then(|count| usize::try_from(count).ok());
            HistoryPart::After {
                known,
                limit: until.map_or(limit, |count| count.min(limit)),
            }
        }
    };
    let id = api.service.called(&id).await?;
    let Some(instance) = api.queries.instance(&id).await? else {
        return Err(Problem::no_instance(id.as_str()));
    };
    let page = api.queries.history_page(&id, part).await?;
    let page = page.at(api.service.clock.now());
    let shown = &page.entries[..page.entries.len().min(limit)];
    let entries = named(&api, &instance, shown, page.before).await?;
    let end = since.to.map_or(page.total, |to| to.min(page.total));
    let more = page.before + (entries.len() as u64) < end;
    Ok(Json(json!({
        "id": id.as_str(),
        "workflow": &*instance.header.definition.workflow,
        "version": instance.header.version,
        "status": instance.state.status.as_str(),
        "before": page.before.max(since.after.unwrap_or(0)),
        "total": page.total,
        "more": more,
        "entries": entries,
    })))
}
