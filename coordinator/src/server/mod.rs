//! The server of the API: connections, a thread in reserve, TLS, and a stop that lets running requests finish.

mod connections;
mod reserve;
mod tls;

pub use connections::Server;
pub use swirl_http_server::Peer;
pub use tls::{Tls, TlsError};
