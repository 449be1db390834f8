//! Access to a coordinator's API, as configured.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use async_trait::async_trait;
use reqwest::redirect::Policy;
use reqwest::{RequestBuilder, StatusCode, header};
use serde::Deserialize;
use swirl_config::{self as config, AuthMode, Config, files};
use swirl_connections::tls;

use crate::access::{
    Access, Fetch, KeySource, Oidc, OidcSettings, ReadTokens, SignInSettings, Token, TokenEntry,
    Tokens,
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
        tracing::warn!("no one can use the API: the token file is empty, see 'swirl token create'");
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
    let known = Oidc::new(settings, Arc::new(web)).context("auth.oidc")?;
    Ok(match &oidc.sign_in {
        Some(settings) => known.with_sign_in(sign_in(settings)),
        None => known,
    })
}

fn sign_in(settings: &config::SignIn) -> SignInSettings {
    let secret = settings.client_secret.as_ref();
    SignInSettings {
        client_id: settings.client_id.clone(),
        client_secret: secret.map(|secret| secret.expose().to_owned()),
        scopes: settings.scopes.clone(),
        redirect_url: settings.redirect_url.as_ref().map(ToString::to_string),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokensFile {
    #[serde(default)]
    tokens: Vec<TokenEntry>,
}

fn read_tokens(path: &Path) -> Result<Vec<Token>, String> {
    let shown = path.display();
    let bytes =
        files::read(path, BYTES_MAX).map_err(|error| format!("{shown} cannot be read: {error}"))?;
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
        let (status, body) = answer(url, self.0.get(url)).await?;
        match status {
            StatusCode::OK => Ok(body),
            _ => Err(format!("{} answers {status}", without_password(url))),
        }
    }

    async fn post(
        &self,
        url: &str,
        form: String,
        authorization: Option<String>,
    ) -> Result<(u16, Vec<u8>), String> {
        let kind = "application/x-www-form-urlencoded";
        let mut request = self.0.post(url).header(header::CONTENT_TYPE, kind);
        request = request.header(header::ACCEPT, "application/json");
        if let Some(authorization) = authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let (status, body) = answer(url, request.body(form)).await?;
        Ok((status.as_u16(), body))
    }
}

/// The status and the body of an answer, within limits.
async fn answer(url: &str, request: RequestBuilder) -> Result<(StatusCode, Vec<u8>), String> {
    let shown = without_password(url);
    let failed = |error: reqwest::Error| {
        let reason = tls::root_cause(&error);
        format!("no answer from {shown}: {reason}")
    };
    let mut response = request.send().await.map_err(failed)?;
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if body.len() + chunk.len() > BYTES_MAX {
            return Err(format!(
                "the answer of {shown} is larger than {BYTES_MAX} bytes"
            ));
        }
        body.extend_from_slice(&chunk);
    }
    Ok((response.status(), body))
}

#[cfg(test)]
mod tests {
    use crate::access::hash;
    use axum::Router;
    use axum::response::Redirect;
    use axum::routing::{any, get, post};

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
            .route("/away", any(async || StatusCode::BAD_GATEWAY))
            .route("/form", post(async |body: String| body))
            .route("/elsewhere", get(async || Redirect::temporary("/good")))
            .route("/large", any(async || "x".repeat(BYTES_MAX + 1)));
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
        let form = async |path: &str| {
            let url = format!("{url}{path}");
            web.post(&url, "a=1".to_owned(), None).await
        };
        assert_eq!(form("/form").await, Ok((200, b"a=1".to_vec())));
        assert_eq!(form("/away").await.unwrap().0, 502);
        assert!(form("/large").await.unwrap_err().contains("larger"));
        let nobody = web.get("http://127.0.0.1:1/keys").await.unwrap_err();
        assert!(nobody.contains("no answer from"), "{nobody}");
        assert!(Web::new(Some(Path::new("/no/such/file"))).is_err());
    }
}
