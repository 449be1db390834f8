//! Connections of clients, for every process that serves HTTP. Their number is limited, in all and for each address. A
//! client that sends nothing, takes too long with a request's headers or doesn't read its answer is disconnected.

mod connections;
mod headers;
mod room;
mod write_timeout;

pub use connections::{Acceptor, Connections, Limits, Peer};
pub use room::connections_max;
