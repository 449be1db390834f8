//! The settings below `auth.oidc`.

use std::collections::BTreeMap;

use swirl_access::{Role, UnknownRole};
use url::Url;

use super::{Values, endpoint};
use crate::problem::SettingSource;
use crate::types::{Oidc, SignIn};

/// The page of the console to which the provider sends browsers back.
const CALLBACK: &str = "/console/sign-in/callback";

impl Values<'_> {
    /// A provider's roles, mapped to our own.
    fn oidc_roles(&mut self) -> BTreeMap<String, Role> {
        let mut roles = BTreeMap::new();
        for (word, role) in self.map("auth.oidc.roles") {
            match role.parse() {
                Ok(role) => {
                    roles.insert(word, role);
                }
                Err(error) => {
                    let error: UnknownRole = error;
                    self.wrong("auth.oidc.roles", &format!("cannot be used: {error}"));
                }
            }
        }
        roles
    }

    pub(super) fn oidc(&mut self) -> Option<Oidc> {
        let Some(issuer) = self.maybe("auth.oidc.issuer") else {
            let given = self.entries.iter().find(|entry| {
                entry.setting.section() == "auth.oidc" && entry.place != SettingSource::Default
            });
            if let Some(entry) = given {
                self.wrong(entry.setting.key, "is set without auth.oidc.issuer");
            }
            return None;
        };
        let audience = self.list("auth.oidc.audience");
        if audience.is_empty() {
            self.wrong(
                "auth.oidc.issuer",
                "needs auth.oidc.audience: without it, tokens for other services would be accepted",
            );
        }
        let jwks_url = self.maybe("auth.oidc.jwks_url").and_then(endpoint);
        let jwks_file = self.path("auth.oidc.jwks_file");
        if jwks_url.is_some() && jwks_file.is_some() {
            self.wrong(
                "auth.oidc.jwks_file",
                "is set together with auth.oidc.jwks_url: choose one",
            );
        }
        Some(Oidc {
            issuer,
            audience,
            jwks_url,
            jwks_file,
            algorithms: self.list("auth.oidc.algorithms"),
            roles_claim: self.text("auth.oidc.roles_claim"),
            roles: self.oidc_roles(),
            namespaces_claim: self.maybe("auth.oidc.namespaces_claim"),
            leeway: self.duration("auth.oidc.leeway"),
            ca: self.path("auth.oidc.tls_ca"),
            sign_in: self.sign_in(),
        })
    }

    /// How the console signs visitors in; `None`: only with tokens that they have.
    fn sign_in(&mut self) -> Option<SignIn> {
        let id = "auth.oidc.client_id";
        let client_secret = self.secret("auth.oidc.client_secret", "auth.oidc.client_secret_file");
        let Some(client_id) = self.maybe(id) else {
            let needs_it = [
                "auth.oidc.client_secret",
                "auth.oidc.client_secret_file",
                "auth.oidc.redirect_url",
                "auth.oidc.scopes",
            ];
            let given = needs_it.into_iter().find(|key| {
                let entry = self.entry(key);
                entry.value.is_some() && entry.place != SettingSource::Default
            });
            if let Some(key) = given {
                self.wrong(key, &format!("is set without {id}"));
            }
            return None;
        };
        let (scopes, key) = (self.list("auth.oidc.scopes"), "auth.oidc.scopes");
        if !scopes.iter().any(|scope| scope == "openid") {
            self.wrong(
                key,
                "must contain 'openid': without it, the provider doesn't say who has signed in",
            );
        }
        if let Some(scope) = scopes
            .iter()
            .find(|scope| scope.contains(char::is_whitespace))
        {
            self.wrong(
                key,
                &format!("contains '{scope}', which has a space: scopes have none"),
            );
        }
        Some(SignIn {
            client_id,
            client_secret,
            scopes,
            redirect_url: self.redirect_url(),
        })
    }

    fn redirect_url(&mut self) -> Option<Url> {
        let key = "auth.oidc.redirect_url";
        let url = Url::parse(&self.maybe(key)?).ok()?;
        let is_plain =
            url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
        let base = self.maybe("api.base_path").unwrap_or_default();
        let path = format!("{}{CALLBACK}", base.trim_end_matches('/'));
        if url.path() != path || !is_plain {
            self.wrong(
                key,
                &format!(
                    "must be the address of the console with the path {path} and nothing after it"
                ),
            );
        }
        Some(url)
    }
}
