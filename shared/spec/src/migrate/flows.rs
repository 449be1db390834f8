//! Branches and iterations that run states: each becomes a sub-workflow, whose output is the branch's result.

use swirl_model::workflow::{
    Action, ActionId, ActionKind, ActionList, Body, Flow, FlowId, ListId, Next, OnParentEnd, State,
    StateId, StateKind, Subflow, Then, Transition, Version, Workflow,
};

use super::Assume;
use super::workflow::root_states;

/// A definition for each flow of states that can stand alone, deepest first.
pub(super) fn parted(
    workflow: &mut Workflow,
    assume: Assume,
    notes: &mut Vec<String>,
) -> Vec<Workflow> {
    let mut taken = vec![workflow.id.clone()];
    let parts = of(workflow, &root_states(workflow), assume, &mut taken);
    for part in &parts {
        notes.push(format!(
            "states of a branch or an iteration are the sub-workflow '{}'",
            part.id
        ));
    }
    parts
}

fn of(
    workflow: &mut Workflow,
    states: &[StateId],
    assume: Assume,
    taken: &mut Vec<String>,
) -> Vec<Workflow> {
    let mut all = Vec::new();
    for id in states {
        let at = id.0 as usize;
        let name = workflow.states[at].name.to_string();
        for (number, branch, flow) in flows(&workflow.states[at].kind) {
            let iterates = matches!(workflow.states[at].kind, StateKind::Foreach(_));
            let is_same = stands_alone(workflow, flow)
                && (!iterates || iterates_alike(workflow, flow, assume));
            if !is_same {
                continue;
            }
            let id = free(taken, &[&workflow.id, &name, &branch]);
            let mut part = part(workflow, flow, &id);
            let list = call(workflow, &id);
            put(&mut workflow.states[at].kind, number, list);
            let within = root_states(&part);
            all.append(&mut of(&mut part, &within, assume, taken));
            all.push(part);
        }
    }
    all
}

/// The flows of a state: which branch, its name, its flow.
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

/// Nothing in it reaches beyond it: a parameter of an iteration, the end of the whole instance, a state to be
/// compensated, a window of time.
fn stands_alone(workflow: &Workflow, flow: FlowId) -> bool {
    let compensates = workflow
        .states
        .iter()
        .any(|state| state.compensated_by.is_some());
    let sees_params = workflow.expressions.iter().any(|source| {
        let mut params = source.params.iter();
        params.any(|param| source.text.contains(&format!("${param}")))
    });
    let reads_instance = workflow
        .expressions
        .iter()
        .any(|source| source.text.contains("$WORKFLOW"));
    let flow = &workflow[flow];
    let is_literal = matches!(&workflow.version, Version::Literal(_));
    !compensates
        && !sees_params
        && !reads_instance
        && is_literal
        && flow.window.is_none()
        && flow.states.iter().all(|id| ends_itself(workflow, *id))
}

/// A plain result is the result of an iteration, and cannot be merged into a sub-workflow's data; an event continues
/// one iteration, but each sub-workflow.
fn iterates_alike(workflow: &Workflow, flow: FlowId, assume: Assume) -> bool {
    let waits = |id: &StateId| {
        matches!(
            workflow[*id].kind,
            StateKind::Event(_) | StateKind::Callback(_) | StateKind::SwitchEvents(_)
        )
    };
    assume.objects && !workflow[flow].states.iter().any(waits)
}

fn ends_itself(workflow: &Workflow, id: StateId) -> bool {
    let state = &workflow[id];
    let stays = |next: &Next| match next {
        Next::Transition(transition) => !transition.compensate,
        Next::End(end) => {
            !end.terminate
                && !end.terminate_parents
                && !end.compensate
                && end.continue_as.is_none()
                && end.fail.is_none()
        }
    };
    let handled = |then: &Then| match then {
        Then::Next(next) => stays(next),
        _ => true,
    };
    let within = match &state.kind {
        StateKind::Event(event) => event.entries.iter().all(|it| it.next.iter().all(stays)),
        StateKind::Switch(switch) => {
            switch.conditions.iter().all(|it| stays(&it.next)) && switch.default.iter().all(stays)
        }
        StateKind::SwitchEvents(switch) => {
            switch.conditions.iter().all(|it| stays(&it.next)) && switch.default.iter().all(stays)
        }
        _ => true,
    };
    within
        && state.next.iter().all(stays)
        && state.on_errors.iter().all(|handler| handled(&handler.then))
}

/// A workflow of this flow alone.
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

/// Events start a workflow that begins with an event state; one that only its parent starts begins
/// with a state that does nothing.
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

/// A list of one action that runs the part.
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

/// An id of these words that no other part has.
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
