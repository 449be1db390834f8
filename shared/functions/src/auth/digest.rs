//! HTTP digest authentication (RFC 7616): the service's challenge, and the answer to it.

use digest_auth::{AuthContext, HttpMethod, WwwAuthenticateHeader};
use reqwest::header::{HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use url::Url;

use super::Secret;
use crate::{CallError, CallErrorKind};

/// The `Authorization` header that answers the first challenge that can be answered, or `None` if the service demands no
/// digest.
///
/// # Errors
/// No challenge can be answered.
pub(crate) fn answer(
    challenge: &HeaderMap,
    (username, password): (&str, &Secret),
    request: (&str, &Url, Option<&[u8]>),
) -> Result<Option<HeaderValue>, CallError> {
    let values = challenge.get_all(WWW_AUTHENTICATE).into_iter();
    let values = values.filter_map(|value| value.to_str().ok());
    let mut reason = None;
    for digest in values.flat_map(digests) {
        match respond(&digest, (username, password), request) {
            Ok(answer) => return Ok(Some(answer)),
            Err(error) => reason = reason.or(Some(error)),
        }
    }
    reason.map_or(Ok(None), |reason| {
        let message = format!("the service's digest challenge can't be answered: {reason}");
        Err(CallError::new(CallErrorKind::Auth, message))
    })
}

/// The parameters of the digests in a header, which may have several challenges.
fn digests(header: &str) -> Vec<String> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let parts = header.split(|c: char| {
        is_quoted ^= c == '"' && !is_escaped;
        is_escaped = is_quoted && c == '\\' && !is_escaped;
        c == ',' && !is_quoted
    });
    let mut found: Vec<String> = Vec::new();
    let mut is_digest = false;
    for part in parts.map(str::trim).filter(|part| !part.is_empty()) {
        // A challenge begins with its scheme, any other part with the name of a parameter.
        let (scheme, rest) = part.split_once(' ').unwrap_or((part, ""));
        if !scheme.contains('=') && !rest.trim_start().starts_with('=') {
            is_digest = scheme.eq_ignore_ascii_case("digest");
            if is_digest {
                found.push(rest.to_owned());
            }
        } else if let Some(own) = found.last_mut().filter(|_| is_digest) {
            own.push_str(", ");
            own.push_str(part);
        }
    }
    found
}

/// Answers one challenge.
fn respond(
    digest: &str,
    (username, password): (&str, &Secret),
    (method, url, body): (&str, &Url, Option<&[u8]>),
) -> Result<HeaderValue, String> {
    let mut prompt = WwwAuthenticateHeader::parse(digest).map_err(|error| error.to_string())?;
    let target = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    let method = HttpMethod::from(method);
    let context = AuthContext::new_with_method(username, password.expose(), target, body, method);
    let answer = prompt.respond(&context);
    let answer = answer.map_err(|error| error.to_string())?;
    let mut value = HeaderValue::from_str(&answer.to_header_string())
        .map_err(|_| "it has a character that a header cannot have".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_may_have_several_challenges() {
        for (header, expected) in [
            ("Basic realm=\"a, Digest x\"", vec![]),
            (
                r#"Digest realm="a\"b", qop="auth,auth-int", nonce=c"#,
                vec![r#"realm="a\"b", qop="auth,auth-int", nonce=c"#],
            ),
            (
                "digest realm=\"a\",nonce=\"b\"",
                vec!["realm=\"a\", nonce=\"b\""],
            ),
            (
                "Negotiate, Digest realm = \"a\", algorithm=MD5, Basic realm=\"x\", Digest realm=\"b\"",
                vec!["realm = \"a\", algorithm=MD5", "realm=\"b\""],
            ),
        ] {
            assert_eq!(digests(header), expected, "{header}");
        }
    }

    #[test]
    fn the_first_digest_that_can_be_answered_is() {
        let mut headers = HeaderMap::new();
        let unknown = "Digest realm=\"r\", nonce=\"n\", algorithm=KLINGON";
        headers.append(WWW_AUTHENTICATE, HeaderValue::from_static(unknown));
        let url = Url::parse("http://h/").unwrap();
        let password = Secret::new("Circle of Life");
        let give = |headers: &HeaderMap| answer(headers, ("M", &password), ("GET", &url, None));
        assert!(give(&headers).is_err());
        let known = "Basic realm=\"x\", Digest realm=\"other\", nonce=\"n\"";
        headers.append(WWW_AUTHENTICATE, HeaderValue::from_static(known));
        let given = give(&headers).unwrap().unwrap();
        assert!(given.to_str().unwrap().contains("realm=\"other\""));
    }

    #[test]
    fn the_first_digest_challenge_is_answered() {
        let mut headers = HeaderMap::new();
        let basic = HeaderValue::from_static("Basic realm=\"r\"");
        headers.append(WWW_AUTHENTICATE, basic);
        let url = Url::parse("http://h/dir/index.html?a=1").unwrap();
        let password = Secret::new("Circle of Life");
        let give = |headers: &HeaderMap| {
            answer(headers, ("Mufasa", &password), ("GET", &url, None)).unwrap()
        };
        assert_eq!(give(&headers), None);
        let digest = "Digest realm=\"http-auth@example.org\", qop=\"auth\", algorithm=SHA-256, nonce=\"7ypf\"";
        headers.append(WWW_AUTHENTICATE, HeaderValue::from_static(digest));
        let given = give(&headers).unwrap();
        let given = given.to_str().unwrap();
        for part in [
            "username=\"Mufasa\"",
            "uri=\"/dir/index.html?a=1\"",
            "qop=auth",
            "nc=00000001",
        ] {
            assert!(given.contains(part), "{given}");
        }
        assert!(!given.contains("Circle"), "{given}");
    }
}
