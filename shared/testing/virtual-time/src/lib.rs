//! The whole system in one thread and in virtual time: the real engine, the real driver and the
//! real coordinator over the in-memory backend. `swirl test` and the property tests run in it.
//!
//! Time stands still while there is work to do, then jumps to the next moment at which something is due. What is due at
//! the same moment happens in this order: the steps of the plan (events, starts, operator actions), answers of function
//! calls, timers, schedules. Every order is fixed, so two runs are identical.

mod clock;
mod record;
mod run;

pub use clock::VirtualClock;
pub use record::{Call, Observed, Recorder};
pub use run::{
    Act, EXPRESSION_TIME, Ineffective, Mock, NextMessage, Play, Stop, Which, World, WorldError,
};
