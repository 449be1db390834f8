//! DSL 1.0: random documents, and an interpreter of them.
//!
//! The interpreter is written from the language's text and `docs/editions/1.0.md`. It reads the documents itself, and
//! shares only jq and CloudEvents with what is under test: not the reader, not the canonical workflow, not the engine.
//! Tasks are `async` functions from data to data over a virtual clock (`clock`), so concurrency is that of futures,
//! and what is cancelled is dropped.
//!
//! If an outcome depends on the order of things that are closer to each other than faults may move them, the
//! interpreter says so ([`Expected::undecided`]), and nothing is compared.

mod clock;
mod events;
mod failures;
mod flow;
pub mod generate;
mod kinds;
mod problem;
mod shapes;
mod values;
mod world;

pub use problem::shown;
pub use world::{Expected, expected};

/// How far faults in a cluster move what happens.
pub const CLUSTER_MARGIN_MS: i64 = 4 * 60_000;

/// In a single process faults take no time, so only the order within a millisecond is open.
pub const MOMENT_MARGIN_MS: i64 = 1;
