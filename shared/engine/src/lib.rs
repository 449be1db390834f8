//! The pure workflow engine.
//!
//! [`step`] gives a scope an [`Input`] and gets an [`Outcome`]: what happened (events, applied to
//! the scope and kept as history) and the effects (commands, carried out by the driver after the
//! commit). It runs until the scope blocks: a call, a wait, a fork, the end.
//!
//! **Invariants.** No clock, no randomness, no environment, no IO, no async: time, results and
//! secrets come in. All ids are derived. The scope is changed by [`apply`] only, which is total. An
//! input that comes twice, late or after the end of its wait is refused; this is not an error.

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
mod schema;
mod search;
mod sizes;
mod soft_timeout;
mod start;
mod states;
mod step;
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
