//! The server of the API: connections and their threads, TLS, and a stop that lets running requests finish.

mod connections;
mod threads;
mod tls;

pub use connections::Server;
pub use swirl_http_server::Peer;
pub use tls::{Tls, TlsError};
