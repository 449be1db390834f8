//! A compiled operation: everything is looked up, and it is plain data that can be stored.

use serde::{Deserialize, Serialize};

/// An operation of a service, created by [`OpenApi::operation`](super::OpenApi::operation).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// The `operationId`.
    pub id: String,
    /// The HTTP method in upper case.
    pub method: String,
    /// An absolute `http` or `https` URL without a trailing slash.
    pub server: String,
    /// The path relative to the server, with `{parameter}`s.
    pub path: String,
    pub parameters: Vec<Parameter>,
    pub body: Option<RequestBody>,
    /// The `Accept` header.
    pub accept: String,
    /// Alternatives. Each is a list of schemes that are needed together; an empty list permits a call without
    /// credentials.
    pub security: Vec<Vec<Scheme>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameter {
    pub name: String,
    pub location: Location,
    pub required: bool,
    pub style: Style,
    pub explode: bool,
    pub allow_reserved: bool,
    /// The value is sent as compact JSON (`content` instead of `schema`).
    pub json: bool,
    /// The value is a credential.
    pub secret: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Location {
    Path,
    Query,
    Header,
    Cookie,
}

impl Location {
    pub fn name(self) -> &'static str {
        match self {
            Location::Path => "path",
            Location::Query => "query",
            Location::Header => "header",
            Location::Cookie => "cookie",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Location> {
        [
            Location::Path,
            Location::Query,
            Location::Header,
            Location::Cookie,
        ]
        .into_iter()
        .find(|location| location.name() == name)
    }
}

/// How arrays and objects are written as text. `TabDelimited` is `tsv` in Swagger 2.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Style {
    Simple,
    Label,
    Matrix,
    Form,
    SpaceDelimited,
    PipeDelimited,
    TabDelimited,
    DeepObject,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestBody {
    pub kind: BodyKind,
    /// Without parameters. The boundary of a multipart body is added when it is sent.
    pub content_type: String,
    pub required: bool,
    /// The arguments that stand for the whole body.
    pub whole: Vec<String>,
    /// Whether the remaining arguments may be members of the body. They can't if it is an array or a text.
    pub members: bool,
    /// The known members of a form. Empty for other kinds.
    pub properties: Vec<Property>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BodyKind {
    Json,
    Form,
    Multipart,
    Text,
    Binary,
}

/// A member of a form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Property {
    pub name: String,
    pub required: bool,
    /// A file or other binary value, given as base64.
    pub binary: bool,
    pub content_type: Option<String>,
    /// From `encoding`. Without it, a form repeats the name of an array and sends an object as JSON.
    pub style: Option<(Style, bool)>,
}

/// The requirement of a security scheme.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Scheme {
    ApiKey {
        location: Location,
        name: String,
    },
    Basic,
    /// A bearer token. For OAuth2 and OpenID Connect, it has the document's token URLs.
    Bearer {
        token_url: Option<String>,
        discovery_url: Option<String>,
    },
    /// A scheme that isn't supported, such as `mutualTLS` or HTTP digest.
    Other(String),
}

impl Scheme {
    /// The scheme's name in messages.
    pub(crate) fn describe(&self) -> String {
        match self {
            Scheme::ApiKey { location, name } => {
                format!("an API key `{name}` ({})", location.name())
            }
            Scheme::Basic => "HTTP basic".to_owned(),
            Scheme::Bearer { .. } => "a bearer token".to_owned(),
            Scheme::Other(name) => name.clone(),
        }
    }
}
