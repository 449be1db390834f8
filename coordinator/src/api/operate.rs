//! `POST /instances/{id}/...`: what an operator does with an instance.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;
use swirl_model::instance::{Instance, Status};
use swirl_model::workflow::Workflow;

use super::Api;
use super::problem::{Problem, cut};
use super::request;
use crate::Action;

/// The largest body, in bytes.
const BODY_BYTES_MAX: usize = 1 << 20;

pub async fn cancel(State(api): State<Api>, Path(id): Path<String>) -> Result<Response, Problem> {
    operate(&api, &id, "cancel", Action::Cancel).await
}

pub async fn suspend(State(api): State<Api>, Path(id): Path<String>) -> Result<Response, Problem> {
    operate(&api, &id, "suspend", Action::Suspend).await
}

pub async fn resume(State(api): State<Api>, Path(id): Path<String>) -> Result<Response, Problem> {
    operate(&api, &id, "resume", Action::Resume).await
}

pub async fn retry(State(api): State<Api>, Path(id): Path<String>) -> Result<Response, Problem> {
    operate(&api, &id, "retry", Action::Retry).await
}

/// The body is taken as the result of the action that failed.
pub async fn skip(
    State(api): State<Api>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, Problem> {
    let bytes = request::body(body, BODY_BYTES_MAX).await?;
    if bytes.is_empty() {
        return Err(Problem::bad_request(
            "invalid-json",
            "the body is the JSON that is taken as the action's result; 'null' for none",
        ));
    }
    operate(&api, &id, "skip", Action::Skip(request::json(&bytes)?)).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rerun {
    state: String,
}

pub async fn rerun(
    State(api): State<Api>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, Problem> {
    let bytes = request::body(body, BODY_BYTES_MAX).await?;
    let rerun: Rerun = serde_json::from_slice(&bytes).map_err(|error| {
        let detail = format!("the body must be {{\"state\": \"NAME\"}}: {error}");
        Problem::bad_request("invalid-json", detail)
    })?;
    let instance = find(&api, &id).await?;
    let definition = api
        .service
        .registry
        .get(&instance.header.definition)
        .await?;
    let workflow = &definition.workflow;
    if workflow
        .state_by_name(Workflow::ROOT, &rerun.state)
        .is_none()
    {
        let detail = format!(
            "{} has no state '{}'",
            instance.header.definition,
            cut(&rerun.state)
        );
        return Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "unknown-state",
            detail,
        ));
    }
    operate(&api, &id, "rerun", Action::Rerun(rerun.state)).await
}

async fn find(api: &Api, id: &str) -> Result<Instance, Problem> {
    let called = api.service.called(id).await?;
    let found = api.service.store.instance(&called).await?;
    found.ok_or_else(|| Problem::no_instance(id))
}

async fn operate(
    api: &Api,
    id: &str,
    word: &'static str,
    action: Action,
) -> Result<Response, Problem> {
    let instance = find(api, id).await?;
    if let Some(reason) = hindrance(&instance, &action) {
        return Err(Problem::conflict("wrong-status", reason));
    }
    if let Some(reason) = api.service.refusal(&instance, &action).await? {
        return Err(Problem::conflict("wrong-status", reason));
    }
    let continues = matches!(action, Action::Retry | Action::Skip(_) | Action::Rerun(_));
    if continues && let Some(by) = api.service.key_in_use(&instance).await? {
        let key = instance.header.instance_key.as_deref().unwrap_or_default();
        let detail = format!("instance {by} runs under the key '{}' by now", cut(key));
        return Err(Problem::conflict("key-in-use", detail).with("instance", by.as_str()));
    }
    if !api.service.operate(&instance.header.id, action).await? {
        let detail = "the instance's status has just changed; look at it again";
        return Err(Problem::conflict("wrong-status", detail));
    }
    let body = json!({"id": instance.header.id.as_str(), "accepted": word});
    Ok((StatusCode::ACCEPTED, Json(body)).into_response())
}

/// Why this cannot be done with an instance of that status.
fn hindrance(instance: &Instance, action: &Action) -> Option<String> {
    let (status, suspended) = (instance.state.status, instance.state.suspended);
    let word = status.word();
    match action {
        Action::Retry | Action::Skip(_) | Action::Rerun(_) if status != Status::Faulted => Some(
            format!("only a faulted instance can be continued; this one is {word}"),
        ),
        Action::Cancel | Action::Suspend | Action::Resume if status.ended() => {
            Some(format!("the instance has ended: it is {word}"))
        }
        Action::Suspend if suspended => Some("the instance is suspended already".to_owned()),
        Action::Resume if !suspended => Some("the instance isn't suspended".to_owned()),
        _ => None,
    }
}
