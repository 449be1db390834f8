//! The surroundings of a step.

use swirl_model::Data;
use swirl_model::instance::Room;
use swirl_model::time::Timestamp;

/// The driver's view of the outside at this moment.
#[derive(Debug, Clone, Default)]
pub struct Env {
    pub now: Timestamp,
    /// The values of the definition's secrets, as an object; null if it has none.
    pub secrets: Data,
    /// Less than the definition allows, for callers that cannot wait.
    pub bounds: Option<Bounds>,
    /// The size that the scope may have, if its instance has less left than the definition allows.
    pub room: Option<Room>,
}

/// The limits of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// States or actions; then others are to have a turn.
    pub steps: u32,
    /// The highest reading of this thread's expression meter at the end of the turn.
    pub spent_max: u64,
}

impl Bounds {
    /// `work` is the cost that all expressions of the turn may have together, in steps of their meter: work, not time,
    /// so that the same turn has the same result on any machine.
    pub fn new(steps: u32, work: u64) -> Bounds {
        Bounds {
            steps,
            spent_max: swirl_expr::spent().saturating_add(work),
        }
    }
}
