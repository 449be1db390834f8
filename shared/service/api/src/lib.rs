//! The contract of the HTTP API: each route as a value ([`Endpoint`]), with the types of its parameters, its body and
//! its answer. The server serves these routes, every client asks them through one trait ([`Client`]), and
//! `openapi.json` is derived from them ([why](../../../../docs/adr/0034-api-as-types.md)).
//!
//! An answer may have more members than this version knows, and words that it doesn't; a request may not.

mod audited;
mod client;
mod endpoint;
mod instant;
mod problem;
mod words;

pub mod actions;
pub mod audit;
pub mod batches;
pub mod changes;
pub mod counts;
pub mod dead_letters;
pub mod definitions;
pub mod diagrams;
pub mod document;
pub mod events;
pub mod history;
pub mod instance;
pub mod overview;
pub mod rehearsals;
pub mod schedules;
pub mod server;
pub mod start;
pub mod system;
pub mod views;

pub use audited::Audit;
pub use client::{Answer, Call, Client, Page, Reply, Request, Text};
pub use document::routes;
pub use endpoint::{Endpoint, KEY_BYTES_MAX, Method, Nothing, PageQuery, Reason, Route, Takes};
pub use instance::{Condition, Instance, Status};
pub use instant::Instant;
pub use problem::{Finding, Members, Problem, Related};

/// The API's OpenAPI document.
pub const OPENAPI: &str = include_str!("../openapi.json");
