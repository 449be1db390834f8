//! The query language for instances, used by the API, the command line, the console and batches:
//!
//! ```text
//! workflow = "order" and status = faulted and started > -1h and @orderId = "o1"
//! ```
//!
//! [`Query::parse`] parses a query and reports errors with their positions. [`Query::filter`] is the part that a store
//! can answer from an index; [`Query::matches`] tests each instance that the store returns. [`search`] does both within
//! a limit and returns the position that it reached, so no result is cut silently.

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
