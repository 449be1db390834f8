//! Permissions: roles, and static tokens, which are stored as hashes. This crate does no IO and no HTTP: the
//! configuration reads the tokens, and the coordinator checks requests against them.

mod role;
mod token;

pub use role::{Need, Role, UnknownRole};
pub use token::{Token, TokenEntry, TokenError, check_distinct, draw, hash};
