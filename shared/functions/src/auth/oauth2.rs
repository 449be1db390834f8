//! OAuth2 tokens: requested from the token endpoint, and cached until shortly before they expire.
//!
//! Language 0.7 and 0.8, "OAuth2 Properties Definition". The endpoint is found as follows:
//! - an `authority` whose path ends in `token` is the endpoint itself;
//! - else `<authority>/.well-known/openid-configuration` or `.../oauth-authorization-server` names it;
//! - else, where neither exists, it is `<authority>/oauth2/token` for an authority without a path,
//!   and the authority itself for one with a path;
//! - without an `authority`, the OpenAPI document's `tokenUrl` or `openIdConnectUrl` is used.
//!
//! Tokens are cached by everything in their request, including the credentials, so a workflow never gets a token for
//! credentials that it doesn't have. Concurrent callers that need the same token wait for one request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use serde_json::Value;
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::{Secret, redact};
use crate::http::{Answer, Http, shown};
use crate::watch;
use crate::{CallError, CallErrorKind};

/// A token is renewed this long before it expires, or a tenth of its lifetime before, whichever is shorter.
const LEEWAY: Duration = Duration::from_secs(30);

/// The lifetime of a token whose response doesn't state it.
const LIFE_DEFAULT: Duration = Duration::from_secs(300);

/// The longest lifetime that is accepted.
const LIFE_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// The maximum number of cached tokens. Beyond it, unused ones are dropped.
const TOKENS_MAX: usize = 1024;

/// The data of a token request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OAuth2 {
    pub authority: Option<String>,
    pub grant_type: GrantType,
    pub client_id: String,
    pub client_secret: Option<Secret>,
    pub scopes: Vec<String>,
    pub username: Option<String>,
    pub password: Option<Secret>,
    pub audiences: Vec<String>,
    pub subject_token: Option<Secret>,
    pub requested_subject: Option<String>,
    pub requested_issuer: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GrantType {
    ClientCredentials,
    Password,
    /// RFC 8693.
    TokenExchange,
}

/// The token endpoint of the OpenAPI document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Hints {
    pub(crate) token_url: Option<String>,
    pub(crate) discovery_url: Option<String>,
}

/// Requests tokens and caches them.
#[derive(Debug)]
pub struct Tokens {
    http: Http,
    slots: Mutex<HashMap<(OAuth2, Hints), Arc<Slot>>>,
}

type Slot = tokio::sync::Mutex<Option<Token>>;

#[derive(Debug, Clone)]
struct Token {
    text: Secret,
    renew_at: Instant,
}

struct Endpoint {
    url: Url,
    /// The endpoint accepts the client's secret only in the form body.
    secret_in_form: bool,
}

impl Tokens {
    pub fn new(http: Http) -> Tokens {
        Tokens {
            http,
            slots: Mutex::default(),
        }
    }

    /// A token that stays valid for a while, from the cache or the token endpoint. `refused` is a token that a service
    /// did not accept, so it isn't used again.
    ///
    /// # Errors
    /// `auth` if the endpoint cannot be found or refuses, `connection` if it cannot be reached.
    pub(crate) async fn token(
        &self,
        oauth2: &OAuth2,
        hints: &Hints,
        refused: Option<&Secret>,
    ) -> Result<Secret, CallError> {
        if watch::holds() {
            return Ok(Secret::new(watch::NO_TOKEN.to_owned()));
        }
        let token = self.kept_or_fetched(oauth2, hints, refused).await?;
        watch::secret(token.expose());
        Ok(token)
    }

    async fn kept_or_fetched(
        &self,
        oauth2: &OAuth2,
        hints: &Hints,
        refused: Option<&Secret>,
    ) -> Result<Secret, CallError> {
        let slot = self.slot(oauth2, hints);
        let mut token = slot.lock().await;
        if let Some(token) = token.as_ref()
            && token.renew_at > Instant::now()
            && refused != Some(&token.text)
        {
            return Ok(token.text.clone());
        }
        *token = None;
        let fresh = self.fetch(oauth2, hints).await?;
        *token = Some(fresh.clone());
        Ok(fresh.text)
    }

    fn slot(&self, oauth2: &OAuth2, hints: &Hints) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (oauth2.clone(), hints.clone());
        if let Some(slot) = slots.get(&key) {
            return slot.clone();
        }
        if slots.len() >= TOKENS_MAX {
            let now = Instant::now();
            slots.retain(|_, slot| match slot.try_lock() {
                Ok(token) => token.as_ref().is_some_and(|token| token.renew_at > now),
                Err(_) => true,
            });
        }
        if slots.len() >= TOKENS_MAX {
            slots.clear();
        }
        slots.entry(key).or_default().clone()
    }

    async fn fetch(&self, oauth2: &OAuth2, hints: &Hints) -> Result<Token, CallError> {
        let mut form = form(oauth2)?;
        let scope = oauth2.scopes.join(" ");
        if !scope.is_empty() {
            form.push(("scope", &scope));
        }
        let endpoint = self.endpoint(oauth2, hints).await?;
        let what = format!("OAuth2 token: POST {}", shown(&endpoint.url));
        let mut request = self
            .http
            .request(Method::POST, endpoint.url.clone())
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(ACCEPT, "application/json");
        match &oauth2.client_secret {
            Some(secret) if !endpoint.secret_in_form => {
                request = request.header(AUTHORIZATION, basic(&oauth2.client_id, secret)?);
            }
            secret => {
                form.push(("client_id", &oauth2.client_id));
                form.extend(
                    secret
                        .as_ref()
                        .map(|secret| ("client_secret", secret.expose())),
                );
            }
        }
        let body = Serializer::new(String::new()).extend_pairs(form).finish();
        let answer = self
            .http
            .send(request.body(body), &endpoint.url, &what)
            .await?;
        parse(&answer, &what, oauth2)
    }

    async fn endpoint(&self, oauth2: &OAuth2, hints: &Hints) -> Result<Endpoint, CallError> {
        let direct = |url| Endpoint {
            url,
            secret_in_form: false,
        };
        let Some(authority) = &oauth2.authority else {
            return match (&hints.token_url, &hints.discovery_url) {
                (Some(url), _) => Ok(direct(http_url(url, "the document's tokenUrl")?)),
                (None, Some(url)) => {
                    let url = http_url(url, "the document's openIdConnectUrl")?;
                    let message = format!("there is no OpenID configuration at {}", shown(&url));
                    self.discover(url).await?.ok_or_else(|| refuse(message))
                }
                (None, None) => Err(refuse(
                    "the auth definition has no `authority`, and the OpenAPI document no token URL",
                )),
            };
        };
        let authority = http_url(authority, "the authority")?;
        let path = authority.path().trim_end_matches('/').to_owned();
        if path.ends_with("token") {
            return Ok(direct(authority));
        }
        for name in ["openid-configuration", "oauth-authorization-server"] {
            let mut url = authority.clone();
            url.set_path(&format!("{path}/.well-known/{name}"));
            if let Some(endpoint) = self.discover(url).await? {
                return Ok(endpoint);
            }
        }
        let mut url = authority;
        if path.is_empty() {
            url.set_path("/oauth2/token");
        }
        Ok(direct(url))
    }

    /// The endpoint that a configuration names, or `None` if there is no configuration.
    async fn discover(&self, url: Url) -> Result<Option<Endpoint>, CallError> {
        let what = format!("OAuth2 discovery: GET {}", shown(&url));
        let request = self
            .http
            .request(Method::GET, url.clone())
            .header(ACCEPT, "application/json");
        let answer = self.http.send(request, &url, &what).await?;
        if CallError::new(CallErrorKind::Status(answer.status), "").can_retry {
            let mut error = refuse(format!("{what}: {}", answer.status));
            error.can_retry = true;
            return Err(error);
        }
        let found = serde_json::from_slice::<Value>(&answer.body).ok();
        let Some(found) = found.filter(|_| answer.status == 200) else {
            return Ok(None);
        };
        let Some(endpoint) = found.get("token_endpoint").and_then(Value::as_str) else {
            return Ok(None);
        };
        let methods = found
            .get("token_endpoint_auth_methods_supported")
            .and_then(Value::as_array);
        let has = |name: &str| {
            methods.is_some_and(|methods| methods.iter().any(|m| m.as_str() == Some(name)))
        };
        Ok(Some(Endpoint {
            url: http_url(endpoint, "the token endpoint")?,
            secret_in_form: has("client_secret_post") && !has("client_secret_basic"),
        }))
    }
}

fn refuse(message: impl Into<String>) -> CallError {
    CallError::new(CallErrorKind::Auth, message)
}

fn http_url(text: &str, name: &str) -> Result<Url, CallError> {
    Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        .ok_or_else(|| refuse(format!("OAuth2: {name} is not an http or https URL")))
}

/// RFC 6749, section 2.3.1: both halves are form-encoded first.
fn basic(client_id: &str, secret: &Secret) -> Result<HeaderValue, CallError> {
    let encode = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encode(client_id), encode(secret.expose()));
    let mut value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(pair)))
        .map_err(|_| refuse("OAuth2: the client's secret cannot be sent"))?;
    value.set_sensitive(true);
    Ok(value)
}

fn form(oauth2: &OAuth2) -> Result<Vec<(&'static str, &str)>, CallError> {
    let need = |name: &str| {
        refuse(format!(
            "OAuth2: this grant type needs `{name}`, which the auth definition lacks"
        ))
    };
    let mut form = match oauth2.grant_type {
        GrantType::ClientCredentials => vec![("grant_type", "client_credentials")],
        GrantType::Password => vec![
            ("grant_type", "password"),
            (
                "username",
                oauth2.username.as_deref().ok_or_else(|| need("username"))?,
            ),
            (
                "password",
                oauth2
                    .password
                    .as_ref()
                    .ok_or_else(|| need("password"))?
                    .expose(),
            ),
        ],
        GrantType::TokenExchange => {
            let subject = oauth2
                .subject_token
                .as_ref()
                .ok_or_else(|| need("subjectToken"))?;
            let mut form = vec![
                (
                    "grant_type",
                    "urn:ietf:params:oauth:grant-type:token-exchange",
                ),
                ("subject_token", subject.expose()),
                (
                    "subject_token_type",
                    "urn:ietf:params:oauth:token-type:access_token",
                ),
            ];
            form.extend(
                oauth2
                    .requested_subject
                    .as_deref()
                    .map(|v| ("requested_subject", v)),
            );
            form.extend(
                oauth2
                    .requested_issuer
                    .as_deref()
                    .map(|v| ("requested_issuer", v)),
            );
            form
        }
    };
    form.extend(
        oauth2
            .audiences
            .iter()
            .map(|audience| ("audience", audience.as_str())),
    );
    Ok(form)
}

fn parse(answer: &Answer, what: &str, oauth2: &OAuth2) -> Result<Token, CallError> {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let text = |key: &str| body.get(key).and_then(Value::as_str);
    if answer.status != 200 {
        let secrets = [
            &oauth2.client_secret,
            &oauth2.password,
            &oauth2.subject_token,
        ];
        let secrets: Vec<_> = secrets
            .into_iter()
            .flatten()
            .map(|secret| secret.expose().to_owned())
            .collect();
        let mut message = format!("{what}: {}", answer.status);
        for key in ["error", "error_description"] {
            if let Some(text) = text(key) {
                let text = redact(text, &secrets);
                message.push_str(&format!(": {}", text.chars().take(200).collect::<String>()));
            }
        }
        let mut error = refuse(redact(&message, &secrets));
        error.can_retry = CallError::new(CallErrorKind::Status(answer.status), "").can_retry;
        return Err(error);
    }
    let token = text("access_token").filter(|token| !token.is_empty());
    let token = token.ok_or_else(|| refuse(format!("{what}: the answer has no `access_token`")))?;
    if text("token_type").is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        return Err(refuse(format!("{what}: the token isn't a bearer token")));
    }
    // Some servers send the number as a string.
    let life = body.get("expires_in").and_then(|life| match life {
        Value::String(text) => text.parse().ok(),
        life => life.as_f64(),
    });
    let life = life.filter(|life| *life >= 0.0 && life.is_finite());
    let life = life.map_or(LIFE_DEFAULT, |life| {
        Duration::try_from_secs_f64(life)
            .unwrap_or(LIFE_MAX)
            .min(LIFE_MAX)
    });
    let renew_at = Instant::now() + (life - LEEWAY.min(life / 10));
    Ok(Token {
        text: Secret::new(token),
        renew_at,
    })
}
