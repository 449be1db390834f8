//! The page between the console and the provider, and the address that the provider leads back to.

use askama::Template;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, header};

use crate::answer::Failure;
use crate::console::Console;
use crate::visitor::is_secure;

/// A page that leads to another one. A redirect would count as a request of the site that the browser comes from, which
/// the server refuses for all other pages.
#[derive(Template)]
#[template(path = "onwards.html")]
pub struct Onwards {
    pub title: &'static str,
    pub link: String,
    pub to: String,
}

/// The origin of our pages, as the browser knows it.
pub fn origin(console: &Console, headers: &HeaderMap) -> Result<String, Failure> {
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let Some(host) = host.filter(|host| host.parse::<Authority>().is_ok()) else {
        let detail = "the request doesn't name the host that it goes to (header Host)";
        return Err(Failure::new(StatusCode::BAD_REQUEST, detail));
    };
    let scheme = match is_secure(console, headers) {
        true => "https",
        false => "http",
    };
    Ok(format!("{scheme}://{host}"))
}
