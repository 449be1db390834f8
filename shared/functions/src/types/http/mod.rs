//! `http` functions: requests that the definition itself describes.
//!
//! Language 0.9, "Using functions for HTTP Service Invocations". The operation has a `uri`, which may have `{name}`s in
//! its path and query, a `method`, and static `headers` and `cookies`. The arguments `body`, `headers` and `cookies` of
//! a call set those parts of the request and take precedence over the operation's; the others fill the `{name}`s. If an
//! argument has no place, the call is refused and nothing is sent.
//!
//! A body that isn't text is sent as JSON, unless `Content-Type` declares a form. Results are the same as those of
//! `rest` functions.

mod function;
pub(super) mod request;

pub(crate) use function::TYPE;
