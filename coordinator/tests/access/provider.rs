//! An OpenID Connect provider: discovery, keys, and the tokens that it signs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
};
use serde_json::{Value, json};
use swirl_coordinator::access::{Fetch, KeySource, Oidc, OidcSettings};
use tokio::net::TcpListener;

use crate::running::client;

pub const AUDIENCE: &str = "swirl";

/// Serves its documents over HTTP.
#[derive(Clone)]
pub struct Provider {
    pub issuer: String,
    inner: Arc<Inner>,
}

struct Inner {
    /// `None`: the provider is broken.
    keys: Mutex<Option<Vec<Value>>>,
    asked: AtomicUsize,
}

impl Provider {
    pub async fn start(keys: &[&Key]) -> Provider {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let provider = Provider {
            issuer: format!("http://{}", listener.local_addr().unwrap()),
            inner: Arc::new(Inner {
                keys: Mutex::new(Some(keys.iter().map(|key| key.jwk()).collect())),
                asked: AtomicUsize::new(0),
            }),
        };
        let (issuer, keys) = (provider.issuer.clone(), provider.clone());
        let discovery = move || {
            let document = json!({"issuer": issuer, "jwks_uri": format!("{issuer}/keys")});
            std::future::ready(document.to_string())
        };
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(discovery))
            .route("/keys", get(move || std::future::ready(keys.answer())));
        tokio::spawn(async move { axum::serve(listener, router).await });
        provider
    }

    fn answer(&self) -> (StatusCode, String) {
        self.inner.asked.fetch_add(1, Ordering::Relaxed);
        match &*self.inner.keys.lock().unwrap() {
            Some(keys) => (StatusCode::OK, json!({ "keys": keys }).to_string()),
            None => (StatusCode::BAD_GATEWAY, "out of order".to_owned()),
        }
    }

    /// Replaces the keys; `None` breaks the provider.
    pub fn has(&self, keys: Option<&[&Key]>) {
        let keys = keys.map(|keys| keys.iter().map(|key| key.jwk()).collect());
        *self.inner.keys.lock().unwrap() = keys;
    }

    pub fn asked(&self) -> usize {
        self.inner.asked.load(Ordering::Relaxed)
    }

    pub fn settings(&self) -> OidcSettings {
        OidcSettings {
            issuer: self.issuer.clone(),
            audience: vec!["other".to_owned(), AUDIENCE.to_owned()],
            keys: KeySource::Discovery,
            algorithms: ["RS256", "ES256", "EdDSA"].map(str::to_owned).to_vec(),
            roles_claim: "roles".to_owned(),
            roles: [].into(),
            namespaces_claim: None,
            leeway: Duration::from_secs(5),
        }
    }

    pub fn oidc(&self) -> Oidc {
        Oidc::new(self.settings(), Arc::new(Web)).unwrap()
    }

    /// The claims of a valid token.
    pub fn claims(&self, role: &str) -> Value {
        json!({
            "iss": self.issuer,
            "aud": AUDIENCE,
            "sub": "ada",
            "exp": now() + 60,
            "nbf": now() - 60,
            "roles": [role],
        })
    }
}

pub fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_secs()).unwrap()
}

pub struct Web;

#[async_trait]
impl Fetch for Web {
    async fn get(&self, url: &str) -> Result<Vec<u8>, String> {
        let response = client().get(url).send().await;
        let response = response.map_err(|error| error.to_string())?;
        if response.status() != 200 {
            return Err(format!("{url} answers {}", response.status()));
        }
        let body = response.bytes().await.map_err(|error| error.to_string())?;
        Ok(body.to_vec())
    }

    async fn post(
        &self,
        url: &str,
        _: String,
        _: Option<String>,
    ) -> Result<(u16, Vec<u8>), String> {
        Err(format!("nothing is sent to {url} here"))
    }
}

/// A key of the provider.
pub struct Key {
    pub id: &'static str,
    pair: Pair,
}

enum Pair {
    Ed(Ed25519KeyPair),
    Ec(Box<EcdsaKeyPair>),
}

impl Key {
    pub fn ed(id: &'static str) -> Key {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
        Key {
            id,
            pair: Pair::Ed(pair),
        }
    }

    pub fn ec(id: &'static str) -> Key {
        let (random, kind) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(kind, pkcs8.as_ref(), &random).unwrap();
        Key {
            id,
            pair: Pair::Ec(Box::new(pair)),
        }
    }

    fn jwk(&self) -> Value {
        match &self.pair {
            Pair::Ed(pair) => json!({
                "kty": "OKP", "crv": "Ed25519", "use": "sig", "kid": self.id,
                "x": encode(pair.public_key().as_ref()),
            }),
            Pair::Ec(pair) => {
                let point = pair.public_key().as_ref();
                json!({
                    "kty": "EC", "crv": "P-256", "kid": self.id,
                    "x": encode(&point[1..33]), "y": encode(&point[33..]),
                })
            }
        }
    }

    pub fn header(&self) -> Value {
        let algorithm = match self.pair {
            Pair::Ed(_) => "EdDSA",
            Pair::Ec(_) => "ES256",
        };
        json!({"alg": algorithm, "typ": "JWT", "kid": self.id})
    }

    pub fn token(&self, claims: &Value) -> String {
        self.token_with(&self.header(), claims)
    }

    pub fn token_with(&self, header: &Value, claims: &Value) -> String {
        let message = format!(
            "{}.{}",
            encode(header.to_string().as_bytes()),
            encode(claims.to_string().as_bytes())
        );
        let signature = match &self.pair {
            Pair::Ed(pair) => encode(pair.sign(message.as_bytes()).as_ref()),
            Pair::Ec(pair) => {
                let signed = pair.sign(&SystemRandom::new(), message.as_bytes());
                encode(signed.unwrap().as_ref())
            }
        };
        format!("{message}.{signature}")
    }

    /// The public key, which an attacker would use as a shared secret.
    pub fn public(&self) -> &[u8] {
        match &self.pair {
            Pair::Ed(pair) => pair.public_key().as_ref(),
            Pair::Ec(pair) => pair.public_key().as_ref(),
        }
    }
}

pub fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
