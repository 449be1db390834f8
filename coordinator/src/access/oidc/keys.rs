//! A provider's usable keys (JWKS, RFC 7517).

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey};
use serde_json::Value;

/// More than any provider has. Further keys are ignored.
const KEYS_MAX: usize = 100;

#[derive(Clone)]
pub(super) struct Key {
    pub id: Option<String>,
    /// The signature algorithms that it can check.
    pub algorithms: Vec<Algorithm>,
    pub key: DecodingKey,
}

/// Ignores keys that cannot be used here (for encryption, of unknown kinds, shared secrets), so that they don't make
/// the other keys unusable.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<Key>, String> {
    let document: Value = serde_json::from_slice(bytes)
        .map_err(|error| format!("this is not valid JSON: {error}"))?;
    let Some(keys) = document.get("keys").and_then(Value::as_array) else {
        return Err("this is not a JSON Web Key Set: it has no array 'keys'".to_owned());
    };
    let keys: Vec<Key> = keys.iter().take(KEYS_MAX).filter_map(key).collect();
    match keys.is_empty() {
        true => Err("none of its keys can be used".to_owned()),
        false => Ok(keys),
    }
}

fn key(value: &Value) -> Option<Key> {
    let jwk: Jwk = serde_json::from_value(value.clone()).ok()?;
    let common = &jwk.common;
    if matches!(&common.public_key_use, Some(other) if *other != PublicKeyUse::Signature) {
        return None;
    }
    let mut algorithms = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => AlgorithmFamily::Rsa.algorithms().to_vec(),
        AlgorithmParameters::EllipticCurve(key) => match key.curve {
            EllipticCurve::P256 => vec![Algorithm::ES256],
            EllipticCurve::P384 => vec![Algorithm::ES384],
            _ => return None,
        },
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
            vec![Algorithm::EdDSA]
        }
        _ => return None,
    };
    if let Some(only) = value.get("alg").and_then(Value::as_str) {
        let only: Algorithm = only.parse().ok()?;
        algorithms.retain(|algorithm| *algorithm == only);
    }
    let key = DecodingKey::from_jwk(&jwk).ok()?;
    (!algorithms.is_empty()).then_some(Key {
        id: common.key_id.clone(),
        algorithms,
        key,
    })
}

/// The key that a token names; if it names none, the only one that fits.
pub(super) fn pick<'k>(keys: &'k [Key], id: Option<&str>, algorithm: Algorithm) -> Option<&'k Key> {
    let mut fitting = keys
        .iter()
        .filter(|key| key.algorithms.contains(&algorithm));
    match id {
        Some(id) => fitting.find(|key| key.id.as_deref() == Some(id)),
        None => {
            let first = fitting.next()?;
            fitting.next().is_none().then_some(first)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const X: &str = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU";
    const Y: &str = "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0";

    fn set(keys: Value) -> Result<Vec<Key>, String> {
        parse(json!({ "keys": keys }).to_string().as_bytes())
    }

    #[test]
    fn unusable_keys_are_ignored() {
        let ec = json!({"kty": "EC", "crv": "P-256", "x": X, "y": Y, "kid": "a"});
        let ed = json!({"kty": "OKP", "crv": "Ed25519", "x": X, "kid": "b", "use": "sig", "alg": "EdDSA"});
        let with = |key: &Value, name: &str, value: Value| {
            let mut key = key.clone();
            key[name] = value;
            key
        };
        let keys = set(json!([
            ec,
            ed,
            with(&ec, "use", json!("enc")),
            with(&ec, "crv", json!("P-521")),
            with(&ec, "alg", json!("ES384")),
            with(&ec, "alg", json!("unheard of")),
            {"kty": "oct", "k": X, "kid": "c"},
            {"kty": "new"},
            7,
        ]))
        .unwrap();
        let ids: Vec<_> = keys.iter().map(|key| key.id.as_deref()).collect();
        assert_eq!(ids, [Some("a"), Some("b")]);

        let found = |id, algorithm| pick(&keys, id, algorithm).map(|key| key.id.clone());
        assert_eq!(found(Some("a"), Algorithm::ES256), Some(Some("a".into())));
        assert_eq!(
            found(Some("a"), Algorithm::EdDSA),
            None,
            "another kind of key"
        );
        assert_eq!(found(Some("c"), Algorithm::HS256), None, "a shared secret");
        assert_eq!(found(Some("z"), Algorithm::ES256), None);
        assert_eq!(found(None, Algorithm::ES256), Some(Some("a".into())));
        let two = [keys[0].clone(), keys[0].clone()];
        assert!(
            pick(&two, None, Algorithm::ES256).is_none(),
            "which of both?"
        );

        assert!(set(json!([])).is_err() && set(json!({})).is_err());
        assert!(parse(b"<html>").is_err());
    }
}
