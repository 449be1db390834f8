//! `/views`: searches for instances that are saved under a name, for all users of the namespace.

use std::sync::Arc;

use swirl_api::views::{self, View, ViewName};
use swirl_api::{Condition, Nothing, Reason};
use swirl_ports::{SavedView, SavedViews, VIEWS_MAX};
use swirl_service::{Audited, Operator};

use super::Api;
use super::listing::{self, ListingQuery};
use super::problem::{Problem, cut};
use super::serve::{Asked, Done};

/// The longest name, in characters, and the longest workflow or key, in bytes.
const NAME_CHARS_MAX: usize = 60;
const PART_BYTES_MAX: usize = 1_024;

pub async fn list(
    api: Api,
    _: Asked<Nothing, Nothing, Nothing>,
) -> Result<views::SavedViews, Problem> {
    let views = store(&api)?.views().await?;
    Ok(views::SavedViews {
        views: views.into_iter().map(shown).collect(),
    })
}

/// Saves a view in place of the one with its name.
pub async fn save(
    api: Api,
    asked: Asked<Nothing, Reason, View>,
) -> Result<Done<views::SavedView>, Problem> {
    let operator = asked.operator()?;
    let store = store(&api)?;
    let asked = asked.body;
    let status = asked.status.filter(|status| !status.as_str().is_empty());
    let view = SavedView {
        name: name(&asked.name)?,
        workflow: part("workflow", asked.workflow)?,
        status: status.map(|status| status.to_string()),
        key: part("key", asked.key)?,
        query: asked.query.filter(|query| !query.trim().is_empty()),
        by: operator.name.clone(),
        saved_at: api.service.clock.now(),
    };
    let search = listing::search_of(&view);
    if search.workflow.is_none()
        && search.status.is_none()
        && search.key.is_none()
        && search.query.is_none()
    {
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
    let mut entry = entry(&view, &operator);
    if let Some(before) = before {
        entry = entry.with("replaced", search_of(&before));
    }
    Ok(Done::from(shown(view)).audited(entry))
}

pub async fn remove(
    api: Api,
    asked: Asked<ViewName, Reason, Nothing>,
) -> Result<Done<ViewName>, Problem> {
    let operator = asked.operator()?;
    let name = asked.path.name;
    let unknown = || {
        let detail = format!("there is no saved view '{}'", cut(&name));
        Problem::not_found("unknown-view", detail)
    };
    let store = store(&api)?;
    let view = find(&*store, &name).await?.ok_or_else(unknown)?;
    if !store.remove_view(&name).await? {
        return Err(unknown());
    }
    let entry = entry(&view, &operator);
    Ok(Done::from(ViewName { name }).audited(entry))
}

async fn find(store: &dyn SavedViews, name: &str) -> Result<Option<SavedView>, Problem> {
    let views = store.views().await?;
    Ok(views.into_iter().find(|view| view.name == name))
}

/// The entry in the audit log. With the search in it, a view that was replaced or removed can be restored.
fn entry(view: &SavedView, operator: &Operator) -> Audited {
    Audited::of(&view.name)
        .because(operator.reason.as_deref())
        .with("search", search_of(view))
}

/// The search of a view on one line.
fn search_of(view: &SavedView) -> String {
    let parts = [
        ("workflow", &view.workflow),
        ("status", &view.status),
        ("key", &view.key),
        ("query", &view.query),
    ];
    let given = parts.into_iter();
    let given = given.filter_map(|(name, part)| Some(format!("{name} '{}'", part.as_ref()?)));
    given.collect::<Vec<_>>().join(", ")
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

fn shown(view: SavedView) -> views::SavedView {
    views::SavedView {
        name: view.name,
        by: view.by,
        saved_at: view.saved_at.into(),
        workflow: view.workflow,
        status: view.status.as_deref().map(Condition::from),
        key: view.key,
        query: view.query,
    }
}

fn store(api: &Api) -> Result<Arc<dyn SavedViews>, Problem> {
    let store = api.views.clone();
    store.ok_or_else(|| Problem::not_found("unknown-route", "this server has no saved views"))
}
