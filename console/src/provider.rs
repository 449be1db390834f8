//! An identity provider at which visitors sign in (OpenID Connect, authorization code flow with PKCE). The server that
//! mounts the console talks to it; the console knows its pages, and what belongs to a sign-in until the browser is back.

use std::time::Duration;

use async_trait::async_trait;

#[async_trait]
pub trait Provider: Send + Sync {
    /// Its name, for people.
    fn name(&self) -> &str;

    /// The address of the console's callback, if it is configured; otherwise it follows from the request.
    fn callback(&self) -> Option<&str>;

    /// The address at which the browser signs in.
    ///
    /// # Errors
    /// The provider doesn't answer.
    async fn begin(&self, flow: &Flow) -> Result<String, ProviderError>;

    /// Exchanges the code that the browser came back with.
    ///
    /// # Errors
    /// The provider doesn't answer, or the visitor isn't signed in.
    async fn finish(&self, flow: &Flow, returned: &Returned) -> Result<Granted, ProviderError>;

    /// Replaces a token that expires soon.
    ///
    /// # Errors
    /// The provider doesn't answer, or the visitor has to sign in again.
    async fn renew(&self, renewal: &Renewal) -> Result<Granted, ProviderError>;

    /// The address at which the browser signs out of the provider as well; `None` if there is none, or if the provider
    /// doesn't answer. `back`: the address that it leads back to. It contains no token: addresses stay in the history of
    /// the browser and in the logs of proxies.
    async fn end(&self, back: &str) -> Option<String>;
}

/// The parts of one sign-in.
#[derive(Debug, Clone)]
pub struct Flow {
    /// Returned by the browser.
    pub state: String,
    /// Contained in the ID token.
    pub nonce: String,
    /// Proves that the code is exchanged by whoever began (RFC 7636).
    pub verifier: String,
    /// The address of the callback.
    pub callback: String,
}

/// The parameters with which the provider sends the browser back.
#[derive(Debug, Clone)]
pub struct Returned {
    pub code: String,
    /// The provider that the parameters come from (RFC 9207).
    pub issuer: Option<String>,
}

/// A visitor is signed in.
#[derive(Clone)]
pub struct Granted {
    /// Accepted by the API.
    pub token: String,
    /// How long it is valid.
    pub lasts: Duration,
    pub renewal: Option<Renewal>,
}

#[derive(Clone)]
pub struct Renewal {
    pub refresh_token: String,
    /// The new token must be of the same subject.
    pub subject: String,
}

/// Visitors see these sentences, so they contain no secrets and no internal addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderError {
    /// Trying again can help. The log says more.
    Away,
    /// The reason, without a full stop.
    Refused(String),
}
