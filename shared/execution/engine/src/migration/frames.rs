//! The tasks around the current one, in another version.
//!
//! A task that has begun must be of the same kind there, and its variables must have the same names. What it has kept must
//! be enough for the expressions of the new version. A task that listens must wait for the same events.

use swirl_model::event::{Command, Subscription};
use swirl_model::scope::{Extended, Extending, Frame, FramePart, ListenRun, Scope};
use swirl_model::workflow::{Consume, Listen, StateId, StateKind};

use super::{Fits, Migration, misfit};

impl Migration<'_> {
    pub(super) fn frames(&self, scope: &Scope) -> Fits<Vec<Frame>> {
        if self.continues_elsewhere(scope) {
            return Ok(Vec::new());
        }
        scope.frames.iter().map(|frame| self.frame(frame)).collect()
    }

    fn frame(&self, frame: &Frame) -> Fits<Frame> {
        let state = self.state_of_kind(frame.state)?;
        let (was, is) = (
            &self.from.workflow[frame.state].kind,
            &self.to.workflow[state].kind,
        );
        if variables(was) != variables(is) {
            return misfit(format_args!(
                "the variables of task '{}' have other names in {}",
                self.named(frame.state),
                self.version()
            ));
        }
        if let (FramePart::Handler, StateKind::Try(attempt)) = (frame.part, is)
            && attempt.handler.is_none()
        {
            return misfit(format_args!(
                "task '{}' handles an error, which it does not in {}",
                self.named(frame.state),
                self.version()
            ));
        }
        let extending = match &frame.extending {
            Some(extending) => Some(Extending {
                way: extending.way.map(|way| self.way(way)).transpose()?,
                data: extending.data.clone(),
            }),
            None => None,
        };
        let listen = match (&frame.listen, was, is) {
            (Some(run), StateKind::Listen(was), StateKind::Listen(is)) => {
                Some(Box::new(self.listen_run(frame.state, run, was, is)?))
            }
            _ => None,
        };
        Ok(Frame {
            state,
            task: self.task_run(frame.state, state, &frame.task)?.into(),
            extending,
            listen,
            ..frame.clone()
        })
    }

    fn listen_run(
        &self,
        id: StateId,
        run: &ListenRun,
        was: &Listen,
        is: &Listen,
    ) -> Fits<ListenRun> {
        let consumes = |was: &Consume, is: &Consume| {
            let mut filters = was.filters.iter().zip(&is.filters);
            was.all == is.all
                && was.filters.len() == is.filters.len()
                && filters.all(|(was, is)| {
                    was.is_tested() == is.is_tested()
                        && self.pair().is_same_event(was.event, is.event)
                })
        };
        let stops = match (was.stops(), is.stops()) {
            (None, None) => was.until.is_some() == is.until.is_some(),
            (Some(was), Some(is)) => consumes(was, is),
            _ => false,
        };
        let same = stops
            && was.source.is_some() == is.source.is_some()
            && was.stepwise.is_some() == is.stepwise.is_some()
            && consumes(&was.to, &is.to)
            && was.each.is_some() == is.each.is_some()
            && was.keeps_consumed() == is.keeps_consumed();
        let wait = match &run.wait {
            None => Some(None),
            Some(wait) => self.renumbered(wait).map(|slots| {
                Some(Subscription {
                    wait: wait.wait,
                    slots,
                })
            }),
        };
        match wait.filter(|_| same) {
            Some(wait) => Ok(ListenRun {
                wait,
                ..run.clone()
            }),
            None => misfit(format_args!(
                "task '{}' waits for other events in {}",
                self.named(id),
                self.version()
            )),
        }
    }

    pub(super) fn extended(&self, task: &Extended) -> Fits<Extended> {
        let state = self.state_of_kind(task.state)?;
        Ok(Extended {
            state,
            task: self.task_run(task.state, state, &task.task)?.into(),
            output: task.output.clone(),
        })
    }

    /// Gives the waits of tasks that listen the new numbers of their events, and ends those that are over.
    pub(super) fn settle_listens(&self, old: &Scope, new: &Scope, commands: &mut Vec<Command>) {
        let waits = |scope: &Scope| -> Vec<Subscription> {
            let frames = scope.frames.iter();
            let runs = frames.filter_map(|frame| frame.listen.as_ref()?.wait.clone());
            runs.collect()
        };
        let new = waits(new);
        for wait in waits(old) {
            let found = new.iter().find(|other| other.wait == wait.wait);
            if found == Some(&wait) {
                continue;
            }
            commands.push(Command::Unsubscribe(wait.wait));
            commands.extend(found.cloned().map(Command::Subscribe));
        }
    }
}

/// The names of the variables that a task gives the tasks inside.
fn variables(kind: &StateKind) -> Vec<&str> {
    match kind {
        StateKind::For(each) => vec![&each.item, &each.index],
        StateKind::Try(attempt) => vec![&attempt.variable],
        StateKind::Listen(listen) => match &listen.each {
            Some(each) => vec![&each.item, &each.index],
            None => Vec::new(),
        },
        _ => Vec::new(),
    }
}
