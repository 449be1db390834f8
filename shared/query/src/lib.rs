//! The language for selecting instances, the same for the API, the command line, the console and batches:
//!
//! ```text
//! workflow = "order" and status = faulted and started > -1h and @orderId = "o1"
//! ```
//!
//! [`Query::parse`] reads it and reports the places of errors. [`Query::filter`] is the part that a store can answer
//! from an index; [`Query::matches`] decides about each instance that it gives. [`search`] does both within a bound,
//! and returns the place that it reached: no result is cut silently.

mod compare;
mod error;
mod field;
mod lex;
mod parse;
mod plan;
mod query;
mod search;
mod times;

pub use error::QueryError;
pub use plan::Declared;
pub use query::Query;
pub use search::{Pace, search};

/// The longest query, in bytes.
pub const QUERY_BYTES_MAX: usize = 4096;
