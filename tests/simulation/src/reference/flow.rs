//! From state to state: transitions, ends, errors, compensation.

use std::collections::BTreeMap;

use swirl_model::time::Timestamp;
use swirl_model::workflow::{ErrorSet, ExprId, Next, Period, Produce, StateId, Then, Workflow};
use swirl_model::{CloudEvent, Data};

use super::data::{Params, eval, template};
use super::world::{Ended, NEVER, World};

/// An error on its way to who handles it.
#[derive(Debug, Clone, PartialEq)]
pub struct Fail {
    pub at: i64,
    pub name: String,
    pub code: Option<String>,
}

impl Fail {
    pub fn named(name: &str) -> Fail {
        Fail {
            at: NEVER,
            name: name.to_owned(),
            code: None,
        }
    }

    pub fn timeout(name: &str, at: i64) -> Fail {
        Fail {
            at,
            code: Some("timeout".to_owned()),
            ..Fail::named(name)
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
    pub iteration: bool,
    /// What an iteration's actions gave.
    pub result: Option<Data>,
    pub merges: Vec<(Option<swirl_model::workflow::PathId>, Data)>,
    /// How often a function was called with the same arguments.
    pub likes: BTreeMap<(String, String), usize>,
    /// When what is under way is given up, and by which error.
    pub deadline: Option<(i64, &'static str)>,
}

impl Path {
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
    pub start_event: Option<CloudEvent>,
    pub had: Vec<String>,
    pub path: Path,
    pub with_parent: Vec<String>,
    pub goes_on_as: Option<(String, Data)>,
    completed: Vec<StateId>,
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
        start_event: Option<CloudEvent>,
    ) -> Instance<'a> {
        Instance {
            world,
            wf,
            start_event,
            had: Vec::new(),
            path: Path {
                data: input,
                ..Path::default()
            },
            with_parent: Vec::new(),
            goes_on_as: None,
            completed: Vec::new(),
        }
    }

    pub fn run(&mut self, at: i64) -> Ended {
        let (mut at, mut state) = (at, self.wf[Workflow::ROOT].start);
        loop {
            match self.pass(state, at) {
                Ok((then, Went::On(next))) => (at, state) = (then, next),
                Ok((then, Went::Ended)) => {
                    return Ended {
                        at: then,
                        result: Ok(self.path.data.clone()),
                    };
                }
                Err(fail) => {
                    return Ended {
                        at: fail.at,
                        result: Err(fail),
                    };
                }
            }
        }
    }

    /// Runs a state and takes the way from there.
    fn pass(&mut self, id: StateId, at: i64) -> Result<(i64, Went), Fail> {
        let (then, way, worked) = self.work(id, at)?;
        if worked && self.wf[id].compensated_by.is_some() {
            self.completed.push(id);
        }
        self.take(way, then)
    }

    /// A state's work, with its filters and handlers; false if it failed and that was handled.
    fn work(&mut self, id: StateId, at: i64) -> Result<(i64, Option<&'a Next>, bool), Fail> {
        let state = &self.wf[id];
        let mut path = std::mem::take(&mut self.path);
        let deadline = state
            .timeout
            .map(|timeout| (after(at, &timeout), "StateTimeout"));
        path.deadline = deadline;
        let ran = self.filtered(id, &mut path, at);
        path.deadline = None;
        self.path = path;
        match ran {
            Ok((then, way)) => Ok((then, way, true)),
            Err(fail) => {
                let fail = fail.at(deadline.map_or(NEVER, |deadline| deadline.0));
                let handler = state
                    .on_errors
                    .iter()
                    .find(|handler| match &handler.errors {
                        ErrorSet::These(list) => list.iter().any(|error| self.is(*error, &fail)),
                        _ => false,
                    });
                let any = state.on_errors.iter().find(|h| h.errors == ErrorSet::Any);
                match handler.or(any) {
                    Some(handler) => match &handler.then {
                        Then::Next(next) => Ok((fail.at, Some(next), false)),
                        _ => Err(fail),
                    },
                    None => Err(fail),
                }
            }
        }
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

    /// By the code, without one by the name (decision 24).
    pub fn is(&self, id: swirl_model::workflow::ErrorId, fail: &Fail) -> bool {
        let def = &self.wf[id];
        match &def.code {
            Some(code) => fail.code.as_ref() == Some(code),
            None => def.name == fail.name,
        }
    }

    fn take(&mut self, way: Option<&'a Next>, at: i64) -> Result<(i64, Went), Fail> {
        let (compensate, produce) = match way {
            Some(Next::Transition(way)) => (way.compensate, &way.produce[..]),
            Some(Next::End(end)) => (end.compensate, &end.produce[..]),
            None => (false, &[][..]),
        };
        let at = if compensate { self.compensate(at)? } else { at };
        let data = self.path.data.clone();
        for produce in produce {
            self.produce(produce, &data, at)?;
        }
        match way {
            Some(Next::Transition(way)) => Ok((at, Went::On(way.to))),
            Some(Next::End(end)) => {
                if let Some(next) = &end.continue_as {
                    let input = match &next.data {
                        Some(data) => template(self.wf, data, &self.path.data, &Params::new())?,
                        None => self.path.data.clone(),
                    };
                    self.goes_on_as = Some((next.workflow.clone(), input));
                }
                Ok((at, Went::Ended))
            }
            None => Ok((at, Went::Ended)),
        }
    }

    /// What was completed is undone, last first (decisions 35 and 52).
    fn compensate(&mut self, mut at: i64) -> Result<i64, Fail> {
        while let Some(state) = self.completed.pop() {
            let Some(mut next) = self.wf[state].compensated_by else {
                continue;
            };
            loop {
                let (then, way, _) = self.work(next, at)?;
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
