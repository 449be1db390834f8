//! `/rehearsals`

use swirl_api::Nothing;
use swirl_api::rehearsals::{Rehearsal, Rehearsed};
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
        let detail = "this server makes no rehearsals";
        return Err(Problem::not_found("unknown-route", detail));
    };
    let _place = rehearsals.enter()?;
    let done = rehearsals.rehearse(&asked.body).await?;
    let id = DefinitionId {
        workflow: done.id.as_deref().unwrap_or(UNKNOWN).into(),
        version: done.version.as_deref().unwrap_or(UNKNOWN).into(),
    };
    // Nothing has changed, but somebody's code ran here.
    Ok(Done::from(done).audited(Audited::definition(&id)))
}
