//! State that all pages share.

use std::sync::Arc;

use axum::Router;

use crate::hints::Hints;
use crate::sessions::Sessions;

/// State that all pages share.
#[derive(Clone)]
pub struct Console {
    pub(crate) api: Router,
    pub(crate) sessions: Arc<Sessions>,
    /// Browsers must send the cookie over TLS only.
    pub(crate) secure: bool,
    /// Random, drawn at the start: it authenticates the forms of our pages.
    key: Arc<[u8; 32]>,
    pub(crate) hints: Arc<Hints>,
}

impl Console {
    /// Over the router of the API. `secure`: it is reached over TLS. `is_stopping`: whether the server is about to stop.
    ///
    /// # Errors
    /// Random numbers are unavailable.
    pub fn new(
        api: Router,
        secure: bool,
        is_stopping: Arc<dyn Fn() -> bool + Send + Sync>,
    ) -> Result<Console, String> {
        let mut key = [0u8; 32];
        getrandom::fill(&mut key).map_err(|error| error.to_string())?;
        Ok(Console {
            api,
            sessions: Arc::default(),
            secure,
            key: Arc::new(key),
            hints: Arc::new(Hints::new(is_stopping)),
        })
    }

    /// The token that each form of this browser must contain.
    pub(crate) fn csrf(&self, name: &str) -> String {
        blake3::keyed_hash(&self.key, name.as_bytes())
            .to_hex()
            .to_string()
    }
}
