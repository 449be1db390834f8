//! `GET /instances/{id}/changes`: what the state before has changed in the state data, and the state since it began.
//!
//! Histories have the data with which states began, if everything is recorded (`history.data`).

use serde_json::Value;
use swirl_api::Nothing;
use swirl_api::changes::{Beginning, CompareQuery, Compared, Comparison, Missing, Until};
use swirl_api::instance::InstanceId as Named;
use swirl_model::Data;
use swirl_model::event::{Event, HistoryEntry};
use swirl_model::ids::{InstanceId, ScopeId};
use swirl_model::instance::{EndStatus, Instance, Status};
use swirl_ports::HistoryPart;
use swirl_presentation::changes::changes;

use super::Api;
use super::problem::Problem;
use super::rewind;
use super::serve::Asked;

/// How many entries are searched for the beginnings of the last two states, from the last one backwards, and how many
/// are read at a time.
const ENTRIES_MAX: u64 = 2_000;
const CHUNK: u64 = 100;
/// How often the history is read. Large entries come in more parts.
const READS_MAX: usize = 24;
/// Larger data, in bytes of JSON, is not compared.
const DATA_BYTES_MAX: usize = 1 << 20;

pub async fn of_instance(
    api: Api,
    asked: Asked<Named, CompareQuery, Nothing>,
) -> Result<Compared, Problem> {
    let (Named { id }, CompareQuery { at }) = (asked.path, asked.query);
    let called = api.service.called(&id).await?;
    let found = api.queries.instance(&called).await?;
    let instance = found.ok_or_else(|| Problem::no_instance(&id))?;
    let (last, total) = last_entry(&api, &called, at).await?;
    let end = at.unwrap_or(total);
    let scope = match (at, &last) {
        (Some(_), Some(entry)) => entry.scope.clone(),
        _ => ScopeId::root(),
    };
    let search = search(&api, &called, end, &scope).await?;
    // A branch without states of its own works on the data of the main flow.
    let is_first = search.is_first();
    let (scope, begun) = match search.of_scope.is_empty() {
        true => (ScopeId::root(), search.of_root),
        false => (scope, search.of_scope),
    };
    let latest = match scope.is_root() {
        true => latest(&api, &instance, at, last.as_ref()).await?,
        false => None,
    };
    let mut comparisons = Vec::new();
    if let [begin, ..] = &begun[..]
        && let Some((data, is_end)) = &latest
    {
        let to = Until {
            ended: *is_end,
            ..Until::default()
        };
        comparisons.push(begin.compared(Some(data), to, None));
    }
    if let [end, begin] = &begun[..] {
        let to = Until {
            line: Some(end.line),
            state: Some(end.state.clone()),
            ended: false,
        };
        comparisons.push(begin.compared(end.data.as_ref(), to, end.missing.clone()));
    }
    Ok(Compared {
        id: called.to_string(),
        at,
        scope: scope.to_string(),
        comparisons,
        first: is_first,
        complete: begun.len() == 2 || is_first,
    })
}

/// The beginning of a state.
struct Begun {
    line: u64,
    state: String,
    data: Option<Value>,
    /// Why there is no data.
    missing: Option<Missing>,
}

impl Begun {
    fn new(line: u64, state: &str, entry: &HistoryEntry) -> Begun {
        let found = entry.data.as_ref().and_then(|data| data.get("state_data"));
        let (data, missing) = match found {
            Some(data) if is_cut(&data) => (None, Some(Missing::TooLong)),
            Some(data) => (Some(Value::from(&data)), None),
            None if entry.data_until.is_some() => (None, Some(Missing::NoLongerKept)),
            None => (None, Some(Missing::NotRecorded)),
        };
        Begun {
            line,
            state: state.to_owned(),
            data,
            missing,
        }
    }

    /// Lists the changes since. `missing`: why there is no newer data.
    fn compared(&self, newer: Option<&Value>, to: Until, missing: Option<Missing>) -> Comparison {
        let sides = self.data.as_ref().zip(newer);
        let found = sides.map(|(before, after)| changes(before, after));
        Comparison {
            from: Beginning {
                line: self.line,
                state: self.state.clone(),
            },
            to,
            missing: self.missing.clone().or(missing),
            complete: found.as_ref().map(|found| !found.is_cut),
            changes: found.map(|found| found.all),
        }
    }
}

/// Whether the history has a placeholder instead of a value that is too long.
fn is_cut(data: &Data) -> bool {
    let members = data.as_object().map_or(0, |all| all.len());
    members == 2 && data.get("cut").is_some() && data.get("bytes").is_some()
}

/// The last entry up to the requested one, and the number of all.
async fn last_entry(
    api: &Api,
    id: &InstanceId,
    at: Option<u64>,
) -> Result<(Option<HistoryEntry>, u64), Problem> {
    let part = match at {
        Some(at) => HistoryPart::After {
            known: rewind::before(at)?,
            limit: 1,
        },
        None => HistoryPart::Last(1),
    };
    let page = api
        .queries
        .history_page(id, part)
        .await?
        .at(api.service.clock.now());
    if let Some(at) = at
        && (at > page.total || page.before >= at)
    {
        return Err(rewind::no_entry(at, &page));
    }
    Ok((page.entries.into_iter().next(), page.total))
}

/// The state data at the end of the requested part, and whether it is that of an instance that has ended. Of the past
/// only the output is known.
async fn latest(
    api: &Api,
    instance: &Instance,
    at: Option<u64>,
    last: Option<&HistoryEntry>,
) -> Result<Option<(Value, bool)>, Problem> {
    let within = |data: &Data| (!data.exceeds(DATA_BYTES_MAX)).then(|| Value::from(data));
    let output = || instance.state.output.as_ref().and_then(within);
    if at.is_some() {
        let completed = EndStatus::Completed;
        let completes = last.is_some_and(
            |entry| matches!(entry.event, Event::Ended { status, .. } if status == completed),
        );
        return Ok(output().filter(|_| completes).map(|output| (output, true)));
    }
    if instance.state.status == Status::Completed {
        return Ok(output().map(|output| (output, true)));
    }
    let root = api.queries.root(&instance.header.id).await?;
    let root = root.filter(|root| !root.ended());
    Ok(root
        .and_then(|root| within(&root.data))
        .map(|data| (data, false)))
}

/// The beginnings of the last two states, the last one first.
struct Search {
    scope: ScopeId,
    of_scope: Vec<Begun>,
    of_root: Vec<Begun>,
    /// The history was read to its first entry.
    is_whole: bool,
}

async fn search(api: &Api, id: &InstanceId, last: u64, scope: &ScopeId) -> Result<Search, Problem> {
    let mut search = Search {
        scope: scope.clone(),
        of_scope: Vec::new(),
        of_root: Vec::new(),
        is_whole: false,
    };
    let (mut end, mut reads) = (last, 0);
    while end > last.saturating_sub(ENTRIES_MAX) && !search.is_done() {
        let first = end.saturating_sub(CHUNK);
        let (mut known, mut chunk) = (first, Vec::new());
        let mut begins = first;
        while known < end {
            if reads == READS_MAX {
                return Ok(search);
            }
            reads += 1;
            let part = HistoryPart::After {
                known,
                limit: usize::try_from(end - known).unwrap_or(usize::MAX),
            };
            let page = api
                .queries
                .history_page(id, part)
                .await?
                .at(api.service.clock.now());
            if page.entries.is_empty() {
                break;
            }
            if chunk.is_empty() {
                begins = page.before;
            }
            known = page.before + page.entries.len() as u64;
            let numbered = page.entries.into_iter().enumerate();
            chunk.extend(numbered.map(|(index, entry)| (page.before + index as u64 + 1, entry)));
        }
        for (line, entry) in chunk.iter().rev().filter(|(line, _)| *line <= last) {
            search.take(*line, entry);
        }
        if first == 0 || begins > first || chunk.is_empty() {
            search.is_whole = true;
            break;
        }
        end = first;
    }
    Ok(search)
}

impl Search {
    /// A branch begins after the state of the main flow that it belongs to.
    fn is_done(&self) -> bool {
        match (self.of_scope.len(), self.of_root.len()) {
            (2, _) | (0, 2) => true,
            (count, of_root) => count == 1 && of_root > 0 && !self.scope.is_root(),
        }
    }

    /// There is no state before the last one.
    fn is_first(&self) -> bool {
        match self.of_scope.is_empty() {
            true => self.of_root.len() < 2 && self.is_whole,
            false => self.of_scope.len() < 2 && (self.is_whole || self.is_done()),
        }
    }

    fn take(&mut self, line: u64, entry: &HistoryEntry) {
        let Event::StateEntered { name, .. } = &entry.event else {
            return;
        };
        if entry.scope == self.scope && self.of_scope.len() < 2 {
            self.of_scope.push(Begun::new(line, name, entry));
        }
        if entry.scope.is_root() && self.of_root.len() < 2 {
            self.of_root.push(Begun::new(line, name, entry));
        }
    }
}
