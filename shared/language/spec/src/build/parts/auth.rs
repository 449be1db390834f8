//! Auth definitions (section "Auth Definition", docs/language.md#decision-30 and #decision-64).

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{AuthDef, AuthId, AuthScheme, Template};

use crate::build::ctx::{Ctx, Obj};
use crate::build::expression::VisibleVars;

const GRANT_TYPES: [&str; 4] = [
    "password",
    "clientCredentials",
    "tokenExchange",
    "resourceOwner",
];

const OAUTH2: &[&str] = &[
    "authority",
    "grantType",
    "clientId",
    "clientSecret",
    "scopes",
    "username",
    "password",
    "audiences",
    "subjectToken",
    "requestedSubject",
    "requestedIssuer",
    "metadata",
];

/// The properties of all schemes.
const ANY: &[&str] = &[
    "authority",
    "grantType",
    "clientId",
    "clientSecret",
    "scopes",
    "username",
    "password",
    "audiences",
    "subjectToken",
    "requestedSubject",
    "requestedIssuer",
    "metadata",
    "token",
];

impl Ctx<'_> {
    pub fn auth_definitions(&mut self, node: &Node) {
        // docs/language.md#decision-96.
        if node.get("name").is_some() || node.get("properties").is_some() {
            let message = "'auth' is one definition, and should be a list of them".to_owned();
            self.loose(node, message, "write it as a list of one".to_owned());
            self.auth_definition(node);
            return;
        }
        let read = self.each(node, "auth", |ctx, item| ctx.auth_definition(item));
        self.names.auth.unread |= !read;
    }

    fn auth_definition(&mut self, node: &Node) {
        let known = &["name", "scheme", "properties"];
        let Some(obj) = self.object(node, "an auth definition", known) else {
            self.names.auth.unread = true;
            return;
        };
        let scheme = match obj.get("scheme") {
            None => Some(AuthScheme::Basic),
            Some(_) => match self.word(obj, "scheme", &["basic", "bearer", "oauth2"]) {
                Some("basic") => Some(AuthScheme::Basic),
                Some("bearer") => Some(AuthScheme::Bearer),
                Some(_) => Some(AuthScheme::OAuth2),
                None => None,
            },
        };
        let properties = match (obj.get("properties"), scheme) {
            (Some(node), scheme) => self.auth_properties(node, scheme),
            (None, _) => {
                self.missing(obj, "an auth definition", &["properties"]);
                None
            }
        };
        let Some(name) = self.need_string(obj, "an auth definition", "name") else {
            self.names.auth.unread = true;
            return;
        };
        if self.names.auth.get(&name).is_some() {
            self.duplicate(obj.get("name").unwrap_or(node), "auth definition", &name);
        }
        let id = AuthId(self.workflow.auth.len() as u32);
        self.names.auth.add(name.clone(), id);
        self.workflow.auth.push(AuthDef {
            name,
            scheme: scheme.unwrap_or(AuthScheme::Basic),
            properties: properties.unwrap_or(Template::Array(Vec::new())),
        });
    }

    /// Without a `scheme`, which could not be read, any property is accepted.
    fn auth_properties(&mut self, node: &Node, scheme: Option<AuthScheme>) -> Option<Template> {
        let sight = VisibleVars::PLAIN.with_secrets();
        if node.as_str().is_some() {
            return self
                .expression(node, "'properties'", sight)
                .map(Template::Expression);
        }
        if node.members().is_none() {
            self.wrong_type(node, "'properties'", "an object or an expression");
            return None;
        }
        let (what, known, needed): (_, &[&str], &[&str]) = match scheme {
            None => ("the auth definition", ANY, &[]),
            Some(AuthScheme::Basic | AuthScheme::Digest) => (
                "basic auth",
                &["username", "password", "metadata"],
                &["username", "password"],
            ),
            Some(AuthScheme::Bearer) => ("bearer auth", &["token", "metadata"], &["token"]),
            Some(AuthScheme::OAuth2) => ("oauth2 auth", OAUTH2, &["grantType", "clientId"]),
        };
        let obj = self.object(node, what, known)?;
        self.metadata(obj);
        for name in needed.iter().filter(|name| !obj.has(name)) {
            self.missing(obj, what, &[name]);
        }
        let mut members = Vec::new();
        for member in node.members().unwrap_or_default() {
            let (name, value) = (member.key(), member.value());
            match name {
                "metadata" => continue,
                "scopes" | "audiences" => {
                    for item in self.list(value, &format!("'{name}'")).unwrap_or_default() {
                        self.string(item, &format!("an entry of '{name}'"));
                    }
                }
                "grantType" => drop(self.word(obj, name, &GRANT_TYPES)),
                _ if known.contains(&name) => drop(self.string(value, &format!("'{name}'"))),
                _ => continue,
            }
            // Of the values of credentials, findings may repeat only the names of secrets.
            let text = value.as_str().unwrap_or_default();
            if text.trim_start().starts_with("$SECRET") {
                self.warn_unmarked(value);
            }
            if let Some(template) = self.template(value, sight) {
                members.push((name.to_owned(), template));
            }
        }
        if scheme == Some(AuthScheme::OAuth2) {
            self.grant(obj);
        }
        Some(Template::Object(members))
    }

    /// `username` and `password` belong only to the grant type `password`.
    fn grant(&mut self, obj: Obj<'_>) {
        let grant = obj.get("grantType").and_then(Node::as_str);
        if matches!(grant, Some("clientCredentials" | "tokenExchange")) {
            for name in ["username", "password"] {
                if let Some(node) = obj.get(name) {
                    self.ignored(node, name, "it is used only with the grant type 'password'");
                }
            }
        }
        if matches!(grant, Some("password" | "resourceOwner")) {
            for name in ["username", "password"]
                .into_iter()
                .filter(|name| !obj.has(name))
            {
                self.missing(obj, "the grant type 'password'", &[name]);
            }
        }
        if grant == Some("tokenExchange") && !obj.has("subjectToken") {
            self.warn(
                obj.node,
                codes::MISSING_PROPERTY,
                "the grant type 'tokenExchange' has no 'subjectToken' to exchange",
                "add 'subjectToken'".to_owned(),
            );
        }
    }
}
