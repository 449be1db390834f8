//! `POST /instances/{id}/...` and `DELETE /instances/{id}`: an operator's actions on an instance.

use axum::http::StatusCode;
use swirl_api::actions::{Accepted, ActionPreview, Continuation, Continued, Json, RemovedInstance};
use swirl_api::audit;
use swirl_api::instance::InstanceId as Named;
use swirl_api::{Nothing, Reason};
use swirl_engine::Patch;
use swirl_model::ids::InstanceId;
use swirl_model::instance::Instance;
use swirl_service::{
    Action, Audited, BadOperation, Moved, NotRemoved, Operation, Operator, Refusal, Target, Unfit,
};

use super::problem::{Problem, bounded};
use super::serve::{Asked, Done};
use super::{Api, trial};

pub async fn cancel(
    api: Api,
    asked: Asked<Named, Reason, Nothing>,
) -> Result<Done<Accepted>, Problem> {
    operate(&api, &asked.path.id, Action::Cancel, &asked.operator()?).await
}

pub async fn suspend(
    api: Api,
    asked: Asked<Named, Reason, Nothing>,
) -> Result<Done<Accepted>, Problem> {
    operate(&api, &asked.path.id, Action::Suspend, &asked.operator()?).await
}

pub async fn resume(
    api: Api,
    asked: Asked<Named, Reason, Nothing>,
) -> Result<Done<Accepted>, Problem> {
    operate(&api, &asked.path.id, Action::Resume, &asked.operator()?).await
}

type Continuing = Asked<Named, Reason, Option<Continuation>>;

pub async fn retry(api: Api, asked: Continuing) -> Result<Done<Continued>, Problem> {
    continued(&api, asked, false).await
}

pub async fn rerun(api: Api, asked: Continuing) -> Result<Done<Continued>, Problem> {
    continued(&api, asked, true).await
}

/// The body replaces the result of the action that failed.
pub async fn skip(api: Api, asked: Asked<Named, Reason, Json>) -> Result<Done<Accepted>, Problem> {
    let operator = asked.operator()?;
    let Json(result) = asked.body;
    operate(&api, &asked.path.id, Action::Skip(result), &operator).await
}

/// Continues a faulted instance, at a state or at what failed.
async fn continued(
    api: &Api,
    asked: Continuing,
    at_state: bool,
) -> Result<Done<Continued>, Problem> {
    let (id, operator) = (&*asked.path.id, &asked.operator()?);
    let with = asked.body.unwrap_or_default();
    if with.state.is_some() != at_state {
        let detail = "'rerun' needs 'state', the name of a state, and 'retry' has none";
        return Err(Problem::bad_request("invalid-json", detail));
    }
    let state = with.state;
    let action = continuing(state.clone(), with.data, with.context, with.patch)?;
    if with.dry_run {
        let preview = preview(api, id, action, with.version.as_deref()).await?;
        return Ok(Done::from(Continued::Preview(preview)).with_status(StatusCode::OK));
    }
    let moved = match &with.version {
        Some(version) => move_first(api, id, version, state.as_deref(), operator).await?,
        None => None,
    };
    let done = operate(api, id, action, operator).await;
    let done = done.unwrap_or_else(|problem| Done::new(Err(problem)));
    let done = done.map(Continued::Accepted);
    // The move stands if the action is refused.
    Ok(match moved {
        Some(moved) => done.audited_before(moved),
        None => done,
    })
}

/// The action that continues a faulted instance, at a state or at what failed, with data if the request has some.
fn continuing(
    state: Option<String>,
    data: Option<Json>,
    context: Option<Json>,
    patch: Option<String>,
) -> Result<Action, Problem> {
    if context.is_some() && data.is_none() {
        let detail =
            "'context' needs 'data': pass both, with the current data if it doesn't change";
        return Err(Problem::bad_request("invalid-operation", detail));
    }
    match (data, patch) {
        (Some(_), Some(_)) => {
            let detail =
                "pass either 'data' or 'patch': a patch changes the instance's current data";
            Err(Problem::bad_request("invalid-operation", detail))
        }
        (Some(Json(data)), None) => Ok(Action::Edit {
            state,
            data,
            context: context.map(|Json(context)| context),
        }),
        (None, Some(patch)) => match Patch::compile(&patch) {
            Ok(_) => Ok(Action::Patch { state, patch }),
            Err(error) => {
                let detail = BadOperation::Patch(error).to_string();
                Err(Problem::bad_request("invalid-operation", bounded(&detail)))
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
) -> Result<ActionPreview, Problem> {
    let instance = find(api, id).await?;
    let id = &instance.header.id;
    let operation = action.as_str().to_owned();
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
    let (refusal, data) = match done {
        Ok(preview) => (None, preview.data),
        Err(refusal) => (Some(refusal), None),
    };
    Ok(ActionPreview {
        id: id.to_string(),
        operation,
        dry_run: true,
        fits: refusal.is_none(),
        code: refusal.as_ref().map(|refusal| refusal.code.to_string()),
        reason: refusal.map(|refusal| refusal.reason),
        data: data.map(|data| trial::replaced(&data)),
    })
}

/// Moves a faulted instance to another version before it continues. `None` if it already runs with that version.
async fn move_first(
    api: &Api,
    id: &str,
    version: &str,
    state: Option<&str>,
    operator: &Operator,
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
    Audited::of(id)
        .doing(audit::Action::Migrate)
        .because(operator.reason.as_deref())
        .with("from", &moved.from)
        .with("to", &moved.to)
}

/// Removes an instance that has ended or failed, with its history.
pub async fn remove(
    api: Api,
    asked: Asked<Named, Reason, Nothing>,
) -> Result<Done<RemovedInstance>, Problem> {
    let operator = asked.operator()?;
    let instance = find(&api, &asked.path.id).await?;
    let header = &instance.header;
    if let Err(reason) = api.service.remove(&instance, &operator).await? {
        return Err(not_removed(&asked.path.id, &header.id, &reason));
    }
    let status = instance.state.status;
    let removed = Audited::of(&header.id)
        .because(operator.reason.as_deref())
        .with("workflow", &header.definition.workflow)
        .with("status", status.as_str());
    let done = Done::from(RemovedInstance {
        id: header.id.to_string(),
        workflow: header.definition.workflow.to_string(),
        version: header.definition.version.to_string(),
        status: status.into(),
    });
    Ok(done.audited(removed))
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
    operator: &Operator,
) -> Result<Done<Accepted>, Problem> {
    let instance = find(api, id).await?;
    let action = api.service.fitting(&instance, &action).await?;
    let action = action.map_err(|unfit| {
        let status = match unfit {
            Unfit::State(_) => StatusCode::UNPROCESSABLE_ENTITY,
            _ => StatusCode::CONFLICT,
        };
        let problem = Problem::new(status, unfit.code(), unfit.to_string());
        match unfit {
            Unfit::KeyInUse { by, .. } => {
                problem.with(|more| more.instance = Some(by.as_str().to_owned()))
            }
            Unfit::OwnData { state } => problem.with(|more| more.rerun_state = state),
            _ => problem,
        }
    })?;
    let word = action.as_str();
    let entry = entry(&instance, &action, operator);
    let done = api
        .service
        .operate_by(&instance.header.id, action, operator);
    if !done.await? {
        let detail = "the instance's status has just changed; read the instance again";
        return Err(Problem::conflict("wrong-status", detail));
    }
    let done = Done::from(Accepted {
        id: instance.header.id.to_string(),
        accepted: word.to_owned(),
    });
    Ok(done.audited(entry))
}

/// The entry of an action in the audit log; the history has the data that an operator gave.
fn entry(instance: &Instance, action: &Action, operator: &Operator) -> Audited {
    let done = match action {
        Action::Edit { .. } | Action::Patch { .. } => audit::Action::Edit,
        action => action.as_str().into(),
    };
    let entry = Audited::of(&instance.header.id)
        .doing(done)
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
