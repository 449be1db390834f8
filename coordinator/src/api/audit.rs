//! `GET /audit`: the actions of operators, newest first.
//!
//! A handler that has carried out an action marks its response with it ([`audited`]). The gate, which knows the caller,
//! writes the entry before the response is sent.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use swirl_ports::AuditEntry;
use swirl_service::{AUDITED, Audited, Auditing};

use super::Api;
use super::paging;
use super::problem::{Problem, cut};
use super::request::Parameters;

/// How many entries a request examines, and how many it reads at a time.
const SEEN_MAX: usize = 20_000;
const AT_ONCE: usize = 500;

const KINDS: [&str; 6] = [
    "batch",
    "dead-letter",
    "definition",
    "instance",
    "schedule",
    "view",
];

/// The actions of a request that are still to be written.
#[derive(Clone, Default)]
struct Actions(Vec<Audited>);

/// Marks a response: its request has carried out this action, whether it succeeded as a whole or not.
pub(super) fn audited(mut response: Response, action: Audited) -> Response {
    let extensions = response.extensions_mut();
    let Actions(actions) = extensions.get_or_insert_default::<Actions>();
    actions.push(action);
    response
}

/// Marks a response as [`audited`] does: this action came before the others of the request.
pub(super) fn audited_before(mut response: Response, action: Audited) -> Response {
    let extensions = response.extensions_mut();
    let Actions(actions) = extensions.get_or_insert_default::<Actions>();
    actions.insert(0, action);
    response
}

/// Writes the actions of a response into the audit log.
pub(super) async fn write(api: &Api, by: Option<&str>, response: &mut Response) {
    let Some(Actions(actions)) = response.extensions_mut().remove::<Actions>() else {
        return;
    };
    let Some(auditing) = &api.auditing else {
        return;
    };
    for action in actions {
        let now = api.service.clock.now();
        auditing.note(now, by, action).await;
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Query {
    action: Option<String>,
    by: Option<String>,
    kind: Option<String>,
    subject: Option<String>,
    after: Option<String>,
    limit: Option<u32>,
}

impl Query {
    fn check(&self) -> Result<(), Problem> {
        known("action", self.action.as_deref(), &AUDITED)?;
        known("kind", self.kind.as_deref(), &KINDS)
    }

    fn matches(&self, entry: &AuditEntry) -> bool {
        let equal =
            |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|w| w == found);
        equal(&self.action, &entry.action)
            && equal(&self.kind, &entry.subject.kind)
            && equal(&self.subject, &entry.subject.id)
            && (self.by.is_none() || self.by == entry.by)
    }
}

fn known(name: &str, asked: Option<&str>, words: &[&str]) -> Result<(), Problem> {
    match asked {
        Some(word) if !words.contains(&word) => {
            let (word, words) = (cut(word), words.join(", "));
            let detail = format!("there is no {name} '{word}'; they are {words}");
            Err(Problem::bad_request("invalid-query", detail))
        }
        _ => Ok(()),
    }
}

pub async fn list(
    State(api): State<Api>,
    Parameters(query): Parameters<Query>,
) -> Result<Json<Value>, Problem> {
    query.check()?;
    let limit = paging::limit(query.limit)?;
    let after: Option<String> = paging::place(query.after.as_deref())?;
    let log = log(&api)?;
    let (rows, place) = search(&log, &query, after, limit).await?;
    let next = place.as_ref().and_then(paging::next);
    Ok(Json(json!({
        "entries": rows.iter().map(shown).collect::<Vec<_>>(),
        "complete": next.is_none(),
        "next": next,
    })))
}

/// The matching entries, and the place to continue from unless the log has been read to its end.
async fn search(
    log: &Auditing,
    query: &Query,
    after: Option<String>,
    limit: usize,
) -> Result<(Vec<AuditEntry>, Option<String>), Problem> {
    let mut rows = Vec::new();
    let (mut place, mut seen) = (after, 0);
    while seen < SEEN_MAX {
        let page = log.store.audit(place.as_deref(), AT_ONCE).await?;
        let is_last = page.len() < AT_ONCE;
        for entry in page {
            if rows.len() == limit {
                return Ok((rows, place));
            }
            seen += 1;
            place = Some(entry.id.clone());
            if query.matches(&entry) {
                rows.push(entry);
            }
        }
        if is_last {
            return Ok((rows, None));
        }
    }
    Ok((rows, place))
}

fn shown(entry: &AuditEntry) -> Value {
    let mut subject = json!({"kind": entry.subject.kind, "id": entry.subject.id});
    if let Some(version) = &entry.subject.version {
        subject["version"] = json!(version);
    }
    json!({
        "id": entry.id,
        "at": format!("{:.3}", entry.at),
        "by": entry.by,
        "action": entry.action,
        "subject": subject,
        "reason": entry.reason,
        "details": entry.details,
    })
}

fn log(api: &Api) -> Result<Arc<Auditing>, Problem> {
    let log = api.auditing.clone();
    log.ok_or_else(|| Problem::not_found("unknown-route", "this server has no audit log"))
}
