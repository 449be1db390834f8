//! The provider's key.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, anyhow};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

pub struct Key(Ed25519KeyPair);

impl Key {
    pub fn draw() -> Result<Key> {
        let drawn = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new());
        let pkcs8 = drawn.map_err(|_| anyhow!("no random numbers"))?;
        let pair = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref());
        Ok(Key(pair.map_err(|error| anyhow!("no key: {error}"))?))
    }

    pub fn jwks(&self) -> Value {
        let public = URL_SAFE_NO_PAD.encode(self.0.public_key().as_ref());
        json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "use": "sig", "kid": "a", "x": public}]})
    }

    pub fn token(&self, claims: &Value) -> String {
        let header = json!({"alg": "EdDSA", "typ": "JWT", "kid": "a"});
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(&header), part(claims));
        let signature = URL_SAFE_NO_PAD.encode(self.0.sign(message.as_bytes()).as_ref());
        format!("{message}.{signature}")
    }
}

/// In seconds since 1970.
pub fn now() -> Result<i64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    Ok(i64::try_from(now.as_secs())?)
}
