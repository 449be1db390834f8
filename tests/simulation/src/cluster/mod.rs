//! Several processes over one store, with one seeded scheduler, one virtual clock, and faults.
//!
//! Each process is a worker and a coordinator: the real driver, and the real loops for timers, schedules and the
//! reconciler. Faults happen in the first phase. Then they stop, and everything must end within a limit. Unlike in
//! [`crate::rig`], faults take time here, so only cases are run whose outcome doesn't depend on seconds, and times are
//! not compared.
//!
//! The store's wrapper and the outside world write a log, which [`check`] evaluates. It shares no knowledge with the
//! code that it checks.

pub mod check;
pub mod faults;
pub mod names;
pub mod outside;
pub mod process;
pub mod queue;
pub mod run;
pub mod store;

pub use faults::{Faults, Mutant};
pub use run::{Plan, Planned, Trace, run};
