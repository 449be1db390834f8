//! An instance as it was at an earlier entry of its history (`?at=`).

use std::sync::Arc;

use serde_json::Value;
use swirl_engine::Definition;
use swirl_model::event::{Event, HistoryEntry};
use swirl_model::ids::{DefinitionId, InstanceId};
use swirl_model::instance::{Instance, Status};
use swirl_ports::{HistoryPage, HistoryPart};
use swirl_presentation::Rewound;

use super::Api;
use super::instance_view::{SCOPES_MAX, shown};
use super::problem::Problem;
use super::recent;

/// The limits on the entries that are considered before the requested one: their number, and the number of reads.
const ENTRIES_MAX: u64 = 20_000;
const READS_MAX: usize = 24;
/// The number of entries that are read at a time.
const CHUNK: u64 = 1_000;
/// The number of entries after the requested one that are searched for a change of the version.
const AHEAD_MAX: u64 = 10_000;

/// The history up to an entry.
pub struct Past {
    /// Recorded data is removed from all but the last one.
    pub entries: Vec<HistoryEntry>,
    /// The number of entries before these.
    pub left_out: u64,
    /// The definition that the instance ran with at that time.
    pub definition: Arc<Definition>,
}

/// Reads the history up to the entry with this number.
///
/// # Errors
/// There is no such entry, or it is no longer kept.
pub async fn past(api: &Api, instance: &Instance, at: u64) -> Result<Past, Problem> {
    let header = &instance.header;
    let (entries, left_out) = until(api, &header.id, at).await?;
    let version = match entries.iter().rev().find_map(moved_to) {
        Some(version) => Some(version.to_owned()),
        None => later_moved_from(api, instance, at).await?,
    };
    let id = DefinitionId {
        workflow: header.definition.workflow.clone(),
        version: version.map_or_else(|| header.definition.version.clone(), Arc::from),
    };
    Ok(Past {
        definition: api.service.registry.get(&id).await?,
        entries,
        left_out,
    })
}

/// Returns the instance at the entry with this number, in the form of [`shown`].
pub async fn view(api: &Api, instance: Instance, at: u64) -> Result<swirl_api::Instance, Problem> {
    let mut past = past(api, &instance, at).await?;
    let last = past.entries.len().saturating_sub(1);
    recent::fill_in(api, &instance, &mut past.entries[last..]).await?;
    let rewound = Rewound::new(&past.definition.workflow, &past.entries);
    let output = instance.state.output.as_ref().map(Value::from);
    let mut scopes = rewound.places();
    let left_out = scopes.len().saturating_sub(SCOPES_MAX);
    scopes.truncate(SCOPES_MAX);
    let now = &instance.header.definition.version;
    let was = (&past.definition.id.version != now).then(|| past.definition.id.version.to_string());
    let view = shown(api, &(instance, Vec::new())).await?;
    Ok(swirl_api::Instance {
        status: rewound.status.into(),
        suspended: rewound.suspended,
        ended_at: rewound.ended_at.map(Into::into),
        version: was.unwrap_or(view.version),
        // Their values at that time are unknown.
        attributes: Default::default(),
        correlation: None,
        error: rewound.error.as_ref().map(Into::into),
        output: output.filter(|_| rewound.status == Status::Completed),
        scopes,
        scopes_left_out: Some(left_out).filter(|left_out| *left_out > 0),
        at: Some(at),
        entry: past.entries.last().map(Into::into),
        entries_left_out: Some(past.left_out).filter(|left_out| *left_out > 0),
        ..view
    })
}

/// Returns the last entries up to `at`, in order, and the number of entries before them.
async fn until(api: &Api, id: &InstanceId, at: u64) -> Result<(Vec<HistoryEntry>, u64), Problem> {
    before(at)?;
    let mut chunks: Vec<Vec<HistoryEntry>> = Vec::new();
    let (mut end, mut reads) = (at, 0);
    'all: while end > at.saturating_sub(ENTRIES_MAX) {
        let mut chunk = Vec::new();
        let mut known = end.saturating_sub(CHUNK);
        while known < end {
            if reads == READS_MAX {
                break 'all;
            }
            reads += 1;
            let page = read(api, id, known, end - known).await?;
            if at > page.total || page.before >= at {
                return Err(no_entry(at, &page));
            }
            if page.entries.is_empty() || page.before >= end {
                break 'all;
            }
            if page.before > known {
                // Earlier entries are no longer kept.
                chunk.clear();
            }
            known = page.before + page.entries.len() as u64;
            chunk.extend(
                page.entries
                    .into_iter()
                    .enumerate()
                    .map(|(index, mut entry)| {
                        if page.before + index as u64 + 1 != at {
                            entry.data = None;
                        }
                        entry
                    }),
            );
        }
        let begins = known - chunk.len() as u64;
        let is_first = begins > end.saturating_sub(CHUNK);
        end = begins;
        chunks.push(chunk);
        if is_first {
            break;
        }
    }
    let entries = chunks.into_iter().rev().flatten().collect();
    Ok((entries, end))
}

async fn read(api: &Api, id: &InstanceId, known: u64, count: u64) -> Result<HistoryPage, Problem> {
    let part = HistoryPart::After {
        known,
        limit: usize::try_from(count).unwrap_or(usize::MAX),
    };
    let page = api.queries.history_page(id, part).await?;
    Ok(page.at(api.service.clock.now()))
}

/// The number of the entries before this one.
pub fn before(at: u64) -> Result<u64, Problem> {
    let detail = "the entries of a history are numbered from 1";
    at.checked_sub(1)
        .ok_or_else(|| Problem::bad_request("invalid-range", detail))
}

pub fn no_entry(at: u64, page: &HistoryPage) -> Problem {
    let detail = match at > page.total {
        true => format!(
            "the history has {} entries: there is no entry {at}",
            page.total
        ),
        false => format!(
            "entry {at} is no longer kept: the first of those that are is {}",
            page.before + 1
        ),
    };
    Problem::bad_request("invalid-range", detail)
}

fn moved_to(entry: &HistoryEntry) -> Option<&str> {
    match &entry.event {
        Event::Operated { to, .. } => to.as_deref(),
        _ => None,
    }
}

/// Finds the next move to another version after this entry, and returns the version before that move.
async fn later_moved_from(
    api: &Api,
    instance: &Instance,
    at: u64,
) -> Result<Option<String>, Problem> {
    let id = &instance.header.id;
    let workflow = &instance.header.definition.workflow;
    let catalog = api.service.registry.catalog().await?;
    let versions = catalog.all().iter();
    if versions
        .filter(|one| one.id().workflow == *workflow)
        .count()
        < 2
    {
        return Ok(None);
    }
    let mut known = at;
    while known < at + AHEAD_MAX {
        let page = read(api, id, known, CHUNK).await?;
        let found = page.entries.iter().find_map(|entry| match &entry.event {
            Event::Operated { from, .. } => from.clone(),
            _ => None,
        });
        if found.is_some() || page.entries.is_empty() {
            return Ok(found);
        }
        known = page.before + page.entries.len() as u64;
    }
    Ok(None)
}
