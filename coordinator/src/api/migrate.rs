//! `POST /instances/{id}/migrate`: moves an instance to another version of its definition.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, TryStreamExt, stream};
use serde::Deserialize;
use serde_json::{Value, json};
use swirl_model::ids::InstanceId;
use swirl_service::{Moved, Target, Unfit};

use super::Api;
use super::audit::audited;
use super::operate::{Asker, find, migrated, not_moved};
use super::problem::Problem;
use super::request;

/// The largest body, in bytes.
const BODY_BYTES_MAX: usize = 64 << 10;
/// How many instances a dry run checks concurrently, and for how long.
const CONCURRENT: usize = 16;
const CHECKED_FOR: Duration = Duration::from_secs(20);
/// The maximum number of different reasons that a dry run reports.
const REASONS_MAX: usize = 100;

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
    body: Body,
) -> Result<Response, Problem> {
    let bytes = request::body(body, BODY_BYTES_MAX).await?;
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
                .would_migrate(&header.id, &asked.version)
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

/// How many instances of a query fit another version, and why the others don't.
#[derive(Debug, Default)]
pub struct Tally {
    pub checked: u32,
    pub fit: u32,
    /// The number of instances and one of them, by code and reason.
    reasons: BTreeMap<(&'static str, String), (u32, String)>,
    /// The instances whose reasons exceed the limit.
    others: u32,
}

impl Tally {
    fn add(&mut self, id: &InstanceId, done: Result<Moved, Unfit>) {
        self.checked += 1;
        let Err(unfit) = done else {
            self.fit += 1;
            return;
        };
        let key = (unfit.code(), unfit.to_string());
        let room = self.reasons.len() < REASONS_MAX;
        match self.reasons.get_mut(&key) {
            Some((count, _)) => *count += 1,
            None if room => {
                self.reasons.insert(key, (1, id.as_str().to_owned()));
            }
            None => self.others += 1,
        }
    }

    /// The most frequent reason first.
    pub fn reasons(&self) -> Vec<Value> {
        let mut reasons: Vec<_> = self.reasons.iter().collect();
        reasons.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
        let listed = reasons.into_iter().map(|((code, reason), (count, id))| {
            json!({"code": code, "reason": reason, "count": count, "instance": id})
        });
        let mut listed: Vec<Value> = listed.collect();
        if self.others > 0 {
            listed.push(json!({"code": "others", "reason": "other reasons", "count": self.others}));
        }
        listed
    }
}

/// Checks the instances, for a limited time.
pub async fn tally(api: &Api, ids: &[InstanceId], version: &str) -> Result<Tally, Problem> {
    let until = tokio::time::Instant::now() + CHECKED_FOR;
    let mut tally = Tally::default();
    let checks = stream::iter(ids.to_vec())
        .map(async |id| {
            let done = api.service.would_migrate(&id, version).await?;
            Ok::<_, Problem>((id, done))
        })
        .buffered(CONCURRENT);
    let mut checks = std::pin::pin!(checks);
    while tokio::time::Instant::now() < until
        && let Some((id, done)) = checks.try_next().await?
    {
        tally.add(&id, done);
    }
    Ok(tally)
}
