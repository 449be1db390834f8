//! State that all pages share.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;

use crate::hints::Hints;
use crate::pending::Pending;
use crate::provider::{Provider, ProviderError};
use crate::sessions::Sessions;

/// State that all pages share.
#[derive(Clone)]
pub struct Console {
    pub(crate) api: Router,
    pub(crate) sessions: Arc<Sessions>,
    /// `None`: visitors sign in with tokens that they have.
    pub(crate) provider: Option<Arc<dyn Provider>>,
    pub(crate) pending: Arc<Pending>,
    /// The path before all of ours, for addresses that others send browsers to.
    pub(crate) base: Arc<str>,
    /// Browsers must send the cookie over TLS only.
    pub(crate) secure: bool,
    /// Random, drawn at the start: it authenticates the forms of our pages.
    key: Arc<[u8; 32]>,
    pub(crate) hints: Arc<Hints>,
}

impl Console {
    /// Over the router of the API. `secure`: it is reached over TLS. `viewers_max`: how many pages may get hints.
    /// `is_stopping`: whether the server is about to stop.
    ///
    /// # Errors
    /// Random numbers are unavailable.
    pub fn new(
        api: Router,
        secure: bool,
        viewers_max: usize,
        is_stopping: Arc<dyn Fn() -> bool + Send + Sync>,
    ) -> Result<Console, String> {
        let mut key = [0u8; 32];
        getrandom::fill(&mut key).map_err(|error| error.to_string())?;
        Ok(Console {
            api,
            sessions: Arc::default(),
            provider: None,
            pending: Arc::default(),
            base: Arc::default(),
            secure,
            key: Arc::new(key),
            hints: Arc::new(Hints::new(viewers_max, is_stopping)),
        })
    }

    /// Visitors can sign in at this provider.
    #[must_use]
    pub fn with_provider(mut self, provider: Option<Arc<dyn Provider>>) -> Console {
        self.provider = provider;
        self
    }

    /// Everything is served below this path.
    #[must_use]
    pub fn below(mut self, base: Arc<str>) -> Console {
        self.base = base;
        self
    }

    /// The token that each form of this browser must contain.
    pub(crate) fn csrf(&self, name: &str) -> String {
        blake3::keyed_hash(&self.key, name.as_bytes())
            .to_hex()
            .to_string()
    }

    /// The token of a session that isn't over. If it expires soon, the provider is asked for a new one first.
    pub(crate) async fn token(&self, name: &str) -> Option<String> {
        let found = self.sessions.find(name, Instant::now())?;
        if found.due.is_none() {
            return Some(found.token);
        }
        // Not dropped with the request: the provider may accept a renewal only once.
        let (console, owned) = (self.clone(), name.to_owned());
        let renewed = tokio::spawn(async move { console.renew(&owned).await });
        renewed.await.unwrap_or(Some(found.token))
    }

    async fn renew(&self, name: &str) -> Option<String> {
        let found = self.sessions.find(name, Instant::now())?;
        let (Some(provider), Some((_, turn))) = (&self.provider, found.due) else {
            return Some(found.token);
        };
        let _turn = turn.lock().await;
        // Another request of the session may have renewed it meanwhile.
        let found = self.sessions.find(name, Instant::now())?;
        let Some((renewal, _)) = found.due else {
            return Some(found.token);
        };
        match provider.renew(&renewal).await {
            Ok(granted) => {
                let token = granted.token.clone();
                self.sessions.renew(name, granted, Instant::now());
                Some(token)
            }
            // Valid for a little longer; after that the visitor signs in again.
            Err(error) => {
                let again = error == ProviderError::Away;
                self.sessions.not_renewed(name, again, Instant::now());
                Some(found.token)
            }
        }
    }
}
