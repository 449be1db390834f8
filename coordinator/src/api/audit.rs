//! `GET /audit`: the actions of operators, newest first.

use std::sync::Arc;

use swirl_api::Nothing;
use swirl_api::audit::{self, Action, AuditLog, Kind, ListQuery, Subject};
use swirl_ports::AuditEntry;
use swirl_service::Auditing;

use super::Api;
use super::paging;
use super::problem::Problem;
use super::serve::Asked;

/// How many entries a request examines, and how many it reads at a time.
const SEEN_MAX: usize = 20_000;
const AT_ONCE: usize = 500;

/// Whether an entry is one of those that are asked for.
fn matches(query: &ListQuery, entry: &AuditEntry) -> bool {
    let is = |wanted: Option<&str>, found: &str| wanted.is_none_or(|wanted| wanted == found);
    is(query.action.as_ref().map(Action::as_str), &entry.action)
        && is(query.kind.as_ref().map(Kind::as_str), &entry.subject.kind)
        && is(query.subject.as_deref(), &entry.subject.id)
        && (query.by.is_none() || query.by == entry.by)
}

pub async fn list(
    api: Api,
    Asked { query, .. }: Asked<Nothing, ListQuery, Nothing>,
) -> Result<AuditLog, Problem> {
    if let Some(Action::Other(word)) = &query.action {
        return Err(Problem::no_word("action", word, Action::WORDS));
    }
    if let Some(Kind::Other(word)) = &query.kind {
        return Err(Problem::no_word("kind", word, Kind::WORDS));
    }
    let limit = paging::limit(query.limit)?;
    let after: Option<String> = paging::place(query.after.as_deref())?;
    let log = log(&api)?;
    let (rows, place) = search(&log, &query, after, limit).await?;
    let next = place.as_ref().and_then(paging::next);
    Ok(AuditLog {
        entries: rows.into_iter().map(shown).collect(),
        complete: next.is_none(),
        next,
    })
}

/// The matching entries, and the place to continue from unless the log has been read to its end.
async fn search(
    log: &Auditing,
    query: &ListQuery,
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
            if matches(query, &entry) {
                rows.push(entry);
            }
        }
        if is_last {
            return Ok((rows, None));
        }
    }
    Ok((rows, place))
}

fn shown(entry: AuditEntry) -> audit::AuditEntry {
    audit::AuditEntry {
        id: entry.id,
        at: entry.at.into(),
        by: entry.by,
        action: entry.action.as_str().into(),
        subject: Subject {
            kind: entry.subject.kind.as_str().into(),
            id: entry.subject.id,
            version: entry.subject.version,
        },
        reason: entry.reason,
        details: entry.details,
    }
}

fn log(api: &Api) -> Result<Arc<Auditing>, Problem> {
    let log = api.auditing.clone();
    log.ok_or_else(|| Problem::not_found("unknown-route", "this server has no audit log"))
}
