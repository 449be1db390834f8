//! `try` (DSL 1.0, "Try"): tasks whose errors may be caught (`parts/catch.rs`).

use swirl_model::scope::{Exit, Frame, FramePart, TimerKind, TryRun};
use swirl_model::workflow::Try;

use super::{At, Kind};
use crate::scope::{Next, Step};

impl Kind for Try {
    /// Begins the list, for the first time or again.
    fn begin(&self, at: &mut At<'_, '_>) -> Step {
        if at.has_frame() {
            at.note_retry();
        } else {
            at.push_frame(
                None,
                Some(TryRun {
                    since: at.now(),
                    ..TryRun::default()
                }),
            )?;
        }
        if let Some(bound) = self.retry.as_ref().and_then(|retry| retry.attempt.as_ref()) {
            let seq = at.arm(TimerKind::Task, bound)?;
            at.change_frame(|frame| {
                if let Some(run) = &mut frame.attempt {
                    run.timer = seq;
                }
            });
        }
        Ok(Next::Tasks(self.body))
    }

    fn left(&self, at: &mut At<'_, '_>, frame: &Frame) -> Step {
        at.pop_frame();
        match frame.part {
            FramePart::Body | FramePart::Extension => at.done(),
            FramePart::Handler => Ok(Next::Finish(Exit::Handler(at.id, 0))),
        }
    }
}
