//! OAuth2 tokens: requested from the token endpoint, and cached until shortly before they expire.
//!
//! Language 0.7 and 0.8, "OAuth2 Properties Definition". The endpoint is found as follows:
//! - an `authority` whose path ends in `token` is the endpoint itself;
//! - else `<authority>/.well-known/openid-configuration` or `.../oauth-authorization-server` names it;
//! - else, where neither exists, it is `<authority>/oauth2/token` for an authority without a path,
//!   and the authority itself for one with a path;
//! - without an `authority`, the OpenAPI document's `tokenUrl` or `openIdConnectUrl` is used.
//!
//! DSL 1.0, "OAUTH2 Authentication" and "OpenIdConnect Authentication": the definition says where it is ([`TokenEndpoint`]).
//!
//! Tokens are cached by everything in their request, including the credentials, so a workflow never gets a token for
//! credentials that it doesn't have. Concurrent callers that need the same token wait for one request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::Method;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use serde_json::Value;
use url::Url;
use url::form_urlencoded::Serializer;

use super::form::{Form, form};
use super::grant::{OAuth2, TokenEndpoint};
use super::{Secret, beginning, redact, token};
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

/// The token endpoint of the OpenAPI document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Hints {
    pub(crate) token_url: Option<String>,
    pub(crate) discovery_url: Option<String>,
}

/// Requests tokens and caches them. Clones share the cache.
#[derive(Debug, Clone)]
pub struct Tokens {
    http: Http,
    slots: Arc<Mutex<Slots>>,
}

type Slots = HashMap<(OAuth2, Hints), Arc<Slot>>;
type Slot = tokio::sync::Mutex<Option<Token>>;

#[derive(Debug, Clone)]
struct Token {
    text: Secret,
    renew_at: Duration,
}

struct Endpoint {
    url: Url,
    /// The endpoint accepts the client's secret only in the form body.
    secret_in_form: bool,
}

fn direct(url: Url) -> Endpoint {
    Endpoint {
        url,
        secret_in_form: false,
    }
}

impl Tokens {
    pub fn new(http: Http) -> Tokens {
        Tokens {
            http: http.for_tokens(),
            slots: Arc::default(),
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
            && token.renew_at > self.http.now()
            && refused != Some(&token.text)
        {
            return Ok(token.text.clone());
        }
        *token = None;
        let fresh = self.fetch(oauth2, hints).await;
        let fresh = fresh.map_err(|mut error| {
            if oauth2.is_exact() && error.kind != CallErrorKind::Limit {
                error.kind = CallErrorKind::Auth;
            }
            error
        })?;
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
            let now = self.http.now();
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
        let endpoint = self.endpoint(oauth2, hints).await?;
        let what = format!("OAuth2 token: POST {}", shown(&endpoint.url));
        let Form { parts, basic } = form(oauth2, &endpoint.url, endpoint.secret_in_form)?;
        let (media, body) = match oauth2.as_json {
            true => {
                let members = parts.into_iter();
                let members = members.map(|(name, text)| (name.to_owned(), Value::String(text)));
                let body = Value::Object(members.collect()).to_string();
                ("application/json", body)
            }
            false => {
                let body = Serializer::new(String::new()).extend_pairs(parts).finish();
                ("application/x-www-form-urlencoded", body)
            }
        };
        let make = |url| {
            let request = self
                .http
                .request(Method::POST, url)
                .header(CONTENT_TYPE, media)
                .header(ACCEPT, "application/json");
            let request = match &basic {
                Some(basic) => request.header(AUTHORIZATION, basic),
                None => request,
            };
            Ok(request.body(body.clone()))
        };
        let answer = self.http.send_as_is(&endpoint.url, &what, make).await?;
        parse(&answer, &what, oauth2, self.http.now())
    }

    async fn endpoint(&self, oauth2: &OAuth2, hints: &Hints) -> Result<Endpoint, CallError> {
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
        if oauth2.is_exact() {
            return self.stated(&oauth2.found, authority).await;
        }
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

    /// The endpoint where the definition says that it is.
    async fn stated(&self, found: &TokenEndpoint, authority: Url) -> Result<Endpoint, CallError> {
        const CONFIGURATION: &str = "/.well-known/openid-configuration";
        let base = authority.path().trim_end_matches('/').to_owned();
        let mut url = authority;
        let is_configuration = base.ends_with(CONFIGURATION);
        if let (TokenEndpoint::Path(path), false) = (found, is_configuration) {
            if let Ok(url) = http_url(path, "the token endpoint") {
                return Ok(direct(url));
            }
            url.set_path(&format!("{base}/{}", path.trim_start_matches('/')));
            return Ok(direct(url));
        }
        if !is_configuration {
            url.set_path(&format!("{base}{CONFIGURATION}"));
        }
        let message = format!(
            "there is no OpenID configuration with a token endpoint at {}",
            shown(&url)
        );
        self.discover(url).await?.ok_or_else(|| refuse(message))
    }

    /// The endpoint that a configuration names, or `None` if there is no configuration.
    async fn discover(&self, url: Url) -> Result<Option<Endpoint>, CallError> {
        let what = format!("OAuth2 discovery: GET {}", shown(&url));
        let make = |url| {
            let request = self.http.request(Method::GET, url);
            Ok(request.header(ACCEPT, "application/json"))
        };
        let answer = self.http.send_as_is(&url, &what, make).await?;
        if CallError::new(CallErrorKind::Status(answer.status), "").can_retry {
            let mut error = refuse(format!("{what}: {}", answer.status));
            error.can_retry = true;
            error.retry_after = answer.retry_after();
            return Err(error);
        }
        if answer.status != 200 {
            return Ok(None);
        }
        let found = answer.json();
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

fn parse(answer: &Answer, what: &str, oauth2: &OAuth2, now: Duration) -> Result<Token, CallError> {
    let body = answer.json();
    let text = |key: &str| body.get(key).and_then(Value::as_str);
    if answer.status != 200 {
        let secrets = [
            &oauth2.client_secret,
            &oauth2.password,
            &oauth2.subject_token,
            &oauth2.actor_token,
            &oauth2.client_assertion,
        ];
        let secrets: Vec<_> = secrets
            .into_iter()
            .flatten()
            .map(|secret| secret.expose().to_owned())
            .collect();
        let mut message = format!("{what}: {}", answer.status);
        for key in ["error", "error_description"] {
            if let Some(text) = text(key) {
                message.push_str(&format!(": {}", beginning(text, &secrets, 200)));
            }
        }
        let mut error = refuse(redact(&message, &secrets));
        error.can_retry = CallError::new(CallErrorKind::Status(answer.status), "").can_retry;
        error.retry_after = answer.retry_after();
        return Err(error);
    }
    let token = text("access_token").filter(|token| !token.is_empty());
    let token = token.ok_or_else(|| refuse(format!("{what}: the answer has no `access_token`")))?;
    token::check_issuer(token, &oauth2.issuers)
        .map_err(|reason| refuse(format!("{what}: {reason}")))?;
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
    let renew_at = now + (life - LEEWAY.min(life / 10));
    Ok(Token {
        text: Secret::new(token),
        renew_at,
    })
}
