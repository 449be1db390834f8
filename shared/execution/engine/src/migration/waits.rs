//! The timers and the waits for events of a scope that is moved to another version.
//!
//! A wait that is the same in the new version stays, and only its events get new numbers. Otherwise the scope waits
//! again according to the new version, also for events that arrived before. An event that arrived for the former wait
//! but hasn't been processed becomes available again. A wait for the answer to a produced event can't change, because
//! the request has been sent already.

use swirl_model::WorkflowError;
use swirl_model::event::{Command, Event, EventMatch, Slot, Subscription};
use swirl_model::instance::Header;
use swirl_model::scope::{Cursor, Position, Role, Scope, Timer, TimerKind, Work};
use swirl_model::workflow::{
    Action, ActionKind, Branch, EventId, StateKind, Template, TextPart, Workflow,
};

use super::names::{Pair, name_of};
use super::{Fits, Migration, Misfit, misfit};
use crate::parts::waits::missing_slots;
use crate::parts::waits::slots_at_start;
use crate::parts::waits::slots_of;
use crate::scope::apply::apply;
use crate::scope::env::Env;
use crate::scope::eval::{View, uses_secrets};

impl Migration<'_> {
    /// Ends the timers that the new version lacks. `scope` is already at its new position.
    pub(super) fn settle_timers(
        &self,
        header: &Header,
        scope: &mut Scope,
        commands: &mut Vec<Command>,
    ) {
        let gone: Vec<u32> = scope
            .timers
            .iter()
            .filter(|timer| !self.has_timer(header, scope, timer))
            .map(|timer| timer.seq)
            .collect();
        for seq in gone {
            apply(scope, &Event::Disarmed(seq));
            commands.push(Command::Disarm(seq));
        }
    }

    fn has_timer(&self, header: &Header, scope: &Scope, timer: &Timer) -> bool {
        let workflow = &self.to.workflow;
        let state = scope.state().map(|id| &workflow[id]);
        let action = scope
            .position()
            .and_then(|position| action_at(workflow, position));
        match timer.kind {
            TimerKind::Workflow => workflow.timeout.is_some() || header.timeout.is_some(),
            TimerKind::Task => self.has_task_timer(scope, timer),
            TimerKind::State => state.is_some_and(|state| state.timeout.is_some()),
            TimerKind::Branch => match scope.role {
                Role::Branch { state, index } => {
                    branch(workflow, state, |parallel| parallel.awaited(index))
                }
                Role::Apart { state, index } => branch(workflow, state, |parallel| {
                    parallel.branches.get(index as usize)
                }),
                _ => None,
            }
            .is_some_and(|branch| branch.timeout.is_some()),
            TimerKind::Action => action.is_some_and(|action| action.timeout.is_some()),
            TimerKind::ConsumeEvent => action.is_some_and(|action| match &action.kind {
                ActionKind::Event(event) => event.timeout.is_some(),
                _ => false,
            }),
            TimerKind::Event => state.is_some_and(|state| match &state.kind {
                StateKind::Event(event) => event.timeout.is_some(),
                StateKind::Callback(callback) => callback.timeout.is_some(),
                StateKind::SwitchEvents(switch) => switch.timeout.is_some(),
                _ => false,
            }),
            TimerKind::Entry => state.is_some_and(|state| match &state.kind {
                StateKind::Event(event) => {
                    let run = scope
                        .position()
                        .and_then(|position| position.events.as_ref());
                    let mut timers = run.into_iter().flat_map(|run| &run.timers);
                    let entry = timers.find(|entry| entry.seq == timer.seq);
                    let entry = entry.and_then(|own| event.entries.get(usize::from(own.entry)));
                    entry.is_some_and(|entry| entry.timeout.is_some())
                }
                _ => false,
            }),
            // These timers let the scope continue.
            TimerKind::Sleep | TimerKind::RetryDelay | TimerKind::Pause => true,
        }
    }

    pub(super) fn settle_waits(
        &self,
        header: &Header,
        old: &Scope,
        new: &mut Scope,
        commands: &mut Vec<Command>,
    ) -> Fits<()> {
        if let Some(wait) = &old.wait {
            let slots = self.wanted(header, new, wait)?;
            let same = self.renumbered(wait);
            let is_same = same.as_ref().is_some_and(|same| *same == slots);
            commands.push(Command::Unsubscribe(wait.wait));
            let number = match is_same {
                true => wait.wait,
                false => {
                    apply(new, &Event::Seq(new.seq + 1));
                    commands.extend(known_values(&slots));
                    new.seq
                }
            };
            let wait = Subscription {
                wait: number,
                slots,
            };
            apply(new, &Event::Waiting(Some(wait.clone())));
            commands.push(Command::Subscribe(wait));
        }
        if let Some(answer) = &old.answer {
            self.same_answer(new, answer)?;
            let Some(slots) = self.renumbered(answer) else {
                return misfit(format_args!(
                    "the answer that it waits for does not exist in {}",
                    self.version()
                ));
            };
            let wait = answer.wait;
            commands.push(Command::Unsubscribe(wait));
            let answer = Subscription { wait, slots };
            apply(new, &Event::Answering(Some(answer.clone())));
            commands.push(Command::Subscribe(answer));
        }
        Ok(())
    }

    /// Whether the task whose timer it is has such a timeout.
    fn has_task_timer(&self, scope: &Scope, timer: &Timer) -> bool {
        let workflow = &self.to.workflow;
        let own = scope.position();
        let own = own.and_then(|position| Some((position.state?, position.task.as_deref()?)));
        let around = scope.frames.iter().map(|frame| (frame.state, &*frame.task));
        let mut tasks = around.chain(own);
        let mut attempts = scope.frames.iter().filter(|frame| {
            let attempt = frame.attempt.as_ref();
            attempt.is_some_and(|attempt| attempt.timer == timer.seq)
        });
        match (
            tasks.find(|(_, run)| run.timer == timer.seq),
            attempts.next(),
        ) {
            (Some((state, _)), _) => workflow[state].timeout.is_some(),
            (None, Some(frame)) => match &workflow[frame.state].kind {
                StateKind::Try(attempt) => {
                    let retry = attempt.retry.as_ref();
                    retry.is_some_and(|retry| retry.attempt.is_some())
                }
                _ => false,
            },
            (None, None) => true,
        }
    }

    pub(super) fn pair(&self) -> Pair<'_> {
        Pair {
            from: &self.from.workflow,
            to: &self.to.workflow,
        }
    }

    /// The same wait with the new numbers of its events, or `None` if one of the events no longer exists or has
    /// changed.
    pub(super) fn renumbered(&self, wait: &Subscription) -> Option<Vec<Slot>> {
        let slots = wait.slots.iter().map(|slot| {
            let filters = slot.filters.iter().map(|filter| {
                let def = self.names.event(filter.def)?;
                let same = self.pair().is_same_event(filter.def, def);
                same.then(|| EventMatch {
                    def,
                    ..filter.clone()
                })
            });
            Some(Slot {
                slot: slot.slot,
                filters: filters.collect::<Option<_>>()?,
            })
        });
        slots.collect()
    }

    fn same_answer(&self, scope: &Scope, answer: &Subscription) -> Fits<()> {
        let workflow = &self.to.workflow;
        let action = scope
            .position()
            .and_then(|position| action_at(workflow, position));
        let Some(Action {
            kind: ActionKind::Event(event),
            ..
        }) = action
        else {
            return Ok(());
        };
        let mut filters = answer.slots.iter().flat_map(|slot| &slot.filters);
        let same = filters.all(|filter| {
            let found = self.names.event(filter.def);
            found.is_some_and(|found| {
                event.consume == Some(found) && self.pair().is_same_event(filter.def, found)
            })
        });
        if same {
            return Ok(());
        }
        let name = action.map(|action| name_of(workflow, action));
        misfit(format_args!(
            "the answer that action '{}' waits for is another event in {}",
            name.unwrap_or_default(),
            self.version()
        ))
    }

    /// The events that a waiting scope waits for in the new version.
    fn wanted(&self, header: &Header, scope: &Scope, wait: &Subscription) -> Fits<Vec<Slot>> {
        let workflow = &self.to.workflow;
        let filter = |id: EventId| self.filter(header, scope, wait, id);
        let position = match &scope.cursor {
            Cursor::At(position) => position,
            Cursor::Idle => {
                let start = workflow[Workflow::ROOT].start;
                let StateKind::Event(state) = &workflow[start].kind else {
                    return misfit(format_args!(
                        "it is kept active for the events of its starting state, which is none of events in {}",
                        self.version()
                    ));
                };
                let slots = slots_of(state, &[], filter)?;
                return Ok(slots_at_start(state, &scope.start_events, slots));
            }
            Cursor::Fresh | Cursor::Ended => return Ok(Vec::new()),
        };
        if let Some(repeat) =
            action_at(workflow, position).and_then(|action| action.repeat.as_ref())
            && !repeat.stop_on.is_empty()
        {
            let filters = repeat.stop_on.iter().map(|event| filter(*event));
            let filters = filters.collect::<Fits<Vec<_>>>()?;
            let filters = filters.into_iter().flatten().collect();
            return Ok(vec![Slot { slot: 0, filters }]);
        }
        let single = |filter: Option<EventMatch>| {
            vec![Slot {
                slot: 0,
                filters: filter.into_iter().collect(),
            }]
        };
        Ok(match position.state.map(|id| &workflow[id].kind) {
            Some(StateKind::Event(state)) => {
                let run = position.events.as_deref();
                let lapsed = run.map_or(&[][..], |run| &run.lapsed);
                let slots = slots_of(state, lapsed, filter)?;
                let arrived = run.into_iter().flat_map(|run| &run.arrived);
                let arrived = arrived.map(|(def, _)| *def);
                // While the state waits for its retry, it holds those of the attempt before.
                let held = scope.start_events.iter().map(|held| held.def);
                missing_slots(slots, &arrived.chain(held).collect::<Vec<_>>())
            }
            Some(StateKind::Callback(callback)) => single(filter(callback.event)?),
            Some(StateKind::SwitchEvents(switch)) => {
                let filters = switch.conditions.iter().map(|it| filter(it.event));
                let filters = filters.collect::<Fits<Vec<_>>>()?;
                let filters = filters.into_iter().flatten().collect();
                vec![Slot { slot: 0, filters }]
            }
            _ => Vec::new(),
        })
    }

    /// The conditions for an event. An unchanged event keeps the conditions of the existing wait.
    fn filter(
        &self,
        header: &Header,
        scope: &Scope,
        wait: &Subscription,
        id: EventId,
    ) -> Fits<Option<EventMatch>> {
        let mut known = wait.slots.iter().flat_map(|slot| &slot.filters);
        let known = known.find(|filter| {
            self.names.event(filter.def) == Some(id) && self.pair().is_same_event(filter.def, id)
        });
        if let Some(known) = known {
            return Ok(Some(EventMatch {
                def: id,
                ..known.clone()
            }));
        }
        let event = &self.to.workflow[id];
        let mut values = event
            .correlation
            .iter()
            .filter_map(|rule| rule.value.as_ref());
        if values.any(|value| self.reads_secrets(value)) {
            return misfit(format_args!(
                "the correlation of event '{}' in {} reads a secret: only a worker can do that",
                event.name,
                self.version()
            ));
        }
        let env = Env {
            now: self.now,
            ..Env::default()
        };
        let view = View {
            def: self.to,
            env: &env,
            header,
            params: &scope.params,
            last_error: scope.last_error.as_ref(),
            task: Default::default(),
            error: None,
        };
        let fails = |error: WorkflowError| {
            let (name, version) = (&event.name, self.version());
            Misfit(format!(
                "the correlation of event '{name}' in {version} fails: {}",
                error.message
            ))
        };
        view.event_match(id, &scope.data).map_err(fails)
    }

    fn reads_secrets(&self, template: &Template) -> bool {
        let reads =
            |id: swirl_model::workflow::ExprId| uses_secrets(&self.to.programs[id.0 as usize]);
        match template {
            Template::Literal(_) => false,
            Template::Expression(id) | Template::Loose(id, _) => reads(*id),
            Template::Text(parts) => parts.iter().any(|part| match part {
                TextPart::Text(_) => false,
                TextPart::Expression(id) => reads(*id),
            }),
            Template::Array(items) => items.iter().any(|item| self.reads_secrets(item)),
            Template::Object(members) => {
                members.iter().any(|(_, member)| self.reads_secrets(member))
            }
        }
    }
}

fn action_at<'w>(workflow: &'w Workflow, position: &Position) -> Option<&'w Action> {
    let Work::List(run) = &position.work else {
        return None;
    };
    let actions = &workflow[run.list].actions;
    let id = actions.get(usize::from(run.index))?;
    Some(&workflow[*id])
}

fn branch<'w>(
    workflow: &'w Workflow,
    state: swirl_model::workflow::StateId,
    find: impl FnOnce(&'w swirl_model::workflow::Parallel) -> Option<&'w Branch>,
) -> Option<&'w Branch> {
    match &workflow[state].kind {
        StateKind::Parallel(parallel) => find(parallel),
        _ => None,
    }
}

/// Events must have the instance's correlation values from now on.
fn known_values(slots: &[Slot]) -> Option<Command> {
    let filters = slots.iter().flat_map(|slot| &slot.filters);
    let values = filters.flat_map(|filter| &filter.correlation);
    let known: Vec<_> = values
        .filter_map(|(name, value)| Some((name.clone(), value.clone()?)))
        .collect();
    (!known.is_empty()).then_some(Command::Correlate(known))
}
