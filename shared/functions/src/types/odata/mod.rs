//! `odata` functions: queries of an OData service, versions 2 to 4.
//!
//! Language 0.8, "Using Functions for OData Service Invocations" and its OData schema. `operation`
//! is `<URL of the service>#<entity set>`; no document is fetched at deployment.
//!
//! # Arguments
//!
//! `key` selects one entity: a number, a text, or an object if the key has several properties. A text that looks like a
//! number, a GUID or a quoted literal is sent unchanged; any other is quoted. `queryOptions` has the options of the
//! schema; each is sent under its OData name (`$filter`, ...).
//!
//! # Results
//!
//! The service's JSON, unchanged: a collection is an object whose `value` is the list (in version 2 `d.results`). Any
//! status other than 2xx is an error, with the code in the answer.

mod answer;
mod function;
mod url;

pub(crate) use function::TYPE;
