//! Tokens of a provider that a coordinator's settings find over TLS.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use swirl_servers::PATIENCE;

use crate::access::process::{Coordinator, Files, stderr, swirl};

struct Provider {
    issuer: String,
    key: Ed25519KeyPair,
}

impl Provider {
    /// Serves discovery and keys with the certificate of `files`, until the test ends.
    fn start(files: &Files) -> Provider {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let key = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let issuer = format!("https://localhost:{port}/realms/shop");
        let discovery = json!({"issuer": issuer, "jwks_uri": format!("{issuer}/keys")});
        let public = URL_SAFE_NO_PAD.encode(key.public_key().as_ref());
        let jwk = json!({"kty": "OKP", "crv": "Ed25519", "kid": "a", "x": public});
        let keys = json!({"keys": [jwk]});
        let config = tls(files);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that doesn't trust the certificate closes the connection.
                let _ = answer(stream, &config, &discovery, &keys);
            }
        });
        Provider { issuer, key }
    }

    fn token(&self, groups: &[&str]) -> String {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs();
        let claims = json!({
            "iss": self.issuer, "aud": "swirl", "sub": "ada", "exp": now + 60, "groups": groups,
        });
        let header = json!({"alg": "EdDSA", "kid": "a"});
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(&header), part(&claims));
        let signature = self.key.sign(message.as_bytes());
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
    }
}

fn tls(files: &Files) -> Arc<ServerConfig> {
    let chain = CertificateDer::pem_file_iter(files.path("tls.crt")).unwrap();
    let chain = chain.map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(files.path("tls.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key);
    Arc::new(config.unwrap())
}

fn answer(
    stream: TcpStream,
    config: &Arc<ServerConfig>,
    discovery: &Value,
    keys: &Value,
) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let connection = ServerConnection::new(config.clone()).unwrap();
    let mut stream = BufReader::new(StreamOwned::new(connection, stream));
    let mut request = String::new();
    stream.read_line(&mut request)?;
    let mut line = String::new();
    while stream.read_line(&mut line)? > 2 {
        line.clear();
    }
    let (status, body) = match request.split(' ').nth(1) {
        Some("/realms/shop/.well-known/openid-configuration") => ("200 OK", discovery.to_string()),
        Some("/realms/shop/keys") => ("200 OK", keys.to_string()),
        _ => ("404 Not Found", String::new()),
    };
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    let stream = stream.get_mut();
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    stream.conn.send_close_notify();
    stream.flush()
}

#[test]
fn tokens_of_a_provider_grant_access() {
    let files = Files::new();
    let provider = Provider::start(&files);
    let ca = files.text("ca.pem");
    let access = [
        ["--auth-oidc-issuer", &provider.issuer],
        ["--auth-oidc-audience", "swirl"],
        ["--auth-oidc-roles-claim", "groups"],
        ["--auth-oidc-roles", "sre=operator,staff=viewer"],
        ["--auth-oidc-tls-ca", &ca],
    ];
    let coordinator = Coordinator::start(&files, &access.concat());
    let url = coordinator.url();
    let ask = |arguments: &[&str], groups: &[&str]| {
        let token = files.text("jwt");
        fs::write(&token, provider.token(groups)).unwrap();
        let server = ["--server", &url, "--ca-file", &ca, "--token-file", &token];
        swirl(&[arguments, &server].concat())
    };
    let listed = ask(&["list"], &["staff"]);
    assert!(listed.status.success(), "{}", stderr(&listed));
    let refused = ask(&["cancel", "x"], &["staff"]);
    let said = stderr(&refused);
    assert!(
        said.contains("needs the role operator, but 'ada' has viewer"),
        "{said}"
    );
    let unknown = ask(&["cancel", "x"], &["sre"]);
    assert!(
        stderr(&unknown).contains("unknown-instance"),
        "it came through"
    );
    let none = ask(&["list"], &["cooks"]);
    assert!(stderr(&none).contains("has none"), "{}", stderr(&none));
    // Our own role names count only without a mapping.
    let admin = ask(&["list"], &["admin"]);
    assert!(stderr(&admin).contains("forbidden"));

    let settings: Vec<&str> = coordinator.settings.iter().map(String::as_str).collect();
    let about = ["doctor", "--for", "coordinator"];
    let examined = ask(&[&about, &settings[..]].concat(), &["staff"]);
    let text = String::from_utf8_lossy(&examined.stdout);
    let well = format!("auth.oidc: {} has 1 keys that can be used", provider.issuer);
    assert!(text.contains(&well), "{text}");
    // The provider isn't trusted without its authority's certificate.
    let untrusted: Vec<&str> = settings[..settings.len() - 2].to_vec();
    let examined = ask(&[&about, &untrusted[..]].concat(), &["staff"]);
    let text = String::from_utf8_lossy(&examined.stdout);
    assert!(
        text.contains("error    auth.oidc: no answer from"),
        "{text}"
    );
    assert_eq!(examined.status.code(), Some(1));
}
