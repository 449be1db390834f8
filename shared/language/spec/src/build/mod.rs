//! Shared by the readers of all editions: findings, values with their locations, names, lists in separate documents,
//! the pool of expressions, templates, the checks of the graph, schemas, timeouts, retries, correlation.
//!
//! Nothing here belongs to a single edition. Where editions read a value differently, they set the [`dialect`] in
//! [`ctx::Ctx`]. The methods of `Ctx` can be called from every edition's folder, and are defined only here; those folders
//! have free functions that take `&mut Ctx`. The readers of [`parts`] read what is in the form of 0.8, and the functions
//! in [`earlier`] bring other forms into it.

mod absent;
pub(crate) mod advice;
mod check;
mod condition;
pub(crate) mod context;
mod correlation;
pub(crate) mod ctx;
pub(crate) mod dialect;
pub(crate) mod earlier;
pub(crate) mod elsewhere;
mod errors;
pub(crate) mod expression;
mod findings;
mod flags;
mod flow;
pub(crate) mod given;
mod graph;
mod lists;
pub(crate) mod location;
pub(crate) mod names;
mod own;
pub(crate) mod params;
pub(crate) mod parts;
pub(crate) mod paths;
mod patterns;
mod periods;
mod pool;
pub(crate) mod references;
pub(crate) mod retry;
mod rewrite;
pub(crate) mod rule;
mod schema;
pub(crate) mod schema_files;
mod search;
mod template;
mod timeout;
pub(crate) mod values;
pub(crate) mod written;
