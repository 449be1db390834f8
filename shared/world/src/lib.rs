//! The whole system in one thread and in virtual time: the real engine, the real driver and the
//! real coordinator over the in-memory backend. `swirl test` and the property tests run in it.
//!
//! Time stands still while there is work to do, then jumps to the next moment at which something is due. At one moment
//! come, in this order: the acts of the plan (events, starts, operator actions), function calls that answer, timers,
//! schedules. The order of everything is fixed, so two runs are the same.

mod clock;
mod record;
mod run;

pub use clock::VirtualClock;
pub use record::{Call, Observed, Recorder};
pub use run::{Act, Ineffective, Mock, Stop, Which, World, WorldError};
