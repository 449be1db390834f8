//! The server that a client uses, and its credentials.

use std::path::PathBuf;

use swirl_config::Secret;

/// The parameters of a client.
#[derive(Debug)]
pub struct Target {
    /// The URLs of interchangeable servers.
    pub urls: Vec<String>,
    pub namespace: Option<String>,
    pub token: Option<Secret>,
    pub ca: Option<PathBuf>,
}

impl Target {
    /// A server that requires no token.
    pub fn open(url: &str) -> Target {
        Target {
            urls: vec![url.to_owned()],
            namespace: None,
            token: None,
            ca: None,
        }
    }
}
