//! `/definitions`

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde_json::Value;
use swirl_api::definitions::{
    Activated, DEPLOYMENT, Definition, DefinitionSummary, Definitions, DeleteQuery,
    DeletedDefinition, DeployQuery, Deployed as Answer, Deployment, GetQuery, Head, NextStart,
    Outcome as Word, Version,
};
use swirl_api::schedules::Workflow as Named;
use swirl_api::{Nothing, PageQuery, Reason};
use swirl_deployment::Checked;
use swirl_engine::Definition as Compiled;
use swirl_model::ids::DefinitionId;
use swirl_model::workflow::Workflow;
use swirl_ports::{DefinitionHead, Interests};
use swirl_runtime::Deployed;
use swirl_service::{Audited, Deletion};

use super::documents::Wanted;
use super::paging;
use super::permits;
use super::pictures::Shown;
use super::problem::{Problem, bounded, cut};
use super::request::{self, Parameters, Unread, located};
use super::serve::{Asked, Done};
use super::{Api, Outcome, Source};
use crate::access::Caller;
use crate::server::Peer;

/// The largest document, in bytes.
const DOCUMENT_BYTES_MAX: usize = 1 << 20;
/// The largest document with all documents that it refers to, in bytes.
const WHOLE_BYTES_MAX: usize = 16 << 20;

pub async fn deploy(
    State(api): State<Api>,
    Parameters(query): Parameters<DeployQuery>,
    caller: Option<Extension<Caller>>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    body: Unread,
) -> Result<Done<Answer>, Problem> {
    let (dry_run, drawn) = (query.dry_run, query.dry_run && query.diagram);
    let reason = request::reason(query.reason.clone())?;
    let source = read(query, &headers, body).await?;
    let caller = match (caller, peer) {
        (Some(Extension(caller)), _) => caller.name,
        (None, Some(Extension(Peer(peer)))) => peer.to_string(),
        (None, None) => String::new(),
    };
    let Some(permit) = api.deployments.enter(&caller) else {
        return Err(too_many());
    };
    let _permit = permit.wait().await;
    let Checked {
        outcome,
        warnings,
        definition,
        resources,
    } = match dry_run {
        true => api.check(source).await?,
        false => {
            let (outcome, warnings) = api.deploy_with_warnings(source).await?;
            Checked {
                outcome,
                warnings,
                definition: None,
                resources: Vec::new(),
            }
        }
    };
    let diagram = match definition.filter(|_| drawn) {
        Some(definition) => Some(drawing(&api, definition).await?),
        None => None,
    };
    let (id, outcome) = match outcome {
        Outcome::New(id) => (id, Word::New),
        // A request never replaces a definition.
        Outcome::Unchanged(id) | Outcome::Replaced(id) => (id, Word::Unchanged),
        Outcome::Conflict(id) | Outcome::InUse(id, _) => {
            return Err(Problem::conflict(
                "definition-conflict",
                format!(
                    "{id} is already deployed with different content (of the document, or of a file that it refers to); definitions are immutable under id and version: raise the version"
                ),
            )
            .with(|more| {
                more.id = Some(id.workflow.to_string());
                more.version = Some(id.version.to_string());
                more.diagram = diagram;
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
    let is_new = outcome == Word::New;
    let done = Done::from(Answer {
        id: id.workflow.to_string(),
        version: id.version.to_string(),
        outcome,
        dry_run,
        diagnostics: Some(warnings).filter(|warnings| dry_run || !warnings.is_empty()),
        resources,
        diagram,
    });
    if dry_run {
        return Ok(done);
    }
    let done = done.located(located(&["definitions", &id.workflow, &id.version]));
    Ok(match is_new {
        true => {
            let entry = Audited::definition(&id).because(reason.as_deref());
            done.with_status(StatusCode::CREATED).audited(entry)
        }
        false => done,
    })
}

/// Another text comes with the next key, so the picture isn't kept.
async fn drawing(api: &Api, definition: Arc<Compiled>) -> Result<String, Problem> {
    let svg = api.pictures.draw(definition, Shown::Nothing).await?;
    Ok(String::from_utf8_lossy(&svg).into_owned())
}

fn too_many() -> Problem {
    Problem::new(
        StatusCode::TOO_MANY_REQUESTS,
        "too-many-deployments",
        format!(
            "{} of your deployments are in progress: wait for one to finish",
            permits::CALLER_MAX
        ),
    )
}

async fn read(query: DeployQuery, headers: &HeaderMap, body: Unread) -> Result<Source, Problem> {
    let named = |name: Option<&str>| cut(name.unwrap_or("definition"));
    if request::media_type(headers)?.as_deref() != Some(DEPLOYMENT) {
        let bytes = request::text(body, DOCUMENT_BYTES_MAX).await?;
        let document = String::from_utf8(bytes.to_vec())
            .map_err(|_| Problem::unreadable("invalid-text", "the document is not UTF-8 text"))?;
        return Ok(Source::new(named(query.name.as_deref()), document));
    }
    let bytes = request::text(body, WHOLE_BYTES_MAX).await?;
    let whole: Deployment = serde_json::from_slice(&bytes).map_err(|error| {
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

/// The position of a definition in the listing: by workflow, then in the order of deployment.
type ListPosition = (String, i64, String);

fn place_of(deployed: &Deployed) -> ListPosition {
    let id = deployed.id();
    let deployed_at = deployed.head.deployed_at.0;
    (id.workflow.to_string(), deployed_at, id.version.to_string())
}

pub async fn list(
    api: Api,
    Asked { query, .. }: Asked<Nothing, PageQuery, Nothing>,
) -> Result<Definitions, Problem> {
    let limit = paging::limit(query.limit)?;
    let after: Option<ListPosition> = paging::place(query.after.as_deref())?;
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
        let latest = catalog.latest_of(&deployed.id().workflow);
        let latest = latest.is_some_and(|latest| latest.id() == deployed.id());
        let schedule = match latest && deployed.calendar.is_some() {
            true => {
                let next = api.service.next_of(deployed).await?;
                let paused = api.service.is_paused(&deployed.id().workflow).await?;
                let next = next.filter(|_| !paused).map(Into::into);
                Some(NextStart { next, paused })
            }
            false => None,
        };
        definitions.push(DefinitionSummary {
            head: head(&deployed.head),
            latest,
            schedule,
            events: started_by(&deployed.head.interests),
        });
    }
    Ok(Definitions {
        definitions,
        complete: next.is_none(),
        next,
    })
}

pub async fn delete(
    api: Api,
    Asked { path, query, .. }: Asked<Version, DeleteQuery, Nothing>,
) -> Result<Done<DeletedDefinition>, Problem> {
    let reason = request::reason(query.reason)?;
    let id = id_of(&path);
    match api.service.delete(&*api.queries, &id, query.force).await? {
        Deletion::Deleted(instances) => {
            let entry = Audited::definition(&id)
                .because(reason.as_deref())
                .with("instances", instances);
            let done = Done::from(DeletedDefinition {
                id: path.id,
                version: path.version,
                instances,
            });
            Ok(done.audited(entry))
        }
        Deletion::InUse(instances) => {
            let detail = format!(
                "{instances} instances of {} run or have failed: wait for them to end, cancel them, or let them run to their end with 'force=true'",
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
    api: Api,
    asked: Asked<Version, Reason, Nothing>,
) -> Result<Done<Activated>, Problem> {
    let (operator, id) = (asked.operator()?, id_of(&asked.path));
    let Some(changed) = api.service.activate(&id).await? else {
        return Err(unknown(&id));
    };
    let Version { id: named, version } = asked.path;
    let done = Done::from(Activated {
        id: named,
        version,
        changed,
    });
    let entry = Audited::definition(&id).because(operator.reason.as_deref());
    Ok(match changed {
        true => done.audited(entry),
        false => done,
    })
}

pub(super) async fn resolve(api: &Api, workflow: &str) -> Result<Arc<Deployed>, Problem> {
    let catalog = api.service.registry.catalog().await?;
    catalog.latest_of(workflow).cloned().ok_or_else(|| {
        let detail = format!("there is no workflow '{workflow}'");
        Problem::not_found("unknown-workflow", bounded(&detail))
    })
}

pub async fn latest(
    api: Api,
    Asked { path, query, .. }: Asked<Named, GetQuery, Nothing>,
) -> Result<Definition, Problem> {
    let found = resolve(&api, &path.id).await?;
    whole(&api, found.id(), query).await
}

pub async fn one(
    api: Api,
    Asked { path, query, .. }: Asked<Version, GetQuery, Nothing>,
) -> Result<Definition, Problem> {
    whole(&api, &id_of(&path), query).await
}

async fn whole(api: &Api, id: &DefinitionId, query: GetQuery) -> Result<Definition, Problem> {
    let catalog = api.service.registry.catalog().await?;
    let deployed = catalog.one(id);
    let deployed = deployed.filter(|one| one.head.deleted.is_none());
    let deployed = deployed.ok_or_else(|| unknown(id))?;
    let wanted = Wanted {
        contents: query.contents,
        diagnostics: query.diagnostics,
    };
    let read = async {
        let record = api.service.registry.store().get(id).await?;
        let Some(record) = record.filter(|record| record.deleted.is_none()) else {
            return Ok(None);
        };
        let warnings = match wanted.diagnostics {
            true => Some(api.warnings(&record).await),
            false => None,
        };
        Ok(Some((record, warnings)))
    };
    let key = (id.clone(), deployed.head.digest.clone());
    let found = api.documents.get(key, wanted, read).await?;
    let (document, more) = found.ok_or_else(|| unknown(id))?;
    // A definition that this build cannot read is still shown.
    let definition = api.service.registry.get(id).await.ok();
    let workflow = definition.as_ref().map(|one| &one.workflow);
    let schema = workflow.and_then(|workflow| workflow.input_schema.as_ref());
    Ok(Definition {
        head: head(&deployed.head),
        document: document.text.clone(),
        resources: document.resources.clone(),
        diagnostics: more.diagnostics,
        contents: more.contents,
        input_schema: schema.map(|schema| Value::from(&schema.schema)),
        title: workflow.and_then(|workflow| workflow.name.clone()),
        description: workflow.and_then(|workflow| workflow.description.clone()),
        states: workflow.map(states_of).unwrap_or_default(),
        events: started_by(&deployed.head.interests),
    })
}

fn states_of(workflow: &Workflow) -> Vec<String> {
    let states = &workflow[Workflow::ROOT].states;
    let names = states.iter().map(|id| workflow[*id].name.to_string());
    names.collect()
}

/// The types of the events that start instances, each once.
fn started_by(interests: &Interests) -> Vec<String> {
    let events = interests.trigger.iter().flat_map(|trigger| &trigger.events);
    let mut kinds: Vec<String> = events.filter_map(|event| event.kind.clone()).collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

fn id_of(version: &Version) -> DefinitionId {
    DefinitionId {
        workflow: version.id.as_str().into(),
        version: version.version.as_str().into(),
    }
}

fn unknown(id: &DefinitionId) -> Problem {
    let detail = format!("there is no definition {}", cut(&id.to_string()));
    Problem::not_found("unknown-workflow", detail)
}

fn head(head: &DefinitionHead) -> Head {
    Head {
        id: head.id.workflow.to_string(),
        version: head.id.version.to_string(),
        name: head.name.to_string(),
        digest: head.digest.to_string(),
        deployed_at: head.deployed_at.into(),
    }
}
