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
mod apply;
mod compensation;
mod conditions;
mod continuation;
mod ctx;
mod definition;
mod env;
mod errors;
mod eval;
mod finish;
mod fits;
mod flow;
mod forks;
mod handlers;
mod ids;
mod merging;
mod migration;
mod pure;
mod raise;
mod request;
mod retry;
mod room;
mod schema;
mod search;
mod sizes;
mod soft_timeout;
mod start;
mod states;
mod step;
mod validation;
mod waits;

pub use apply::apply;
pub use definition::{Definition, Problem};
pub use env::{Bounds, Env};
pub use forks::branch_scope;
pub use ids::{awaited, chained_id, child_id, continuation_id, derive};
pub use migration::{Migration, Misfit};
pub use request::{Auth, Request, auth_without_instance, pending_request};
pub use retry::{can_edit, can_rerun, can_skip, leaves_outcome_open};
pub use sizes::Sizes;
pub use start::{NewInstance, new_instance};
pub use step::{Outcome, Rejection, step};
pub use swirl_expr::{Limits, spent};
pub use swirl_model::event::{Command, Event, Input};
