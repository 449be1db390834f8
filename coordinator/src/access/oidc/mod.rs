//! Tokens (JWT) of an OpenID Connect provider. Signature, issuer, audience and time are checked here, without a request
//! to the provider for each token. The claims about roles and namespaces are mapped to Swirl's.

mod claims;
mod client;
mod crypto;
mod discovery;
mod keys;
mod source;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use serde_json::{Map, Value};

use super::denied::Denied;
use super::identity::Identity;
use client::Client;
pub use client::SignInSettings;
use discovery::discover;
use source::{Missing, Source};
use swirl_access::Role;

/// Fetches documents from the web; the binary provides it. A response with a status other than 200 is an error, and so
/// is one larger than a mebibyte.
#[async_trait]
pub trait Fetch: Send + Sync {
    /// # Errors
    /// The reason, as a sentence.
    async fn get(&self, url: &str) -> Result<Vec<u8>, String>;

    /// Sends a form, with this value of the header `Authorization`; returns the status and the body, which has a
    /// mebibyte at most.
    ///
    /// # Errors
    /// The reason, as a sentence.
    async fn post(
        &self,
        url: &str,
        form: String,
        authorization: Option<String>,
    ) -> Result<(u16, Vec<u8>), String>;
}

/// The source of the provider's keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// The URL is read from the issuer's `/.well-known/openid-configuration`.
    Discovery,
    Url(String),
    File(PathBuf),
}

#[derive(Debug, Clone)]
pub struct OidcSettings {
    pub issuer: String,
    /// The audience of a token must be one of these.
    pub audience: Vec<String>,
    pub keys: KeySource,
    /// The names from RFC 7518. Only asymmetric algorithms are supported.
    pub algorithms: Vec<String>,
    /// The name of a claim, or its path with dots between the names.
    pub roles_claim: String,
    /// Maps words of the claim to Swirl's roles. If empty, the claim contains the names of roles.
    pub roles: BTreeMap<String, Role>,
    /// The claim in which a token must name this namespace. Without it, tokens are valid for all namespaces.
    pub namespaces_claim: Option<String>,
    /// The tolerated difference between clocks.
    pub leeway: Duration,
}

/// The reason why a provider cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OidcError {
    #[error("'{0}' is not a supported signature algorithm for tokens")]
    Algorithm(String),
    #[error("no audience is configured, so tokens for other services would be accepted")]
    Audience,
    #[error("the provider's keys: {0}")]
    Keys(String),
}

pub struct Oidc {
    settings: OidcSettings,
    algorithms: Vec<Algorithm>,
    source: Source,
    fetch: Arc<dyn Fetch>,
    sign_in: Option<SignInSettings>,
}

impl Oidc {
    /// Reads a file of keys, but sends no request yet, since the provider may be unavailable at the start.
    ///
    /// # Errors
    /// The settings cannot be used.
    pub fn new(settings: OidcSettings, fetch: Arc<dyn Fetch>) -> Result<Oidc, OidcError> {
        crypto::install();
        let algorithms: Vec<Algorithm> = settings
            .algorithms
            .iter()
            .map(|name| asymmetric(name).ok_or_else(|| OidcError::Algorithm(name.clone())))
            .collect::<Result<_, _>>()?;
        if settings.audience.is_empty() {
            return Err(OidcError::Audience);
        }
        let (keys, issuer) = (settings.keys.clone(), settings.issuer.clone());
        let source = Source::new(keys, issuer, fetch.clone());
        source.check_file().map_err(OidcError::Keys)?;
        Ok(Oidc {
            settings,
            algorithms,
            source,
            fetch,
            sign_in: None,
        })
    }

    /// Visitors of the console can sign in at the provider.
    #[must_use]
    pub fn with_sign_in(mut self, settings: SignInSettings) -> Oidc {
        if self.settings.audience.contains(&settings.client_id) {
            tracing::warn!(
                client = settings.client_id,
                "auth.oidc.audience names the console's client, so the API accepts ID tokens from everybody: remove it \
                 there; sessions of the console don't need it"
            );
        }
        self.sign_in = Some(settings);
        self
    }

    /// Fetches the keys now, and returns the number of usable ones.
    ///
    /// # Errors
    /// The provider doesn't respond, or its response has no keys.
    pub async fn check(&self) -> Result<usize, String> {
        self.source.load().await.map(|keys| keys.len())
    }

    /// Asks the provider now whether visitors of the console can sign in at it.
    ///
    /// # Errors
    /// It doesn't answer, or doesn't say where to sign in.
    pub async fn check_sign_in(&self) -> Result<(), String> {
        let issuer = &self.settings.issuer;
        let found = discover(&*self.fetch, issuer).await?;
        for (name, endpoint) in [
            ("authorization_endpoint", found.authorization_endpoint),
            ("token_endpoint", found.token_endpoint),
        ] {
            if endpoint.is_none() {
                return Err(format!("the description of {issuer} has no {name}"));
            }
        }
        Ok(())
    }

    /// The provider, for the console; `None`: visitors cannot sign in at it.
    pub(super) fn client(self: &Arc<Oidc>) -> Option<Client> {
        let settings = self.sign_in.clone()?;
        Some(Client::new(self.clone(), settings))
    }

    /// Keeps the keys up to date. Never returns.
    pub(super) async fn keep(&self) {
        self.source.keep().await;
    }

    pub(super) async fn identify(
        &self,
        token: &str,
        from_console: bool,
    ) -> Result<Identity, Denied> {
        let claims = self.verify(token, &self.audience(from_console)).await?;
        Ok(self.identity(&claims))
    }

    /// The accepted audiences. Sessions of the console may have ID tokens, which are for the console as a client.
    fn audience(&self, from_console: bool) -> Vec<String> {
        let client = self.sign_in.as_ref().map(|sign_in| &sign_in.client_id);
        let client = client.filter(|_| from_console);
        self.settings
            .audience
            .iter()
            .chain(client)
            .cloned()
            .collect()
    }

    /// The claims of a token for one of these audiences.
    async fn verify(&self, token: &str, audience: &[String]) -> Result<Map<String, Value>, Denied> {
        let invalid = |reason: &str| Denied::Invalid(reason.to_owned());
        let header = decode_header(token).map_err(|_| invalid("it is not a signed JWT"))?;
        if !self.algorithms.contains(&header.alg) {
            return Err(invalid(
                "its signature is of a kind that isn't accepted (auth.oidc.algorithms)",
            ));
        }
        // Critical extensions must be understood (RFC 7515), and none is supported.
        if header.crit.is_some() {
            return Err(invalid("it requires unsupported extensions (crit)"));
        }
        if !header.typ.as_deref().is_none_or(is_access) {
            return Err(invalid("it is not an access token (typ)"));
        }
        let key = self.source.find(header.kid.as_deref(), header.alg).await;
        let key = key.map_err(|missing| match missing {
            Missing::Unknown => invalid("no key of the provider fits it (kid)"),
            Missing::Away(reason) => Denied::Provider(reason),
        })?;
        let validation = self.validation(header.alg, audience);
        let data = decode::<Map<String, Value>>(token, &key, &validation)
            .map_err(|error| Denied::Invalid(reason(error.kind())))?;
        // RFC 7519 allows only a single issuer, not a list.
        if data.claims.get("iss").and_then(Value::as_str) != Some(&self.settings.issuer) {
            return Err(invalid("it is from another issuer (iss)"));
        }
        Ok(data.claims)
    }

    /// Whether the holder of these claims may do anything here.
    fn has_roles(&self, claims: &Map<String, Value>) -> bool {
        !self.identity(claims).roles.is_empty()
    }

    fn validation(&self, algorithm: Algorithm, audience: &[String]) -> Validation {
        let mut validation = Validation::new(algorithm);
        validation.leeway = self.settings.leeway.as_secs();
        validation.validate_nbf = true;
        validation.set_audience(audience);
        validation.set_issuer(&[&self.settings.issuer]);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        validation
    }

    fn identity(&self, claims: &Map<String, Value>) -> Identity {
        let settings = &self.settings;
        let namespaces = settings.namespaces_claim.as_ref();
        Identity {
            name: claims::subject(claims),
            roles: claims::roles(claims, &settings.roles_claim, &settings.roles),
            namespaces: namespaces.map(|claim| claims::words(claims, claim)),
        }
    }
}

/// Whether a token of this type gives access. Logout tokens, proofs of possession and others are signed with the same
/// keys (RFC 8725, section 3.11).
fn is_access(kind: &str) -> bool {
    let kind = kind.to_ascii_lowercase();
    let kind = kind.strip_prefix("application/").unwrap_or(&kind);
    matches!(kind, "jwt" | "at+jwt")
}

/// Returns the algorithm with this name, unless it uses a shared secret.
fn asymmetric(name: &str) -> Option<Algorithm> {
    let algorithm: Algorithm = name.parse().ok()?;
    let shared = matches!(
        algorithm,
        Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512
    );
    (!shared).then_some(algorithm)
}

/// Describes the problem with a token without revealing its content.
fn reason(kind: &ErrorKind) -> String {
    match kind {
        ErrorKind::ExpiredSignature => "it has expired (exp)".to_owned(),
        ErrorKind::ImmatureSignature => "it is not valid yet (nbf)".to_owned(),
        ErrorKind::InvalidIssuer => "it is from another issuer (iss)".to_owned(),
        ErrorKind::InvalidAudience => "it is meant for another service (aud)".to_owned(),
        ErrorKind::InvalidSignature => "its signature is wrong".to_owned(),
        ErrorKind::MissingRequiredClaim(claim) | ErrorKind::InvalidClaimFormat(claim) => {
            format!("its claim '{claim}' is missing or unreadable")
        }
        _ => "it is not a readable JWT".to_owned(),
    }
}
