//! Signing in with a token, and out.

use std::time::Instant;

use askama::Template;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use url::form_urlencoded::Serializer;

use super::onwards::{Onwards, origin};
use crate::answer::{Answer, go_to, page, with_status};
use crate::asking::Asking;
use crate::console::Console;
use crate::sessions::Ended;
use crate::visitor::{Form, Ticket, Visitor, draw};
use swirl_api::overview::ME;

#[derive(Template)]
#[template(path = "sign_in.html")]
struct Page {
    csrf: String,
    next: String,
    refused: String,
    /// The provider to sign in at; empty if there is none.
    provider: String,
    /// The address that leads there.
    begin: String,
}

#[derive(Deserialize)]
pub struct To {
    #[serde(default)]
    pub next: String,
}

pub async fn show(
    State(console): State<Console>,
    visitor: Visitor,
    Query(to): Query<To>,
) -> Answer {
    // If the server requires no token there is nothing to sign in to.
    if visitor.asking.ask(ME.ask()).await.is_ok() {
        return go_to(inside(&to.next));
    }
    let (status, refused) = (StatusCode::OK, String::new());
    form(&console, status, visitor.csrf, &to.next, refused)
}

/// The page, with the reason why the visitor isn't signed in.
pub fn form(
    console: &Console,
    status: StatusCode,
    csrf: String,
    next: &str,
    refused: String,
) -> Answer {
    let next = inside(next).to_owned();
    let query = Serializer::new(String::new())
        .append_pair("next", &next)
        .finish();
    let provider = console.provider.as_ref();
    with_status(
        status,
        &Page {
            csrf,
            next,
            refused,
            provider: provider.map_or_else(String::new, |provider| provider.name().to_owned()),
            begin: format!("/console/sign-in/with?{query}"),
        },
    )
}

pub async fn sign_in(State(console): State<Console>, visitor: Visitor, form: Form) -> Answer {
    let token = form.get("token").trim().to_owned();
    let is_text = token.bytes().all(|byte| byte.is_ascii_graphic());
    let asking = Asking {
        token: Some(token.clone()).filter(|_| is_text),
        ..visitor.asking
    };
    if let Err(refusal) = asking.ask(ME.ask()).await {
        let told = match refusal.status {
            StatusCode::UNAUTHORIZED if token.is_empty() => "Enter a token.".to_owned(),
            _ => format!("You are not signed in: {}.", refusal.problem.detail),
        };
        let status = match refusal.status {
            // 401 would lead to the sign-in page again.
            StatusCode::UNAUTHORIZED => StatusCode::FORBIDDEN,
            other => other,
        };
        return self::form(&console, status, visitor.csrf, form.get("next"), told);
    }
    // A new name: knowing the previous one is useless.
    let name = draw()?;
    console.sessions.end(&visitor.name);
    console.sessions.begin(&name, token, Instant::now());
    renamed(go_to(inside(form.get("next")))?, name)
}

pub async fn sign_out(
    State(console): State<Console>,
    visitor: Visitor,
    headers: HeaderMap,
    _: Form,
) -> Answer {
    let ended = console.sessions.end(&visitor.name);
    let response = match at_provider(&console, &headers, ended).await {
        Some(onwards) => page(&onwards)?,
        None => go_to("/console/sign-in")?,
    };
    renamed(response, draw()?)
}

/// The page that leads to the end of the session at the provider. (The policy of our pages doesn't allow forms to be
/// redirected there.)
async fn at_provider(
    console: &Console,
    headers: &HeaderMap,
    ended: Option<Ended>,
) -> Option<Onwards> {
    ended.filter(|ended| ended.is_of_provider)?;
    let provider = console.provider.as_ref()?;
    // As registered, if it is configured.
    let back = match provider.callback() {
        Some(callback) => callback.strip_suffix("/callback")?.to_owned(),
        None => {
            let origin = origin(console, headers).ok()?;
            format!("{origin}{}/console/sign-in", console.base)
        }
    };
    let to = provider.end(&back).await?;
    Some(Onwards {
        title: "You are signed out of Swirl",
        link: format!("Sign out of {} as well", provider.name()),
        to,
    })
}

/// The browser gets this name.
pub fn renamed(mut response: Response, name: String) -> Answer {
    response.extensions_mut().insert(Ticket(name));
    Ok(response)
}

/// A page of the console, for any value in the address.
pub fn inside(next: &str) -> &str {
    let plain = next
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    match next.starts_with("/console/") && plain && !next.contains("//") {
        true => next,
        false => "/console/",
    }
}

#[cfg(test)]
mod tests {
    use super::inside;

    #[test]
    fn nobody_is_led_elsewhere() {
        assert_eq!(
            inside("/console/instances?status=faulted"),
            "/console/instances?status=faulted"
        );
        for next in [
            "",
            "https://evil.test",
            "//evil.test",
            "/console//evil.test",
            "/console/\\evil",
            "/other",
        ] {
            assert_eq!(inside(next), "/console/", "{next}");
        }
    }
}
