//! Authentications (DSL 1.0, "Authentication").

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{AuthDef, AuthId, AuthScheme, Template};

use super::Reader;
use super::value::DEFINITION;

const SCHEMES: [&str; 5] = ["basic", "bearer", "digest", "oauth2", "oidc"];

impl Reader<'_, '_> {
    /// An authentication in place, or one of `use.authentications`.
    pub fn authentication(&mut self, node: &Node) -> Option<AuthId> {
        let name = match (node.as_str(), node.get("use")) {
            (Some(_), _) => Some(node),
            (None, Some(node)) => Some(node),
            (None, None) => None,
        };
        let Some(named) = name else {
            let pointer = node.pointer().to_owned();
            return self.auth_definition(&pointer, node);
        };
        self.named_alone(node, "'authentication'", &SCHEMES);
        let name = self.string(named, "'use'")?;
        let found = self.named(named, &name, "authentication", |reuse| {
            &reuse.authentications
        })?;
        self.auth_definition(&name, &found)
    }

    pub fn auth_definition(&mut self, name: &str, node: &Node) -> Option<AuthId> {
        let document = self.origin.as_ref().map_or("", |(uri, _)| uri.as_str());
        // Its expressions see the variables of each use.
        let place = format!("{document}#{} {}", node.pointer(), self.params.join(" "));
        if let Some(known) = self.auth.get(&place) {
            return *known;
        }
        let id = self.scheme(name, node);
        self.auth.insert(place, id);
        id
    }

    fn scheme(&mut self, name: &str, node: &Node) -> Option<AuthId> {
        if let Some(part) = node.get("certificate") {
            let message =
                "certificates can't authenticate a call: the language has no properties for one";
            let hint = "use one of 'basic', 'bearer', 'digest', 'oauth2' and 'oidc'".to_owned();
            self.error(part, codes::NOT_CARRIED_OUT, message, hint);
            return None;
        }
        let obj = self.object(node, "an authentication", &SCHEMES)?;
        let given: Vec<&str> = SCHEMES.into_iter().filter(|name| obj.has(name)).collect();
        let (scheme, word) = match given.as_slice() {
            ["basic"] => (AuthScheme::Basic, "basic"),
            ["bearer"] => (AuthScheme::Bearer, "bearer"),
            ["digest"] => (AuthScheme::Digest, "digest"),
            ["oauth2"] => (AuthScheme::OAuth2, "oauth2"),
            ["oidc"] => (AuthScheme::OAuth2, "oidc"),
            [] => {
                self.missing(obj, "an authentication", &SCHEMES);
                return None;
            }
            several => {
                self.exclusive(obj, "an authentication", several);
                return None;
            }
        };
        let part = obj.get(word)?;
        let properties = match scheme {
            AuthScheme::OAuth2 => self.oauth2(part, word)?,
            _ => self.credentials(part, word)?,
        };
        let id = AuthId(self.workflow.auth.len() as u32);
        self.workflow.auth.push(AuthDef {
            name: name.to_owned(),
            scheme,
            properties,
        });
        Some(id)
    }

    fn credentials(&mut self, node: &Node, scheme: &str) -> Option<Template> {
        let what = format!("'{scheme}'");
        if let (Some(_), "bearer") = (node.as_str(), scheme) {
            let message = "'bearer' is a string; it is read as its 'token'".to_owned();
            self.loose(node, message, "write 'bearer: {token: ...}'".to_owned());
            let token = self.text_value(node, DEFINITION, true)?;
            return Some(Template::Object(vec![("token".to_owned(), token)]));
        }
        let names: &[&str] = match scheme {
            "bearer" => &["token"],
            _ => &["username", "password"],
        };
        if let Some(secret) = self.named_alone(node, &what, names) {
            return self.secret(secret, "");
        }
        let obj = self.object(node, &what, names)?;
        let mut parts = Vec::new();
        for name in names {
            let Some(node) = obj.get(name) else {
                self.missing(obj, &what, &[name]);
                return None;
            };
            parts.push(((*name).to_owned(), self.credential(node, name)?));
        }
        Some(Template::Object(parts))
    }
}
