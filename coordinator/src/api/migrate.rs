//! `POST /instances/{id}/migrate`: moves an instance to another version of its definition.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;
use swirl_service::{Moved, Target, Unfit};

use super::Api;
use super::noted::audited;
use super::operate::{Asker, find, migrated, not_moved};
use super::problem::Problem;
use super::request::{self, Unread};

/// The largest body, in bytes.
const BODY_BYTES_MAX: usize = 64 << 10;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct MoveRequest {
    version: String,
    #[serde(default)]
    dry_run: bool,
}

pub async fn migrate(
    State(api): State<Api>,
    Path(id): Path<String>,
    Asker(operator): Asker,
    body: Unread,
) -> Result<Response, Problem> {
    let bytes = request::text(body, BODY_BYTES_MAX).await?;
    let asked: MoveRequest = serde_json::from_slice(&bytes).map_err(|error| {
        let detail =
            format!("the body must be {{\"version\": \"2.0\", \"dryRun\": true}}: {error}");
        Problem::bad_request("invalid-json", detail)
    })?;
    let instance = find(&api, &id).await?;
    let header = &instance.header;
    let done = match asked.dry_run {
        true => {
            api.service
                .would_migrate(&header.id, &asked.version, None)
                .await?
        }
        false => {
            let target = Target {
                version: &asked.version,
                state: None,
                mark: None,
            };
            api.service.migrate(&header.id, target, &operator).await?
        }
    };
    let shown = |moved: Option<&Moved>| {
        json!({
            "id": header.id.as_str(),
            "workflow": &*header.definition.workflow,
            "from": moved.map_or(&*header.definition.version, |moved| &*moved.from),
            "to": moved.map_or(&*asked.version, |moved| &*moved.to),
            "dryRun": asked.dry_run,
            "fits": moved.is_some(),
        })
    };
    match done {
        Ok(moved) => {
            let response = Json(shown(Some(&moved))).into_response();
            Ok(match asked.dry_run {
                true => response,
                false => audited(response, migrated(&header.id, &moved, &operator)),
            })
        }
        Err(unfit @ (Unfit::Misfit(_) | Unfit::Status(_) | Unfit::Busy(_))) if asked.dry_run => {
            let mut shown = shown(None);
            shown["code"] = json!(unfit.code());
            shown["reason"] = json!(unfit.to_string());
            Ok(Json(shown).into_response())
        }
        Err(unfit) => Err(not_moved(&id, &unfit)),
    }
}
