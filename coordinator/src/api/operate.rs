//! `POST /instances/{id}/...` and `DELETE /instances/{id}`: an operator's actions on an instance.

use axum::Json;
use axum::body::Body;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;
use swirl_model::instance::{Instance, Status};
use swirl_model::workflow::Workflow;
use swirl_service::{Action, NotRemoved, Operator};

use super::Api;
use super::problem::{Problem, cut};
use super::request::{self, Parameters};
use crate::access::Caller;

/// The largest body, in bytes.
const BODY_BYTES_MAX: usize = 1 << 20;

/// The longest reason, in characters.
const REASON_CHARS_MAX: usize = 500;

/// The operator and the reason: `?reason=`.
pub struct Asker(Operator);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Why {
    reason: Option<String>,
}

impl<S: Send + Sync> FromRequestParts<S> for Asker {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Asker, Problem> {
        let Parameters(Why { reason }) = Parameters::from_request_parts(parts, state).await?;
        if reason
            .as_ref()
            .is_some_and(|reason| reason.chars().count() > REASON_CHARS_MAX)
        {
            return Err(Problem::bad_request(
                "invalid-query",
                format!("a reason has at most {REASON_CHARS_MAX} characters"),
            ));
        }
        let caller = parts.extensions.get::<Caller>();
        Ok(Asker(Operator {
            name: caller.map(|caller| caller.name.clone()),
            reason: reason.filter(|reason| !reason.is_empty()),
        }))
    }
}

pub async fn cancel(
    State(api): State<Api>,
    Path(id): Path<String>,
    asker: Asker,
) -> Result<Response, Problem> {
    operate(&api, &id, Action::Cancel, asker).await
}

pub async fn suspend(
    State(api): State<Api>,
    Path(id): Path<String>,
    asker: Asker,
) -> Result<Response, Problem> {
    operate(&api, &id, Action::Suspend, asker).await
}

pub async fn resume(
    State(api): State<Api>,
    Path(id): Path<String>,
    asker: Asker,
) -> Result<Response, Problem> {
    operate(&api, &id, Action::Resume, asker).await
}

pub async fn retry(
    State(api): State<Api>,
    Path(id): Path<String>,
    asker: Asker,
) -> Result<Response, Problem> {
    operate(&api, &id, Action::Retry, asker).await
}

/// The body is taken as the result of the action that failed.
pub async fn skip(
    State(api): State<Api>,
    Path(id): Path<String>,
    asker: Asker,
    body: Body,
) -> Result<Response, Problem> {
    let bytes = request::body(body, BODY_BYTES_MAX).await?;
    if bytes.is_empty() {
        return Err(Problem::bad_request(
            "invalid-json",
            "the body is the JSON that is taken as the action's result; 'null' for none",
        ));
    }
    operate(&api, &id, Action::Skip(request::json(&bytes)?), asker).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rerun {
    state: String,
}

pub async fn rerun(
    State(api): State<Api>,
    Path(id): Path<String>,
    asker: Asker,
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
    operate(&api, &id, Action::Rerun(rerun.state), asker).await
}

/// An instance that has ended or failed, with its history.
pub async fn remove(
    State(api): State<Api>,
    Path(id): Path<String>,
    Asker(operator): Asker,
) -> Result<Response, Problem> {
    let instance = find(&api, &id).await?;
    let header = &instance.header;
    if let Err(reason) = api.service.remove(&instance, &operator).await? {
        return Err(not_removed(&id, header.id.as_str(), reason));
    }
    let body = json!({
        "id": header.id.as_str(),
        "workflow": &*header.definition.workflow,
        "version": &*header.definition.version,
        "status": instance.state.status.word(),
    });
    Ok(Json(body).into_response())
}

fn not_removed(asked: &str, id: &str, reason: NotRemoved) -> Problem {
    let (code, detail) = match reason {
        NotRemoved::Unknown => return Problem::no_instance(asked),
        NotRemoved::Running => (
            "still-running",
            format!("instance {id} is running: cancel it first"),
        ),
        NotRemoved::Awaits(child) => (
            "still-running",
            format!("{child}, a sub-workflow of instance {id}, is running: cancel that first"),
        ),
        NotRemoved::Needed(parent) => (
            "still-needed",
            format!(
                "instance {parent} failed with its sub-workflow {id}, and its retry would run that again from the \
                 beginning: remove {parent} first"
            ),
        ),
        NotRemoved::Busy => (
            "still-busy",
            format!("instance {id} has effects that are not carried out yet: try again soon"),
        ),
    };
    Problem::conflict(code, detail)
}

async fn find(api: &Api, id: &str) -> Result<Instance, Problem> {
    let called = api.service.called(id).await?;
    let found = api.queries.instance(&called).await?;
    found.ok_or_else(|| Problem::no_instance(id))
}

async fn operate(
    api: &Api,
    id: &str,
    action: Action,
    Asker(operator): Asker,
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
    let word = action.word();
    let done = api
        .service
        .operate_by(&instance.header.id, action, &operator);
    if !done.await? {
        let detail = "the instance's status has just changed; look at it again";
        return Err(Problem::conflict("wrong-status", detail));
    }
    let body = json!({"id": instance.header.id.as_str(), "accepted": word});
    Ok((StatusCode::ACCEPTED, Json(body)).into_response())
}

/// The reason why an instance of that status doesn't allow this.
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
