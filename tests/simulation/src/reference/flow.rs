//! The way through the states: transitions, ends, errors, compensation.

use std::collections::BTreeMap;

use swirl_model::time::Timestamp;
use swirl_model::workflow::{
    Body, ErrorSet, ExprId, FlowId, Next, Period, Produce, Schedule, Schema, StateId, Then, When,
    Workflow,
};
use swirl_model::{CloudEvent, Data};

use super::actions::{Put, Waited};
use super::data::{Params, eval, template};
use super::errors::{Fail, OF_TASKS, thrown};
use super::tests::{exists, fits};
use super::world::{Ended, NEVER, World};

/// A path of execution: the instance, a branch, an iteration.
#[derive(Debug, Clone, Default)]
pub struct Path {
    pub data: Data,
    pub params: Params,
    /// An iteration with only actions.
    pub iteration: bool,
    /// An iteration of either kind.
    pub in_iteration: bool,
    /// The last unmerged result of an iteration's states, and the data at that time.
    pub plain: Option<(Data, Data)>,
    /// The result of an iteration's actions, or of a flow of states.
    pub result: Option<Data>,
    pub merges: Vec<Put>,
    /// States that can be compensated, in the order of their ends.
    completed: Vec<StateId>,
    /// The number of calls of each function with the same arguments.
    pub likes: BTreeMap<(String, String), usize>,
    /// The time at which the current work is aborted, with its error.
    pub deadline: Option<(i64, &'static str)>,
}

impl Path {
    /// Sets a deadline for all further work. The earlier of two deadlines applies.
    pub fn within(&mut self, deadline: Option<(i64, &'static str)>) {
        self.deadline = match (self.deadline, deadline) {
            (Some(one), Some(other)) => Some(if one.0 <= other.0 { one } else { other }),
            (one, other) => one.or(other),
        };
    }

    /// A copy for concurrent work.
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
    /// Branches that nothing waits for, with the times of their beginning.
    pub apart: Vec<(Body, Path, i64)>,
    /// The number of mismatches with schemas that only warn.
    pub warned: usize,
}

pub fn after(at: i64, period: &Period) -> i64 {
    let duration = period.fixed().unwrap_or_default();
    duration.add_to(Timestamp(at + crate::rig::START)).0 - crate::rig::START
}

/// The outcome of an attempt at a state.
enum Attempt<'a> {
    Again,
    Done(Option<&'a Next>),
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
            warned: 0,
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

    /// Runs the branches that nothing waits for until the instance ends. This is done now because that time is known
    /// only now.
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

    /// The work of a state, with its filters, retries and handlers. Returns false if it failed and the error was
    /// handled.
    fn work(
        &mut self,
        id: StateId,
        path: &mut Path,
        at: i64,
    ) -> Result<(i64, Option<&'a Next>, bool), Fail> {
        let outer = path.deadline;
        let own = self.wf[id].timeout.map(|timeout| after(at, &timeout));
        path.within(own.map(|until| (until, "StateTimeout")));
        let worked = self.attempts_of(id, path, at, own);
        path.deadline = outer;
        worked
    }

    /// Runs a whole state as often as its rules and handlers repeat it (docs/language.md#decision-26). The results of
    /// its actions stay in the data.
    fn attempts_of(
        &mut self,
        id: StateId,
        path: &mut Path,
        at: i64,
        until: Option<i64>,
    ) -> Result<(i64, Option<&'a Next>, bool), Fail> {
        let state = &self.wf[id];
        let mut by_rule = vec![Waited::default(); state.retries.len()];
        let mut by_handler = vec![Waited::default(); state.on_errors.len()];
        let (mut now, mut entered) = (at, false);
        loop {
            let fail = match self.filtered(id, path, now, &mut entered, &mut by_rule) {
                Ok((then, Attempt::Again)) => {
                    now = path.in_time(then)?;
                    continue;
                }
                Ok((then, Attempt::Done(way))) => return Ok((then, way, true)),
                Err(fail) => fail,
            };
            if let Some((action, handler)) = fail.left_by {
                return match &self.wf[action].on_errors[handler].then {
                    Then::Next(next) => Ok((fail.at, Some(next), false)),
                    _ => Err(fail),
                };
            }
            let mut fail = fail.at(until.unwrap_or(NEVER));
            fail.state.get_or_insert_with(|| (&*state.name).into());
            let mut due = None;
            for (rule, waited) in state.retries.iter().zip(&mut by_rule) {
                if self.fits(&rule.errors, &fail, path)? {
                    due = waited.next(&rule.policy, fail.at);
                    break;
                }
            }
            if let Some(due) = due {
                now = path.in_time(due)?;
                continue;
            }
            let sets = state.on_errors.iter().map(|handler| &handler.errors);
            let Some(index) = self.first_fit(sets, &fail, path)? else {
                return Err(fail);
            };
            let handler = &state.on_errors[index];
            let retry = handler.retry.as_ref();
            if let Some(due) = retry.and_then(|it| by_handler[index].next(&it.policy, fail.at)) {
                now = path.in_time(due)?;
                continue;
            }
            let way = match &handler.then {
                Then::Next(next) => Some(next),
                Then::Continue => state.next.as_ref(),
                Then::Rethrow => return Err(fail),
                Then::Throw(throw) => return Err(thrown(throw, fail)),
            };
            if let Some(filter) = &handler.data {
                self.keep(filter, &fail, path)?;
            }
            return Ok((fail.at, way, false));
        }
    }

    fn filtered(
        &mut self,
        id: StateId,
        path: &mut Path,
        at: i64,
        entered: &mut bool,
        by_rule: &mut [Waited],
    ) -> Result<(i64, Attempt<'a>), Fail> {
        let state = &self.wf[id];
        if !std::mem::replace(entered, true) {
            self.filter(state.input, path, at)?;
            self.check(state.input_schema.as_ref(), "InputValidation", path, at)?;
        }
        let (then, way) = self.state(id, path, at)?;
        let then = path.in_time(then)?;
        for (rule, waited) in state.retries.iter().zip(by_rule) {
            let ErrorSet::When(test) = &rule.errors else {
                continue;
            };
            let found = |path: &Path| {
                let mut params = path.params.clone();
                params.push(("data".into(), path.data.clone()));
                eval(self.wf, *test, &path.data, &params)
            };
            if rule.results && exists(&found(path).map_err(|fail| fail.at(then))?) {
                match waited.next(&rule.policy, then) {
                    Some(due) => return Ok((due, Attempt::Again)),
                    None => break,
                }
            }
        }
        self.filter(state.output, path, then)?;
        self.check(state.output_schema.as_ref(), "OutputValidation", path, then)?;
        Ok((then, Attempt::Done(way.or(state.next.as_ref()))))
    }

    /// Data that doesn't fit its schema is an error, or is counted (docs/language.md#decision-19).
    fn check(
        &mut self,
        schema: Option<&Schema>,
        error: &str,
        path: &Path,
        at: i64,
    ) -> Result<(), Fail> {
        match schema {
            Some(schema) if !fits(schema, &path.data) => match schema.fail {
                true => Err(Fail::named(error).at(at)),
                false => {
                    self.warned += 1;
                    Ok(())
                }
            },
            _ => Ok(()),
        }
    }

    /// A filter that selects nothing leaves the data unchanged (docs/language.md#decision-11).
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

    fn take(
        &mut self,
        way: Option<&'a Next>,
        path: &mut Path,
        at: i64,
    ) -> Result<(i64, Went), Fail> {
        let (compensate, produce) = match way {
            Some(Next::Transition(way)) => (way.compensate, &way.produce[..]),
            Some(Next::End(end)) => (end.compensate, &end.produce[..]),
            Some(Next::Leave | Next::Skip) | None => (false, &[][..]),
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
            Some(Next::Leave | Next::Skip) => Err(Fail::named(OF_TASKS).at(at)),
            None => Ok((at, Went::Ended)),
        }
    }

    /// Undoes completed states, last first (docs/language.md#decision-35 and #decision-52).
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

/// The windows of generated workflows are either long over or stay open for long.
pub fn is_open(window: &Schedule, at: i64) -> bool {
    let When::Window(text) = &window.when else {
        return true;
    };
    let now = Timestamp(at + crate::rig::START).to_string();
    let (from, to) = text.split_once('/').unwrap_or(("", ""));
    from <= now.as_str() && now.as_str() < to
}
