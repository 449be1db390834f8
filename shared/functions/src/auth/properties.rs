//! Converts an `auth` definition's evaluated properties to credentials.
//!
//! Language 0.7 and 0.8, "Basic", "Bearer" and "OAuth2 Properties Definition". Errors name the property and never its
//! value.

use swirl_model::Data;
use swirl_model::workflow::AuthScheme;

use super::{Auth, ClientAuthentication, GrantType, OAuth2, Secret, TokenEndpoint};
use crate::{CallError, CallErrorKind};

impl Auth {
    /// Reads evaluated properties. `metadata` and properties of other schemes are ignored.
    ///
    /// # Errors
    /// `auth` if a property is missing or not a string.
    pub fn from_properties(scheme: AuthScheme, properties: &Data) -> Result<Auth, CallError> {
        let properties = Properties(properties);
        Ok(match scheme {
            AuthScheme::Basic => Auth::Basic {
                username: properties.needed("username")?,
                password: Secret::new(properties.needed("password")?),
            },
            AuthScheme::Bearer => Auth::Bearer {
                token: Secret::new(properties.needed("token")?),
            },
            AuthScheme::Digest => Auth::Digest {
                username: properties.needed("username")?,
                password: Secret::new(properties.needed("password")?),
            },
            AuthScheme::OAuth2 => Auth::OAuth2(Box::new(OAuth2 {
                authority: properties.text("authority")?,
                grant_type: properties.grant_type()?,
                client_id: match properties.client_authentication()? {
                    ClientAuthentication::None => properties.text("clientId")?.unwrap_or_default(),
                    _ => properties.needed("clientId")?,
                },
                client_secret: properties.text("clientSecret")?.map(Secret::new),
                scopes: properties.list("scopes")?,
                username: properties.text("username")?,
                password: properties.text("password")?.map(Secret::new),
                audiences: properties.list("audiences")?,
                subject_token: properties.text("subjectToken")?.map(Secret::new),
                requested_subject: properties.text("requestedSubject")?,
                requested_issuer: properties.text("requestedIssuer")?,
                subject_token_type: properties.text("subjectTokenType")?,
                actor_token: properties.text("actorToken")?.map(Secret::new),
                actor_token_type: properties.text("actorTokenType")?,
                found: properties.found()?,
                client_authentication: properties.client_authentication()?,
                client_assertion: properties.text("clientAssertion")?.map(Secret::new),
                as_json: properties.as_json()?,
                issuers: properties.list("issuers")?,
            })),
        })
    }
}

struct Properties<'a>(&'a Data);

impl Properties<'_> {
    fn text(&self, name: &str) -> Result<Option<String>, CallError> {
        match self.0.get(name) {
            None => Ok(None),
            Some(value) if value.is_null() => Ok(None),
            Some(value) => scalar(name, &value).map(Some),
        }
    }

    fn needed(&self, name: &str) -> Result<String, CallError> {
        self.text(name)?
            .ok_or_else(|| refuse(format!("the auth definition has no `{name}`")))
    }

    fn list(&self, name: &str) -> Result<Vec<String>, CallError> {
        let Some(value) = self.0.get(name).filter(|value| !value.is_null()) else {
            return Ok(Vec::new());
        };
        match value.as_array() {
            Some(items) => items
                .iter()
                .map(|item| scalar(name, &Data(item.clone())))
                .collect(),
            None => Ok(vec![scalar(name, &value)?]),
        }
    }

    fn grant_type(&self) -> Result<GrantType, CallError> {
        match self.needed("grantType")?.as_str() {
            "authorization_code" => Ok(GrantType::AuthorizationCode),
            "clientCredentials" | "client_credentials" => Ok(GrantType::ClientCredentials),
            "password" | "resourceOwner" => Ok(GrantType::Password),
            "refresh_token" => Ok(GrantType::RefreshToken),
            "tokenExchange" | "urn:ietf:params:oauth:grant-type:token-exchange" => {
                Ok(GrantType::TokenExchange)
            }
            _ if self.found()? != TokenEndpoint::Searched => Err(refuse(
                "the authentication's `grant` must be `authorization_code`, `client_credentials`, `password`, \
                 `refresh_token` or `urn:ietf:params:oauth:grant-type:token-exchange`",
            )),
            _ => Err(refuse(
                "the auth definition's `grantType` must be `password`, `clientCredentials` or \
                 `tokenExchange`",
            )),
        }
    }

    /// DSL 1.0 says where tokens are had.
    fn found(&self) -> Result<TokenEndpoint, CallError> {
        if self
            .0
            .get("discovery")
            .is_some_and(|found| !found.is_null())
        {
            return Ok(TokenEndpoint::Discovered);
        }
        let path = self.text("tokenPath")?;
        Ok(path.map_or(TokenEndpoint::Searched, TokenEndpoint::Path))
    }

    fn client_authentication(&self) -> Result<ClientAuthentication, CallError> {
        let given = self.text("clientAuthentication")?;
        Ok(match given.as_deref() {
            None if self.found()? == TokenEndpoint::Searched => ClientAuthentication::Offered,
            None | Some("client_secret_post") => ClientAuthentication::SecretPost,
            Some("client_secret_basic") => ClientAuthentication::SecretBasic,
            Some("client_secret_jwt") => ClientAuthentication::SecretJwt,
            Some("private_key_jwt") => ClientAuthentication::PrivateKeyJwt,
            Some("none") => ClientAuthentication::None,
            Some(_) => {
                return Err(refuse(
                    "the authentication's `client.authentication` must be `client_secret_basic`, \
                     `client_secret_post`, `client_secret_jwt`, `private_key_jwt` or `none`",
                ));
            }
        })
    }

    fn as_json(&self) -> Result<bool, CallError> {
        match self.text("encoding")?.as_deref() {
            None | Some("application/x-www-form-urlencoded") => Ok(false),
            Some("application/json") => Ok(true),
            Some(_) => Err(refuse(
                "the authentication's `request.encoding` must be `application/x-www-form-urlencoded` or \
                 `application/json`",
            )),
        }
    }
}

fn scalar(name: &str, value: &Data) -> Result<String, CallError> {
    match value.kind() {
        "string" | "number" => Ok(value.to_text()),
        _ => Err(refuse(format!(
            "the auth definition's `{name}` must be a string, but is {}",
            value.kind_in_words()
        ))),
    }
}

fn refuse(message: impl Into<String>) -> CallError {
    CallError::new(CallErrorKind::Auth, message)
}

#[cfg(test)]
mod tests {
    use swirl_model::data;

    use super::*;

    fn read(scheme: AuthScheme, properties: Data) -> Result<Auth, String> {
        Auth::from_properties(scheme, &properties).map_err(|error| error.message)
    }

    #[test]
    fn properties_become_credentials() {
        let basic = read(AuthScheme::Basic, data!({"username": "u", "password": 5})).unwrap();
        assert_eq!(
            basic,
            Auth::Basic {
                username: "u".to_owned(),
                password: Secret::new("5")
            }
        );
        let oauth2 = data!({
            "authority": "https://a", "grantType": "resourceOwner", "clientId": "c", "scopes": ["s", "t"],
            "username": "u", "password": "p", "audiences": "a", "metadata": {},
        });
        let Auth::OAuth2(oauth2) = read(AuthScheme::OAuth2, oauth2).unwrap() else {
            panic!("no OAuth2")
        };
        assert_eq!(oauth2.grant_type, GrantType::Password);
        assert_eq!(
            (oauth2.scopes.join(" "), oauth2.audiences.join(" ")),
            ("s t".into(), "a".into())
        );
    }

    #[test]
    fn missing_and_invalid_properties_are_named() {
        for (scheme, properties, expected) in [
            (
                AuthScheme::Basic,
                data!({"username": "u"}),
                "has no `password`",
            ),
            (AuthScheme::Bearer, data!({"token": null}), "has no `token`"),
            (
                AuthScheme::Bearer,
                data!({"token": ["s3cret"]}),
                "`token` must be a string, but is an array",
            ),
            (AuthScheme::Bearer, data!("s3cret"), "has no `token`"),
            (
                AuthScheme::OAuth2,
                data!({"clientId": "c", "grantType": "code"}),
                "`grantType` must be",
            ),
        ] {
            let error = read(scheme, properties).unwrap_err();
            assert!(
                error.contains(expected) && !error.contains("s3cret"),
                "{error}"
            );
        }
    }
}
