//! The visitor of a page: the cookie, the session behind it, and the forms that may be sent.

use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use futures::StreamExt;
use swirl_api::Reason;
use swirl_api::overview::{ME, Me};
use swirl_http_server::BodyError;
use url::form_urlencoded;

use crate::answer::Failure;
use crate::asking::Asking;
use crate::console::Console;
use crate::multipart::{self, Part};

const COOKIE: &str = "swirl_console";
/// The largest form without a limit of its own, in bytes.
const FORM_BYTES_MAX: usize = 256 << 10;

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
    let mut response = as_page(next.run(request).await).await;
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
        headers.append(header::SET_COOKIE, value);
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

/// The longest reason of a library that is shown, in bytes.
const REASON_BYTES_MAX: usize = 4 << 10;

/// A request that no handler got, because its address or its method is wrong, is refused by the library with a bare
/// sentence or nothing. People get a page.
async fn as_page(response: Response) -> Response {
    let status = response.status();
    let kind = response.headers().get(header::CONTENT_TYPE);
    let is_bare = kind.is_none_or(|kind| kind.as_bytes().starts_with(b"text/plain"));
    let is_refusal = status.is_client_error() && status != StatusCode::UNAUTHORIZED;
    if !is_bare || !is_refusal {
        return response;
    }
    let said = to_bytes(response.into_body(), REASON_BYTES_MAX).await;
    let said = said.unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let detail = said.replacen("Failed to deserialize query string: ", "", 1);
    let detail = match detail.split_once("duplicate field `") {
        Some((_, name)) => {
            let name = name.trim_end_matches('`');
            format!("the address has '{name}' twice")
        }
        None if detail.is_empty() => status.canonical_reason().unwrap_or_default().to_owned(),
        None => detail,
    };
    Failure::new(status, detail).into_response()
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

/// The largest form that a route takes, in bytes: an extension of the route.
#[derive(Clone, Copy)]
pub struct FormLimit(pub usize);

/// The form is taken from browsers without a session, too: an extension of the route.
#[derive(Clone, Copy)]
pub struct ForStrangers;

/// Only visitors who may deploy send this form: an extension of the route. It is refused before it is read, since it may be
/// large.
#[derive(Clone, Copy)]
pub struct ForDeployers;

/// A form that one of our pages sent. Its first field is the token that only our pages have, so everything else is
/// read only after that token and the session have been checked.
#[derive(Default)]
pub struct Form {
    fields: Vec<(String, String)>,
    /// The files that were chosen, in forms with files.
    pub files: Vec<FormFile>,
}

/// A file of a form.
pub struct FormFile {
    /// Its name, in a folder with the path from there.
    pub path: String,
    pub content: Vec<u8>,
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

    /// The reason that was filled in.
    pub fn reason_query(&self) -> Reason {
        Reason {
            reason: self.given("reason").map(str::to_owned),
        }
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
            files: Vec::new(),
        }
    }

    /// The fields and files of a form with files. A script that sends a file of a folder puts a field with its path
    /// before it.
    fn of_parts(parts: Vec<Part>) -> Form {
        let (mut form, mut path) = (Form::default(), None);
        for Part {
            name,
            file,
            content,
        } in parts
        {
            let Some(file) = file else {
                let text = String::from_utf8_lossy(&content).into_owned();
                match &*name {
                    "path" => path = Some(text),
                    _ => form.fields.push((name, text)),
                }
                continue;
            };
            let path = path.take().unwrap_or(file);
            // Of a field in which nothing was chosen.
            if !path.is_empty() {
                form.files.push(FormFile { path, content });
            }
        }
        form
    }
}

impl FromRequest<Console> for Form {
    type Rejection = Failure;

    async fn from_request(request: Request, console: &Console) -> Result<Self, Failure> {
        if !is_own(request.headers()) {
            return Err(forged());
        }
        let (mut parts, body) = request.into_parts();
        let visitor = Visitor::from_request_parts(&mut parts, console).await?;
        if parts.extensions.get::<ForStrangers>().is_none() {
            let me = visitor.asking.ask(ME.ask()).await?;
            if parts.extensions.get::<ForDeployers>().is_some() && !has_role(&me, "deployer") {
                let detail = "deploying needs the role 'deployer', which you don't have here";
                return Err(Failure::new(StatusCode::FORBIDDEN, detail));
            }
        }
        let limit = parts.extensions.get::<FormLimit>();
        let limit = limit.map_or(FORM_BYTES_MAX, |limit| limit.0);
        let kind = parts.headers.get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if let Some(boundary) = multipart::boundary(kind) {
            let first = multipart::beginning(boundary, "csrf", &visitor.csrf);
            let bytes = read(body, limit, &first, b"\r\n").await?;
            let parts = multipart::parts(&bytes, boundary).ok_or_else(cut_off)?;
            return Ok(Form::of_parts(parts));
        }
        let bytes = read(body, limit, &format!("csrf={}", visitor.csrf), b"&").await?;
        Ok(Form {
            fields: form_urlencoded::parse(&bytes).into_owned().collect(),
            files: Vec::new(),
        })
    }
}

/// Whether a visitor may do what needs this role.
pub fn has_role(me: &Me, role: &str) -> bool {
    me.open || me.roles.iter().any(|one| one == role || one == "admin")
}

fn forged() -> Failure {
    let detail = "this form was not sent by a page of this console, or the page is too old: go back, load it again, and \
                  send it once more";
    Failure::new(StatusCode::FORBIDDEN, detail)
}

fn cut_off() -> Failure {
    Failure::new(
        StatusCode::BAD_REQUEST,
        "the form ended before it was complete",
    )
}

/// Reads a form of at most `limit` bytes, if it begins with this field. `next`: what follows the field, unless it is all.
async fn read(body: Body, limit: usize, first: &str, next: &[u8]) -> Result<Vec<u8>, Failure> {
    let too_large = || {
        let detail = format!("the form is larger than {limit} bytes");
        Failure::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
    };
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    let mut pieces = body.into_data_stream();
    let (mut bytes, mut is_ours) = (Vec::new(), false);
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| unread(&error))?;
        if bytes.len() + piece.len() > limit {
            return Err(too_large());
        }
        bytes.extend_from_slice(&piece);
        if !is_ours && bytes.len() >= first.len() {
            is_ours = begins(&bytes, first, next);
            if !is_ours {
                return Err(forged());
            }
        }
    }
    match is_ours {
        true => Ok(bytes),
        false => Err(forged()),
    }
}

/// Whether a form begins with this field. Hashes are compared, so that timing reveals nothing.
fn begins(form: &[u8], field: &str, next: &[u8]) -> bool {
    let Some((given, rest)) = form.split_at_checked(field.len()) else {
        return false;
    };
    let is_whole = next.starts_with(rest) || rest.starts_with(next);
    blake3::hash(given) == blake3::hash(field.as_bytes()) && is_whole
}

/// Why a form was not read to its end.
fn unread(error: &axum::Error) -> Failure {
    let Some(error) = BodyError::of(error) else {
        return cut_off();
    };
    let status = match error {
        BodyError::TooSlow { .. } => StatusCode::REQUEST_TIMEOUT,
        BodyError::NoRoom => StatusCode::SERVICE_UNAVAILABLE,
    };
    Failure::new(status, error.to_string())
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

    #[tokio::test]
    async fn a_form_is_read_only_after_its_first_field() {
        let first = "csrf=a1b2";
        let read = |body, limit, first| read(body, limit, first, b"&");
        let ours = read(Body::from("csrf=a1b2&x=1"), 20, first).await;
        assert_eq!(ours.unwrap(), b"csrf=a1b2&x=1");
        assert!(read(Body::from("csrf=a1b2"), 20, first).await.is_ok());
        for forged in [
            "",
            "csrf=a1b",
            "csrf=a1b3&x=1",
            "csrf=a1b20",
            "x=1&csrf=a1b2",
        ] {
            let failed = read(Body::from(forged), 20, first).await.unwrap_err();
            assert_eq!(failed.status, StatusCode::FORBIDDEN, "{forged}");
        }
        let pieces = |pieces: &[&'static str]| {
            let pieces: Vec<Result<_, std::convert::Infallible>> =
                pieces.iter().map(|piece| Ok(*piece)).collect();
            futures::stream::iter(pieces)
        };
        // The rest never comes, and nobody waits for it.
        let begun = pieces(&["csrf=a", "1b3"]).chain(futures::stream::pending());
        let failed = read(Body::from_stream(begun), 20, first).await;
        assert_eq!(failed.unwrap_err().status, StatusCode::FORBIDDEN);
        for large in [
            Body::from("csrf=a1b2&x=23456789012"),
            Body::from_stream(pieces(&["csrf=a1b2&x", "=23456789012"])),
        ] {
            let failed = read(large, 20, first).await.unwrap_err();
            assert_eq!(failed.status, StatusCode::PAYLOAD_TOO_LARGE);
        }
    }

    #[tokio::test]
    async fn a_form_with_files_begins_with_the_same_field() {
        let first = multipart::beginning("x", "csrf", "a1b2");
        let (boundary, end) = ("\r\n--x", "--\r\n");
        for (form, ours) in [
            (format!("{first}{boundary}{end}"), true),
            (format!("{first}c{boundary}{end}"), false),
            (first.replace("a1b2", "a1b3") + boundary, false),
        ] {
            let read = read(Body::from(form.clone()), 200, &first, b"\r\n").await;
            assert_eq!(read.is_ok(), ours, "{form}");
        }
        let file = |name: &str, content: &str| Part {
            name: "file".to_owned(),
            file: Some(name.to_owned()),
            content: content.into(),
        };
        let text = |name: &str, content: &str| Part {
            file: None,
            name: name.to_owned(),
            ..file("", content)
        };
        let form = Form::of_parts(vec![
            text("do", "check"),
            file("", ""),
            text("path", "a/b.yaml"),
            file("b.yaml", "1"),
            file("c.yaml", "2"),
        ]);
        assert_eq!(form.get("do"), "check");
        let found = form.files.iter().map(|one| (&*one.path, &*one.content));
        let expected: [(&str, &[u8]); 2] = [("a/b.yaml", b"1"), ("c.yaml", b"2")];
        assert_eq!(found.collect::<Vec<_>>(), expected);
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
