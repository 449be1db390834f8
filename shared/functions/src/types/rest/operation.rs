//! An operation as a call needs it: everything looked up, plain data that can be stored.

use serde::{Deserialize, Serialize};

/// One operation of a service. Made by [`OpenApi::operation`](super::OpenApi::operation).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// The `operationId`.
    pub id: String,
    /// In upper case.
    pub method: String,
    /// Absolute, `http` or `https`, without a slash at the end.
    pub server: String,
    /// The path below the server, with `{parameter}`s.
    pub path: String,
    pub parameters: Vec<Parameter>,
    pub body: Option<RequestBody>,
    /// The `Accept` header.
    pub accept: String,
    /// Alternatives, each a list of schemes that are needed together. An empty one allows a call
    /// without.
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

/// How arrays and objects become text. `TabDelimited` is Swagger 2.0's `tsv`.
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
    /// Without parameters; a multipart boundary is added when it is sent.
    pub content_type: String,
    pub required: bool,
    /// The arguments that are the whole body.
    pub whole: Vec<String>,
    /// Whether the remaining arguments may be its members: not for an array or a text.
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
    /// A file or other bytes, given as base64.
    pub binary: bool,
    pub content_type: Option<String>,
    /// Given by `encoding`; a form repeats an array's name and sends an object as JSON without.
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
    /// A bearer token; for OAuth2 and OpenID Connect with where the document says to get it.
    Bearer {
        token_url: Option<String>,
        discovery_url: Option<String>,
    },
    /// A scheme that isn't supported, such as `mutualTLS` or HTTP digest.
    Other(String),
}

impl Scheme {
    /// Its name in messages.
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
