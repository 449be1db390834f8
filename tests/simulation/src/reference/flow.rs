//! From state to state: transitions, ends, errors, compensation.

use std::collections::BTreeMap;

use swirl_model::time::Timestamp;
use swirl_model::workflow::{
    ActionId, Body, ErrorSet, ExprId, FlowId, Next, Period, Produce, Schedule, StateId, Template,
    Then, Throw, When, Workflow,
};
use swirl_model::{CloudEvent, Data};

use super::actions::Put;
use super::data::{Params, eval, template};
use super::world::{Ended, NEVER, World};

/// An error on its way to who handles it.
#[derive(Debug, Clone, PartialEq)]
pub struct Fail {
    pub at: i64,
    pub name: String,
    pub code: Option<String>,
    /// An action's handler leads out of the state, by its own way.
    pub left_by: Option<(ActionId, usize)>,
}

impl Fail {
    pub fn named(name: &str) -> Fail {
        Fail {
            at: NEVER,
            name: name.to_owned(),
            code: None,
            left_by: None,
        }
    }

    pub fn timeout(name: &str, at: i64) -> Fail {
        Fail {
            at,
            code: Some("timeout".to_owned()),
            ..Fail::named(name)
        }
    }

    /// Type and status, where errors are described.
    fn described(&self) -> (&'static str, u16) {
        if self.code.as_deref() == Some("timeout") {
            return ("timeout", 408);
        }
        match self.name.as_str() {
            "InputValidation" | "OutputValidation" => ("validation", 400),
            "ExpressionError"
            | "ConditionNotBoolean"
            | "CollectionNotArray"
            | "MergeTypeMismatch"
            | "InvalidValue" => ("expression", 400),
            "SubflowNotFound" => ("configuration", 400),
            "FunctionError" => ("communication", 500),
            _ => ("runtime", 500),
        }
    }

    /// Errors of expressions arise at once.
    pub fn at(mut self, at: i64) -> Fail {
        self.at = self.at.min(at);
        self
    }
}

/// A path of its own: the instance, a branch, an iteration.
#[derive(Debug, Clone, Default)]
pub struct Path {
    pub data: Data,
    pub params: Params,
    /// An iteration of actions alone.
    pub iteration: bool,
    /// What an iteration's actions gave, or what a flow of states came to.
    pub result: Option<Data>,
    pub merges: Vec<Put>,
    /// States that can be compensated, in the order of their ends.
    completed: Vec<StateId>,
    /// How often a function was called with the same arguments.
    pub likes: BTreeMap<(String, String), usize>,
    /// When what is under way is given up, and by which error.
    pub deadline: Option<(i64, &'static str)>,
}

impl Path {
    /// What is done from now on must be done before this; the earlier of two deadlines holds.
    pub fn within(&mut self, deadline: Option<(i64, &'static str)>) {
        self.deadline = match (self.deadline, deadline) {
            (Some(one), Some(other)) => Some(if one.0 <= other.0 { one } else { other }),
            (one, other) => one.or(other),
        };
    }

    /// A copy for what goes on at once.
    pub fn split(&self) -> Path {
        Path {
            data: self.data.clone(),
            params: self.params.clone(),
            ..Path::default()
        }
    }

    pub fn in_time(&self, at: i64) -> Result<i64, Fail> {
        match self.deadline {
            Some((until, name)) if at >= until => Err(Fail::timeout(name, until)),
            _ => Ok(at),
        }
    }
}

pub struct Instance<'a> {
    pub world: &'a World,
    pub wf: &'a Workflow,
    pub start_events: Vec<CloudEvent>,
    pub had: Vec<String>,
    pub path: Path,
    pub with_parent: Vec<String>,
    pub goes_on_as: Option<(String, Data)>,
    /// Branches that nobody waits for, with when they begin.
    pub apart: Vec<(Body, Path, i64)>,
}

pub fn after(at: i64, period: &Period) -> i64 {
    let duration = period.fixed().unwrap_or_default();
    duration.add_to(Timestamp(at + crate::rig::START)).0 - crate::rig::START
}

enum Went {
    On(StateId),
    Ended,
}

impl<'a> Instance<'a> {
    pub fn new(
        world: &'a World,
        wf: &'a Workflow,
        input: Data,
        start_events: Vec<CloudEvent>,
    ) -> Instance<'a> {
        Instance {
            world,
            wf,
            start_events,
            had: Vec::new(),
            path: Path {
                data: input,
                ..Path::default()
            },
            with_parent: Vec::new(),
            goes_on_as: None,
            apart: Vec::new(),
        }
    }

    pub fn run(&mut self, at: i64) -> Ended {
        let mut path = std::mem::take(&mut self.path);
        let ran = self.flow(Workflow::ROOT, &mut path, at);
        let (at, result) = match ran {
            Ok(at) => (at, Ok(path.data)),
            Err(fail) => (fail.at, Err(fail)),
        };
        self.run_apart(at);
        Ended { at, result }
    }

    /// What nobody waits for, as far as it gets until the instance ends: only now is it known when.
    fn run_apart(&mut self, until: i64) {
        while let Some((body, mut path, at)) = self.apart.pop() {
            path.within(Some((until, "Cancelled")));
            let _ = self.body(body, &mut path, at);
        }
    }

    /// The states of a flow, until it ends.
    pub fn flow(&mut self, flow: FlowId, path: &mut Path, at: i64) -> Result<i64, Fail> {
        let wf = self.wf;
        let flow = &wf[flow];
        if let Some(window) = &flow.window
            && !is_open(window, at)
        {
            return Ok(at);
        }
        let (mut at, mut state) = (at, flow.start);
        loop {
            at = path.in_time(at)?;
            let (then, way, worked) = self.work(state, path, at)?;
            if worked && wf[state].compensated_by.is_some() {
                path.completed.push(state);
            }
            match self.take(way, path, then)? {
                (then, Went::On(next)) => (at, state) = (then, next),
                (then, Went::Ended) => return Ok(then),
            }
        }
    }

    /// A state's work, with its filters, retries and handlers; false if it failed and that was handled.
    fn work(
        &mut self,
        id: StateId,
        path: &mut Path,
        at: i64,
    ) -> Result<(i64, Option<&'a Next>, bool), Fail> {
        let state = &self.wf[id];
        let outer = path.deadline;
        let own = state.timeout.map(|timeout| after(at, &timeout));
        path.within(own.map(|until| (until, "StateTimeout")));
        let ran = self.filtered(id, path, at);
        path.deadline = outer;
        let fail = match ran {
            Ok((then, way)) => return Ok((then, way, true)),
            Err(fail) => fail,
        };
        if let Some((action, handler)) = fail.left_by {
            return match &self.wf[action].on_errors[handler].then {
                Then::Next(next) => Ok((fail.at, Some(next), false)),
                _ => Err(fail),
            };
        }
        let fail = fail.at(own.unwrap_or(NEVER));
        let sets = state.on_errors.iter().map(|handler| &handler.errors);
        let Some(index) = self.first_fit(sets, &fail) else {
            return Err(fail);
        };
        match &state.on_errors[index].then {
            Then::Next(next) => Ok((fail.at, Some(next), false)),
            Then::Continue => Ok((fail.at, state.next.as_ref(), false)),
            Then::Rethrow => Err(fail),
            Then::Throw(throw) => Err(thrown(throw, fail)),
        }
    }

    /// The first set that an error fits; the one of all errors is asked last.
    pub fn first_fit<'s>(
        &self,
        sets: impl Iterator<Item = &'s ErrorSet>,
        fail: &Fail,
    ) -> Option<usize> {
        let mut any = None;
        for (index, set) in sets.enumerate() {
            let fits = match set {
                ErrorSet::Any => {
                    any = any.or(Some(index));
                    false
                }
                ErrorSet::These(list) => list.iter().any(|id| self.is(*id, fail)),
                ErrorSet::Except(list) => !list.iter().any(|id| self.is(*id, fail)),
                ErrorSet::Text(text) => fail.name == *text || fail.code.as_ref() == Some(text),
                ErrorSet::When(_) => false,
            };
            if fits {
                return Some(index);
            }
        }
        any
    }

    fn filtered(
        &mut self,
        id: StateId,
        path: &mut Path,
        at: i64,
    ) -> Result<(i64, Option<&'a Next>), Fail> {
        let state = &self.wf[id];
        self.filter(state.input, path, at)?;
        let (then, way) = self.state(id, path, at)?;
        let then = path.in_time(then)?;
        self.filter(state.output, path, then)?;
        Ok((then, way.or(state.next.as_ref())))
    }

    /// What a filter doesn't select leaves the data as it is (decision 11).
    fn filter(&self, filter: Option<ExprId>, path: &mut Path, at: i64) -> Result<(), Fail> {
        if let Some(filter) = filter {
            let data = eval(self.wf, filter, &path.data, &path.params);
            let data = data.map_err(|fail| fail.at(at))?;
            if !data.is_null() {
                path.data = data;
            }
        }
        Ok(())
    }

    /// By its description, else by the code, without one by the name (decision 24).
    pub fn is(&self, id: swirl_model::workflow::ErrorId, fail: &Fail) -> bool {
        let def = &self.wf[id];
        if let Some(problem) = &def.problem {
            let (kind, status) = fail.described();
            let named = |wanted: &String| wanted.rsplit('/').next() == Some(kind);
            return problem.kind.as_ref().is_none_or(named)
                && problem.status.is_none_or(|wanted| wanted == status);
        }
        match &def.code {
            Some(code) => fail.code.as_ref() == Some(code),
            None => def.name == fail.name,
        }
    }

    fn take(
        &mut self,
        way: Option<&'a Next>,
        path: &mut Path,
        at: i64,
    ) -> Result<(i64, Went), Fail> {
        let (compensate, produce) = match way {
            Some(Next::Transition(way)) => (way.compensate, &way.produce[..]),
            Some(Next::End(end)) => (end.compensate, &end.produce[..]),
            None => (false, &[][..]),
        };
        let at = if compensate {
            self.compensate(path, at)?
        } else {
            at
        };
        if let Some(Next::Transition(way)) = way
            && let Some(guard) = way.guard
        {
            let found = eval(self.wf, guard, &path.data, &path.params);
            let found = found.map_err(|fail| fail.at(at))?;
            let empty = found.as_array().is_some_and(<[_]>::is_empty);
            if found.is_null() || found.as_bool() == Some(false) || empty {
                return Err(Fail::named("TransitionRefused").at(at));
            }
        }
        let data = path.data.clone();
        for produce in produce {
            self.produce(produce, &data, at)?;
        }
        match way {
            Some(Next::Transition(way)) => Ok((at, Went::On(way.to))),
            Some(Next::End(end)) => {
                if let Some(name) = &end.fail {
                    return Err(Fail::named(name).at(at));
                }
                if let Some(next) = &end.continue_as {
                    let input = match &next.data {
                        Some(data) => template(self.wf, data, &path.data, &Params::new())?,
                        None => path.data.clone(),
                    };
                    self.goes_on_as = Some((next.workflow.clone(), input));
                }
                Ok((at, Went::Ended))
            }
            None => Ok((at, Went::Ended)),
        }
    }

    /// What was completed is undone, last first (decisions 35 and 52).
    fn compensate(&mut self, path: &mut Path, mut at: i64) -> Result<i64, Fail> {
        while let Some(state) = path.completed.pop() {
            let Some(mut next) = self.wf[state].compensated_by else {
                continue;
            };
            loop {
                let (then, way, _) = self.work(next, path, at)?;
                at = then;
                match way {
                    Some(Next::Transition(way)) => next = way.to,
                    _ => break,
                }
            }
        }
        Ok(at)
    }

    pub fn produce(&mut self, produce: &Produce, data: &Data, at: i64) -> Result<(), Fail> {
        let def = &self.wf[produce.event];
        let evaluated = |value| template(self.wf, value, data, &Params::new());
        let payload = produce.data.as_ref().map(evaluated);
        let payload = payload.transpose().map_err(|fail| fail.at(at))?;
        let mut event = CloudEvent {
            specversion: "1.0".to_owned(),
            id: format!("produced {}", self.world.produced.borrow()),
            source: format!("/swirl/{}", self.wf.id),
            kind: def.kind.clone().unwrap_or_default(),
            attributes: Default::default(),
            data: payload,
        };
        for (name, value) in &produce.attributes {
            let value = evaluated(value).map_err(|fail| fail.at(at))?;
            event.attributes.insert(name.clone(), value);
        }
        self.world.publish(event, at);
        Ok(())
    }
}

/// The error that a handler throws in place of another.
pub fn thrown(throw: &Throw, fail: Fail) -> Fail {
    let kind = match &throw.kind {
        Some(Template::Literal(kind)) => Some(kind.to_text()),
        _ => None,
    };
    let last = kind.as_deref().and_then(|kind| kind.rsplit('/').next());
    let name = throw.name.as_deref().or(last).unwrap_or(&fail.name);
    Fail {
        at: fail.at,
        ..Fail::named(name)
    }
}

/// Windows of generated workflows are long over, or long to go on.
pub fn is_open(window: &Schedule, at: i64) -> bool {
    let When::Window(text) = &window.when else {
        return true;
    };
    let now = Timestamp(at + crate::rig::START).to_string();
    let (from, to) = text.split_once('/').unwrap_or(("", ""));
    from <= now.as_str() && now.as_str() < to
}
