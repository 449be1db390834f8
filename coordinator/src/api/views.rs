//! `/views`: searches for instances that are saved under a name, for all users of the namespace.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use swirl_ports::{SavedView, SavedViews, VIEWS_MAX};
use swirl_service::{Audited, Operator};

use super::Api;
use super::audit::audited;
use super::listing::{self, ListingQuery};
use super::operate::Asker;
use super::problem::{Problem, cut};
use super::request::{self, Unread};

/// The largest body, in bytes.
const BODY_BYTES_MAX: usize = 16 << 10;
/// The longest name, in characters, and the longest workflow or key, in bytes.
const NAME_CHARS_MAX: usize = 60;
const PART_BYTES_MAX: usize = 1_024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    name: String,
    workflow: Option<String>,
    status: Option<String>,
    key: Option<String>,
    query: Option<String>,
}

pub async fn list(State(api): State<Api>) -> Result<Json<Value>, Problem> {
    let views = store(&api)?.views().await?;
    let views: Vec<Value> = views.iter().map(shown).collect();
    Ok(Json(json!({"views": views})))
}

/// Saves a view in place of the one with its name.
pub async fn save(
    State(api): State<Api>,
    Asker(operator): Asker,
    body: Unread,
) -> Result<Response, Problem> {
    let store = store(&api)?;
    let bytes = request::text(body, BODY_BYTES_MAX).await?;
    let asked: Asked = serde_json::from_slice(&bytes).map_err(|error| {
        let detail = format!(
            "the body must be {{\"name\": \"Failed orders\", \"workflow\": \"order\", \"status\": \"faulted\"}}: {error}"
        );
        Problem::bad_request("invalid-json", cut(&detail))
    })?;
    let view = SavedView {
        name: name(&asked.name)?,
        workflow: part("workflow", asked.workflow)?,
        status: asked.status.filter(|status| !status.is_empty()),
        key: part("key", asked.key)?,
        query: asked.query.filter(|query| !query.trim().is_empty()),
        by: operator.name.clone(),
        saved_at: api.service.clock.now(),
    };
    let search = listing::Query::of(&view);
    if search.is_empty() {
        let detail = "a view needs a workflow, a status, a key or a query";
        return Err(Problem::bad_request("empty-query", detail));
    }
    // Refused as the listing would be.
    ListingQuery::new(&api, &search).await?;
    let before = find(&*store, &view.name).await?;
    if !store.save_view(&view).await? {
        let detail = format!("there are {VIEWS_MAX} saved views: remove one first");
        return Err(Problem::conflict("too-many-views", detail));
    }
    let mut entry = entry("view-save", &view, &operator);
    if let Some(before) = before {
        entry = entry.with("replaced", search_of(&before));
    }
    let response = (StatusCode::CREATED, Json(shown(&view))).into_response();
    Ok(audited(response, entry))
}

pub async fn remove(
    State(api): State<Api>,
    Path(name): Path<String>,
    Asker(operator): Asker,
) -> Result<Response, Problem> {
    let unknown = || {
        let detail = format!("there is no saved view '{}'", cut(&name));
        Problem::not_found("unknown-view", detail)
    };
    let store = store(&api)?;
    let view = find(&*store, &name).await?.ok_or_else(unknown)?;
    if !store.remove_view(&name).await? {
        return Err(unknown());
    }
    let response = Json(json!({"name": name})).into_response();
    Ok(audited(response, entry("view-remove", &view, &operator)))
}

async fn find(store: &dyn SavedViews, name: &str) -> Result<Option<SavedView>, Problem> {
    let views = store.views().await?;
    Ok(views.into_iter().find(|view| view.name == name))
}

/// The entry in the audit log. With the search in it, a view that was replaced or removed can be restored.
fn entry(action: &'static str, view: &SavedView, operator: &Operator) -> Audited {
    Audited::new(action, "view", &*view.name)
        .because(operator.reason.as_deref())
        .with("search", search_of(view))
}

/// The search of a view on one line.
fn search_of(view: &SavedView) -> String {
    let parts = parts(view).into_iter();
    let given = parts.filter_map(|(name, part)| Some(format!("{name} '{}'", part.as_ref()?)));
    given.collect::<Vec<_>>().join(", ")
}

/// The parts of a search, as requests name them.
fn parts(view: &SavedView) -> [(&'static str, &Option<String>); 4] {
    [
        ("workflow", &view.workflow),
        ("status", &view.status),
        ("key", &view.key),
        ("query", &view.query),
    ]
}

fn name(asked: &str) -> Result<String, Problem> {
    let name = asked.trim();
    let length = name.chars().count();
    // The name is a part of the view's address, and clients resolve these two as folders.
    let is_folder = matches!(name, "." | "..");
    if length == 0 || length > NAME_CHARS_MAX || is_folder || name.chars().any(char::is_control) {
        let detail = format!(
            "the name of a view has 1 to {NAME_CHARS_MAX} characters on one line, and is not '.' or '..'"
        );
        return Err(Problem::bad_request("invalid-json", detail));
    }
    Ok(name.to_owned())
}

fn part(what: &str, asked: Option<String>) -> Result<Option<String>, Problem> {
    match asked {
        Some(text) if text.len() > PART_BYTES_MAX => {
            let detail = format!("'{what}' has at most {PART_BYTES_MAX} bytes");
            Err(Problem::bad_request("invalid-json", detail))
        }
        asked => Ok(asked.filter(|text| !text.is_empty())),
    }
}

fn shown(view: &SavedView) -> Value {
    let mut shown = json!({
        "name": view.name,
        "by": view.by,
        "savedAt": format!("{:.3}", view.saved_at),
    });
    for (name, part) in parts(view) {
        if let Some(part) = part {
            shown[name] = json!(part);
        }
    }
    shown
}

fn store(api: &Api) -> Result<Arc<dyn SavedViews>, Problem> {
    let store = api.views.clone();
    store.ok_or_else(|| Problem::not_found("unknown-route", "this server has no saved views"))
}
