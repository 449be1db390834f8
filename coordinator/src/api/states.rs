//! `GET /definitions/{id}/{version}/states`: how many instances are in each state.
//!
//! No index has the states of running instances, so the newest ones are read, up to a limit.

use std::sync::Arc;

use futures::{StreamExt, stream};
use swirl_api::Nothing;
use swirl_api::definitions::{Occupancy, StateOccupancy, States, StatesQuery, Version};
use swirl_engine::Definition;
use swirl_model::ids::DefinitionId;
use swirl_model::instance::Status;
use swirl_ports::{Filter, Summary};
use swirl_presentation::Occupancies;
use swirl_presentation::place::{is_waiting, place};

use super::Api;
use super::pictures::Shown;
use super::problem::{Problem, bounded};
use super::serve::Asked;

/// How many running and how many faulted instances are counted, the newest first.
const COUNTED_MAX: usize = 500;
/// How many instances of each status are examined to find those of the version.
const SEEN_MAX: usize = 20_000;
/// How many instances are read at a time.
const AT_ONCE: usize = 16;

pub async fn states(
    api: Api,
    asked: Asked<Version, StatesQuery, Nothing>,
) -> Result<States, Problem> {
    let Version { id, version } = &asked.path;
    let registry = &api.service.registry;
    let found = registry.resolve(id, Some(version)).await?;
    let definition = found
        .map_err(|unknown| Problem::not_found("unknown-workflow", bounded(&unknown.to_string())))?;
    let id = &definition.id;
    let (running, all_running) = newest(&api, id, Status::Running).await?;
    let (faulted, all_faulted) = newest(&api, id, Status::Faulted).await?;
    let counted = running.len() + faulted.len();
    let each = running.into_iter().chain(faulted);
    let each: Vec<_> = stream::iter(each.map(|summary| look(&api, &definition, summary)))
        .buffered(AT_ONCE)
        .collect()
        .await;
    let (mut states, mut elsewhere) = (Occupancies::default(), Occupancy::default());
    for found in each {
        let found = found?;
        let name = found.state.as_deref();
        let name = name.and_then(|name| known(&definition, name));
        let into = name.map_or(&mut elsewhere, |name| states.state_mut(name));
        found.add_to(into);
    }
    let all = definition.workflow.states.iter();
    let all = all.map(|state| StateOccupancy {
        state: state.name.to_string(),
        instances: states.get(&state.name),
    });
    let mut answer = States {
        workflow: id.workflow.to_string(),
        version: id.version.to_string(),
        states: all.collect(),
        elsewhere,
        counted,
        complete: all_running && all_faulted,
        diagram: None,
    };
    if asked.query.diagram {
        let shown = Shown::Occupied(states);
        let drawn = api.pictures.get(&definition, shown).await?;
        answer.diagram = Some(String::from_utf8_lossy(&drawn).into_owned());
    }
    Ok(answer)
}

/// The newest instances of a version, and whether these are all.
async fn newest(
    api: &Api,
    id: &DefinitionId,
    status: Status,
) -> Result<(Vec<Summary>, bool), Problem> {
    let mut filter = Filter {
        workflow: Some(id.workflow.to_string()),
        version: Some(id.version.to_string()),
        statuses: vec![status],
        ..Filter::default()
    };
    let (mut rows, mut seen) = (Vec::new(), 0);
    loop {
        // One more shows whether there are more.
        filter.limit = COUNTED_MAX + 1 - rows.len();
        filter.examined_max = SEEN_MAX - seen;
        let page = api.queries.page(&filter, &|_| true).await?;
        seen += page.examined.max(1);
        rows.extend(page.rows);
        filter.from = page.next;
        let is_cut = rows.len() > COUNTED_MAX;
        rows.truncate(COUNTED_MAX);
        if is_cut || filter.from.is_none() || seen >= SEEN_MAX {
            return Ok((rows, !is_cut && filter.from.is_none()));
        }
    }
}

/// Where an instance is, in its main flow.
struct MainFlowPosition {
    state: Option<String>,
    status: Status,
    suspended: bool,
    waiting: bool,
}

impl MainFlowPosition {
    fn add_to(&self, occupancy: &mut Occupancy) {
        if self.status == Status::Faulted {
            occupancy.faulted += 1;
            return;
        }
        occupancy.running += 1;
        occupancy.suspended += u64::from(self.suspended);
        occupancy.waiting += u64::from(self.waiting && !self.suspended);
    }
}

async fn look(
    api: &Api,
    definition: &Definition,
    summary: Summary,
) -> Result<MainFlowPosition, Problem> {
    let (status, suspended) = (summary.status, summary.suspended);
    let mut found = MainFlowPosition {
        state: None,
        status,
        suspended,
        waiting: false,
    };
    if status == Status::Faulted {
        found.state = summary.error.and_then(|error| error.state);
    }
    // The error says where it arose, so the record isn't needed.
    if found.state.is_none()
        && let Some(root) = api.queries.root_outline(&summary.header.id).await?
    {
        let place = place(&definition.workflow, &root);
        found.state = place.state;
        found.waiting = is_waiting(&root);
    }
    Ok(found)
}

/// The name of a state that the definition has.
fn known<'d>(definition: &'d Definition, name: &str) -> Option<&'d Arc<str>> {
    let mut states = definition.workflow.states.iter();
    states
        .find(|state| &*state.name == name)
        .map(|state| &state.name)
}
