//! The server of the API: connections, TLS, and a stop that lets running requests finish.

mod connections;
mod tls;

pub use connections::Server;
pub use swirl_serve::Peer;
pub use tls::{Tls, TlsError};
