//! Sleep state (0.8, "Sleep State"): continues after a time.

use swirl_model::scope::{TimerKind, Work};
use swirl_model::workflow::Period;

use crate::ctx::{Ctx, Step};

impl Ctx<'_> {
    pub(super) fn begin_sleep(&mut self, duration: &Period) -> Step {
        self.arm(TimerKind::Sleep, duration)?;
        self.work(Work::Sleep);
        Ok(())
    }
}
