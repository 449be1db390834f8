//! `graphql` functions: one field of a service's queries or mutations.
//!
//! Language 0.8, "Using Functions for GraphQL Service Invocations". `operation` is `<URL>#query#<field>` or
//! `<URL>#mutation#<field>`. At deployment the service is queried for its schema, and calls are checked against it. If
//! the service doesn't reveal its schema, the definition is deployed without these checks.
//!
//! # Arguments
//!
//! The call's arguments are the field's arguments. GraphQL needs the type of each variable: it comes from the
//! function's `metadata.argumentTypes`, or else from the service (by introspection, cached for a while). An argument
//! without a known type is written into the query as a literal, which works for all types except enums and objects
//! whose keys aren't names.
//!
//! # Results
//!
//! The answer's `data`: an object with the field's name as its key. An answer with `errors` is an error, even if it has
//! partial data.

mod answer;
mod check;
mod function;
mod introspection;
mod query;
mod schema;

pub(crate) use function::{TYPE, endpoint};
pub(crate) use schema::{question, readable};
