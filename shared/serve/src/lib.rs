//! Connections of clients, for every process that serves HTTP: so many, so many of one address, none that says
//! nothing, takes its time with a request's headers, or doesn't read its answer.

mod connections;
mod headers;
mod patience;
mod room;

pub use connections::{Acceptor, Connections, Limits, Peer};
pub use room::connections_max;
