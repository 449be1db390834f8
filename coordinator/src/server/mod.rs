//! The server of the API: connections, TLS, and an end that lets running requests finish.

mod connections;
mod patience;
mod room;
mod tls;

pub use connections::{Peer, Server};
pub use tls::{Tls, TlsError};
