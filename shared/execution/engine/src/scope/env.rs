//! The environment of a step.

use std::sync::Arc;

use swirl_model::Data;
use swirl_model::instance::Room;
use swirl_model::time::Timestamp;

/// The outside world as the driver sees it at this moment.
#[derive(Debug, Clone, Default)]
pub struct Env {
    pub now: Timestamp,
    /// The values of the definition's secrets, as an object; null if it has none.
    pub secrets: Data,
    /// The `Authorization` header of the call whose answer is an input.
    pub credentials: Option<Arc<str>>,
    /// Limits that are tighter than the definition's, for callers that cannot wait.
    pub bounds: Option<Bounds>,
    /// The maximum size of the scope, if the rest of its instance leaves less than the definition allows.
    pub room: Option<Room>,
}

/// The limits of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The number of states or actions before other scopes get a turn.
    pub steps: u32,
    /// The highest reading of this thread's expression meter at the end of the turn.
    pub spent_max: u64,
}

impl Bounds {
    /// `work` limits the total cost of all expressions in the turn, in steps of the expression meter. It limits work,
    /// not time, so the same turn has the same result on any machine.
    pub fn new(steps: u32, work: u64) -> Bounds {
        Bounds {
            steps,
            spent_max: swirl_expr::spent().saturating_add(work),
        }
    }
}
