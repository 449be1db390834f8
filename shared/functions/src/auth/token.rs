//! JSON Web Tokens: whom one is from, and those that a client makes of its secret.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::{Value, json};

use super::Secret;

/// How long such a token is valid, in seconds.
const LIFE_S: u64 = 300;

/// # Errors
/// The token is a JWT from somebody else, as a clause.
pub(super) fn check_issuer(token: &str, issuers: &[String]) -> Result<(), String> {
    let payload = token.split('.').nth(1);
    let payload = payload.and_then(|part| URL_SAFE_NO_PAD.decode(part.trim_end_matches('=')).ok());
    let claims = payload.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    // Any other token tells nothing.
    let Some(claims) = claims.filter(|_| !issuers.is_empty()) else {
        return Ok(());
    };
    match claims.get("iss").and_then(Value::as_str) {
        Some(issuer) if issuers.iter().any(|known| known == issuer) => Ok(()),
        Some(_) => Err("the token's issuer isn't one of `issuers`".to_owned()),
        None => Err("the token names no issuer, and the definition lists `issuers`".to_owned()),
    }
}

/// `client_secret_jwt` (OpenID Connect Core, section 9). `now_s` is unix time.
///
/// # Errors
/// There is no random number, as a sentence.
pub(super) fn signed(
    client: &str,
    secret: &Secret,
    audience: &str,
    now_s: u64,
) -> Result<String, String> {
    let mut id = [0; 16];
    let random = SystemRandom::new().fill(&mut id);
    random.map_err(|_| "OAuth2: the system's random number generator failed".to_owned())?;
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let claims = json!({
        "iss": client, "sub": client, "aud": audience, "jti": URL_SAFE_NO_PAD.encode(id),
        "iat": now_s, "exp": now_s + LIFE_S,
    });
    let text = format!(
        "{}.{}",
        part(&json!({"alg": "HS256", "typ": "JWT"})),
        part(&claims)
    );
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes());
    let tag = hmac::sign(&key, text.as_bytes());
    Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(tag)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jwt_is_from_one_of_the_issuers() {
        let issuers = vec!["https://idp".to_owned()];
        let token = |claims: &str| format!("e30.{}.x", URL_SAFE_NO_PAD.encode(claims));
        assert!(check_issuer(&token("{\"iss\":\"https://idp\"}"), &issuers).is_ok());
        assert!(check_issuer(&token("{\"iss\":\"https://eve\"}"), &issuers).is_err());
        assert!(check_issuer(&token("{}"), &issuers).is_err());
        assert!(check_issuer(&token("{}"), &[]).is_ok());
        assert!(check_issuer("opaque.token", &issuers).is_ok());
    }

    #[test]
    fn a_signed_token_has_its_claims() {
        let made = signed("c", &Secret::new("s"), "https://idp/token", 1000).unwrap();
        let parts: Vec<&str> = made.split('.').collect();
        assert_eq!(parts.len(), 3);
        let claims = URL_SAFE_NO_PAD.decode(parts[1]).unwrap();
        let claims: Value = serde_json::from_slice(&claims).unwrap();
        assert_eq!(claims["aud"], "https://idp/token");
        assert_eq!(claims["exp"], 1300);
    }
}
