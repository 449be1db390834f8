//! Workflow expressions, compiled once and evaluated within limits.
//!
//! [`Program`] is a compiled expression (jq 1.6, JSONPath, and the part of SpEL, JEXL and CEL that conditions use),
//! [`PathExpr`] is an expression that names a single location, as in `toStateData`, and [`JsonSchema`] validates data.
//! All are evaluated on [`swirl_model::Data`], without IO, without a clock of their own, and within [`Limits`]: a
//! runaway expression ends with an error, and the thread continues (`docs/adr/0003-bounded-expressions.md`).
//!
//! `docs/expressions.md` lists the differences from jq 1.6 for users.

mod alloc;
mod alternatives;
mod base32;
mod compile;
mod compiled;
mod conditions;
mod engine;
mod error;
mod jsonpath;
mod library;
mod meter;
mod natives;
mod order;
mod outputs;
mod path;
mod pattern;
mod precedence;
mod program;
mod regexes;
mod rewrite;
mod schema;
mod simple;
mod text;
mod times;
mod value;
mod walk;
mod weight;

pub use alloc::CountingAllocator;
pub use compiled::Secrets;
pub use error::{CompileError, EvalError, PathError};
pub use library::signatures;
pub use meter::{Limits, spent};
pub use path::PathExpr;
pub use pattern::Pattern;
pub use program::{Env, Program};
pub use schema::{JsonSchema, SchemaError};
pub use weight::PATTERNS_MAX;
