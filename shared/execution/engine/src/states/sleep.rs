//! Sleep state (0.8, "Sleep State") and `wait` (DSL 1.0, "Wait"): continues after a time.

use swirl_model::scope::{TimerKind, Work};
use swirl_model::workflow::Period;

use super::{At, Kind};
use crate::scope::{Next, Step};

impl Kind for Period {
    fn begin(&self, at: &mut At<'_, '_>) -> Step {
        at.arm(TimerKind::Sleep, self)?;
        at.work(Work::Sleep);
        Ok(Next::Block)
    }
}
