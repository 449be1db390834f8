//! Places credentials: the document defines where they go, and the workflow's `auth` provides them.
//!
//! The mechanism that a document requires takes precedence (language 0.8, "Function Definition"). The definition's
//! credentials are used for it if they fit: user and password for HTTP basic, a token for bearer schemes and API keys.
//! Credentials that don't fit are an error, because otherwise they would be ignored.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use swirl_model::workflow::AuthScheme;

use super::operation::{Location, Operation, Scheme};
use super::request::Request;
use super::style;
use crate::auth::Auth;
use crate::types::StaticValue;
use crate::{CallError, CallErrorKind};

/// A document's name for a digest.
const DIGEST: &str = "HTTP digest";

/// The way in which a credential is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Carrier {
    Basic,
    Bearer,
    Digest,
    ApiKey { location: Location, name: String },
}

/// Chooses how to send the credentials of `auth`.
///
/// # Errors
/// None of the operation's alternatives accepts them.
pub(crate) fn carrier(
    operation: &Operation,
    request: &Request,
    auth: &Auth,
) -> Result<Carrier, CallError> {
    let own = match auth {
        Auth::Basic { .. } => Carrier::Basic,
        Auth::Digest { .. } => Carrier::Digest,
        Auth::Bearer { .. } | Auth::OAuth2(_) => Carrier::Bearer,
    };
    let mut is_open_to_any = operation.security.is_empty();
    for alternative in &operation.security {
        let open: Vec<_> = alternative
            .iter()
            .filter(|scheme| !is_given(request, scheme))
            .collect();
        match open.as_slice() {
            [] => is_open_to_any = true,
            [scheme] => match (scheme, &own) {
                (Scheme::Basic, Carrier::Basic) | (Scheme::Bearer { .. }, Carrier::Bearer) => {
                    return Ok(own);
                }
                (Scheme::Other(name), Carrier::Digest) if name == DIGEST => return Ok(own),
                (Scheme::ApiKey { location, name }, Carrier::Bearer) => {
                    return Ok(Carrier::ApiKey {
                        location: *location,
                        name: name.clone(),
                    });
                }
                _ => {}
            },
            // One credential can't satisfy two schemes.
            _ => {}
        }
    }
    if is_open_to_any {
        return Ok(own);
    }
    let message = format!(
        "operation `{}` asks for {}; the function's auth of scheme `{}` cannot give that",
        operation.id,
        wanted(operation),
        auth.scheme(),
    );
    Err(CallError::new(CallErrorKind::Auth, message))
}

/// The reason why credentials of this kind can never be sent with these arguments, or `None` if they can.
pub(crate) fn misfit(
    operation: &Operation,
    scheme: AuthScheme,
    arguments: &StaticValue,
) -> Option<String> {
    let may_be_given = |scheme: &Scheme| match (scheme, arguments) {
        (Scheme::ApiKey { location, name }, StaticValue::Object(members)) => {
            let qualified = format!("{}.{name}", location.name());
            let mut names = members.iter().map(|(name, _)| name);
            names.any(|given| given == name || *given == qualified)
        }
        (Scheme::ApiKey { .. }, StaticValue::Unknown) => true,
        _ => false,
    };
    let fits = |alternative: &Vec<Scheme>| {
        let open: Vec<&Scheme> = alternative
            .iter()
            .filter(|scheme| !may_be_given(scheme))
            .collect();
        match (&open[..], scheme) {
            ([], _) | ([Scheme::Basic], AuthScheme::Basic) => true,
            ([Scheme::Other(name)], AuthScheme::Digest) => name == DIGEST,
            ([Scheme::Bearer { .. } | Scheme::ApiKey { .. }], scheme) => {
                !matches!(scheme, AuthScheme::Basic | AuthScheme::Digest)
            }
            _ => false,
        }
    };
    if operation.security.is_empty() || operation.security.iter().any(fits) {
        return None;
    }
    let word = match scheme {
        AuthScheme::Basic => "basic",
        AuthScheme::Bearer => "bearer",
        AuthScheme::Digest => "digest",
        AuthScheme::OAuth2 => "oauth2",
    };
    Some(format!(
        "operation `{}` asks for {}; the function's auth of scheme `{word}` cannot give that",
        operation.id,
        wanted(operation),
    ))
}

fn is_given(request: &Request, scheme: &Scheme) -> bool {
    matches!(scheme, Scheme::ApiKey { location, name }
        if request.keys_given.iter().any(|(l, n)| l == location && n == name))
}

/// The operation's security requirements as a phrase, or an empty text if it has none.
pub(crate) fn wanted(operation: &Operation) -> String {
    if operation.security.iter().any(Vec::is_empty) {
        return String::new();
    }
    let together = |alternative: &Vec<Scheme>| {
        alternative
            .iter()
            .map(Scheme::describe)
            .collect::<Vec<_>>()
            .join(" and ")
    };
    operation
        .security
        .iter()
        .map(together)
        .collect::<Vec<_>>()
        .join(" or ")
}

/// Puts a user and password, or a token (without `user`), into a request.
pub(crate) fn place(
    request: &mut Request,
    carrier: &Carrier,
    user: Option<&str>,
    secret: &str,
) -> Result<(), CallError> {
    if !matches!(carrier, Carrier::ApiKey { .. }) && request.headers.contains_key("authorization") {
        let message = "the argument `Authorization` and the function's auth can't be combined";
        return Err(CallError::arguments(message));
    }
    request.secrets.push(secret.to_owned());
    let placed = match carrier {
        Carrier::Basic => {
            let encoded = STANDARD.encode(format!("{}:{secret}", user.unwrap_or_default()));
            request.secrets.push(encoded.clone());
            request.set_header("authorization", &format!("Basic {encoded}"), true)
        }
        Carrier::Bearer => request.set_header("authorization", &format!("Bearer {secret}"), true),
        // It is made for a challenge.
        Carrier::Digest => Ok(()),
        Carrier::ApiKey { location, name } => match location {
            Location::Header => request.set_header(name, secret, true),
            Location::Cookie => {
                request
                    .cookies
                    .push((style::encode(name), style::encode(secret)));
                Ok(())
            }
            Location::Query | Location::Path => {
                request.add_query(&style::encode(name), &style::encode(secret));
                Ok(())
            }
        },
    };
    placed.map_err(|reason| CallError::new(CallErrorKind::Auth, reason))
}
