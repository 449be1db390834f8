//! Client connections, for every process that serves HTTP. Their number is limited, in total and per address. A client
//! is disconnected if it sends nothing, takes too long to send the headers of a request, or doesn't read its response.

mod connections;
mod headers;
mod room;
mod write_timeout;

pub use connections::{Acceptor, Connections, Limits, Peer};
pub use room::connections_max;
