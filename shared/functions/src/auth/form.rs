//! The parameters of a token request.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::HeaderValue;
use url::Url;
use url::form_urlencoded::byte_serialize;

use super::grant::{ClientAuthentication, GrantType, OAuth2};
use super::{Secret, token};
use crate::{CallError, CallErrorKind};

const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

pub(super) struct Form {
    pub(super) parts: Vec<(&'static str, String)>,
    /// The `Authorization` header.
    pub(super) basic: Option<HeaderValue>,
}

impl Form {
    fn add(&mut self, name: &'static str, value: &str) {
        self.parts.push((name, value.to_owned()));
    }

    fn add_some(&mut self, name: &'static str, value: Option<&str>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }
}

/// `secret_in_form`: the endpoint accepts the client's secret only there.
pub(super) fn form(
    oauth2: &OAuth2,
    endpoint: &Url,
    secret_in_form: bool,
) -> Result<Form, CallError> {
    let mut form = Form {
        parts: Vec::new(),
        basic: None,
    };
    grant(oauth2, &mut form)?;
    let scope = oauth2.scopes.join(" ");
    form.add_some(
        "scope",
        Some(scope.as_str()).filter(|scope| !scope.is_empty()),
    );
    client(oauth2, endpoint, secret_in_form, &mut form)?;
    Ok(form)
}

fn grant(oauth2: &OAuth2, form: &mut Form) -> Result<(), CallError> {
    let need = |name: &str| {
        refuse(format!(
            "OAuth2: this grant type needs `{name}`, which the auth definition lacks"
        ))
    };
    let subject = oauth2.subject_token.as_ref().map(Secret::expose);
    match oauth2.grant_type {
        GrantType::ClientCredentials => form.add("grant_type", "client_credentials"),
        GrantType::Password => {
            let password = oauth2.password.as_ref().ok_or_else(|| need("password"))?;
            let username = oauth2.username.as_deref();
            form.add("grant_type", "password");
            form.add("username", username.ok_or_else(|| need("username"))?);
            form.add("password", password.expose());
        }
        // The language has no property for the code and the token of these two, so they are the subject's.
        GrantType::AuthorizationCode => {
            form.add("grant_type", "authorization_code");
            form.add_some("code", subject);
        }
        GrantType::RefreshToken => {
            form.add("grant_type", "refresh_token");
            form.add_some("refresh_token", subject);
        }
        GrantType::TokenExchange => {
            subject.ok_or_else(|| need("subjectToken"))?;
            let word = "urn:ietf:params:oauth:grant-type:token-exchange";
            form.add("grant_type", word);
        }
    }
    let is_subject = !matches!(
        oauth2.grant_type,
        GrantType::AuthorizationCode | GrantType::RefreshToken
    );
    if let Some(subject) = subject.filter(|_| is_subject) {
        let kind = oauth2.subject_token_type.as_deref();
        form.add("subject_token", subject);
        form.add("subject_token_type", kind.unwrap_or(ACCESS_TOKEN));
    }
    if let Some(actor) = &oauth2.actor_token {
        let kind = oauth2.actor_token_type.as_deref();
        form.add("actor_token", actor.expose());
        form.add("actor_token_type", kind.unwrap_or(ACCESS_TOKEN));
    }
    form.add_some("requested_subject", oauth2.requested_subject.as_deref());
    form.add_some("requested_issuer", oauth2.requested_issuer.as_deref());
    if oauth2.is_exact() {
        let audience = oauth2.audiences.join(" ");
        let audience = Some(audience.as_str()).filter(|audience| !audience.is_empty());
        form.add_some("audience", audience);
    } else {
        for audience in &oauth2.audiences {
            form.add("audience", audience);
        }
    }
    Ok(())
}

/// Adds the client's id and its credentials.
fn client(
    oauth2: &OAuth2,
    endpoint: &Url,
    secret_in_form: bool,
    form: &mut Form,
) -> Result<(), CallError> {
    use ClientAuthentication::{None, Offered, PrivateKeyJwt, SecretBasic, SecretJwt, SecretPost};
    let secret = oauth2.client_secret.as_ref();
    let id = Some(oauth2.client_id.as_str()).filter(|id| !id.is_empty());
    let need = |name: &str| {
        let message = format!("OAuth2: this authentication of the client needs its `{name}`");
        refuse(message)
    };
    match oauth2.client_authentication {
        SecretBasic => {
            let secret = secret.ok_or_else(|| need("secret"))?;
            form.basic = Some(basic(&oauth2.client_id, secret)?);
        }
        Offered if !secret_in_form && secret.is_some() => {
            let basic = secret.map(|secret| basic(&oauth2.client_id, secret));
            form.basic = basic.transpose()?;
        }
        Offered | SecretPost => {
            form.add_some("client_id", id);
            form.add_some("client_secret", secret.map(Secret::expose));
        }
        method @ (SecretJwt | PrivateKeyJwt) => {
            let given = oauth2.client_assertion.as_ref();
            let assertion = match (given, method, secret) {
                (Some(given), _, _) => given.expose().to_owned(),
                (Option::None, SecretJwt, Some(secret)) => {
                    let now = std::time::SystemTime::now();
                    let now = now.duration_since(std::time::UNIX_EPOCH);
                    let now_s = now.map_or(0, |now| now.as_secs());
                    token::signed(&oauth2.client_id, secret, endpoint.as_str(), now_s)
                        .map_err(refuse)?
                }
                _ => return Err(need("assertion")),
            };
            form.add_some("client_id", id);
            form.add("client_assertion_type", ASSERTION);
            form.add("client_assertion", &assertion);
        }
        None => form.add_some("client_id", id),
    }
    Ok(())
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

fn refuse(message: impl Into<String>) -> CallError {
    CallError::new(CallErrorKind::Auth, message)
}
