//! Branches and iterations that run states: each becomes a sub-workflow, whose output is the branch's result.

use swirl_model::workflow::{
    Action, ActionId, ActionKind, ActionList, Body, Flow, FlowId, ListId, Next, OnParentEnd, State,
    StateId, StateKind, Subflow, Transition, Version, Workflow,
};

use super::Assume;
use super::alone::Whole;
use super::ways;
use super::ways::root_states;

/// A flow of states that can't become a sub-workflow.
pub(super) struct Refused {
    pub state: String,
    pub message: String,
}

/// The flows of a definition that became definitions, and those that didn't.
#[derive(Default)]
pub(super) struct Parted {
    /// Innermost first.
    pub parts: Vec<Workflow>,
    pub refused: Vec<Refused>,
    taken: Vec<String>,
}

/// Creates a definition for each flow of states that can be a sub-workflow.
pub(super) fn parted(workflow: &mut Workflow, assume: Assume, notes: &mut Vec<String>) -> Parted {
    let mut parted = Parted {
        taken: vec![workflow.id.clone()],
        ..Parted::default()
    };
    parted.of(workflow, assume);
    for part in &parted.parts {
        notes.push(format!(
            "states of a branch or an iteration are the sub-workflow '{}'",
            part.id
        ));
    }
    parted
}

impl Parted {
    fn of(&mut self, workflow: &mut Workflow, assume: Assume) {
        let whole = Whole::of(workflow, assume);
        for id in root_states(workflow) {
            let at = id.0 as usize;
            let name = workflow.states[at].name.to_string();
            for (number, branch, flow) in flows(&workflow.states[at].kind) {
                if let Some(why) = whole.obstacle(id, flow) {
                    let what = match workflow.states[at].kind {
                        StateKind::Foreach(_) => "an iteration".to_owned(),
                        _ => format!("the branch '{branch}'"),
                    };
                    let message =
                        format!("{what} has states, and cannot become a sub-workflow: {why}");
                    self.refused.push(Refused {
                        state: name.clone(),
                        message,
                    });
                    continue;
                }
                let id = free(&mut self.taken, &[&workflow.id, &name, &branch]);
                let mut part = part(workflow, flow, &id);
                let list = call(workflow, &id);
                put(&mut workflow.states[at].kind, number, list);
                self.of(&mut part, assume);
                self.parts.push(part);
            }
        }
    }
}

/// The flows of a state: the branch, its name and its flow.
fn flows(kind: &StateKind) -> Vec<(usize, String, FlowId)> {
    match kind {
        StateKind::Parallel(parallel) => {
            let branches = parallel.branches.iter().enumerate();
            branches
                .filter_map(|(number, branch)| match branch.body {
                    Body::Flow(flow) => Some((number, branch.name.to_string(), flow)),
                    Body::Actions(_) => None,
                })
                .collect()
        }
        StateKind::Foreach(foreach) => match foreach.body {
            Body::Flow(flow) => vec![(0, "each".to_owned(), flow)],
            Body::Actions(_) => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn put(kind: &mut StateKind, number: usize, list: ListId) {
    match kind {
        StateKind::Parallel(parallel) => parallel.branches[number].body = Body::Actions(list),
        StateKind::Foreach(foreach) => foreach.body = Body::Actions(list),
        _ => {}
    }
}

/// A workflow with only this flow.
fn part(workflow: &Workflow, flow: FlowId, id: &str) -> Workflow {
    let mut part = workflow.clone();
    part.id = id.to_owned();
    part.name = Some(id.to_owned());
    part.key = None;
    part.instance_key = None;
    part.search.clear();
    part.description = None;
    part.annotations.clear();
    part.metadata = swirl_model::Data::object();
    part.input_schema = None;
    part.output_schema = None;
    part.timeout = None;
    part.keep_active = false;
    part.schedule = None;
    for source in part.expressions.iter_mut().chain(&mut part.paths) {
        source.params.clear();
    }
    // Without a source, an event states the workflow that it comes from.
    for id in ways::tree(workflow, flow) {
        for produce in ways::produced(workflow, &workflow[id]) {
            let event = &mut part.events[produce.event.0 as usize];
            let own = || format!("/swirl/{}", workflow.id);
            event.source.get_or_insert_with(own);
        }
    }
    let Flow { start, states, .. } = workflow[flow].clone();
    for id in &states {
        part.states[id.0 as usize].flow = Workflow::ROOT;
    }
    let (start, states) = begun_by_call(&mut part, start, states);
    let window = None;
    if let Some(root) = part.flows.first_mut() {
        *root = Flow {
            start,
            states,
            window,
        };
    }
    part
}

/// Events start a workflow that begins with an event state. If only its parent starts it, it must begin with a state
/// that does nothing.
fn begun_by_call(
    part: &mut Workflow,
    start: StateId,
    mut states: Vec<StateId>,
) -> (StateId, Vec<StateId>) {
    if !matches!(part[start].kind, StateKind::Event(_)) {
        return (start, states);
    }
    let mut name = "Begin".to_owned();
    while states.iter().any(|id| *part[*id].name == *name) {
        name.push('-');
    }
    let list = ListId(u32::try_from(part.lists.len()).unwrap_or(u32::MAX));
    part.lists.push(ActionList::default());
    let id = StateId(u32::try_from(part.states.len()).unwrap_or(u32::MAX));
    part.states.push(State {
        name: name.into(),
        kind: StateKind::Operation(list),
        metadata: swirl_model::Data::object(),
        next: Some(Next::Transition(Transition {
            to: start,
            compensate: false,
            produce: Vec::new(),
            guard: None,
        })),
        ..State::default()
    });
    states.insert(0, id);
    (id, states)
}

/// A list with one action that runs the part.
fn call(workflow: &mut Workflow, id: &str) -> ListId {
    let version = match &workflow.version {
        Version::Literal(text) if !text.is_empty() => Some(text.clone()),
        _ => None,
    };
    let action = ActionId(u32::try_from(workflow.actions.len()).unwrap_or(u32::MAX));
    workflow.actions.push(Action {
        kind: ActionKind::Subflow(Subflow {
            workflow: id.to_owned(),
            version,
            input: None,
            detached: false,
            on_parent_end: OnParentEnd::Terminate,
        }),
        ..Action::default()
    });
    let list = ListId(u32::try_from(workflow.lists.len()).unwrap_or(u32::MAX));
    workflow.lists.push(ActionList {
        actions: vec![action],
        parallel: false,
    });
    list
}

/// An id composed of these words that no other part has.
fn free(taken: &mut Vec<String>, words: &[&str]) -> String {
    let plain = |c: char| match c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') {
        true => c,
        false => '-',
    };
    let words: Vec<String> = words
        .iter()
        .map(|word| word.chars().map(plain).collect())
        .collect();
    let mut id = words.join("-");
    while taken.contains(&id) {
        id.push('-');
    }
    taken.push(id.clone());
    id
}
