//! `POST /instances/{id}/...` and `DELETE /instances/{id}`: an operator's actions on an instance.

use axum::Json;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;
use swirl_engine::Patch;
use swirl_model::Data;
use swirl_model::ids::InstanceId;
use swirl_model::instance::Instance;
use swirl_model::workflow::Workflow;
use swirl_service::{
    Action, Audited, BadOperation, Moved, NotRemoved, Operation, Operator, Refusal, Target, Unfit,
};

use super::noted::{audited, audited_before};
use super::problem::{Problem, cut};
use super::request::{self, Parameters, Unread};
use super::{Api, trial};
use crate::access::Caller;

/// The largest body, in bytes.
const BODY_BYTES_MAX: usize = 1 << 20;

/// The operator who sent the request, and the reason: `?reason=`.
pub struct Asker(pub(super) Operator);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReasonQuery {
    reason: Option<String>,
}

impl<S: Send + Sync> FromRequestParts<S> for Asker {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Asker, Problem> {
        let Parameters(ReasonQuery { reason }) =
            Parameters::from_request_parts(parts, state).await?;
        let reason = request::reason(reason)?;
        let caller = parts.extensions.get::<Caller>();
        Ok(Asker(Operator {
            name: caller.map(|caller| caller.name.clone()),
            reason,
            batch: None,
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

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Retry {
    version: Option<String>,
    #[serde(default, deserialize_with = "nullable")]
    data: Option<Data>,
    #[serde(default, deserialize_with = "nullable")]
    context: Option<Data>,
    patch: Option<String>,
    #[serde(default)]
    dry_run: bool,
}

/// `null` is valid data.
fn nullable<'d, D: serde::Deserializer<'d>>(from: D) -> Result<Option<Data>, D::Error> {
    Data::deserialize(from).map(Some)
}

/// The body may be empty, or name another version or other data.
pub async fn retry(
    State(api): State<Api>,
    Path(id): Path<String>,
    asker: Asker,
    body: Unread,
) -> Result<Response, Problem> {
    let bytes = request::text(body, BODY_BYTES_MAX).await?;
    let asked: Retry = match bytes.is_empty() {
        true => Retry::default(),
        false => serde_json::from_slice(&bytes).map_err(|error| {
            let detail = format!(
                "the body must be empty or {{\"version\": \"2.0\", \"data\": {{...}}, \"dryRun\": true}}: {error}"
            );
            Problem::bad_request("invalid-json", detail)
        })?,
    };
    let action = continuing(None, asked.data, asked.context, asked.patch)?;
    if asked.dry_run {
        return preview(&api, &id, action, asked.version.as_deref()).await;
    }
    let moved = match &asked.version {
        Some(version) => move_first(&api, &id, version, None, &asker).await?,
        None => None,
    };
    Ok(after_move(moved, operate(&api, &id, action, asker).await))
}

/// The body replaces the result of the action that failed.
pub async fn skip(
    State(api): State<Api>,
    Path(id): Path<String>,
    asker: Asker,
    body: Unread,
) -> Result<Response, Problem> {
    let bytes = request::text(body, BODY_BYTES_MAX).await?;
    if bytes.is_empty() {
        return Err(Problem::bad_request(
            "invalid-json",
            "the body is the JSON that is taken as the action's result; 'null' for none",
        ));
    }
    operate(&api, &id, Action::Skip(request::json(&bytes)?), asker).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Rerun {
    state: String,
    version: Option<String>,
    #[serde(default, deserialize_with = "nullable")]
    data: Option<Data>,
    #[serde(default, deserialize_with = "nullable")]
    context: Option<Data>,
    patch: Option<String>,
    #[serde(default)]
    dry_run: bool,
}

/// The action that continues a faulted instance, at a state or at what failed, with data if the request has some.
fn continuing(
    state: Option<String>,
    data: Option<Data>,
    context: Option<Data>,
    patch: Option<String>,
) -> Result<Action, Problem> {
    if context.is_some() && data.is_none() {
        let detail =
            "'context' goes with 'data': give both, the data as it is if it needs no change";
        return Err(Problem::bad_request("invalid-operation", detail));
    }
    match (data, patch) {
        (Some(_), Some(_)) => {
            let detail =
                "give either 'data' or 'patch': a patch changes the data that the instance has";
            Err(Problem::bad_request("invalid-operation", detail))
        }
        (Some(data), None) => Ok(Action::Edit {
            state,
            data,
            context,
        }),
        (None, Some(patch)) => match Patch::compile(&patch) {
            Ok(_) => Ok(Action::Patch { state, patch }),
            Err(error) => {
                let detail = BadOperation::Patch(error).to_string();
                Err(Problem::bad_request("invalid-operation", cut(&detail)))
            }
        },
        (None, None) => Ok(state.map_or(Action::Retry, Action::Rerun)),
    }
}

/// What an action would do to an instance, or why it would be refused.
async fn preview(
    api: &Api,
    id: &str,
    action: Action,
    version: Option<&str>,
) -> Result<Response, Problem> {
    let instance = find(api, id).await?;
    let id = &instance.header.id;
    let mut shown =
        json!({"id": id.as_str(), "operation": action.as_str(), "dryRun": true, "fits": true});
    let current = &*instance.header.definition.version;
    let state = match &action {
        Action::Rerun(state) => Some(state.as_str()),
        Action::Edit { state, .. } | Action::Patch { state, .. } => state.as_deref(),
        _ => None,
    };
    let moved = match version.filter(|version| *version != current) {
        Some(version) => {
            let moved = api.service.would_migrate(id, version, state).await?;
            moved.map(|_| true).map_err(Refusal::from)
        }
        None => Ok(false),
    };
    // The other version may have the state that this one lacks.
    let action = match moved {
        Ok(true) if state.is_some() => Action::Retry,
        _ => action,
    };
    let done = match moved {
        Ok(_) => api.service.would(id, &Operation::Act(action)).await?,
        Err(refusal) => Err(refusal),
    };
    match done {
        Ok(preview) => {
            if let Some(data) = preview.data {
                shown["data"] = trial::replaced(&data);
            }
        }
        Err(refusal) => {
            shown["fits"] = json!(false);
            shown["code"] = json!(refusal.code);
            shown["reason"] = json!(refusal.reason);
        }
    }
    Ok(Json(shown).into_response())
}

pub async fn rerun(
    State(api): State<Api>,
    Path(id): Path<String>,
    asker: Asker,
    body: Unread,
) -> Result<Response, Problem> {
    let bytes = request::text(body, BODY_BYTES_MAX).await?;
    let rerun: Rerun = serde_json::from_slice(&bytes).map_err(|error| {
        let detail = format!("the body must be {{\"state\": \"NAME\"}}: {error}");
        Problem::bad_request("invalid-json", detail)
    })?;
    let action = continuing(
        Some(rerun.state.clone()),
        rerun.data,
        rerun.context,
        rerun.patch,
    )?;
    if rerun.dry_run {
        return preview(&api, &id, action, rerun.version.as_deref()).await;
    }
    let state = rerun.state;
    let moved = match &rerun.version {
        Some(version) => move_first(&api, &id, version, Some(&state), &asker).await?,
        None => None,
    };
    let done = go_back(&api, &id, &state, action, asker).await;
    Ok(after_move(moved, done))
}

async fn go_back(
    api: &Api,
    id: &str,
    state: &str,
    action: Action,
    asker: Asker,
) -> Result<Response, Problem> {
    let instance = find(api, id).await?;
    let definition = api
        .service
        .registry
        .get(&instance.header.definition)
        .await?;
    let workflow = &definition.workflow;
    if workflow.state_by_name(Workflow::ROOT, state).is_none() {
        let detail = format!(
            "{} has no state '{}'",
            instance.header.definition,
            cut(state)
        );
        return Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "unknown-state",
            detail,
        ));
    }
    operate(api, id, action, asker).await
}

/// The answer to an action on an instance that was moved first: the move stands if the action is refused.
fn after_move(moved: Option<Audited>, done: Result<Response, Problem>) -> Response {
    let response = done.into_response();
    match moved {
        Some(moved) => audited_before(response, moved),
        None => response,
    }
}

/// Moves a faulted instance to another version before it continues. `None` if it already runs with that version.
async fn move_first(
    api: &Api,
    id: &str,
    version: &str,
    state: Option<&str>,
    Asker(operator): &Asker,
) -> Result<Option<Audited>, Problem> {
    let instance = find(api, id).await?;
    let status = instance.state.status;
    if let Some(reason) = Action::Retry.rejection_reason(status, instance.state.suspended) {
        return Err(Problem::conflict("wrong-status", reason));
    }
    if &*instance.header.definition.version == version {
        return Ok(None);
    }
    let target = Target {
        version,
        state,
        mark: None,
    };
    let moved = api
        .service
        .migrate(&instance.header.id, target, operator)
        .await?;
    match moved {
        Ok(moved) => Ok(Some(migrated(&instance.header.id, &moved, operator))),
        Err(unfit) => Err(not_moved(id, &unfit)),
    }
}

/// The entry in the audit log for an instance that was moved.
pub(super) fn migrated(id: &InstanceId, moved: &Moved, operator: &Operator) -> Audited {
    Audited::instance("migrate", id)
        .because(operator.reason.as_deref())
        .with("from", &moved.from)
        .with("to", &moved.to)
}

/// Removes an instance that has ended or failed, with its history.
pub async fn remove(
    State(api): State<Api>,
    Path(id): Path<String>,
    Asker(operator): Asker,
) -> Result<Response, Problem> {
    let instance = find(&api, &id).await?;
    let header = &instance.header;
    if let Err(reason) = api.service.remove(&instance, &operator).await? {
        return Err(not_removed(&id, &header.id, &reason));
    }
    let body = json!({
        "id": header.id.as_str(),
        "workflow": &*header.definition.workflow,
        "version": &*header.definition.version,
        "status": instance.state.status.as_str(),
    });
    let removed = Audited::instance("remove", &header.id)
        .because(operator.reason.as_deref())
        .with("workflow", &header.definition.workflow)
        .with("status", instance.state.status.as_str());
    Ok(audited(Json(body).into_response(), removed))
}

fn not_removed(asked: &str, id: &InstanceId, reason: &NotRemoved) -> Problem {
    match reason {
        NotRemoved::Unknown => Problem::no_instance(asked),
        reason => Problem::conflict(reason.code(), reason.says(id)),
    }
}

pub(super) async fn find(api: &Api, id: &str) -> Result<Instance, Problem> {
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
    let action = api.service.fitting(&instance, &action).await?;
    let action = action.map_err(|unfit| {
        let problem = Problem::conflict(unfit.code(), unfit.to_string());
        match unfit {
            Unfit::KeyInUse { by, .. } => {
                problem.with(|more| more.instance = Some(by.as_str().to_owned()))
            }
            Unfit::OwnData { state } => problem.with(|more| more.rerun_state = state),
            _ => problem,
        }
    })?;
    let word = action.as_str();
    let entry = entry(&instance, &action, &operator);
    let done = api
        .service
        .operate_by(&instance.header.id, action, &operator);
    if !done.await? {
        let detail = "the instance's status has just changed; read the instance again";
        return Err(Problem::conflict("wrong-status", detail));
    }
    let body = json!({"id": instance.header.id.as_str(), "accepted": word});
    let response = (StatusCode::ACCEPTED, Json(body)).into_response();
    Ok(audited(response, entry))
}

/// The entry of an action in the audit log; the history has the data that an operator gave.
fn entry(instance: &Instance, action: &Action, operator: &Operator) -> Audited {
    let word = match action {
        Action::Edit { .. } | Action::Patch { .. } => "edit",
        action => action.as_str(),
    };
    let entry = Audited::instance(word, &instance.header.id)
        .because(operator.reason.as_deref())
        .with("workflow", &instance.header.definition.workflow);
    match action {
        Action::Rerun(state)
        | Action::Edit {
            state: Some(state), ..
        }
        | Action::Patch {
            state: Some(state), ..
        } => entry.with("state", state),
        _ => entry,
    }
}

pub(super) fn not_moved(asked: &str, unfit: &Unfit) -> Problem {
    match unfit {
        Unfit::Unknown => Problem::no_instance(asked),
        Unfit::Version(_) => {
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            Problem::new(status, unfit.code(), unfit.to_string())
        }
        _ => Problem::conflict(unfit.code(), unfit.to_string()),
    }
}
