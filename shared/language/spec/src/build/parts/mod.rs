//! Readers of the parts of a definition, in the form of 0.8. Rules bring the forms of other editions into it; readers of
//! other editions use those whose parts are the same.

mod action;
mod auth;
mod call;
mod earlier;
mod error;
mod event;
mod event_ref;
mod filter;
mod function;
mod identity;
mod start;
mod state;
pub(crate) mod states;
#[cfg(test)]
pub(crate) mod testing;
mod transition;
pub(crate) mod workflow;

pub(crate) use function::{format_of, is_operation_of};
