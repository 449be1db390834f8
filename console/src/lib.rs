//! The web console, at `/console`.
//!
//! It is a client of the HTTP API that runs in the same process: each page is made from the API's answers
//! to the visitor's own token, and each form becomes a request to it. So there is no second way in: roles,
//! checks and refusals are those of the API ([why](../../docs/adr/0018-console-asks-the-api.md)).
//!
//! Pages are complete without scripts. One script makes instants readable, and reloads a page when something has
//! changed: pages of instances get hints, other pages look every few seconds. The editor of definitions has another.

mod answer;
mod asking;
mod assets;
mod console;
mod difference;
mod form;
mod hints;
mod multipart;
mod naming;
mod pages;
mod pending;
mod provider;
mod routes;
mod scale;
mod sessions;
mod shell;
mod spoken;
mod timeline;
mod tree;
mod visitor;
mod words;

pub use asking::{CameFrom, Follows};
pub use console::Console;
pub use hints::VIEWERS_MAX;
pub use provider::{Flow, Granted, Provider, ProviderError, Renewal, Returned};
pub use routes::router;
