//! `rest` functions: operations of services that an OpenAPI document describes.
//!
//! Language 0.8, "Using Functions for RESTful Service Invocations". At deployment, [`OpenApi`] reads a document
//! (OpenAPI 3.0 and 3.1, Swagger 2.0), and [`OpenApi::operation`] extracts everything that a call needs.
//! [`RestCaller::call`] builds a request from an [`Operation`] and arguments, and converts the answer to data or an
//! error.
//!
//! # Arguments
//!
//! - An argument goes to the parameter with its name. If several parameters have the same name, they are qualified:
//!   `path.id`, `query.id` (`header.`, `cookie.`). Qualified names can always be used.
//! - A null argument for a parameter counts as missing. Defaults in schemas are not sent.
//! - The remaining arguments form the request body, as an object. The argument `body` is the whole body of any type,
//!   unless a parameter or a property of the body's schema has that name. (In Swagger 2.0 the body parameter's own name
//!   has the same meaning.) If an operation has no body, remaining arguments are refused.
//! - An API key that the document requires may be given as an argument too.
//! - If there are several media types, the first one in the order JSON, form, multipart, text, others is sent. Files
//!   and other binary values are base64 strings in arguments and bytes when sent.
//!
//! # Results
//!
//! A JSON answer gives its value, other text a string, and anything else a base64 string. An empty body gives null. Any
//! status other than 2xx is an error. Redirects are followed only within the same origin.

pub(crate) mod answer;
mod body;
mod caller;
mod check;
mod compile;
mod described;
mod document;
mod error;
mod function;
mod inline;
mod library;
pub(crate) mod media;
mod node;
mod openapi3;
mod operation;
mod read;
pub(crate) mod reference;
mod request;
mod schema;
mod schemes;
mod security;
mod server;
mod style;
mod swagger2;
mod task;

pub use caller::{CallContext, RestCaller};
pub use document::OpenApi;
pub(crate) use error::shown_version;
pub use error::{DOCUMENT_BYTES_MAX, Error};
pub(crate) use function::TYPE;
pub(crate) use inline::server as metadata_server;
pub(crate) use library::{Library, Refused};
pub(crate) use node::Node;
pub(crate) use read::{hint, read};

pub use operation::{
    BodyKind, Location, Operation, Parameter, Property, RequestBody, Scheme, Style,
};
#[cfg(test)]
pub(crate) use request::request_line;
