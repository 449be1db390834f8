//! `GET /instances` and below.

use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::{Value, json};
use swirl_model::event::HistoryEntry;
use swirl_model::ids::InstanceId;
use swirl_model::instance::{Instance, Status};
use swirl_model::scope::Scope;
use swirl_model::time::Timestamp;
use swirl_ports::{Filter, Summary};

use super::Api;
use super::place::place;
use super::problem::{Problem, cut};
use super::request::Parameters;

/// How many instances a listing holds at most, and if nothing is said.
const LIMIT_MAX: usize = 1000;
const LIMIT: usize = 100;

const STATUSES: [Status; 5] = [
    Status::Running,
    Status::Completed,
    Status::Faulted,
    Status::Cancelled,
    Status::Terminated,
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Query {
    workflow: Option<String>,
    version: Option<String>,
    status: Option<String>,
    key: Option<String>,
    after: Option<String>,
    limit: Option<usize>,
}

pub async fn list(
    State(api): State<Api>,
    Parameters(query): Parameters<Query>,
) -> Result<Json<Value>, Problem> {
    let limit = query.limit.unwrap_or(LIMIT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(Problem::bad_request(
            "invalid-query",
            format!("'limit' is 1 to {LIMIT_MAX}"),
        ));
    }
    let filter = Filter {
        workflow: query.workflow,
        version: query.version,
        status: query.status.as_deref().map(status).transpose()?,
        key: query.key,
        after: query.after.map(InstanceId::new),
        limit,
    };
    let found = api.service.store.list(&filter).await?;
    let next = (found.len() == limit).then(|| found.last().map(|last| last.header.id.as_str()));
    let instances: Vec<Value> = found.iter().map(line).collect();
    Ok(Json(
        json!({"instances": instances, "next": next.flatten()}),
    ))
}

fn status(word: &str) -> Result<Status, Problem> {
    let found = STATUSES.into_iter().find(|status| status.word() == word);
    found.ok_or_else(|| {
        let words: Vec<&str> = STATUSES.iter().map(|status| status.word()).collect();
        let message = format!(
            "there is no status '{}'; they are {}",
            cut(word),
            words.join(", ")
        );
        Problem::bad_request("invalid-query", message)
    })
}

fn line(summary: &Summary) -> Value {
    let header = &summary.header;
    json!({
        "id": header.id.as_str(),
        "workflow": &*header.definition.workflow,
        "version": header.version,
        "status": summary.status.word(),
        "suspended": summary.suspended,
        "key": header.key,
        "instanceKey": header.instance_key,
        "startedAt": header.started_at.to_string(),
        "endedAt": summary.ended_at.map(|at| at.to_string()),
    })
}

pub async fn one(State(api): State<Api>, Path(id): Path<String>) -> Result<Json<Value>, Problem> {
    view(&api, &id).await.map(Json)
}

/// All that there is to know of an instance, but its history and its state data.
pub async fn view(api: &Api, id: &str) -> Result<Value, Problem> {
    let called = api.service.called(id).await?;
    match api.service.store.view(&called).await? {
        Some(found) => shown(api, &found).await,
        None => Err(Problem::no_instance(id)),
    }
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
        "startedAt": header.started_at.to_string(),
        "endedAt": state.ended_at.map(|at| at.to_string()),
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
    if let Some(error) = &state.error {
        view["error"] = Value::from(&error.to_data());
    }
    if !scopes.is_empty() {
        let definition = api.service.registry.get(&header.definition).await?;
        let places: Vec<Value> = scopes
            .iter()
            .filter(|scope| !scope.ended())
            .map(|scope| place(&definition.workflow, scope))
            .collect();
        view["scopes"] = json!(places);
    }
    Ok(view)
}

pub async fn history(
    State(api): State<Api>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    let called = api.service.called(&id).await?;
    let Some(instance) = api.service.store.instance(&called).await? else {
        return Err(Problem::no_instance(&id));
    };
    let id = called;
    let history = api.service.store.history(&id).await?;
    let entries: Vec<Value> = history.iter().map(entry).collect();
    Ok(Json(json!({
        "id": id.as_str(),
        "workflow": &*instance.header.definition.workflow,
        "version": instance.header.version,
        "status": instance.state.status.word(),
        "entries": entries,
    })))
}

/// An entry as it is stored, with instants as people read them.
fn entry(entry: &HistoryEntry) -> Value {
    let mut value = serde_json::to_value(entry).unwrap_or_default();
    value["at"] = json!(entry.at.to_string());
    if let Some(due) = value.pointer_mut("/timer/due")
        && let Some(ms) = due.as_i64()
    {
        *due = json!(Timestamp(ms).to_string());
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use swirl_model::event::Event;
    use swirl_model::ids::ScopeId;
    use swirl_model::scope::{Timer, TimerKind};

    #[test]
    fn instants_are_written_out() {
        let timer = Timer {
            seq: 1,
            kind: TimerKind::Sleep,
            due: Timestamp(1000),
        };
        let value = entry(&HistoryEntry {
            at: Timestamp(2000),
            scope: ScopeId::root(),
            event: Event::TimedOut { timer },
        });
        assert_eq!(value["at"], "1970-01-01T00:00:02Z");
        assert_eq!(value["timer"]["due"], "1970-01-01T00:00:01Z");
        assert_eq!(value["event"], "timed_out");
    }
}
