//! The web console, at `/console`.
//!
//! It is a client of the HTTP API that runs in the same process: each page is made of what the API answers
//! to the visitor's own token, and each form becomes a request to it. So there is no second way in: roles,
//! checks and refusals are those of the API ([why](../../docs/adr/0018-console-asks-the-api.md)).
//!
//! Pages are whole without script. The one script makes instants readable and looks for news.

mod answer;
mod asking;
mod assets;
mod console;
mod form;
mod pages;
mod routes;
mod sessions;
mod shell;
mod timeline;
mod tree;
mod visitor;
mod words;

pub use asking::CameFrom;
pub use console::Console;
pub use routes::router;
