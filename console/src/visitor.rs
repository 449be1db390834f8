//! The visitor of a page: the cookie, the session behind it, and the forms that may be sent.

use axum::body::to_bytes;
use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use url::form_urlencoded;

use crate::answer::Failure;
use crate::asking::Asking;
use crate::console::Console;

const COOKIE: &str = "swirl_console";
/// The largest form, in bytes: one with a definition in it.
const FORM_BYTES_MAX: usize = 4 << 20;

/// Allows only the console's own files, and forms only to the console.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; \
     connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// An extension of answers: the scripts of this page may add style sheets that have this nonce.
#[derive(Clone)]
pub struct StyleNonce(pub String);

/// The name that was drawn for a browser.
#[derive(Clone)]
pub struct Ticket(pub String);

/// A name that cannot be guessed.
pub fn draw() -> Result<String, Failure> {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        let detail = format!("no random number can be drawn: {error}");
        Failure::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    })?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn cookie(name: &str, secure: bool) -> String {
    let secure = if secure { "; Secure" } else { "" };
    format!("{COOKIE}={name}; Path=/console; HttpOnly; SameSite=Lax{secure}")
}

/// Gives each browser a name, and each answer its security headers.
pub async fn enter(State(console): State<Console>, mut request: Request, next: Next) -> Response {
    let known = named(request.headers());
    let name = match known.clone().map_or_else(draw, Ok) {
        Ok(name) => name,
        Err(failure) => return failure.into_response(),
    };
    request.extensions_mut().insert(Ticket(name.clone()));
    let back = match (request.method(), request.uri().path_and_query()) {
        (&Method::GET, Some(path)) => format!("/console{path}"),
        _ => "/console/".to_owned(),
    };
    let secure = is_secure(&console, request.headers());
    let mut response = next.run(request).await;
    if response.status() == StatusCode::UNAUTHORIZED {
        console.sessions.end(&name);
        let query: String = form_urlencoded::Serializer::new(String::new())
            .append_pair("next", &back)
            .finish();
        response = Redirect::to(&format!("/console/sign-in?{query}")).into_response();
    }
    // Signing in or out changes the name.
    let renamed = response.extensions_mut().remove::<Ticket>();
    let renamed = renamed.map(|Ticket(name)| name);
    let nonce = response.extensions_mut().remove::<StyleNonce>();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, policy(nonce.as_ref()));
    let given = renamed.or(known.is_none().then_some(name));
    if let Some(given) = given
        && let Ok(value) = HeaderValue::try_from(cookie(&given, secure))
    {
        headers.insert(header::SET_COOKIE, value);
    }
    for (name, value) in [
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Whether the browser speaks TLS, with us or with a proxy.
pub fn is_secure(console: &Console, headers: &HeaderMap) -> bool {
    let proxied = headers.get("x-forwarded-proto");
    console.secure || proxied.is_some_and(|scheme| scheme == "https")
}

fn policy(nonce: Option<&StyleNonce>) -> HeaderValue {
    let with_nonce = nonce.and_then(|StyleNonce(nonce)| {
        let styles = format!("style-src 'self' 'nonce-{nonce}'");
        HeaderValue::try_from(POLICY.replace("style-src 'self'", &styles)).ok()
    });
    with_nonce.unwrap_or(HeaderValue::from_static(POLICY))
}

fn named(headers: &HeaderMap) -> Option<String> {
    let all = headers.get_all(header::COOKIE).iter();
    let mut pairs = all
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    let (_, name) = pairs.find(|(name, _)| *name == COOKIE)?;
    let is_ours = name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_ours.then(|| name.to_owned())
}

/// A visitor, and the API as it answers them.
pub struct Visitor {
    pub name: String,
    pub asking: Asking,
    /// Contained in each of the visitor's forms.
    pub csrf: String,
}

impl FromRequestParts<Console> for Visitor {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, console: &Console) -> Result<Self, Failure> {
        let Some(Ticket(name)) = parts.extensions.get::<Ticket>().cloned() else {
            let detail = "the console is set up wrongly: a layer is missing";
            return Err(Failure::new(StatusCode::INTERNAL_SERVER_ERROR, detail));
        };
        let asking = Asking {
            router: console.api.clone(),
            token: console.token(&name).await,
            from: parts.extensions.get().copied(),
            follows: None,
        };
        Ok(Visitor {
            csrf: console.csrf(&name),
            name,
            asking,
        })
    }
}

/// A form that one of our pages sent.
pub struct Form {
    fields: Vec<(String, String)>,
}

impl Form {
    /// The value of a field; empty if there is none.
    pub fn get(&self, name: &str) -> &str {
        let found = self.fields.iter().find(|(field, _)| field == name);
        found.map_or("", |(_, value)| value)
    }

    /// The values of all fields with this name.
    pub fn all(&self, name: &str) -> Vec<&str> {
        let found = self.fields.iter().filter(|(field, _)| field == name);
        found.map(|(_, value)| value.as_str()).collect()
    }

    /// The reason that was filled in, as a part of a request's query.
    pub fn reason(&self) -> Vec<(&str, &str)> {
        let given = self.given("reason");
        given.map(|reason| ("reason", reason)).into_iter().collect()
    }

    /// The value, if something was filled in.
    pub fn given(&self, name: &str) -> Option<&str> {
        Some(self.get(name).trim()).filter(|value| !value.is_empty())
    }

    #[cfg(test)]
    pub fn of(fields: &[(&str, &str)]) -> Form {
        let fields = fields.iter();
        Form {
            fields: fields
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        }
    }
}

impl FromRequest<Console> for Form {
    type Rejection = Failure;

    async fn from_request(request: Request, console: &Console) -> Result<Self, Failure> {
        let forged = || {
            let detail = "this form was not sent by a page of this console, or the page is too old: go back, load \
                          it again, and send it once more";
            Failure::new(StatusCode::FORBIDDEN, detail)
        };
        if !is_own(request.headers()) {
            return Err(forged());
        }
        let ticket = request.extensions().get::<Ticket>().cloned();
        let Some(Ticket(name)) = ticket else {
            return Err(forged());
        };
        let bytes = to_bytes(request.into_body(), FORM_BYTES_MAX).await;
        let bytes = bytes.map_err(|_| {
            let detail = format!("the form is larger than {FORM_BYTES_MAX} bytes");
            Failure::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
        })?;
        let form = Form {
            fields: form_urlencoded::parse(&bytes).into_owned().collect(),
        };
        // Hashes are compared, so that timing reveals nothing.
        let (sent, expected) = (form.get("csrf"), console.csrf(&name));
        if blake3::hash(sent.as_bytes()) != blake3::hash(expected.as_bytes()) {
            return Err(forged());
        }
        Ok(form)
    }
}

/// Whether the browser says that one of our pages sent this. Origins that may use the API may not use
/// the console.
fn is_own(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or(""));
    let site = text("sec-fetch-site").is_none_or(|site| matches!(site, "same-origin" | "none"));
    let origin = text("origin").is_none_or(|origin| {
        let host = origin.split_once("://").map(|(_, host)| host);
        host.is_some() && host == text("host")
    });
    site && origin
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        let all = all.iter();
        all.map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn forms_of_other_pages_are_not_ours() {
        let host = ("host", "swirl.test:8080");
        for (more, own) in [
            (&[][..], true),
            (&[("origin", "http://swirl.test:8080")], true),
            (&[("sec-fetch-site", "same-origin")], true),
            (&[("origin", "https://evil.test")], false),
            (&[("origin", "null")], false),
            (&[("sec-fetch-site", "cross-site")], false),
            (&[("sec-fetch-site", "same-site")], false),
        ] {
            let mut all = vec![host];
            all.extend(more);
            assert_eq!(is_own(&headers(&all)), own, "{more:?}");
        }
    }

    #[test]
    fn a_nonce_allows_style_sheets_and_nothing_else() {
        assert_eq!(policy(None), POLICY);
        let with_nonce = policy(Some(&StyleNonce("a1".to_owned())));
        let with_nonce = with_nonce.to_str().unwrap();
        assert_eq!(with_nonce.replace(" 'nonce-a1'", ""), POLICY);
        assert!(with_nonce.contains("; style-src 'self' 'nonce-a1'; script-src 'self';"));
    }

    #[test]
    fn a_cookie_is_read_among_others() {
        let name = "a1".repeat(32);
        let read = |value: &str| named(&headers(&[("cookie", value)]));
        let given = format!("x=1; {COOKIE}={name}; y=2");
        assert_eq!(read(&given), Some(name));
        for other in ["", "swirl_console=", "swirl_console=abc", "other=1"] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
