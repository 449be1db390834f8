//! Extracts from histories how the environment behaved: the calls with their answers, the received events, and the
//! actions of operators.

use std::collections::{BTreeMap, BTreeSet};

use swirl_model::error::names;
use swirl_model::event::{Event, HistoryEntry};
use swirl_model::ids::ScopeId;
use swirl_model::redact::CUT;
use swirl_model::time::Timestamp;
use swirl_model::workflow::{Action, ActionKind, Function, StateId, StateKind, Workflow};
use swirl_model::{Data, WorkflowError};
use swirl_scenario::mock::is_sysout;

use super::export::Recorded;

/// The outcome of a recorded call.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Return(Data),
    Error(WorkflowError),
    /// Nothing waited for the answer.
    Never,
}

#[derive(Debug, Clone)]
pub struct RecordedCall {
    /// The instance's index in the export, from 0.
    pub instance: usize,
    pub scope: ScopeId,
    pub function: String,
    pub begun: Timestamp,
    pub took_ms: u64,
    /// `None` if the history doesn't have them.
    pub arguments: Option<Data>,
    pub outcome: Outcome,
}

/// An operator's action on the first instance.
#[derive(Debug, Clone)]
pub struct Operated {
    pub at: Timestamp,
    pub word: &'static str,
}

/// Everything that came to the instances from outside.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    pub calls: Vec<RecordedCall>,
    /// In the order in which they were consumed, each once.
    pub events: Vec<(Timestamp, Data)>,
    pub operated: Vec<Operated>,
    /// Events, not a request, created the first instance.
    pub by_event: bool,
    /// The missing facts that a scenario needs, as sentences without duplicates.
    pub missing: BTreeSet<String>,
}

const DATA: &str = "the history doesn't hold the answers of calls and the received events: set 'history.data' to \
     'all' on workers and coordinators (swirl worker --history-data all), and record an instance that ran with it";

/// The same for data that was no longer kept.
const GONE: &str = "the answers of calls and the received events are no longer kept: 'history.keep_data', or the \
     definition, says how long they are";

struct Open {
    function: String,
    begun: Timestamp,
    detached: bool,
}

/// Reads the histories. `workflows` are the instances' workflows, in the same order.
pub fn facts(instances: &[Recorded], workflows: &[&Workflow]) -> Facts {
    let mut facts = Facts::default();
    let mut produced: BTreeSet<&str> = BTreeSet::new();
    for entry in instances.iter().flat_map(|one| &one.history) {
        if let Event::EventProduced { id, .. } = &entry.event {
            produced.insert(id);
        }
    }
    let mut known: BTreeSet<(&str, &str)> = BTreeSet::new();
    for (index, (one, workflow)) in instances.iter().zip(workflows).enumerate() {
        if one.gone > 0 {
            facts.missing.insert(format!(
                "the first {} entries of the history are no longer kept: 'redis.history_max' bounds how many there are",
                one.gone
            ));
        }
        if one.is_calling {
            facts.missing.insert(format!(
                "instance {} has ended, but calls that it doesn't wait for ('invoke: async') have not: record it again \
                 when they have",
                one.header.id
            ));
        }
        calls(index, one, workflow, &mut facts);
        for entry in &one.history {
            match &entry.event {
                Event::EventConsumed { source, id, .. }
                    if !produced.contains(id.as_str()) && known.insert((source, id)) =>
                {
                    event(entry, &mut facts);
                }
                // It is a consequence of the parent's change.
                Event::Operated { with: Some(_), .. } if index > 0 => {}
                Event::Operated { action, .. } => operated(index, entry, action, &mut facts),
                Event::GivenUp { .. } => {
                    let why = "a worker gave up on the instance: a scenario cannot express that";
                    facts.missing.insert(why.to_owned());
                }
                _ => {}
            }
        }
    }
    facts.events.sort_by_key(|(at, _)| *at);
    facts.calls.sort_by_key(|call| call.begun);
    if let (Some(first), Some(workflow)) = (instances.first(), workflows.first()) {
        facts.by_event = is_by_event(first, workflow);
    }
    facts
}

fn event(entry: &HistoryEntry, facts: &mut Facts) {
    let found = entry.data.as_ref().and_then(|data| data.get("event"));
    match found {
        Some(event) if is_cut(&event) => cut("an event", facts),
        Some(event) => facts.events.push((entry.at, event)),
        None => {
            facts.missing.insert(missing(entry).to_owned());
        }
    }
}

/// The reason why an entry has no data.
fn missing(entry: &HistoryEntry) -> &'static str {
    match entry.data_until {
        Some(_) => GONE,
        None => DATA,
    }
}

fn operated(index: usize, entry: &HistoryEntry, action: &str, facts: &mut Facts) {
    let word = ["cancel", "suspend", "resume", "retry"]
        .into_iter()
        .find(|word| *word == action);
    match word {
        Some(word) if index == 0 => facts.operated.push(Operated { at: entry.at, word }),
        Some(word) => {
            let why = format!(
                "an operator asked for '{word}' of a sub-workflow: a scenario can express that only for the instance itself"
            );
            facts.missing.insert(why);
        }
        None => {
            let why = format!(
                "an operator asked for '{action}': a scenario knows cancel, suspend, resume and retry only"
            );
            facts.missing.insert(why);
        }
    }
}

fn calls(index: usize, one: &Recorded, workflow: &Workflow, facts: &mut Facts) {
    let mut states: BTreeMap<ScopeId, StateId> = BTreeMap::new();
    let mut open: BTreeMap<ScopeId, Open> = BTreeMap::new();
    let never = |scope: &ScopeId, call: Open, facts: &mut Facts| {
        facts.calls.push(RecordedCall {
            instance: index,
            scope: scope.clone(),
            function: call.function,
            begun: call.begun,
            took_ms: 0,
            arguments: None,
            outcome: Outcome::Never,
        });
    };
    for entry in &one.history {
        let scope = &entry.scope;
        match &entry.event {
            Event::StateEntered { state, .. } => {
                if let Some(call) = open.remove(scope) {
                    never(scope, call, facts);
                }
                states.insert(scope.clone(), *state);
            }
            Event::StateLeft { .. } | Event::Ended { .. } => {
                if let Some(call) = open.remove(scope) {
                    never(scope, call, facts);
                }
            }
            Event::ActionStarted {
                action, in_state, ..
            } => {
                if let Some(call) = open.remove(scope) {
                    never(scope, call, facts);
                }
                let state = named(workflow, in_state.as_deref());
                let state = state.or_else(|| state_of(&states, scope));
                let Some((function, detached)) = function_of(workflow, state, action) else {
                    continue;
                };
                open.insert(
                    scope.clone(),
                    Open {
                        function: function.name.to_string(),
                        begun: entry.at,
                        detached,
                    },
                );
            }
            Event::ActionCompleted { .. } | Event::ActionFailed { .. } => {
                let Some(call) = open.remove(scope) else {
                    continue;
                };
                // A call that nothing waits for has its own scope.
                if call.detached && entry.data.is_none() {
                    continue;
                }
                if let Some(call) = ended(index, entry, call, facts) {
                    facts.calls.push(call);
                }
            }
            _ => {}
        }
    }
    for (scope, call) in open {
        never(&scope, call, facts);
    }
}

/// A call with its answer, or `None` if no call was made or its outcome isn't known.
fn ended(
    index: usize,
    entry: &HistoryEntry,
    open: Open,
    facts: &mut Facts,
) -> Option<RecordedCall> {
    let kept = |name: &str| entry.data.as_ref().and_then(|data| data.get(name));
    let (arguments, result) = (kept("arguments"), kept("result"));
    let function = open.function;
    let outcome = match (&entry.event, result) {
        (_, Some(result)) if is_cut(&result) => {
            cut(&format!("an answer of '{function}'"), facts);
            return None;
        }
        (_, Some(result)) => Outcome::Return(result),
        (Event::ActionFailed { error, .. }, None) => match error.name.as_str() {
            names::ACTION_TIMEOUT => Outcome::Never,
            // The call was never made, because its arguments could not be evaluated.
            names::EXPRESSION_ERROR | names::SECRET_NOT_FOUND if arguments.is_none() => {
                return None;
            }
            names::EXPRESSION_ERROR | names::INVALID_VALUE => {
                facts.missing.insert(DATA.to_owned());
                return None;
            }
            _ => Outcome::Error(error.clone()),
        },
        (_, None) if arguments.is_some() => {
            facts.missing.insert(format!(
                "the answers of '{function}' aren't kept: it is called with a token of OAuth 2, which an answer may repeat"
            ));
            return None;
        }
        (_, None) => {
            facts.missing.insert(missing(entry).to_owned());
            return None;
        }
    };
    Some(RecordedCall {
        instance: index,
        scope: entry.scope.clone(),
        function,
        begun: open.begun,
        took_ms: u64::try_from(entry.at.0 - open.begun.0).unwrap_or(0),
        arguments: arguments.filter(|arguments| !is_cut(arguments)),
        outcome,
    })
}

fn cut(what: &str, facts: &mut Facts) {
    facts.missing.insert(format!(
        "{what} is longer than the history keeps: raise 'history.data_bytes' on the workers, and record an instance \
         that ran with it"
    ));
}

/// Whether the history has a placeholder for a value that is too long.
fn is_cut(data: &Data) -> bool {
    let members = data.as_object().map_or(0, |all| all.len());
    members == 2
        && data.get("cut").is_some_and(|cut| cut.as_str().is_some())
        && data.get("bytes").is_some()
}

/// The state that an entry names, if the name is unambiguous: branches may have states with equal names.
fn named(workflow: &Workflow, name: Option<&str>) -> Option<StateId> {
    let name = name?;
    let states = workflow.states.iter().enumerate();
    let mut found = states.filter(|(_, state)| &*state.name == name);
    let (index, _) = found.next()?;
    found.next().is_none().then_some(StateId(index as u32))
}

/// The current state of a scope. For a branch without states of its own, it is the state that forked it.
fn state_of(states: &BTreeMap<ScopeId, StateId>, scope: &ScopeId) -> Option<StateId> {
    let mut id = scope.to_string();
    loop {
        if let Some(state) = states.get(&ScopeId::new(id.as_str())) {
            return Some(*state);
        }
        // The id of a child is '<parent>.<fork>.<index>'.
        let parent = id.rfind('.').and_then(|end| id[..end].rfind('.'))?;
        id.truncate(parent);
    }
}

fn name_of<'w>(workflow: &'w Workflow, action: &'w Action) -> &'w str {
    match (&action.name, &action.kind) {
        (Some(name), _) => name,
        (None, ActionKind::Call(call)) => &workflow[call.function].name,
        (None, ActionKind::Expression { function, .. }) => &workflow[*function].name,
        (None, ActionKind::Subflow(subflow)) => &subflow.workflow,
        (None, ActionKind::Event(_)) => "",
    }
}

/// The action with this name, from the state if that is known, otherwise from the whole workflow.
fn action_of<'w>(workflow: &'w Workflow, state: Option<StateId>, name: &str) -> Option<&'w Action> {
    let in_state = state
        .and_then(|state| workflow.states.get(state.0 as usize))
        .into_iter()
        .flat_map(|state| state.kind.action_lists())
        .flat_map(|list| &workflow[list].actions)
        .map(|id| &workflow[*id]);
    let mut all = in_state.chain(&workflow.actions);
    all.find(|action| name_of(workflow, action) == name)
}

/// The function that an action calls, if a scenario has to mock it.
fn function_of<'w>(
    workflow: &'w Workflow,
    state: Option<StateId>,
    name: &str,
) -> Option<(&'w Function, bool)> {
    let ActionKind::Call(call) = &action_of(workflow, state, name)?.kind else {
        return None;
    };
    let function = &workflow[call.function];
    (!is_sysout(function)).then_some((function, call.detached))
}

/// The calls, by scope and number, with which an instance started sub-workflows.
pub fn subflows(one: &Recorded, workflow: &Workflow) -> Vec<(ScopeId, u32)> {
    let mut states: BTreeMap<ScopeId, StateId> = BTreeMap::new();
    let mut found = Vec::new();
    for entry in &one.history {
        match &entry.event {
            Event::StateEntered { state, .. } => {
                states.insert(entry.scope.clone(), *state);
            }
            Event::ActionStarted {
                action,
                call,
                in_state,
                ..
            } => {
                let state = named(workflow, in_state.as_deref());
                let state = state.or_else(|| state_of(&states, &entry.scope));
                let action = action_of(workflow, state, action);
                if action.is_some_and(|action| matches!(action.kind, ActionKind::Subflow(_))) {
                    found.push((entry.scope.clone(), *call));
                }
            }
            _ => {}
        }
    }
    found
}

/// Whether events created the instance: then they precede its first state.
fn is_by_event(one: &Recorded, workflow: &Workflow) -> bool {
    let start = workflow[Workflow::ROOT].start;
    if !matches!(workflow[start].kind, StateKind::Event(_)) || one.header.input != Data::object() {
        return false;
    }
    let root = |entry: &&HistoryEntry| entry.scope.is_root();
    let entered =
        one.history.iter().filter(root).find_map(|entry| {
            matches!(entry.event, Event::StateEntered { .. }).then_some(entry.at)
        });
    let consumed =
        one.history.iter().filter(root).find_map(|entry| {
            matches!(entry.event, Event::EventConsumed { .. }).then_some(entry.at)
        });
    entered.is_some() && entered == consumed
}

/// Placeholder values for a definition's secrets, with the structure that its expressions expect.
pub fn secrets(workflow: &Workflow, document: &str) -> Data {
    let mut secrets = Data::object();
    for name in &workflow.secrets {
        secrets.set(name, Data::string(CUT));
    }
    for (at, word) in document.match_indices("$SECRETS.") {
        let path = &document[at + word.len()..];
        let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let end = path.find(|c| !part(c)).unwrap_or(path.len());
        let parts: Vec<&str> = path[..end]
            .split('.')
            .filter(|part| !part.is_empty())
            .collect();
        if parts
            .first()
            .is_some_and(|name| secrets.get(name).is_some())
        {
            secrets = with(secrets, &parts);
        }
    }
    secrets
}

fn with(data: Data, path: &[&str]) -> Data {
    let Some((first, rest)) = path.split_first() else {
        return match data.is_object() {
            true => data,
            false => Data::string(CUT),
        };
    };
    let mut data = if data.is_object() {
        data
    } else {
        Data::object()
    };
    let below = data.get(first).unwrap_or(Data::NULL);
    data.set(first, with(below, rest));
    data
}
