//! `rest` functions: operations of services that an OpenAPI document describes.
//!
//! Language 0.8, "Using Functions for RESTful Service Invocations". [`OpenApi`] reads a document
//! (OpenAPI 3.0 and 3.1, Swagger 2.0) and [`OpenApi::operation`] takes out of it all that a call
//! needs; that happens at deployment. [`RestCaller::call`] makes a request of an [`Operation`] and
//! arguments, and data or an error of the answer.
//!
//! # Arguments
//!
//! - An argument goes to the parameter of its name. Where a name is in two places, it is qualified:
//!   `path.id`, `query.id` (`header.`, `cookie.`), which is allowed everywhere.
//! - A null argument of a parameter counts as not given. Defaults of schemas are not sent.
//! - The remaining arguments are the request body, as an object. The argument `body` is the whole
//!   body, of any kind, unless a parameter or a property of the body's schema has that name (in
//!   Swagger 2.0 the body parameter's own name does the same). An operation without a body refuses
//!   it.
//! - An API key that the document asks for may be given as an argument too.
//! - Of several media types the first of JSON, form, multipart, text, anything else is sent. Files
//!   and other binary values are base64 strings here and bytes on the wire.
//!
//! # Results
//!
//! JSON gives its value, other text a string, anything else a string of base64; no body gives
//! null. Any status but 2xx is an error; redirects are followed to the same origin only.

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

pub use caller::{CallContext, RestCaller};
pub use document::OpenApi;
pub use error::{DOCUMENT_BYTES_MAX, Error};
pub(crate) use function::TYPE;
pub(crate) use library::{Library, Refused};
pub(crate) use node::Node;
pub(crate) use read::{hint, read};

pub use operation::{
    BodyKind, Location, Operation, Parameter, Property, RequestBody, Scheme, Style,
};
#[cfg(test)]
pub(crate) use request::request_line;
