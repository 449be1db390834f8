//! `/rehearsals`

use axum::http::StatusCode;
use swirl_api::Nothing;
use swirl_api::rehearsals::{REHEARSE, Rehearsal, Rehearsed};
use swirl_model::ids::DefinitionId;
use swirl_service::Audited;

use super::Api;
use super::problem::Problem;
use super::serve::{Asked, Done};

/// For the audit log, if the process was stopped before it could say what it ran.
const UNKNOWN: &str = "(unknown)";

pub async fn rehearse(
    api: Api,
    asked: Asked<Nothing, Nothing, Rehearsal>,
) -> Result<Done<Rehearsed>, Problem> {
    let Some(rehearsals) = &api.rehearsals else {
        let detail = "rehearsals are switched off at this server (coordinator.rehearsals)";
        let code = "rehearsals-off";
        return Err(Problem::new(StatusCode::FORBIDDEN, code, detail));
    };
    let _place = rehearsals.enter()?;
    let mut run = Run {
        api: &api,
        by: asked.caller.as_ref().map(|caller| &*caller.name),
        is_answered: false,
    };
    let done = rehearsals.rehearse(&asked.body).await;
    run.is_answered = true;
    let done = done?;
    let id = DefinitionId {
        workflow: done.id.as_deref().unwrap_or(UNKNOWN).into(),
        version: done.version.as_deref().unwrap_or(UNKNOWN).into(),
    };
    // Nothing has changed, but somebody's code ran here.
    Ok(Done::from(done).audited(Audited::definition(&id)))
}

/// A rehearsal under way. If its client gives it up, or the server stops, it is dropped, and nothing else would say
/// that it ran.
struct Run<'a> {
    api: &'a Api,
    by: Option<&'a str>,
    is_answered: bool,
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        let (Some(auditing), Some(audit)) = (&self.api.auditing, &REHEARSE.route.audit) else {
            return;
        };
        // Without a runtime the process is ending.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let id = DefinitionId {
            workflow: UNKNOWN.into(),
            version: UNKNOWN.into(),
        };
        let given_up = Audited::definition(&id).with("ended", "given up");
        let (auditing, by) = (auditing.clone(), self.by.map(str::to_owned));
        let now = self.api.service.clock.now();
        runtime.spawn(async move {
            auditing.note(now, by.as_deref(), audit, given_up).await;
        });
    }
}
