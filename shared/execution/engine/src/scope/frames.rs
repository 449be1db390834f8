//! Frames: the tasks around the current one. A task with a list inside enters the list in the same scope.

use std::sync::Arc;

use swirl_model::Data;
use swirl_model::event::Event;
use swirl_model::scope::{
    Extending, Frame, FramePart, Iteration, Position, Purpose, TimerKind, TryRun,
};
use swirl_model::workflow::{State, StateKind};

use crate::scope::{Check, Ctx};

impl Ctx<'_> {
    /// Whether this is a workflow of tasks.
    pub(crate) fn has_tasks(&self) -> bool {
        self.def.workflow.tasks.is_some()
    }

    /// Puts the current task around what follows.
    ///
    /// # Errors
    /// The tasks around it would hold too much.
    pub(crate) fn push_frame(
        &mut self,
        iteration: Option<Iteration>,
        attempt: Option<TryRun>,
    ) -> Check {
        match self.frame(FramePart::Body) {
            Some(frame) => self.push(Frame {
                iteration,
                attempt,
                ..frame
            }),
            None => Ok(()),
        }
    }

    /// Puts the current task around tasks of an extension.
    ///
    /// # Errors
    /// The tasks around it would hold too much.
    pub(crate) fn push_extension(&mut self, extending: Extending) -> Check {
        match self.frame(FramePart::Extension) {
            Some(frame) => self.push(Frame {
                extending: Some(extending),
                ..frame
            }),
            None => Ok(()),
        }
    }

    fn frame(&self, part: FramePart) -> Option<Frame> {
        let position = self.scope.position()?;
        let task = position.task.as_deref().cloned().unwrap_or_default();
        Some(Frame {
            state: position.state?,
            part,
            task: Arc::new(task),
            params: self.scope.params.len() as u32,
            iteration: None,
            attempt: None,
            extending: None,
            listen: None,
            bytes: 0,
        })
    }

    fn push(&mut self, mut frame: Frame) -> Check {
        let sizes = &self.def.sizes;
        let held = held_bytes(&self.scope.frames, &frame, sizes.held_bytes());
        frame.bytes = held.ok_or_else(|| sizes.too_large_around())?;
        let mut frames = self.scope.frames.clone();
        frames.push(frame);
        self.emit(Event::Frames(frames));
        Ok(())
    }

    /// Changes the innermost frame.
    pub(crate) fn change_frame(&mut self, change: impl FnOnce(&mut Frame)) {
        let mut frames = self.scope.frames.clone();
        if let Some(frame) = frames.last_mut() {
            change(frame);
            self.emit(Event::Frames(frames));
        }
    }

    /// Removes the innermost frame: its task is the current one again.
    pub(crate) fn pop_frame(&mut self) {
        let Some(depth) = self.scope.frames.len().checked_sub(1) else {
            return;
        };
        self.stop_listening(depth);
        let mut frames = self.scope.frames.clone();
        let Some(frame) = frames.pop() else {
            return;
        };
        if let Some(run) = frame.attempt {
            self.disarm_one(run.timer);
        }
        self.see_params(&frame, Vec::new());
        self.emit(Event::Frames(frames));
        self.move_to(position_of(&frame));
    }

    /// Leaves all tasks around the current one, with their waits and variables.
    pub(crate) fn leave_frames(&mut self) {
        if !self.scope.frames.is_empty() {
            self.stop_listening(0);
            self.emit(Event::Frames(Vec::new()));
        }
        if self.has_tasks() && !self.scope.params.is_empty() {
            self.emit(Event::Params(Vec::new()));
        }
    }

    /// Restarts the timeouts of the current task and of those around it.
    pub(crate) fn rearm_tasks(&mut self) -> Check {
        let def = self.def;
        for index in 0..self.scope.frames.len() {
            let state = &def.workflow[self.scope.frames[index].state];
            if let Some(timeout) = &state.timeout {
                let seq = self.arm(TimerKind::Task, timeout)?;
                let mut frames = self.scope.frames.clone();
                Arc::make_mut(&mut frames[index].task).timer = seq;
                self.emit(Event::Frames(frames));
            }
            if let StateKind::Try(attempt) = &state.kind
                && let Some(bound) = attempt
                    .retry
                    .as_ref()
                    .and_then(|retry| retry.attempt.as_ref())
                && self.scope.frames[index].part == FramePart::Body
            {
                let seq = self.arm(TimerKind::Task, bound)?;
                let mut frames = self.scope.frames.clone();
                if let Some(run) = &mut frames[index].attempt {
                    run.timer = seq;
                }
                self.emit(Event::Frames(frames));
            }
        }
        match self.state() {
            Some((_, state)) if self.scope.position().is_some_and(|it| it.entered) => {
                self.arm_task(state)
            }
            _ => Ok(()),
        }
    }

    /// The variables that are visible in a frame's list: those of its surroundings, and its own.
    pub(crate) fn see_params(&mut self, frame: &Frame, own: Vec<(Arc<str>, Data)>) {
        let outside = frame.params as usize;
        if self.scope.params.len() == outside && own.is_empty() {
            return;
        }
        let mut params = self.scope.params.clone();
        params.truncate(outside);
        params.extend(own);
        self.emit(Event::Params(params));
    }

    /// Arms the timeout of the current task.
    pub(crate) fn arm_task(&mut self, state: &State) -> Check {
        let Some(timeout) = &state.timeout else {
            return Ok(());
        };
        let seq = self.arm(TimerKind::Task, timeout)?;
        if let Some(mut position) = self.scope.position().cloned()
            && let Some(run) = &mut position.task
        {
            run.timer = seq;
            self.move_to(position);
        }
        Ok(())
    }
}

/// The size of the data of a new frame and of those around it; `None` if it is above the limit.
fn held_bytes(around: &[Frame], frame: &Frame, limit: usize) -> Option<usize> {
    let around = around.last().map_or(0, |outer| {
        let listen = outer.listen.as_ref();
        outer.bytes + listen.map_or(0, |run| run.held_bytes + run.output_bytes)
    });
    // The item of an iteration is a variable, too.
    let items = frame.iteration.as_ref().map(|iteration| &iteration.items);
    let extending = frame.extending.as_ref().map(|extending| &extending.data);
    let own = [&frame.task.raw, &frame.task.input].map(Option::as_ref);
    let mut own = own.into_iter().chain([items, items, extending]).flatten();
    let left = own.try_fold(limit.checked_sub(around)?, |left, data| data.left_of(left))?;
    Some(limit - left)
}

/// The position of a task around the current one.
pub(crate) fn position_of(frame: &Frame) -> Position {
    Position {
        task: Some(Box::new((*frame.task).clone())),
        ..Position::at(frame.state, Purpose::Main, true)
    }
}
