//! Determines whether a branch or an iteration would behave the same as a sub-workflow.
//!
//! A sub-workflow is a separate instance: it has its own correlation values, receives its own events, begins with an
//! object, and continues after its parent has failed.

use std::sync::Arc;

use swirl_model::workflow::{
    ActionId, ActionKind, Body, ErrorSet, EventId, FlowId, IterationMode, Language, Next, Period,
    State, StateId, StateKind, Test, Then, Version, Workflow,
};

use super::Assume;
use super::objects::Objects;
use super::ways;

/// A definition before any of its flows became a sub-workflow.
pub(super) struct Whole {
    workflow: Workflow,
    objects: Objects,
    assume: Assume,
}

impl Whole {
    pub fn of(workflow: &Workflow, assume: Assume) -> Whole {
        Whole {
            workflow: workflow.clone(),
            objects: Objects::of(workflow, assume),
            assume,
        }
    }

    /// The reason why this flow of the state can't become a sub-workflow.
    pub fn obstacle(&self, at: StateId, flow: FlowId) -> Option<&'static str> {
        let iterates = matches!(self.workflow[at].kind, StateKind::Foreach(_));
        self.reaches_beyond(flow)
            .or_else(|| self.data(at))
            .or_else(|| self.waits(flow, iterates))
            .or_else(|| self.produces(flow))
            .or_else(|| self.outlives(at, flow))
    }

    /// A part of it that concerns the whole instance or the enclosing state.
    fn reaches_beyond(&self, flow: FlowId) -> Option<&'static str> {
        let workflow = &self.workflow;
        let mut states = workflow.states.iter();
        if states.any(|state| state.compensated_by.is_some()) {
            return Some("states of the definition are compensated");
        }
        let sees_param = |param: &Arc<str>, text: &str| text.contains(&format!("${param}"));
        let mut expressions = workflow.expressions.iter();
        if expressions.any(|source| source.params.iter().any(|it| sees_param(it, &source.text))) {
            return Some("an expression reads the parameter of an iteration as a variable");
        }
        let mut expressions = workflow.expressions.iter();
        if expressions.any(|source| source.text.contains("$WORKFLOW")) {
            return Some("an expression reads $WORKFLOW");
        }
        if !matches!(&workflow.version, Version::Literal(_)) {
            return Some("the definition's version is an expression");
        }
        if workflow.timeout.is_some() {
            return Some("the definition has a timeout, which lets running states finish");
        }
        if workflow[flow].window.is_some() {
            return Some("it begins in a window of time only");
        }
        let mut states = workflow[flow].states.iter();
        match states.all(|id| ends_itself(&workflow[*id])) {
            true => None,
            false => {
                Some("an end in it fails, terminates, compensates or continues as another workflow")
            }
        }
    }

    fn data(&self, at: StateId) -> Option<&'static str> {
        match self.objects.at_work(at) {
            true => None,
            false => Some(
                "the state data may be something other than an object there, and a sub-workflow begins with an object",
            ),
        }
    }

    /// An event finds an instance by its id, by the instance's correlation values, or by its waits, one of which it
    /// continues. A sub-workflow has its own id, values and waits.
    fn waits(&self, flow: FlowId, iterates: bool) -> Option<&'static str> {
        if iterates && !self.assume.objects {
            return Some(
                "a result that is not an object is the iteration's result (does not happen if results are objects: `--assume objects`)",
            );
        }
        match self.awaited(&ways::tree(&self.workflow, flow)).is_empty() {
            true => None,
            false => Some(
                "it waits for an event, and events for the instance don't reach a sub-workflow of it",
            ),
        }
    }

    /// Events that states wait for.
    fn awaited(&self, states: &[StateId]) -> Vec<EventId> {
        let mut all = Vec::new();
        for id in states {
            let state = &self.workflow[*id];
            match &state.kind {
                StateKind::Event(event) => {
                    all.extend(event.entries.iter().flat_map(|entry| &entry.events));
                }
                StateKind::Callback(callback) => all.push(callback.event),
                StateKind::SwitchEvents(switch) => {
                    all.extend(switch.conditions.iter().map(|condition| condition.event));
                }
                _ => {}
            }
            for id in ways::actions(&self.workflow, state) {
                let action = &self.workflow[id];
                if let ActionKind::Event(event) = &action.kind {
                    all.extend(event.consume);
                }
                all.extend(action.repeat.iter().flat_map(|repeat| &repeat.stop_on));
            }
        }
        all
    }

    /// Attributes of a produced event are correlation values of its instance, and its answer may name the instance.
    fn produces(&self, flow: FlowId) -> Option<&'static str> {
        let mut within = ways::tree(&self.workflow, flow).into_iter();
        if !within.any(|id| self.publishes(&self.workflow[id])) {
            return None;
        }
        let mut all = ways::tree(&self.workflow, Workflow::ROOT);
        let mut events = self.workflow.events.iter();
        // Events that start instances don't answer others, unless they are correlated.
        if events.all(|event| event.correlation.is_empty()) {
            let start = self.workflow[Workflow::ROOT].start;
            all.retain(|id| *id != start);
        }
        match self.awaited(&all).is_empty() {
            true => None,
            false => Some(
                "it produces an event, and the answer for which another state waits would be addressed to the sub-workflow",
            ),
        }
    }

    fn publishes(&self, state: &State) -> bool {
        !ways::produced(&self.workflow, state).is_empty()
    }

    /// An error that the state doesn't handle stops the other branches, but wouldn't stop the sub-workflows of a failed
    /// instance.
    fn outlives(&self, at: StateId, flow: FlowId) -> Option<&'static str> {
        let state = &self.workflow[at];
        let within = ways::tree(&self.workflow, flow);
        if handles_all(state) || !within.iter().any(|id| self.has_effects(*id)) {
            return None;
        }
        let branches = ways::branches(state);
        if state.timeout.is_some() || branches.iter().any(|branch| branch.timeout.is_some()) {
            return Some(
                "the state has a timeout, and nothing handles its error: the branch stops then, and a sub-workflow would run on",
            );
        }
        let fails = match &state.kind {
            // Iterations run in sequence, so no other one could continue.
            StateKind::Foreach(foreach) if foreach.mode == IterationMode::Sequential => false,
            StateKind::Foreach(_) => self.may_fail(flow),
            _ => branches.iter().any(|branch| match branch.body {
                Body::Flow(other) => other != flow && self.may_fail(other),
                Body::Actions(list) => !self.workflow[list].actions.is_empty(),
            }),
        };
        match fails {
            true => Some(
                "it stops when another one fails, and nothing handles that error: a sub-workflow would run on, with its calls and events",
            ),
            false => None,
        }
    }

    fn has_effects(&self, id: StateId) -> bool {
        let state = &self.workflow[id];
        let acts = |id: &ActionId| match &self.workflow[*id].kind {
            ActionKind::Call(_) | ActionKind::Subflow(_) => true,
            ActionKind::Event(event) => event.produce.is_some(),
            ActionKind::Expression { .. } => false,
        };
        self.publishes(state) || ways::actions(&self.workflow, state).iter().any(acts)
    }

    /// Whether an error may leave the flow.
    fn may_fail(&self, flow: FlowId) -> bool {
        let mut states = self.workflow[flow].states.iter();
        states.any(|id| self.state_fails(*id))
    }

    fn state_fails(&self, id: StateId) -> bool {
        let state = &self.workflow[id];
        if self.publishes(state) {
            return true;
        }
        if handles_all(state) {
            return false;
        }
        let guarded = |next: &&Next| match next {
            Next::Transition(transition) => transition.guard.is_some(),
            Next::Leave | Next::Skip => false,
            Next::End(end) => end.fail.is_some(),
        };
        let filters = [state.input, state.output].into_iter().flatten();
        let mut filters = filters.map(|id| self.workflow[id].language);
        state.timeout.is_some()
            || state.input_schema.is_some()
            || state.output_schema.is_some()
            || filters.any(|language| language != Language::JsonPath)
            || ways::of_state(state).iter().any(guarded)
            || self.work_fails(id, state)
    }

    fn work_fails(&self, id: StateId, state: &State) -> bool {
        match &state.kind {
            StateKind::Inject(_) => !self.objects.at_work(id),
            StateKind::Operation(list) => !self.workflow[*list].actions.is_empty(),
            StateKind::Sleep(period) => !matches!(period, Period::Fixed(_)),
            StateKind::Switch(switch) => {
                let mut tests = switch.conditions.iter();
                switch.default.is_none() || tests.any(|condition| self.test_fails(&condition.test))
            }
            // Outputs are merged, or become a list.
            StateKind::Parallel(parallel) => {
                let fails = |flow: FlowId| {
                    let states = ways::tree(&self.workflow, flow);
                    let plain = |id: &StateId| {
                        self.objects.at_work(*id) && self.workflow[*id].output.is_none()
                    };
                    self.may_fail(flow) || !(parallel.collect || states.iter().all(plain))
                };
                let flows = ways::flows(state);
                flows.len() < parallel.branches.len()
                    || parallel.at_least.is_some()
                    || parallel
                        .branches
                        .iter()
                        .any(|branch| branch.timeout.is_some())
                    || flows.into_iter().any(fails)
            }
            // Others may: payloads may not fit the data, a collection may not be a list.
            _ => true,
        }
    }

    fn test_fails(&self, test: &Test) -> bool {
        match test {
            Test::Holds(_) => true,
            Test::Exists(id) | Test::Compare { path: id, .. } => {
                self.workflow[*id].language != Language::JsonPath
            }
            Test::All(tests) | Test::Any(tests) => tests.iter().any(|test| self.test_fails(test)),
            Test::Not(test) => self.test_fails(test),
        }
    }
}

/// Whether handlers handle every error of the state and continue.
fn handles_all(state: &State) -> bool {
    let goes_on = |then: &Then| matches!(then, Then::Next(_) | Then::Continue);
    let any = |errors: &ErrorSet| match errors {
        ErrorSet::Any => true,
        ErrorSet::Except(ids) => ids.is_empty(),
        _ => false,
    };
    let handlers = &state.on_errors;
    handlers
        .iter()
        .all(|handler| goes_on(&handler.then) && handler.data.is_none())
        && handlers.iter().any(|handler| any(&handler.errors))
}

fn ends_itself(state: &State) -> bool {
    let stays = |next: &Next| match next {
        Next::Transition(transition) => !transition.compensate,
        Next::Leave | Next::Skip => true,
        Next::End(end) => {
            !end.terminate
                && !end.terminate_parents
                && !end.compensate
                && end.continue_as.is_none()
                && end.fail.is_none()
        }
    };
    ways::of_state(state).into_iter().all(stays)
}
