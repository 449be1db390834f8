//! State that all pages share.

use std::sync::Arc;

use axum::Router;

use crate::sessions::Sessions;

/// State that all pages share.
#[derive(Clone)]
pub struct Console {
    pub(crate) api: Router,
    pub(crate) sessions: Arc<Sessions>,
    /// Browsers are to send the cookie over TLS only.
    pub(crate) secure: bool,
    /// Drawn at the start: by it the forms of our pages are known.
    key: Arc<[u8; 32]>,
}

impl Console {
    /// Over the router of the API. `secure`: it is reached over TLS.
    ///
    /// # Errors
    /// No random numbers can be had.
    pub fn new(api: Router, secure: bool) -> Result<Console, String> {
        let mut key = [0u8; 32];
        getrandom::fill(&mut key).map_err(|error| error.to_string())?;
        Ok(Console {
            api,
            sessions: Arc::default(),
            secure,
            key: Arc::new(key),
        })
    }

    /// The token that each form of this browser has to hold.
    pub(crate) fn csrf(&self, name: &str) -> String {
        blake3::keyed_hash(&self.key, name.as_bytes())
            .to_hex()
            .to_string()
    }
}
