//! Plain data: the canonical workflow, scopes, inputs, commands, events, ids.

pub mod data;

pub use data::Data;
