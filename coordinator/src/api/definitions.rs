//! `/definitions`

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};
use swirl_model::ids::DefinitionId;
use swirl_ports::DefinitionHead;
use swirl_runtime::Deployed;
use swirl_service::{Audited, Deletion};

use super::noted::audited;
use super::operate::Asker;
use super::paging;
use super::places;
use super::problem::{Problem, bounded, cut};
use super::request::{self, Parameters, Unread, located};
use super::{Api, Outcome, Source};
use crate::access::Caller;
use crate::server::Peer;

/// The largest document, in bytes.
const DOCUMENT_BYTES_MAX: usize = 1 << 20;
/// The largest document with all documents that it refers to, in bytes.
const WHOLE_BYTES_MAX: usize = 16 << 20;

/// A document together with the files that it refers to.
const WHOLE: &str = "application/vnd.swirl.deployment+json";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    name: Option<String>,
    document: String,
    #[serde(default)]
    resources: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deploy {
    /// The origin of the document, for messages.
    name: Option<String>,
    /// The document is only checked.
    #[serde(default, rename = "dryRun")]
    dry_run: bool,
    /// For the audit log.
    reason: Option<String>,
}

pub async fn deploy(
    State(api): State<Api>,
    Parameters(query): Parameters<Deploy>,
    caller: Option<Extension<Caller>>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    body: Unread,
) -> Result<Response, Problem> {
    let dry_run = query.dry_run;
    let reason = request::reason(query.reason.clone())?;
    let source = read(query, &headers, body).await?;
    let caller = match (caller, peer) {
        (Some(Extension(caller)), _) => caller.name,
        (None, Some(Extension(Peer(peer)))) => peer.to_string(),
        (None, None) => String::new(),
    };
    let Some(place) = api.deployments.enter(&caller) else {
        return Err(too_many());
    };
    let _place = place.wait().await;
    let (outcome, warnings) = match dry_run {
        true => api.check(source).await?,
        false => api.deploy_with_warnings(source).await?,
    };
    let (status, id, outcome) = match outcome {
        Outcome::New(id) => (StatusCode::CREATED, id, "new"),
        Outcome::Unchanged(id) => (StatusCode::OK, id, "unchanged"),
        // A request never replaces a definition.
        Outcome::Replaced(id) => (StatusCode::OK, id, "replaced"),
        Outcome::Conflict(id) | Outcome::InUse(id, _) => {
            return Err(Problem::conflict(
                "definition-conflict",
                format!(
                    "{id} is deployed with another content (of the document, or of something it \
                     refers to), and definitions are immutable under id and version: raise the version"
                ),
            )
            .with(|more| {
                more.id = Some(id.workflow.to_string());
                more.version = Some(id.version.to_string());
            }));
        }
        Outcome::Invalid(findings) => {
            return Err(Problem::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "definition-invalid",
                "the document is not a valid definition",
            )
            .with(|more| more.diagnostics = findings));
        }
    };
    if dry_run {
        let body = json!({"id": &*id.workflow, "version": &*id.version, "outcome": outcome,
            "dryRun": true, "diagnostics": warnings});
        return Ok(Json(body).into_response());
    }
    let location = located(&["definitions", &id.workflow, &id.version]);
    let mut body = json!({"id": &*id.workflow, "version": &*id.version, "outcome": outcome});
    if !warnings.is_empty() {
        body["diagnostics"] = warnings.into();
    }
    let mut response = (status, Json(body)).into_response();
    if let Ok(location) = location.parse() {
        response.headers_mut().insert(header::LOCATION, location);
    }
    if status == StatusCode::CREATED {
        let entry = Audited::definition("deploy", &id).because(reason.as_deref());
        response = audited(response, entry);
    }
    Ok(response)
}

fn too_many() -> Problem {
    Problem::new(
        StatusCode::TOO_MANY_REQUESTS,
        "too-many-deployments",
        format!(
            "{} deployments of yours are under way: wait until one of them is answered",
            places::CALLER_MAX
        ),
    )
}

async fn read(query: Deploy, headers: &HeaderMap, body: Unread) -> Result<Source, Problem> {
    let named = |name: Option<&str>| cut(name.unwrap_or("definition"));
    if request::media_type(headers)?.as_deref() != Some(WHOLE) {
        let bytes = request::text(body, DOCUMENT_BYTES_MAX).await?;
        let document = String::from_utf8(bytes.to_vec())
            .map_err(|_| Problem::unreadable("invalid-text", "the document is not UTF-8 text"))?;
        return Ok(Source::new(named(query.name.as_deref()), document));
    }
    let bytes = request::text(body, WHOLE_BYTES_MAX).await?;
    let whole: Whole = serde_json::from_slice(&bytes).map_err(|error| {
        let message = format!(
            "the body must be an object with 'document' and, where needed, 'resources' and 'name': {error}"
        );
        Problem::bad_request("invalid-json", bounded(&message))
    })?;
    if whole.document.len() > DOCUMENT_BYTES_MAX {
        return Err(Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too-large",
            format!("the document is larger than {DOCUMENT_BYTES_MAX} bytes"),
        ));
    }
    Ok(Source {
        name: named(query.name.as_deref().or(whole.name.as_deref())),
        document: whole.document,
        resources: whole.resources.into_iter().collect(),
        ..Source::default()
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listing {
    after: Option<String>,
    limit: Option<u32>,
}

/// The position of a definition in the listing: by workflow, then in the order of deployment.
type Place = (String, i64, String);

fn place_of(deployed: &Deployed) -> Place {
    let id = deployed.id();
    let deployed_at = deployed.head.deployed_at.0;
    (id.workflow.to_string(), deployed_at, id.version.to_string())
}

pub async fn list(
    State(api): State<Api>,
    Parameters(listing): Parameters<Listing>,
) -> Result<Json<Value>, Problem> {
    let limit = paging::limit(listing.limit)?;
    let after: Option<Place> = paging::place(listing.after.as_deref())?;
    let catalog = api.service.registry.catalog().await?;
    let open = catalog
        .open()
        .map(|deployed| (place_of(deployed), deployed));
    let mut rows: Vec<_> = open
        .filter(|(place, _)| after.as_ref().is_none_or(|after| place > after))
        .collect();
    rows.sort_by(|(a, _), (b, _)| a.cmp(b));
    let next = paging::cut(&mut rows, limit, |(place, _)| place.clone());
    let mut definitions = Vec::new();
    for (_, deployed) in rows {
        let mut row = summary(&deployed.head);
        let latest = catalog.latest_of(&deployed.id().workflow);
        let is_latest = latest.is_some_and(|latest| latest.id() == deployed.id());
        row["latest"] = json!(is_latest);
        if is_latest && deployed.calendar.is_some() {
            let next = api.service.next_of(deployed).await?;
            let paused = api.service.is_paused(&deployed.id().workflow).await?;
            row["schedule"] = json!({
                "next": next.filter(|_| !paused).map(|at| format!("{at:.3}")),
                "paused": paused,
            });
        }
        definitions.push(row);
    }
    Ok(Json(json!({
        "definitions": definitions,
        "complete": next.is_none(),
        "next": next,
    })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delete {
    #[serde(default)]
    force: bool,
    /// For the audit log.
    reason: Option<String>,
}

pub async fn delete(
    State(api): State<Api>,
    Path((workflow, version)): Path<(String, String)>,
    Parameters(query): Parameters<Delete>,
) -> Result<Response, Problem> {
    let reason = request::reason(query.reason)?;
    let id = DefinitionId {
        workflow: workflow.into(),
        version: version.into(),
    };
    match api.service.delete(&*api.queries, &id, query.force).await? {
        Deletion::Deleted(instances) => {
            let response = Json(json!({
                "id": &*id.workflow,
                "version": &*id.version,
                "instances": instances,
            }));
            let entry = Audited::definition("delete", &id)
                .because(reason.as_deref())
                .with("instances", instances);
            Ok(audited(response.into_response(), entry))
        }
        Deletion::InUse(instances) => {
            let detail = format!(
                "{instances} instances of {} run or have failed: wait for their end, cancel them, or let \
                 them continue to their end with 'force=true'",
                cut(&id.to_string())
            );
            Err(Problem::conflict("definition-in-use", detail)
                .with(|more| more.instances = Some(instances)))
        }
        Deletion::Unknown => Err(unknown(&id)),
    }
}

/// Makes an older version current.
pub async fn activate(
    State(api): State<Api>,
    Path((workflow, version)): Path<(String, String)>,
    Asker(operator): Asker,
) -> Result<Response, Problem> {
    let id = DefinitionId {
        workflow: workflow.into(),
        version: version.into(),
    };
    let Some(changed) = api.service.activate(&id).await? else {
        return Err(unknown(&id));
    };
    let body = json!({"id": &*id.workflow, "version": &*id.version, "changed": changed});
    let response = Json(body).into_response();
    Ok(match changed {
        true => {
            let entry = Audited::definition("activate", &id);
            audited(response, entry.because(operator.reason.as_deref()))
        }
        false => response,
    })
}

pub(super) async fn resolve(api: &Api, workflow: &str) -> Result<Arc<Deployed>, Problem> {
    let catalog = api.service.registry.catalog().await?;
    catalog.latest_of(workflow).cloned().ok_or_else(|| {
        let detail = format!("there is no workflow '{workflow}'");
        Problem::not_found("unknown-workflow", bounded(&detail))
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shown {
    /// Includes the files that the document refers to, as they were at deployment.
    #[serde(default)]
    contents: bool,
    /// Includes the warnings about the document.
    #[serde(default)]
    diagnostics: bool,
}

pub async fn latest(
    State(api): State<Api>,
    Path(workflow): Path<String>,
    Parameters(shown): Parameters<Shown>,
) -> Result<Json<Value>, Problem> {
    let found = resolve(&api, &workflow).await?;
    whole(&api, found.id(), &shown).await
}

pub async fn one(
    State(api): State<Api>,
    Path((workflow, version)): Path<(String, String)>,
    Parameters(shown): Parameters<Shown>,
) -> Result<Json<Value>, Problem> {
    let id = DefinitionId {
        workflow: workflow.into(),
        version: version.into(),
    };
    whole(&api, &id, &shown).await
}

async fn whole(api: &Api, id: &DefinitionId, shown: &Shown) -> Result<Json<Value>, Problem> {
    let record = api.service.registry.store().get(id).await?;
    let record = record.filter(|record| record.deleted.is_none());
    let record = record.ok_or_else(|| unknown(id))?;
    let mut body = summary(&record.head());
    body["document"] = json!(record.document);
    let resources: Vec<&str> = record.resources.iter().map(|(uri, _)| &**uri).collect();
    body["resources"] = json!(resources);
    if shown.diagnostics {
        body["diagnostics"] = api.warnings(&record).await.into();
    }
    if shown.contents {
        let contents = record.resources.iter();
        let contents = contents.map(|(uri, text)| (uri.to_string(), json!(&**text)));
        body["contents"] = Value::Object(contents.collect());
    }
    // A definition that this build cannot read is still shown.
    if let Ok(definition) = api.service.registry.get(id).await
        && let Some(schema) = &definition.workflow.input_schema
    {
        body["inputSchema"] = Value::from(&schema.schema);
    }
    Ok(Json(body))
}

fn unknown(id: &DefinitionId) -> Problem {
    let detail = format!("there is no definition {}", cut(&id.to_string()));
    Problem::not_found("unknown-workflow", detail)
}

fn summary(head: &DefinitionHead) -> Value {
    json!({
        "id": &*head.id.workflow,
        "version": &*head.id.version,
        "name": head.name,
        "digest": head.digest,
        "deployedAt": format!("{:.3}", head.deployed_at),
    })
}
