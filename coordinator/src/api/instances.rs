//! `GET /instances/{id}` and below.

use std::time::Duration;

use serde_json::Value;
use swirl_api::history::{History, HistoryEntry, HistoryQuery};
use swirl_api::instance::{GetQuery, InstanceId};
use swirl_api::{Instance, Nothing};
use swirl_model::event::HistoryEntry as Stored;
use swirl_model::instance::Header;
use swirl_ports::HistoryPart;
use swirl_presentation::Names;

use super::Api;
use super::instance_view::shown;
use super::problem::Problem;
use super::recent;
use super::rewind;
use super::serve::Asked;
use super::start;

/// The limit on state data in a response, in bytes of JSON. Scopes beyond the limit are shown without data.
const DATA_BYTES_MAX: usize = 1 << 20;
/// The maximum number of history entries in a response.
const ENTRIES_MAX: usize = 2_000;
/// How many earlier parts are read to find out where the branches in a part of a history belong.
const NAMES_READS_MAX: usize = 5;
/// The longest pause between two polls of an instance.
const PAUSE_MAX: Duration = Duration::from_millis(200);

/// Everything about an instance except its history.
pub async fn one(
    api: Api,
    asked: Asked<InstanceId, GetQuery, Nothing>,
) -> Result<Instance, Problem> {
    let (InstanceId { id }, query) = (asked.path, asked.query);
    let called = api.service.called(&id).await?;
    if let Some(at) = query.at {
        if query.wait.is_some() {
            let detail = "'wait' and 'at' can't be combined";
            return Err(Problem::bad_request("invalid-query", detail));
        }
        let found = api.queries.instance(&called).await?;
        let found = found.ok_or_else(|| Problem::no_instance(&id))?;
        return rewind::view(&api, found, at).await;
    }
    let found = match query.wait {
        Some(wait) => {
            let wait = start::parse_wait(&wait)?;
            start::until_end(&api, &called, wait, false, PAUSE_MAX).await?
        }
        None => {
            let found = api.queries.view(&called).await?;
            found.ok_or_else(|| Problem::no_instance(&id))?
        }
    };
    let mut view = shown(&api, &found).await?;
    let mut left = DATA_BYTES_MAX;
    let open = found.1.iter().filter(|scope| !scope.ended());
    for (place, scope) in view.scopes.iter_mut().zip(open) {
        if scope.data.exceeds(left) {
            place.data_left_out = true;
        } else {
            left -= scope.data.to_string().len().min(left);
            place.data = Some(Value::from(&scope.data));
        }
    }
    Ok(view)
}

/// The entries of branches with the names of those.
async fn named(
    api: &Api,
    header: &Header,
    entries: &[Stored],
    mut before: u64,
) -> Result<Vec<HistoryEntry>, Problem> {
    let mut shown: Vec<HistoryEntry> = entries.iter().map(Into::into).collect();
    let is_plain = entries.iter().all(|entry| entry.scope.is_root());
    // Without its definition, the history can be read nevertheless.
    let definition = match is_plain {
        true => return Ok(shown),
        false => api.service.registry.get(&header.definition).await,
    };
    let Ok(definition) = definition else {
        return Ok(shown);
    };
    let mut names = Names::new(&definition.workflow);
    names.learn(entries);
    // Branches may have begun in an earlier part.
    for _ in 0..NAMES_READS_MAX {
        if before == 0 || !entries.iter().any(|entry| names.lacks(&entry.scope)) {
            break;
        }
        let known = before.saturating_sub(ENTRIES_MAX as u64);
        let part = HistoryPart::After {
            known,
            limit: (before - known) as usize,
        };
        let page = api.queries.history_page(&header.id, part).await?;
        if page.entries.is_empty() || page.before >= before {
            break;
        }
        names.learn(&page.entries);
        before = page.before;
    }
    for (entry, shown) in entries.iter().zip(&mut shown) {
        shown.place = names.name_of(&entry.scope);
    }
    Ok(shown)
}

pub async fn history(
    api: Api,
    asked: Asked<InstanceId, HistoryQuery, Nothing>,
) -> Result<History, Problem> {
    let (InstanceId { id }, since) = (asked.path, asked.query);
    for (name, number) in [("limit", since.limit), ("last", since.last)] {
        if number.is_some_and(|number| number > ENTRIES_MAX) {
            let detail =
                format!("'{name}' is at most {ENTRIES_MAX}: ask for the rest with 'after'");
            return Err(Problem::bad_request("invalid-query", detail));
        }
    }
    let wide = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let known = match (since.last, since.after, since.to) {
        (Some(_), Some(_), _) => {
            let detail = "'after' and 'last' can't be combined";
            return Err(Problem::bad_request("invalid-query", detail));
        }
        (Some(last), None, None) => Err(last),
        (Some(last), None, Some(to)) => Ok(to.saturating_sub(wide(last))),
        (None, known, _) => Ok(known.unwrap_or(0)),
    };
    let limit = since.limit.unwrap_or(ENTRIES_MAX);
    let part = match known {
        Err(last) => HistoryPart::Last(last),
        Ok(known) => {
            let until = since.to.map(|to| to.saturating_sub(known));
            let until = until.and_then(|count| usize::try_from(count).ok());
            HistoryPart::After {
                known,
                limit: until.map_or(limit, |count| count.min(limit)),
            }
        }
    };
    let id = api.service.called(&id).await?;
    let Some(instance) = api.queries.instance(&id).await? else {
        return Err(Problem::no_instance(id.as_str()));
    };
    let page = api.queries.history_page(&id, part).await?;
    let mut page = page.at(api.service.clock.now());
    // The last calls are among the last entries.
    if page.before + page.entries.len() as u64 >= page.total {
        recent::fill_in(&api, &instance, &mut page.entries).await?;
    }
    let shown = &page.entries[..page.entries.len().min(limit)];
    let entries = named(&api, &instance.header, shown, page.before).await?;
    let end = since.to.map_or(page.total, |to| to.min(page.total));
    let more = page.before + (entries.len() as u64) < end;
    Ok(History {
        id: id.to_string(),
        workflow: instance.header.definition.workflow.to_string(),
        version: instance.header.version.to_string(),
        status: instance.state.status.into(),
        before: page.before.max(since.after.unwrap_or(0)),
        total: page.total,
        more,
        entries,
    })
}
