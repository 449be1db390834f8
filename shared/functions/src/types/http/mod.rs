//! `http` functions: a request that the definition describes itself.
//!
//! Language 0.9, "Using functions for HTTP Service Invocations". The operation has a `uri`, which may have `{name}`s in
//! its path and query, a `method`, and static `headers` and `cookies`. Of a call's arguments `body`, `headers` and
//! `cookies` are those parts of the request, and take precedence over the operation's; the others fill the `{name}`s.
//! An argument that has no place is refused, nothing is sent then.
//!
//! A body that isn't text is sent as JSON unless `Content-Type` says it is a form. Results are those
//! of `rest` functions.

mod function;
mod request;

pub(crate) use function::TYPE;
