//! The pure workflow engine.
//!
//! [`step`] gives a scope an [`Input`] and returns an [`Outcome`]: events, which have been applied to the scope and are
//! kept as its history, and commands, which the driver carries out after the commit. A step runs until the scope blocks
//! on a call, a wait or a fork, or ends.
//!
//! **Invariants.** There is no clock, no randomness, no environment, no IO and no async code: time, results and secrets
//! are arguments. All ids are derived. Only [`apply`] changes the scope, and it is total. An input that arrives twice,
//! late or after its wait has ended is rejected; this is not an error.

mod actions;
mod definition;
mod migration;
mod parts;
mod patch;
mod scope;
mod states;
mod step;

pub use definition::sizes::Sizes;
pub use definition::{Definition, Problem};
pub use migration::{Migration, Misfit};
pub use parts::forks::branch_scope;
pub use parts::request::{
    Auth, Request, arguments_without_instance, auth_without_instance, pending_request,
};
pub use parts::retries::leaves_outcome_open;
pub use patch::Patch;
pub use scope::apply::apply;
pub use scope::env::{Bounds, Env};
pub use scope::ids::{awaited, chained_id, child_id, continuation_id, derive};
pub use scope::instance::{NewInstance, new_instance};
pub use scope::rejection::Rejection;
pub use step::operator::{can_edit, can_rerun, can_skip};
pub use step::{Outcome, step};
pub use swirl_expr::{Limits, spent};
pub use swirl_model::event::{Command, Event, Input};
