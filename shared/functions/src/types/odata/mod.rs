//! `odata` functions: queries of an OData service, versions 2 to 4.
//!
//! Language 0.8, "Using Functions for OData Service Invocations" and its OData schema. `operation`
//! is `<URL of the service>#<entity set>`; no document is fetched at deployment.
//!
//! # Arguments
//!
//! `key` asks for one entity: a number, a text, or an object for a key of several properties. A text that reads as a
//! number, a GUID or a quoted literal is sent as it is, any other is quoted. `queryOptions` are the schema's, each sent
//! as OData names it (`$filter`, ...).
//!
//! # Results
//!
//! The service's JSON unchanged: a collection is an object whose `value` is the list (in version 2 `d.results`). Any
//! status but 2xx is an error; its code is the one in the answer.

mod answer;
mod function;
mod url;

pub(crate) use function::TYPE;
