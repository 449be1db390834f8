//! `graphql` functions: one field of a service's queries or mutations.
//!
//! Language 0.8, "Using Functions for GraphQL Service Invocations". `operation` is `<URL>#query#<field>` or
//! `<URL>#mutation#<field>`. At deployment the service is asked for its schema, and calls are checked against it; a
//! service that doesn't give it doesn't keep a definition from being deployed.
//!
//! # Arguments
//!
//! An argument of the call is one of the field. GraphQL needs each variable's type: it is taken from the function's
//! `metadata.argumentTypes`, otherwise requested from the service (introspection, once in a while). An argument whose
//! type is unavailable is written into the query as a literal, which fits all types except enums and objects whose
//! keys aren't names.
//!
//! # Results
//!
//! The answer's `data`: an object with the field's name as its key. An answer with `errors` is an
//! error, partial data or not.

mod answer;
mod check;
mod function;
mod introspection;
mod query;
mod schema;

pub(crate) use function::{TYPE, endpoint};
pub(crate) use schema::{question, readable};
