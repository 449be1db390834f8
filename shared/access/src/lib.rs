//! Permissions: roles, and static tokens that are known by their hash. No IO, no HTTP: the
//! configuration reads entries, and the coordinator checks requests against them.

mod role;
mod token;

pub use role::{Need, Role, UnknownRole};
pub use token::{Token, TokenEntry, TokenError, check_distinct, draw, hash};
