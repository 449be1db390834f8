//! Signing in at the provider, for visitors of the console: authorization code flow with PKCE (RFC 6749, RFC 7636).
//!
//! What the provider returns is checked like a token that is sent with a request. Secrets, codes and tokens are never
//! logged; reasons that name addresses are for the log, and not for visitors.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use serde_json::{Map, Value};
use swirl_console::{Flow, Granted, Provider, ProviderError, Renewal, Returned};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::Oidc;
use super::claims::subject;
use super::discovery::{Discovered, discover};
use crate::access::denied::Denied;

/// How long the provider's description of itself is cached.
const FRESH: Duration = Duration::from_secs(600);
/// How long it isn't requested again after a failure.
const AGAIN: Duration = Duration::from_secs(2);
/// How long discovery may take.
const DISCOVERY_MAX: Duration = Duration::from_secs(10);
/// The longest error code of the provider that is shown.
const CODE_CHARS_MAX: usize = 60;

#[derive(Debug, Clone)]
pub struct SignInSettings {
    pub client_id: String,
    /// A public client has none.
    pub client_secret: Option<String>,
    pub scopes: Vec<String>,
    /// The console's callback as it is registered; otherwise it follows from requests.
    pub redirect_url: Option<String>,
}

/// The console as a client of the provider.
pub(in crate::access) struct Client {
    oidc: Arc<Oidc>,
    settings: SignInSettings,
    name: String,
    known: Mutex<DiscoveryState>,
}

#[derive(Default)]
struct DiscoveryState {
    found: Option<(Instant, Arc<Discovered>)>,
    failed: Option<Instant>,
}

/// The answer of the token endpoint.
#[derive(Deserialize)]
struct Tokens {
    access_token: Option<String>,
    id_token: Option<String>,
    refresh_token: Option<String>,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
}

type Outcome<T> = Result<T, ProviderError>;

fn refused<T>(reason: impl Into<String>) -> Outcome<T> {
    Err(ProviderError::Refused(reason.into()))
}

/// For the log only.
fn away<T>(reason: &str) -> Outcome<T> {
    tracing::warn!(reason, "no one can sign in at the provider");
    Err(ProviderError::Away)
}

impl Client {
    pub fn new(oidc: Arc<Oidc>, settings: SignInSettings) -> Client {
        let issuer = &oidc.settings.issuer;
        let host = Url::parse(issuer).ok();
        let host = host.and_then(|url| url.host_str().map(str::to_owned));
        Client {
            name: host.unwrap_or_else(|| issuer.clone()),
            settings,
            known: Mutex::default(),
            oidc,
        }
    }

    async fn provider(&self) -> Outcome<Arc<Discovered>> {
        let mut known = self.known.lock().await;
        if let Some((at, found)) = &known.found
            && at.elapsed() < FRESH
        {
            return Ok(found.clone());
        }
        let is_soon = known.failed.is_some_and(|at| at.elapsed() < AGAIN);
        if !is_soon {
            let asked = discover(&*self.oidc.fetch, &self.oidc.settings.issuer);
            match timeout(DISCOVERY_MAX, asked).await {
                Ok(Ok(found)) => {
                    let found = Arc::new(found);
                    known.found = Some((Instant::now(), found.clone()));
                    known.failed = None;
                    return Ok(found);
                }
                Ok(Err(reason)) => tracing::warn!(reason, "the provider can't be reached"),
                Err(_) => tracing::warn!("the provider doesn't answer in time"),
            }
            known.failed = Some(Instant::now());
        }
        // Addresses seldom change, so the last known ones are used while the provider's description cannot be read.
        match &known.found {
            Some((_, found)) => Ok(found.clone()),
            None => Err(ProviderError::Away),
        }
    }

    /// A form with the client in it, and the header with its secret.
    fn form(&self, fields: &[(&str, &str)], secret_in_form: bool) -> (String, Option<String>) {
        let settings = &self.settings;
        let mut form = Serializer::new(String::new());
        form.extend_pairs(fields);
        form.append_pair("client_id", &settings.client_id);
        let mut authorization = None;
        match &settings.client_secret {
            Some(secret) if secret_in_form => {
                form.append_pair("client_secret", secret);
            }
            Some(secret) => authorization = Some(basic(&settings.client_id, secret)),
            None => {}
        }
        (form.finish(), authorization)
    }

    /// Asks the token endpoint.
    async fn tokens(&self, form: &[(&str, &str)]) -> Outcome<Tokens> {
        let found = self.provider().await?;
        let Some(endpoint) = &found.token_endpoint else {
            return away("its description names no token_endpoint");
        };
        let (body, authorization) = self.form(form, found.secret_in_form());
        let asked = self.oidc.fetch.post(endpoint, body, authorization);
        let (status, answer) = match asked.await {
            Ok(answered) => answered,
            Err(reason) => return away(&reason),
        };
        match status {
            200 => serde_json::from_slice(&answer).or_else(|error| {
                // Without the text, which has tokens.
                let (line, column) = (error.line(), error.column());
                away(&format!(
                    "the answer of {endpoint} isn't a token response ({line}:{column})"
                ))
            }),
            400 | 401 => match serde_json::from_slice::<Refusal>(&answer) {
                Ok(Refusal { error }) => {
                    let error = code(&error);
                    tracing::warn!(error, "the provider refuses to give tokens");
                    match error.as_str() {
                        "invalid_client" | "unauthorized_client" => refused(format!(
                            "{} doesn't accept this server as its client ({error}): correct the settings auth.oidc.client_id and auth.oidc.client_secret",
                            self.name
                        )),
                        _ => refused(format!("{} answers “{error}”", self.name)),
                    }
                }
                Err(_) => away(&format!("{endpoint} answers {status} without a reason")),
            },
            _ => away(&format!("{endpoint} answers {status}")),
        }
    }

    /// The claims of a token, and its reason if it isn't accepted.
    async fn verify(&self, token: &str, audience: &[String]) -> Result<Map<String, Value>, Failed> {
        match self.oidc.verify(token, audience).await {
            Ok(claims) => Ok(claims),
            Err(Denied::Provider(reason)) => {
                tracing::warn!(reason, "a token cannot be checked");
                Err(Failed::Away)
            }
            Err(Denied::Invalid(reason)) => Err(Failed::Invalid(reason)),
            Err(other) => Err(Failed::Invalid(other.to_string())),
        }
    }

    /// Chooses the token that the session gets: one that the API accepts from the console, and if possible one that has
    /// roles.
    async fn grant(&self, tokens: Tokens) -> Outcome<Granted> {
        let (access, id) = (tokens.access_token, tokens.id_token);
        let audience = &self.oidc.audience(true);
        let mut chosen: Option<(String, Map<String, Value>)> = None;
        let mut reasons = Vec::new();
        for (what, token) in [("access token", &access), ("ID token", &id)] {
            let Some(token) = token else { continue };
            let is_better =
                |claims: &Map<String, Value>| chosen.is_none() || self.oidc.has_roles(claims);
            match self.verify(token, audience).await {
                // It says who the visitor is; only with roles it says what they may do.
                Ok(claims) if what == "ID token" && !self.oidc.has_roles(&claims) => {
                    reasons.push(format!("its {what}: it has no role"));
                }
                Ok(claims) if is_better(&claims) => {
                    let has_roles = self.oidc.has_roles(&claims);
                    chosen = Some((token.clone(), claims));
                    if has_roles {
                        break;
                    }
                }
                Ok(_) => {}
                Err(Failed::Away) => return Err(ProviderError::Away),
                Err(Failed::Invalid(reason)) => reasons.push(format!("its {what}: {reason}")),
            }
        }
        let Some((token, claims)) = chosen else {
            let reasons = reasons.join("; ");
            tracing::warn!(reasons, "the API accepts no token of a sign-in");
            return refused(format!("none of the tokens is accepted ({reasons})"));
        };
        let renewal = tokens.refresh_token.map(|refresh_token| Renewal {
            refresh_token,
            subject: subject(&claims),
        });
        Ok(Granted {
            lasts: left(&claims),
            token,
            renewal,
        })
    }
}

/// The reason why a token is of no use.
enum Failed {
    Away,
    Invalid(String),
}

#[async_trait]
impl Provider for Client {
    fn name(&self) -> &str {
        &self.name
    }

    fn callback(&self) -> Option<&str> {
        self.settings.redirect_url.as_deref()
    }

    async fn begin(&self, flow: &Flow) -> Outcome<String> {
        let found = self.provider().await?;
        let endpoint = found.authorization_endpoint.as_deref();
        let Some(Ok(mut address)) = endpoint.map(Url::parse) else {
            return away("its description names no authorization_endpoint");
        };
        let scope = self.settings.scopes.join(" ");
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, flow.verifier.as_bytes()));
        address.query_pairs_mut().extend_pairs([
            ("response_type", "code"),
            ("client_id", self.settings.client_id.as_str()),
            ("redirect_uri", &flow.callback),
            ("scope", &scope),
            ("state", &flow.state),
            ("nonce", &flow.nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ]);
        Ok(address.into())
    }

    async fn finish(&self, flow: &Flow, returned: &Returned) -> Outcome<Granted> {
        let found = self.provider().await?;
        let issuer = &self.oidc.settings.issuer;
        let is_other = match &returned.issuer {
            Some(named) => named != issuer,
            None => found.authorization_response_iss_parameter_supported,
        };
        if is_other {
            return refused("the answer is of another provider (iss)");
        }
        if returned.code.is_empty() {
            return refused(format!("{} has returned no code", self.name));
        }
        let form = [
            ("grant_type", "authorization_code"),
            ("code", returned.code.as_str()),
            ("redirect_uri", &flow.callback),
            ("code_verifier", &flow.verifier),
        ];
        let tokens = self.tokens(&form).await?;
        let Some(id) = &tokens.id_token else {
            return refused(format!(
                "{} has returned no ID token: auth.oidc.scopes must contain openid",
                self.name
            ));
        };
        let client = &self.settings.client_id;
        let claims = match self.verify(id, std::slice::from_ref(client)).await {
            Ok(claims) => claims,
            Err(Failed::Away) => return Err(ProviderError::Away),
            Err(Failed::Invalid(reason)) => {
                return refused(format!("the ID token is not accepted: {reason}"));
            }
        };
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        if text("nonce") != Some(flow.nonce.as_str()) {
            return refused("the ID token belongs to another sign-in (nonce)");
        }
        if text("azp").is_some_and(|party| party != client) {
            return refused("the ID token is for another client (azp)");
        }
        self.grant(tokens).await
    }

    async fn renew(&self, renewal: &Renewal) -> Outcome<Granted> {
        let form = [
            ("grant_type", "refresh_token"),
            ("refresh_token", renewal.refresh_token.as_str()),
        ];
        let mut granted = self.grant(self.tokens(&form).await?).await?;
        match &mut granted.renewal {
            Some(next) if next.subject != renewal.subject => {
                return refused("the new token is of somebody else (sub)");
            }
            Some(_) => {}
            // The old one stays valid.
            None => granted.renewal = Some(renewal.clone()),
        }
        Ok(granted)
    }

    async fn end(&self, back: &str) -> Option<String> {
        let found = self.provider().await.ok()?;
        let mut address = Url::parse(found.end_session_endpoint.as_deref()?).ok()?;
        let mut query = address.query_pairs_mut();
        query.append_pair("client_id", &self.settings.client_id);
        query.append_pair("post_logout_redirect_uri", back);
        drop(query);
        Some(address.into())
    }
}

/// The header with a client's secret: both parts are encoded first (RFC 6749, section 2.3.1).
fn basic(id: &str, secret: &str) -> String {
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encoded(id), encoded(secret));
    format!("Basic {}", STANDARD.encode(pair))
}

/// An error code of the provider, fit for a message.
fn code(text: &str) -> String {
    let plain = text.chars().filter(char::is_ascii_graphic);
    plain.take(CODE_CHARS_MAX).collect()
}

/// How long a token is still valid.
fn left(claims: &Map<String, Value>) -> Duration {
    let ends = claims.get("exp").and_then(Value::as_f64).unwrap_or(0.0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let left = ends - now.map_or(0.0, |now| now.as_secs_f64());
    // A day is more than any session lasts.
    Duration::from_secs_f64(left.clamp(0.0, 86_400.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_encoded_before_it_is_put_into_the_header() {
        // "a%3Ab:s+%2B", in base64.
        assert_eq!(basic("a:b", "s +"), "Basic YSUzQWI6cyslMkI=");
    }

    #[test]
    fn times_and_codes_of_others_stay_within_bounds() {
        let left = |exp: f64| left(&[("exp".to_owned(), exp.into())].into_iter().collect());
        assert_eq!(left(0.0), Duration::ZERO);
        assert_eq!(left(1e300), Duration::from_secs(86_400));
        assert_eq!(code("invalid_grant\n<b>"), "invalid_grant<b>");
        assert_eq!(code(&"x".repeat(500)).len(), CODE_CHARS_MAX);
    }
}
