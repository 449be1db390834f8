//! Shared by the readers of all editions: findings, values with their places, names, lists in
//! separate documents, the pool of expressions, templates, the checks of the graph, schemas,
//! timeouts, retries, correlation.
//!
//! Nothing here belongs to one edition. Where editions read a value differently, they set the
//! [`dialect`] that [`ctx::Ctx`] carries. Its methods are inherent and can be called from every
//! edition's folder; only the edition that the others build on (0.8) adds more of them, the other
//! folders have free functions that take `&mut Ctx`.

mod absent;
pub(crate) mod advice;
mod check;
mod condition;
mod context;
mod correlation;
pub(crate) mod ctx;
pub(crate) mod dialect;
pub(crate) mod elsewhere;
pub(crate) mod event_parts;
pub(crate) mod expression;
mod findings;
mod flow;
mod given;
mod graph;
mod lists;
pub(crate) mod location;
pub(crate) mod names;
mod own;
mod pool;
pub(crate) mod references;
pub(crate) mod retry;
pub(crate) mod rewrite;
mod schema;
mod search;
mod template;
mod timeout;
mod values;
mod written;
