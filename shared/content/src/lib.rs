//! Reads bytes that came from outside, as their sender describes them: content codings (`Content-Encoding`), and
//! character sets (`Content-Type`, byte order marks).
//!
//! Everything that Swirl receives is read with these rules: answers of functions, requests to the API, events and
//! fetched documents. What can't be read is an error that names the reason. Nothing is cut, guessed or passed on as
//! it came.

mod charset;
mod coding;

pub use charset::{CharsetError, encode, text, to_utf8};
pub use coding::{ACCEPTED, CodingError, decode};

/// The media type of a `Content-Type`, in lower case and without parameters.
pub fn media_type(content_type: &str) -> String {
    let media = content_type.split(';').next().unwrap_or_default();
    media.trim().to_ascii_lowercase()
}
