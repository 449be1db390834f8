//! Several processes over one store, under one seeded scheduler and one virtual clock, with faults.
//!
//! Each process is a worker and a coordinator: the real driver and the real loops for timers,
//! schedules and the reconciler. In the first phase faults happen; then they stop, and everything
//! must end within a bound. Unlike in [`crate::rig`] faults cost time here, so only cases are run
//! whose outcome doesn't depend on seconds; times are not compared.
//!
//! The store's wrapper and the outside world write a log, which is judged in [`check`]. That knows
//! nothing of the code that it judges.

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
