//! Errors of documents, and of operations in them.

/// The largest document, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The reason why a document or an operation cannot be used. Retrying with the same document never helps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the OpenAPI document has {bytes} bytes; at most {DOCUMENT_BYTES_MAX} are read")]
    TooLarge { bytes: usize },
    /// Nothing of the document is quoted, because it may be anything that the fetching process can read.
    #[error("the OpenAPI document is neither JSON nor YAML{at}")]
    Syntax { at: String },
    #[error(
        "not an OpenAPI document: it has neither `openapi: 3.x` nor `swagger: \"2.0\"` at the top"
    )]
    NotOpenApi,
    #[error("OpenAPI {} is not supported; use 3.0, 3.1 or Swagger 2.0", shown_version(.version))]
    Version { version: String },
    #[error("{at}: the reference `{reference}` leads to `{uri}`, and that document isn't there")]
    MissingDocument {
        at: String,
        reference: String,
        /// In the form that [`OpenApi::add`](super::OpenApi::add) takes.
        uri: String,
    },
    #[error("{at}: the reference `{reference}` points to nothing")]
    BrokenReference { at: String, reference: String },
    #[error("{at}: the reference `{reference}` leads back to itself")]
    CyclicReference { at: String, reference: String },
    #[error("there is no operation `{id}` in the OpenAPI document; {hint}")]
    UnknownOperation { id: String, hint: String },
    #[error(
        "the operation id `{id}` is used twice in the OpenAPI document: at {first} and {second}"
    )]
    DoubledOperation {
        id: String,
        first: String,
        second: String,
    },
    /// Nothing says where the service is, for this reason.
    #[error("{0}")]
    NoAddress(String),
    #[error("{at}: {message}")]
    Invalid { at: String, message: String },
}

/// Only what looks like a version is quoted, because a document may be anything that the fetching process can read.
pub(crate) fn shown_version(version: &str) -> String {
    let is_version = version.len() <= 16
        && version.starts_with(|c: char| c.is_ascii_digit())
        && version.chars().all(|c| c.is_ascii_digit() || c == '.');
    match is_version {
        true => format!("version {version}"),
        false => "in the version of this document".to_owned(),
    }
}

impl Error {
    pub(crate) fn invalid(at: &str, message: impl Into<String>) -> Error {
        Error::Invalid {
            at: at.to_owned(),
            message: message.into(),
        }
    }
}
