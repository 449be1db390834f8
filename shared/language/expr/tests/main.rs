//! The tests of expressions.

#![allow(clippy::unwrap_used, reason = "tests")]

#[global_allocator]
static ALLOCATOR: swirl_expr::CountingAllocator = swirl_expr::CountingAllocator::system();

mod backtracking;
mod conditions;
mod corpus;
mod estimate;
mod jsonpath;
mod language;
mod large;
mod outputs;
mod runaway;
mod schema;
