//! The timers of a scope.

use swirl_model::WorkflowError;
use swirl_model::event::{Command, Event};
use swirl_model::scope::{Timer, TimerKind};
use swirl_model::time::Timestamp;
use swirl_model::workflow::Period;

use crate::scope::Ctx;

/// A shorter sleep doesn't count as a wait.
const BRIEF_MS: i64 = 10;

impl Ctx<'_> {
    /// Returns the number of the timer.
    pub fn arm(&mut self, kind: TimerKind, after: &Period) -> Result<u32, WorkflowError> {
        let after = self.view().period(after, &self.scope.data)?;
        Ok(self.arm_at(kind, after.add_to(self.now())))
    }

    pub fn arm_at(&mut self, kind: TimerKind, due: Timestamp) -> u32 {
        let seq = self.seq();
        let timer = Timer { seq, kind, due };
        let sleeps = matches!(
            kind,
            TimerKind::Sleep | TimerKind::RetryDelay | TimerKind::Pause
        );
        if sleeps && due.0.saturating_sub(self.now().0) < BRIEF_MS {
            self.emit(Event::Brief(seq));
        }
        self.emit(Event::Armed(timer));
        self.command(Command::Arm(timer));
        seq
    }

    pub fn disarm_one(&mut self, seq: u32) {
        if self.scope.timers.iter().any(|timer| timer.seq == seq) {
            self.emit(Event::Disarmed(seq));
            self.command(Command::Disarm(seq));
        }
    }

    pub fn disarm(&mut self, which: impl Fn(TimerKind) -> bool) {
        let found: Vec<u32> = self
            .scope
            .timers
            .iter()
            .filter(|t| which(t.kind))
            .map(|t| t.seq)
            .collect();
        for seq in found {
            self.emit(Event::Disarmed(seq));
            self.command(Command::Disarm(seq));
        }
    }

    pub fn is_armed(&self, kind: TimerKind) -> bool {
        self.scope.timers.iter().any(|timer| timer.kind == kind)
    }
}
