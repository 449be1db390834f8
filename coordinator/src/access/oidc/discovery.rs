//! The provider's description of itself (OpenID Connect Discovery 1.0).

use serde::Deserialize;
use url::Url;

use super::Fetch;

/// The members that are used here.
#[derive(Debug, Deserialize)]
pub(super) struct Discovered {
    issuer: String,
    pub jwks_uri: Option<String>,
    pub authorization_endpoint: Option<String>,
    pub token_endpoint: Option<String>,
    pub end_session_endpoint: Option<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// Its answers to browsers name it (RFC 9207).
    #[serde(default)]
    pub authorization_response_iss_parameter_supported: bool,
}

impl Discovered {
    /// Whether a client's secret belongs in the form, because the provider doesn't accept it in the header.
    pub fn secret_in_form(&self) -> bool {
        let methods = self.token_endpoint_auth_methods_supported.as_deref();
        methods.is_some_and(|methods| {
            let has = |name: &str| methods.iter().any(|method| method == name);
            has("client_secret_post") && !has("client_secret_basic")
        })
    }
}

/// Asks the provider. A document of another issuer isn't trusted.
pub(super) async fn discover(fetch: &dyn Fetch, issuer: &str) -> Result<Discovered, String> {
    let base = issuer.trim_end_matches('/');
    let url = format!("{base}/.well-known/openid-configuration");
    let bytes = fetch.get(&url).await?;
    let found: Discovered = serde_json::from_slice(&bytes)
        .map_err(|error| format!("{url} is not a discovery document: {error}"))?;
    if found.issuer != issuer {
        return Err(format!(
            "{url} is from the issuer '{}', but auth.oidc.issuer is '{issuer}'",
            found.issuer
        ));
    }
    // Browsers are sent to some of these, and a `javascript:` address would run on our page. Keys or codes over a plain
    // connection would defeat the TLS of the issuer.
    let addresses = [
        ("jwks_uri", &found.jwks_uri),
        ("authorization_endpoint", &found.authorization_endpoint),
        ("token_endpoint", &found.token_endpoint),
        ("end_session_endpoint", &found.end_session_endpoint),
    ];
    for (name, address) in addresses {
        let Some(address) = address else { continue };
        let parsed = Url::parse(address).ok();
        let scheme = parsed.as_ref().map_or("", Url::scheme);
        if !matches!(scheme, "http" | "https") {
            return Err(format!("{url} has no http or https address in {name}"));
        }
        if issuer.starts_with("https:") && scheme != "https" {
            return Err(format!(
                "{url} has an address without TLS in {name}: {address}"
            ));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use futures::executor::block_on;
    use serde_json::json;

    use super::*;

    struct Provider(serde_json::Value);

    #[async_trait]
    impl Fetch for Provider {
        async fn get(&self, _: &str) -> Result<Vec<u8>, String> {
            Ok(self.0.to_string().into_bytes())
        }

        async fn post(
            &self,
            _: &str,
            _: String,
            _: Option<String>,
        ) -> Result<(u16, Vec<u8>), String> {
            Err("nothing is asked for".to_owned())
        }
    }

    #[test]
    fn browsers_are_sent_to_addresses_of_the_web_only() {
        let issuer = "https://login.example";
        let found = |endpoint: &str| {
            let provider = Provider(json!({"issuer": issuer, "authorization_endpoint": endpoint}));
            block_on(discover(&provider, issuer)).map(|found| found.authorization_endpoint)
        };
        let good = "https://login.example/authorize";
        assert_eq!(found(good), Ok(Some(good.to_owned())));
        for wrong in ["javascript:alert(1)", "data:text/html,x", "", "/authorize"] {
            let refused = found(wrong).unwrap_err();
            assert!(refused.contains("no http or https address"), "{refused}");
        }
        let refused = found("http://login.example/authorize").unwrap_err();
        assert!(refused.contains("without TLS"), "{refused}");
    }
}
