//! `GET /instances/{id}` and below.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::{Value, json};
use swirl_model::ids::InstanceId;
use swirl_model::instance::Instance;
use swirl_model::scope::Scope;
use swirl_ports::HistoryPart;
use swirl_presentation::place::place;
use swirl_presentation::timeline;

use super::Api;
use super::listing;
use super::problem::Problem;
use super::request::Parameters;
use super::start;

/// The limit of the state data in an answer, in bytes of JSON. Scopes beyond the limit are shown
/// without data.
const DATA_BYTES_MAX: usize = 1 << 20;
/// The maximum number of scopes of an instance in an answer, and of entries of a history.
const SCOPES_MAX: usize = 1_000;
const ENTRIES_MAX: usize = 2_000;
/// The longest pause between two polls of an instance.
const PAUSE_MAX: Duration = Duration::from_millis(200);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Look {
    wait: Option<String>,
}

/// All facts about an instance, apart from its history.
pub async fn one(
    State(api): State<Api>,
    Path(id): Path<String>,
    Parameters(look): Parameters<Look>,
) -> Result<Json<Value>, Problem> {
    let called = api.service.called(&id).await?;
    let found = match look.wait {
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

/// An instance, and those of its scopes that have not ended.
pub async fn shown(api: &Api, found: &(Instance, Vec<Scope>)) -> Result<Value, Problem> {
    let (instance, scopes) = found;
    let (header, state) = (&instance.header, &instance.state);
    let mut view = json!({
        "id": header.id.as_str(),
        "workflow": &*header.definition.workflow,
        "version": header.version,
        "status": state.status.word(),
        "suspended": state.suspended,
        "startedAt": format!("{:.3}", header.started_at),
        "endedAt": state.ended_at.map(|at| format!("{at:.3}")),
        "key": header.key,
        "instanceKey": header.instance_key,
        "parent": header.parent.as_ref().map(|parent| parent.scope.instance.as_str()),
        "continuedFrom": header.continued_from.as_ref().map(InstanceId::as_str),
        "correlation": state.correlation,
        "input": Value::from(&header.input),
    });
    if let Some(output) = &state.output {
        view["output"] = Value::from(output);
    }
    if !state.attributes.is_empty() {
        view["attributes"] = listing::shown(&state.attributes);
    }
    if let Some(error) = &state.error {
        view["error"] = Value::from(&error.to_data());
    }
    if !scopes.is_empty() {
        let definition = api.service.registry.get(&header.definition).await?;
        let open = scopes.iter().filter(|scope| !scope.ended());
        let left_out = open.clone().count().saturating_sub(SCOPES_MAX);
        let places: Vec<Value> = open
            .take(SCOPES_MAX)
            .map(|scope| place(&definition.workflow, scope))
            .collect();
        view["scopes"] = json!(places);
        if left_out > 0 {
            view["scopesLeftOut"] = json!(left_out);
        }
    }
    Ok(view)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Since {
    /// The number of entries that the client knows already.
    after: Option<u64>,
    /// The maximum number of entries.
    limit: Option<usize>,
    /// This many of the last entries, in place of `after`.
    last: Option<usize>,
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
    let part = match (since.last, since.after) {
        (Some(_), Some(_)) => {
            let detail = "'after' and 'last' exclude each other";
            return Err(Problem::bad_request("invalid-query", detail));
        }
        (Some(last), None) => HistoryPart::Last(last),
        (None, known) => HistoryPart::After {
            known: known.unwrap_or(0),
            limit: since.limit.unwrap_or(ENTRIES_MAX),
        },
    };
    let id = api.service.called(&id).await?;
    let Some(instance) = api.queries.instance(&id).await? else {
        return Err(Problem::no_instance(id.as_str()));
    };
    let page = api.queries.history_page(&id, part).await?;
    let shown = page.entries.iter();
    let shown = shown.take(since.limit.unwrap_or(ENTRIES_MAX));
    let entries: Vec<Value> = shown.map(timeline::entry).collect();
    let more = page.before + (entries.len() as u64) < page.total;
    Ok(Json(json!({
        "id": id.as_str(),
        "workflow": &*instance.header.definition.workflow,
        "version": instance.header.version,
        "status": instance.state.status.word(),
        "before": page.before.max(since.after.unwrap_or(0)),
        "total": page.total,
        "more": more,
        "entries": entries,
    })))
}
