//! Signing in with a token, and out.

use std::time::Instant;

use askama::Template;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;

use crate::answer::{Answer, go_to, with_status};
use crate::asking::Asking;
use crate::console::Console;
use crate::visitor::{Form, Ticket, Visitor, draw};

#[derive(Template)]
#[template(path = "sign_in.html")]
struct Page {
    csrf: String,
    next: String,
    refused: String,
}

#[derive(Deserialize)]
pub struct To {
    #[serde(default)]
    next: String,
}

pub async fn show(visitor: Visitor, Query(to): Query<To>) -> Answer {
    // If the server requires no token there is nothing to sign in to.
    if visitor.asking.get(&["me"], &[]).await.is_ok() {
        return go_to(inside(&to.next));
    }
    form(StatusCode::OK, visitor.csrf, &to.next, String::new())
}

fn form(status: StatusCode, csrf: String, next: &str, refused: String) -> Answer {
    let next = inside(next).to_owned();
    with_status(
        status,
        &Page {
            csrf,
            next,
            refused,
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
    if let Err(refusal) = asking.get(&["me"], &[]).await {
        let told = match refusal.status {
            StatusCode::UNAUTHORIZED if token.is_empty() => "Enter a token.".to_owned(),
            _ => format!("You are not signed in: {}.", refusal.detail),
        };
        let status = match refusal.status {
            // 401 would lead to the sign-in page again.
            StatusCode::UNAUTHORIZED => StatusCode::FORBIDDEN,
            other => other,
        };
        return self::form(status, visitor.csrf, form.get("next"), told);
    }
    // A new name: knowing the previous one is useless.
    let name = draw()?;
    console.sessions.end(&visitor.name);
    console.sessions.begin(&name, token, Instant::now());
    renamed(go_to(inside(form.get("next")))?, name)
}

pub async fn sign_out(State(console): State<Console>, visitor: Visitor, _: Form) -> Answer {
    console.sessions.end(&visitor.name);
    renamed(go_to("/console/sign-in")?, draw()?)
}

/// The browser gets this name.
fn renamed(mut response: Response, name: String) -> Answer {
    response.extensions_mut().insert(Ticket(name));
    Ok(response)
}

/// A page of the console, for any value in the address.
fn inside(next: &str) -> &str {
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
