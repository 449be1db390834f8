//! Tokens (JWT) of an OpenID Connect provider: signature, issuer, audience and time are checked here,
//! without asking the provider for each one. What a token says of roles and namespaces is mapped to
//! ours.

mod claims;
mod crypto;
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

use super::guard::{Denied, Identity};
use source::{Missing, Source};
use swirl_access::Role;

/// Gets documents from the web, given by the binary. An answer of another status than 200 is an
/// error, and so is one of more than a mebibyte.
#[async_trait]
pub trait Fetch: Send + Sync {
    /// # Errors
    /// A sentence.
    async fn get(&self, url: &str) -> Result<Vec<u8>, String>;
}

/// Where the provider's keys are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// What `/.well-known/openid-configuration` of the issuer says.
    Discovery,
    Url(String),
    File(PathBuf),
}

#[derive(Debug, Clone)]
pub struct OidcSettings {
    pub issuer: String,
    /// A token must be meant for one of these.
    pub audience: Vec<String>,
    pub keys: KeySource,
    /// By their names in RFC 7518; only asymmetric ones.
    pub algorithms: Vec<String>,
    /// A claim, or the path of one with dots between the names.
    pub roles_claim: String,
    /// What the claim says, to our roles. If empty, the claim holds the names of roles.
    pub roles: BTreeMap<String, Role>,
    /// A token must name our namespace there; without a claim, tokens are not limited.
    pub namespaces_claim: Option<String>,
    /// How far clocks may differ.
    pub leeway: Duration,
}

/// Why a provider cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OidcError {
    #[error("'{0}' is no algorithm by which tokens can be signed here")]
    Algorithm(String),
    #[error("no audience is given: tokens for other services would do")]
    Audience,
    #[error("the provider's keys: {0}")]
    Keys(String),
}

pub struct Oidc {
    settings: OidcSettings,
    algorithms: Vec<Algorithm>,
    source: Source,
}

impl Oidc {
    /// The provider isn't asked yet: it may be away when we start. A file is read.
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
        let source = Source::new(settings.keys.clone(), settings.issuer.clone(), fetch);
        source.check_file().map_err(OidcError::Keys)?;
        Ok(Oidc {
            settings,
            algorithms,
            source,
        })
    }

    /// How many keys the provider has that can be used: asks it now.
    ///
    /// # Errors
    /// It doesn't answer, or not with keys.
    pub async fn check(&self) -> Result<usize, String> {
        self.source.load().await.map(|keys| keys.len())
    }

    /// Keeps the keys up to date, for ever.
    pub(super) async fn keep(&self) {
        self.source.keep().await;
    }

    pub(super) async fn identify(&self, token: &str) -> Result<Identity, Denied> {
        let invalid = |reason: &str| Denied::Invalid(reason.to_owned());
        let header = decode_header(token).map_err(|_| invalid("it is no JWT with a signature"))?;
        if !self.algorithms.contains(&header.alg) {
            return Err(invalid(
                "its signature is of a kind that isn't accepted (auth.oidc.algorithms)",
            ));
        }
        // Whoever sets it wants it to be understood, and none of it is.
        if header.crit.is_some() {
            return Err(invalid("it asks for extensions (crit)"));
        }
        if !header.typ.as_deref().is_none_or(is_access) {
            return Err(invalid("it is meant for something else (typ)"));
        }
        let key = self.source.find(header.kid.as_deref(), header.alg).await;
        let key = key.map_err(|missing| match missing {
            Missing::Unknown => invalid("no key of the provider fits it (kid)"),
            Missing::Away(reason) => Denied::Provider(reason),
        })?;
        let validation = self.validation(header.alg);
        let data = decode::<Map<String, Value>>(token, &key, &validation)
            .map_err(|error| Denied::Invalid(reason(error.kind())))?;
        // One of several issuers is none: RFC 7519 has a single one.
        if data.claims.get("iss").and_then(Value::as_str) != Some(&self.settings.issuer) {
            return Err(invalid("it is of another issuer (iss)"));
        }
        Ok(self.identity(&data.claims))
    }

    fn validation(&self, algorithm: Algorithm) -> Validation {
        let mut validation = Validation::new(algorithm);
        validation.leeway = self.settings.leeway.as_secs();
        validation.validate_nbf = true;
        validation.set_audience(&self.settings.audience);
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

/// Whether a token of this type lets somebody in: logout tokens, proofs of possession and others are signed
/// with the same keys (RFC 8725, section 3.11).
fn is_access(kind: &str) -> bool {
    let kind = kind.to_ascii_lowercase();
    let kind = kind.strip_prefix("application/").unwrap_or(&kind);
    matches!(kind, "jwt" | "at+jwt")
}

/// One that needs no shared secret.
fn asymmetric(name: &str) -> Option<Algorithm> {
    let algorithm: Algorithm = name.parse().ok()?;
    let shared = matches!(
        algorithm,
        Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512
    );
    (!shared).then_some(algorithm)
}

/// What is wrong with a token, without anything of it.
fn reason(kind: &ErrorKind) -> String {
    match kind {
        ErrorKind::ExpiredSignature => "it has expired (exp)".to_owned(),
        ErrorKind::ImmatureSignature => "it is not valid yet (nbf)".to_owned(),
        ErrorKind::InvalidIssuer => "it is of another issuer (iss)".to_owned(),
        ErrorKind::InvalidAudience => "it is meant for another service (aud)".to_owned(),
        ErrorKind::InvalidSignature => "its signature is wrong".to_owned(),
        ErrorKind::MissingRequiredClaim(claim) | ErrorKind::InvalidClaimFormat(claim) => {
            format!("it says nothing of '{claim}', or nothing that can be read")
        }
        _ => "it is no JWT that can be read".to_owned(),
    }
}
