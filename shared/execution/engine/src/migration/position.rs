//! The position of a scope in another version.

use swirl_model::scope::{
    ActionStep, Cursor, EventRun, Exit, ForkRun, ListRun, Position, Purpose, Retried, RetriedBy,
    Role, Scope, Work,
};
use swirl_model::workflow::{
    Action, ActionId, ActionKind, ListId, Next, State, StateId, StateKind, Then,
};

use super::names::name_of;
use super::{Fits, Migration, Misfit, misfit};
use crate::definition::flow::next_of;

impl Migration<'_> {
    pub(super) fn cursor(&self, scope: &Scope) -> Fits<Cursor> {
        if let Some(at) = self.at
            && self.continues_elsewhere(scope)
        {
            let is = &self.to.workflow[at];
            return Ok(Cursor::At(Position {
                state: Some(at),
                purpose: Purpose::Main,
                entered: !has_entry(is),
                work: Work::Begin,
                events: None,
                attempts: Vec::new(),
                task: None,
            }));
        }
        Ok(match &scope.cursor {
            Cursor::At(position) => Cursor::At(self.position(scope.role, position)?),
            other => other.clone(),
        })
    }

    /// Whether the scope continues at another state, without anything that it has begun.
    pub(super) fn continues_elsewhere(&self, scope: &Scope) -> bool {
        self.at.is_some() && scope.id.is_root() && scope.fault.is_some() && has_no_branches(scope)
    }

    fn position(&self, role: Role, position: &Position) -> Fits<Position> {
        let begins = matches!(position.work, Work::Begin | Work::Retry);
        let state = match position.state {
            Some(id) if begins => Some(self.state(id)?),
            Some(id) => Some(self.state_of_kind(id)?),
            None => None,
        };
        let states = position.state.zip(state).map(|(was, is)| {
            let (from, to) = (&self.from.workflow, &self.to.workflow);
            (&from[was], &to[is])
        });
        let events = match (&position.events, position.state) {
            (Some(run), Some(id)) if !begins => Some(Box::new(self.event_run(id, run)?)),
            _ => None,
        };
        let work = match &position.work {
            Work::List(run) => Work::List(self.list_run(role, run)?),
            Work::Fork(run) => Work::Fork(self.fork_run(position.state, run)?),
            Work::Finish { way, from } => Work::Finish {
                way: self.way(*way)?,
                from: *from,
            },
            Work::Continue { call, way, input } => Work::Continue {
                call: *call,
                way: self.continuation(*way)?,
                input: input.clone(),
            },
            other @ (Work::Begin | Work::Sleep | Work::Events | Work::Retry) => other.clone(),
        };
        // The former version had nothing to do before the state's work, but the new one may.
        let entered = match states {
            // Whether a task has been entered doesn't depend on what it has to do then.
            Some((was, is)) if begins && was.task.is_none() && !has_entry(was) => !has_entry(is),
            _ => position.entered,
        };
        Ok(Position {
            state,
            purpose: position.purpose,
            entered,
            work,
            events,
            attempts: position
                .attempts
                .iter()
                .filter(|retried| states.is_none_or(|(_, is)| has_rule(is, retried)))
                .cloned()
                .collect(),
            task: match (&position.task, position.state.zip(state)) {
                (Some(run), Some((was, is))) => Some(Box::new(self.task_run(was, is, run)?)),
                _ => None,
            },
        })
    }

    /// An event state with `keepActive` counts arrived events by entry, so the entries must be the same.
    fn same_entries(&self, id: StateId) -> Fits<()> {
        let found = self.state_of_kind(id)?;
        let (StateKind::Event(was), StateKind::Event(is)) =
            (&self.from.workflow[id].kind, &self.to.workflow[found].kind)
        else {
            return Ok(());
        };
        let same = was.exclusive == is.exclusive
            && was.entries.len() == is.entries.len()
            && was.entries.iter().enumerate().all(|(index, entry)| {
                let place = self.names.entry(id, index as u16);
                let other = place.and_then(|place| is.entries.get(usize::from(place)));
                other.is_some_and(|other| other.wait == entry.wait)
            });
        match same {
            true => Ok(()),
            false => Err(self.other_events(id)),
        }
    }

    fn event_run(&self, id: StateId, run: &EventRun) -> Fits<EventRun> {
        self.same_entries(id)?;
        let entries = |all: &[u16]| {
            let all = all.iter().map(|entry| self.entry(id, *entry));
            all.collect::<Fits<Vec<u16>>>()
        };
        let mut new = run.clone();
        for (def, _) in &mut new.arrived {
            *def = self.event(swirl_model::workflow::EventId(*def))?.0;
        }
        new.done = entries(&run.done)?;
        new.lapsed = entries(&run.lapsed)?;
        new.running = run.running.map(|entry| self.entry(id, entry)).transpose()?;
        for fork in &mut new.forks {
            fork.entry = self.entry(id, fork.entry)?;
        }
        for timer in &mut new.timers {
            timer.entry = self.entry(id, timer.entry)?;
        }
        Ok(new)
    }

    fn fork_run(&self, state: Option<StateId>, run: &ForkRun) -> Fits<ForkRun> {
        let list = match (run.list, state) {
            (Some(list), _) => {
                self.same_actions(list)?;
                Some(self.list(list)?)
            }
            (None, Some(state)) => {
                self.same_branches(state)?;
                None
            }
            (None, None) => None,
        };
        Ok(ForkRun {
            list,
            ..run.clone()
        })
    }

    fn list_run(&self, role: Role, run: &ListRun) -> Fits<ListRun> {
        let list = self.list(run.list)?;
        let new_end = self.to.workflow[list].actions.len() as u16;
        let is_single = matches!(role, Role::Action { .. } | Role::Detached { .. });
        if run.index >= run.end {
            let end = if is_single {
                self.action(run.list, run.end.saturating_sub(1))?.1 + 1
            } else {
                new_end
            };
            return Ok(ListRun {
                list,
                index: end,
                end,
                ..run.clone()
            });
        }
        let (list, index) = self.action(run.list, run.index)?;
        let was = &self.from.workflow[self.from.workflow[run.list].actions[usize::from(run.index)]];
        let is = &self.to.workflow[self.to.workflow[list].actions[usize::from(index)]];
        self.same_step(run, was, is)?;
        let end = if is_single { index + 1 } else { new_end };
        let keeps_target = target(&self.from.workflow, was) == target(&self.to.workflow, is);
        Ok(ListRun {
            list,
            index,
            end,
            key: run.key.filter(|_| keeps_target),
            child: run.child.filter(|_| keeps_target),
            retried: run
                .retried
                .iter()
                .filter(|retried| match retried.by {
                    RetriedBy::ActionHandler(index) => usize::from(index) < is.on_errors.len(),
                    RetriedBy::StateHandler(_) | RetriedBy::StateRule(_) => true,
                })
                .cloned()
                .collect(),
            ..run.clone()
        })
    }

    /// Checks that the action still does the same kind of work as the work in progress.
    fn same_step(&self, run: &ListRun, was: &Action, is: &Action) -> Fits<()> {
        let what = match run.step {
            ActionStep::Call { .. } => "calls a function",
            ActionStep::Event { .. } => "waits for an event",
            ActionStep::Subflow { .. } => "waits for a sub-workflow",
            _ => return Ok(()),
        };
        let waits = match &is.kind {
            ActionKind::Call(call) => !call.detached,
            ActionKind::Event(event) => !event.detached && event.consume.is_some(),
            ActionKind::Subflow(subflow) => !subflow.detached,
            ActionKind::Expression { .. } => false,
        };
        if waits && target(&self.from.workflow, was) == target(&self.to.workflow, is) {
            return Ok(());
        }
        misfit(format_args!(
            "action '{}' of {} {what}, and does something else in {}",
            name_of(&self.from.workflow, was),
            self.place_of_list(run.list),
            self.version()
        ))
    }

    /// Finds a way out of a state.
    pub(super) fn way(&self, way: Exit) -> Fits<Exit> {
        let found = self.find_way(way)?;
        if let Some(found) = found {
            let was = next_of(&self.from.workflow, way);
            let is = next_of(&self.to.workflow, found);
            if was.is_none() || is.is_some() {
                return Ok(found);
            }
        }
        let state = match way {
            Exit::State(id)
            | Exit::Handler(id, _)
            | Exit::Condition(id, _)
            | Exit::EventCondition(id, _)
            | Exit::Default(id)
            | Exit::Entry(id, _) => format!("{} '{}'", self.word(), self.named(id)),
            Exit::Action(id, _) => {
                let action = &self.from.workflow[id];
                format!("action '{}'", name_of(&self.from.workflow, action))
            }
        };
        misfit(format_args!(
            "the instance leaves {state} by a transition or an end that {} doesn't have",
            self.version()
        ))
    }

    /// `None`: there is no such way.
    fn find_way(&self, way: Exit) -> Fits<Option<Exit>> {
        let (from, to) = (&self.from.workflow, &self.to.workflow);
        Ok(match way {
            Exit::State(id) => Some(Exit::State(self.state_of_kind(id)?)),
            Exit::Default(id) => Some(Exit::Default(self.state_of_kind(id)?)),
            Exit::Handler(id, index) => {
                let found = self.state(id)?;
                let is_there = match to[found].kind {
                    StateKind::Try(_) => true,
                    _ => usize::from(index) < to[found].on_errors.len(),
                };
                is_there.then_some(Exit::Handler(found, index))
            }
            Exit::Entry(id, entry) => {
                Some(Exit::Entry(self.state_of_kind(id)?, self.entry(id, entry)?))
            }
            Exit::Condition(id, index) => {
                let found = self.state_of_kind(id)?;
                let (StateKind::Switch(was), StateKind::Switch(is)) =
                    (&from[id].kind, &to[found].kind)
                else {
                    return Ok(None);
                };
                let name = was.conditions.get(usize::from(index));
                let name = name.and_then(|condition| condition.name.as_ref());
                let place = match name {
                    Some(_) => is.conditions.iter().position(|c| c.name.as_ref() == name),
                    None => Some(usize::from(index)).filter(|at| *at < is.conditions.len()),
                };
                place.map(|place| Exit::Condition(found, place as u16))
            }
            Exit::EventCondition(id, index) => {
                let found = self.state_of_kind(id)?;
                let (StateKind::SwitchEvents(was), StateKind::SwitchEvents(is)) =
                    (&from[id].kind, &to[found].kind)
                else {
                    return Ok(None);
                };
                let Some(condition) = was.conditions.get(usize::from(index)) else {
                    return Ok(None);
                };
                let event = self.event(condition.event)?;
                let place = is.conditions.iter().position(|c| c.event == event);
                place.map(|place| Exit::EventCondition(found, place as u16))
            }
            Exit::Action(id, index) => {
                let (list, place) = self.place_of(id)?;
                let (list, place) = self.action(list, place)?;
                let found: ActionId = to[list].actions[usize::from(place)];
                let handler = to[found].on_errors.get(usize::from(index));
                let leads = handler.is_some_and(|handler| matches!(handler.then, Then::Next(_)));
                leads.then_some(Exit::Action(found, index))
            }
        })
    }

    /// An instance that is currently continuing as another one.
    fn continuation(&self, way: Exit) -> Fits<Exit> {
        let found = self.way(way)?;
        match next_of(&self.to.workflow, found) {
            Some(Next::End(end)) if end.continue_as.is_some() => Ok(found),
            _ => misfit(format_args!(
                "the instance continues as another one, and does not in {}",
                self.version()
            )),
        }
    }

    fn place_of(&self, id: ActionId) -> Fits<(ListId, u16)> {
        let lists = self.from.workflow.lists.iter().enumerate();
        let mut places = lists.filter_map(|(list, actions)| {
            let place = actions.actions.iter().position(|action| *action == id)?;
            Some((ListId(list as u32), place as u16))
        });
        places
            .next()
            .ok_or_else(|| Misfit("its records name an action that belongs to no state".to_owned()))
    }
}

/// The position has no other parts.
fn has_no_branches(scope: &Scope) -> bool {
    scope.apart.is_empty()
        && scope.position().is_none_or(|position| {
            let entries = position.events.iter().flat_map(|run| &run.forks);
            !matches!(position.work, Work::Fork(_) | Work::Continue { .. }) && entries.count() == 0
        })
}

/// Whether the state has anything to do before its work.
fn has_entry(state: &State) -> bool {
    state.input.is_some() || state.input_schema.is_some()
}

/// Whether the rule whose retries are counted still exists.
fn has_rule(state: &State, retried: &Retried) -> bool {
    match retried.by {
        RetriedBy::StateHandler(index) => usize::from(index) < state.on_errors.len(),
        RetriedBy::StateRule(index) => usize::from(index) < state.retries.len(),
        RetriedBy::ActionHandler(_) => true,
    }
}

/// The kind of an action, and the name of its function, event or workflow.
fn target(workflow: &swirl_model::workflow::Workflow, action: &Action) -> (u8, String) {
    match &action.kind {
        ActionKind::Call(call) => (0, workflow[call.function].name.to_string()),
        ActionKind::Event(event) => {
            let awaited = event.consume.map(|id| workflow[id].name.to_string());
            (1, awaited.unwrap_or_default())
        }
        ActionKind::Expression { function, .. } => (2, workflow[*function].name.to_string()),
        ActionKind::Subflow(subflow) => (3, subflow.workflow.clone()),
    }
}
