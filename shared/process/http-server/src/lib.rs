//! Client connections, for every process that serves HTTP. Their number is limited, in total and per address. A client
//! is disconnected if it sends nothing, takes too long to send the headers of a request, sends its body too slowly, or
//! doesn't read its response. The bodies that are incomplete have a limit together, and so have the answers that are not
//! taken.

mod answers;
mod bodies;
mod connections;
mod headers;
mod room;
mod starting;
mod write_timeout;

pub use bodies::{BodyError, BodyLimits};
pub use connections::{Acceptor, Connections, Limits, Peer};
pub use room::connections_max;
pub use starting::starting;
