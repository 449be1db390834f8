//! The authentications `oauth2` and `oidc` (DSL 1.0, "OAUTH2 Authentication", "OpenIdConnect Authentication").
//!
//! Both become the properties that the older editions have, with some more.

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::Data;
use swirl_model::workflow::Template;

use super::Reader;
use super::value::DEFINITION;
use crate::build::advice::Advice;
use crate::build::ctx::{Obj, did_you_mean};

const PROPERTIES: &[&str] = &[
    "authority",
    "grant",
    "client",
    "request",
    "issuers",
    "scopes",
    "audiences",
    "username",
    "password",
    "subject",
    "actor",
    "endpoints",
];
const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const GRANTS: [&str; 5] = [
    "authorization_code",
    "client_credentials",
    "password",
    "refresh_token",
    EXCHANGE,
];
const CLIENTS: [&str; 5] = [
    "client_secret_basic",
    "client_secret_post",
    "client_secret_jwt",
    "private_key_jwt",
    "none",
];
const ENCODINGS: [&str; 2] = ["application/x-www-form-urlencoded", "application/json"];
const TOKEN_PATH: &str = "/oauth2/token";

/// The properties in a secret, under the names that they get here.
const OF_SECRET: &str = r#" | if type == "object" then {
    authority, grantType: .grant, clientId: .client.id, clientSecret: .client.secret,
    clientAssertion: .client.assertion, clientAuthentication: .client.authentication,
    encoding: .request.encoding, issuers, scopes, audiences, username, password,
    subjectToken: .subject.token, subjectTokenType: .subject.type,
    actorToken: .actor.token, actorTokenType: .actor.type, "#;

type Parts = Vec<(String, Template)>;

fn literal(text: &str) -> Template {
    Template::Literal(Data::string(text))
}

/// Adds a part. One that is wrong has been reported, and the others are still read.
fn put(parts: &mut Parts, name: &str, value: Option<Template>) {
    parts.extend(value.map(|value| (name.to_owned(), value)));
}

impl Reader<'_, '_> {
    /// `scheme` is `oauth2` or `oidc`.
    pub fn oauth2(&mut self, node: &Node, scheme: &str) -> Option<Template> {
        let what = format!("'{scheme}'");
        let is_oidc = scheme == "oidc";
        let known = match is_oidc {
            true => &PROPERTIES[..PROPERTIES.len() - 1],
            false => PROPERTIES,
        };
        if let Some(secret) = self.named_alone(node, &what, known) {
            let found = match is_oidc {
                true => "discovery: true".to_owned(),
                false => format!("tokenPath: (.endpoints.token // \"{TOKEN_PATH}\")"),
            };
            return self.secret(secret, &format!("{OF_SECRET}{found}}} else . end"));
        }
        let obj = self.object(node, &what, known)?;
        let mut parts = Parts::new();
        match obj.get("authority") {
            Some(node) => put(&mut parts, "authority", self.uri(node, "'authority'", true)),
            None => self.missing(obj, &what, &["authority"]),
        }
        let grant = self.grant(obj, &what);
        put(&mut parts, "grantType", grant.map(literal));
        self.client(obj, &what, &mut parts);
        let request = obj.get("request");
        if let Some(request) =
            request.and_then(|node| self.object(node, "'request'", &["encoding"]))
        {
            let word = self.word(request, "encoding", &ENCODINGS);
            put(&mut parts, "encoding", word.map(literal));
        }
        for name in ["issuers", "scopes", "audiences"] {
            if let Some(node) = obj.get(name) {
                put(&mut parts, name, self.texts(node, name));
            }
        }
        for name in ["username", "password"] {
            match obj.get(name) {
                Some(node) => put(&mut parts, name, self.credential(node, name)),
                None if grant == Some("password") => {
                    self.missing(obj, &format!("{what} with the grant 'password'"), &[name]);
                }
                None => {}
            }
        }
        for name in ["subject", "actor"] {
            if let Some(node) = obj.get(name) {
                self.token(node, name, &mut parts);
            }
        }
        if grant == Some(EXCHANGE) && !obj.has("subject") {
            let grant = format!("{what} with the grant of an exchange");
            self.missing(obj, &grant, &["subject"]);
        }
        if let Some(grant @ ("authorization_code" | "refresh_token")) = grant
            && !obj.has("subject")
        {
            let message = format!("nothing says what is sent for the grant '{grant}'");
            let hint = "the language has no property for the code or the token: give it as 'subject.token'";
            self.warn(node, codes::MISSING_PROPERTY, message, hint.to_owned());
        }
        let found = match is_oidc {
            true => Some(Template::Literal(Data::from(serde_json::Value::Bool(true)))),
            false => self.token_path(obj),
        };
        let name = if is_oidc { "discovery" } else { "tokenPath" };
        put(&mut parts, name, found);
        Some(Template::Object(parts))
    }

    fn grant(&mut self, obj: Obj<'_>, what: &str) -> Option<&'static str> {
        let Some(node) = obj.get("grant") else {
            self.missing(obj, what, &["grant"]);
            return None;
        };
        let text = self.string(node, "'grant'")?;
        let dashed = text.replace('-', "_");
        if let Some(known) = GRANTS.into_iter().find(|known| *known == text) {
            return Some(known);
        }
        if let Some(known) = GRANTS.into_iter().find(|known| *known == dashed) {
            let message = format!("'{text}' is read as '{known}'");
            self.loose(node, message, format!("write '{known}'"));
            return Some(known);
        }
        let message = format!("there is no grant '{text}'");
        let hint = did_you_mean(&text, GRANTS);
        let hint = hint.unwrap_or_else(|| format!("use one of {}", GRANTS.join(", ")));
        let advice = Advice::among(&GRANTS, hint);
        self.error(node, codes::UNKNOWN_VALUE, message, advice);
        None
    }

    fn client(&mut self, obj: Obj<'_>, what: &str, parts: &mut Parts) {
        let Some(node) = obj.get("client") else {
            return self.missing(obj, what, &["client"]);
        };
        let known = &["id", "secret", "assertion", "authentication"];
        let Some(client) = self.object(node, "'client'", known) else {
            return;
        };
        let method = self.word(client, "authentication", &CLIENTS);
        for (name, own) in [
            ("id", "clientId"),
            ("secret", "clientSecret"),
            ("assertion", "clientAssertion"),
        ] {
            let Some(node) = client.get(name) else {
                let is_needed = match (name, method) {
                    ("id", method) => method != Some("none"),
                    ("secret", method) => method == Some("client_secret_basic"),
                    (_, method) => {
                        method == Some("private_key_jwt")
                            || method == Some("client_secret_jwt") && !client.has("secret")
                    }
                };
                if is_needed {
                    self.missing(client, "'client'", &[name]);
                }
                continue;
            };
            put(parts, own, self.credential(node, name));
        }
        put(parts, "clientAuthentication", method.map(literal));
    }

    /// A list of texts.
    fn texts(&mut self, node: &Node, name: &str) -> Option<Template> {
        let items = self.list(node, &format!("'{name}'"))?;
        for item in items {
            self.string(item, &format!("an entry of '{name}'"))?;
        }
        self.text_value(node, DEFINITION, true)
    }

    fn token(&mut self, node: &Node, name: &str, parts: &mut Parts) {
        let what = format!("'{name}'");
        let Some(token) = self.object(node, &what, &["token", "type"]) else {
            return;
        };
        for part in ["token", "type"] {
            let Some(node) = token.get(part) else {
                self.missing(token, &what, &[part]);
                continue;
            };
            let own = match part {
                "token" => format!("{name}Token"),
                _ => format!("{name}TokenType"),
            };
            put(parts, &own, self.credential(node, part));
        }
    }

    /// The path of the token endpoint. Tokens are neither revoked nor introspected.
    fn token_path(&mut self, obj: Obj<'_>) -> Option<Template> {
        let Some(node) = obj.get("endpoints") else {
            return Some(literal(TOKEN_PATH));
        };
        let known = &["token", "revocation", "introspection"];
        let endpoints = self.object(node, "'endpoints'", known)?;
        for name in ["revocation", "introspection"] {
            if let Some(node) = endpoints.get(name) {
                self.uri(node, &format!("'{name}'"), true)?;
            }
        }
        match endpoints.get("token") {
            Some(node) => self.uri(node, "'token'", true),
            None => Some(literal(TOKEN_PATH)),
        }
    }
}
