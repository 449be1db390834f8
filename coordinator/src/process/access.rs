//! Access to a coordinator's API, as configured.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use async_trait::async_trait;
use reqwest::redirect::Policy;
use serde::Deserialize;
use swirl_cluster::tls;
use swirl_config::{self as config, AuthMode, Config};

use crate::access::{
    Access, Fetch, KeySource, Oidc, OidcSettings, ReadTokens, Token, TokenEntry, Tokens,
};

const CONNECT_MAX: Duration = Duration::from_secs(5);
const ANSWER_MAX: Duration = Duration::from_secs(8);
/// The largest answer of a provider, and the largest file of tokens, in bytes.
const BYTES_MAX: usize = 1 << 20;

/// # Errors
/// The file of tokens or a provider's settings cannot be used.
pub fn access(config: &Config) -> anyhow::Result<Access> {
    let namespace = config.namespace.clone();
    if config.auth.mode == AuthMode::Off {
        return Ok(Access::open(namespace));
    }
    let tokens = tokens(&config.auth)?;
    let oidc = config.auth.oidc.as_ref().map(oidc).transpose()?;
    if oidc.is_none() && tokens.all().is_empty() {
        tracing::warn!(
            "nobody can use the API: the file of tokens is empty, see 'swirl token create'"
        );
    }
    Ok(Access::guarded(namespace, tokens, oidc).refused_max(config.auth.refused_max))
}

/// # Errors
/// The file cannot be used.
pub fn tokens(auth: &config::Auth) -> anyhow::Result<Tokens> {
    let file = auth.tokens_file.clone();
    let read = file.map(|file| -> ReadTokens { Arc::new(move || read_tokens(&file)) });
    Tokens::new(auth.tokens.clone(), read).map_err(|error| anyhow!(error))
}

/// # Errors
/// The provider's settings cannot be used. No request is sent to it yet.
pub fn oidc(oidc: &config::Oidc) -> anyhow::Result<Oidc> {
    let keys = match (&oidc.jwks_file, &oidc.jwks_url) {
        (Some(file), _) => KeySource::File(file.clone()),
        (None, Some(url)) => KeySource::Url(url.expose().to_string()),
        (None, None) => KeySource::Discovery,
    };
    let settings = OidcSettings {
        issuer: oidc.issuer.clone(),
        audience: oidc.audience.clone(),
        keys,
        algorithms: oidc.algorithms.clone(),
        roles_claim: oidc.roles_claim.clone(),
        roles: oidc.roles.clone(),
        namespaces_claim: oidc.namespaces_claim.clone(),
        leeway: oidc.leeway,
    };
    let web = Web::new(oidc.ca.as_deref()).context("auth.oidc.tls_ca")?;
    Oidc::new(settings, Arc::new(web)).context("auth.oidc")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokensFile {
    #[serde(default)]
    tokens: Vec<TokenEntry>,
}

fn read_tokens(path: &PathBuf) -> Result<Vec<Token>, String> {
    let shown = path.display();
    let bytes = std::fs::read(path).map_err(|error| format!("{shown} cannot be read: {error}"))?;
    if bytes.len() > BYTES_MAX {
        return Err(format!("{shown} is larger than {BYTES_MAX} bytes"));
    }
    let text = String::from_utf8(bytes).map_err(|_| format!("{shown} is not valid UTF-8"))?;
    // Leave out the lines that the error would show, since they contain hashes.
    let wrong = |error: toml::de::Error| {
        let line = error.span().map_or(0, |span| {
            text.get(..span.start).unwrap_or("").matches('\n').count() + 1
        });
        format!("{shown}:{line}: {}", error.message())
    };
    let mut table: toml::Table = toml::from_str(&text).map_err(wrong)?;
    dates_as_text(&mut table);
    let file: TokensFile = table.try_into().map_err(|error: toml::de::Error| {
        format!(
            "{shown}: it must hold [[tokens]] with name, hash and roles: {}",
            error.message()
        )
    })?;
    Token::all(&file.tokens).map_err(|error| format!("{shown}: {error}"))
}

/// Accepts TOML's own dates instead of strings.
fn dates_as_text(table: &mut toml::Table) {
    let tokens = table.get_mut("tokens").and_then(toml::Value::as_array_mut);
    for token in tokens.into_iter().flatten() {
        if let Some(expires) = token.get_mut("expires")
            && let Some(instant) = expires.as_datetime()
        {
            *expires = toml::Value::String(instant.to_string());
        }
    }
}

/// Fetches the provider's documents.
struct Web(reqwest::Client);

impl Web {
    fn new(ca: Option<&Path>) -> anyhow::Result<Web> {
        let client = reqwest::Client::builder()
            .user_agent(concat!("swirl/", env!("CARGO_PKG_VERSION")))
            .tls_backend_preconfigured(tls::config(ca)?)
            // The target of a redirect isn't known to be trusted.
            .redirect(Policy::none())
            .connect_timeout(CONNECT_MAX)
            .timeout(ANSWER_MAX)
            .build()?;
        Ok(Web(client))
    }
}

fn without_password(url: &str) -> String {
    let Ok(mut url) = reqwest::Url::parse(url) else {
        return url.to_owned();
    };
    if url.password().is_some() {
        // Fails for URLs that cannot have a password.
        let _ = url.set_password(Some("***"));
    }
    url.to_string()
}

#[async_trait]
impl Fetch for Web {
    async fn get(&self, url: &str) -> Result<Vec<u8>, String> {
        let shown = without_password(url);
        let failed = |error: reqwest::Error| {
            let reason = tls::root_cause(&error);
            format!("no answer from {shown}: {reason}")
        };
        let mut response = self.0.get(url).send().await.map_err(failed)?;
        if response.status() != reqwest::StatusCode::OK {
            return Err(format!("{shown} answers {}", response.status()));
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > BYTES_MAX {
                return Err(format!(
                    "the answer of {shown} is larger than {BYTES_MAX} bytes"
                ));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}

#[cfg(test)]
mod tests {
    use crate::access::hash;
    use axum::Router;
    use axum::http::StatusCode;
    use axum::response::Redirect;
    use axum::routing::get;

    use super::*;

    #[test]
    fn a_file_of_tokens_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.toml");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_tokens(&path)
        };
        let hash = hash("t");
        let entry = format!("[[tokens]]\nname = 'ci'\nhash = '{hash}'\nroles = ['deployer']\n");
        let good = read(&format!("{entry}expires = 2030-01-31T09:00:00Z\n")).unwrap();
        assert_eq!((good.len(), good[0].name.as_str()), (1, "ci"));
        assert!(good[0].expires.is_some());
        assert!(read("").unwrap().is_empty());
        for (text, part) in [
            ("[[tokens]]\nname = 'ci'\n", "hash"),
            ("[[token]]\nname = 'ci'\n", "token"),
            ("x = [", "tokens.toml:1"),
            (&format!("{entry}role = 'x'\n"), "role"),
            (&format!("{entry}{entry}"), "two tokens"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(part), "{error}");
            assert!(!error.contains(&hash[10..30]), "{error}");
        }
        assert!(read_tokens(&folder.path().join("none")).is_err());
    }

    #[tokio::test]
    async fn documents_are_fetched_within_limits_and_without_redirects() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new()
            .route("/good", get(async || "{}"))
            .route("/away", get(async || StatusCode::BAD_GATEWAY))
            .route("/elsewhere", get(async || Redirect::temporary("/good")))
            .route("/large", get(async || "x".repeat(BYTES_MAX + 1)));
        tokio::spawn(async move { axum::serve(listener, router).await });
        let web = Web::new(None).unwrap();
        let got = async |path: &str| web.get(&format!("{url}{path}")).await;
        assert_eq!(got("/good").await, Ok(b"{}".to_vec()));
        for (path, part) in [
            ("/away", "502"),
            ("/elsewhere", "307"),
            ("/large", "larger"),
        ] {
            let error = got(path).await.unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        let nobody = web.get("http://127.0.0.1:1/keys").await.unwrap_err();
        assert!(nobody.contains("no answer from"), "{nobody}");
        assert!(Web::new(Some(Path::new("/no/such/file"))).is_err());
    }
}
