//! Signing in at the provider: the way there, and the way back.

use std::time::Instant;

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use serde::Deserialize;

use super::onwards::{Onwards, origin};
use super::sign_in::{self, To, inside, renamed};
use crate::answer::{Answer, Failure, go_to, page};
use crate::asking::Asking;
use crate::console::Console;
use crate::provider::{Flow, Granted, ProviderError, Returned};
use crate::visitor::{Visitor, draw};
use swirl_api::overview::ME;

/// The address of [`finish`].
const CALLBACK: &str = "/console/sign-in/callback";
/// The longest word of the provider that is shown.
const WORD_CHARS_MAX: usize = 60;

/// Leads to the provider.
pub async fn begin(
    State(console): State<Console>,
    visitor: Visitor,
    headers: HeaderMap,
    Query(to): Query<To>,
) -> Answer {
    let Some(provider) = &console.provider else {
        return Err(Failure::not_found(NO_PROVIDER));
    };
    let callback = match provider.callback() {
        Some(callback) => callback.to_owned(),
        None => format!("{}{}{CALLBACK}", origin(&console, &headers)?, console.base),
    };
    let flow = Flow {
        state: draw()?,
        nonce: draw()?,
        verifier: draw()?,
        callback,
    };
    let address = match provider.begin(&flow).await {
        Ok(address) => address,
        Err(error) => return refused(&console, visitor, &to.next, error),
    };
    let from = visitor.asking.from.map(|from| from.0);
    let next = inside(&to.next).to_owned();
    let now = Instant::now();
    console.pending.begin(&visitor.name, from, flow, next, now);
    go_to(&address)
}

const NO_PROVIDER: &str = "this server has no provider to sign in at: it accepts only tokens";

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct Back {
    state: String,
    code: String,
    error: Option<String>,
    iss: Option<String>,
}

/// The browser is back.
pub async fn finish(
    State(console): State<Console>,
    visitor: Visitor,
    Query(back): Query<Back>,
) -> Answer {
    let Some(provider) = &console.provider else {
        return Err(Failure::not_found(NO_PROVIDER));
    };
    let begun = console
        .pending
        .take(&back.state, &visitor.name, Instant::now());
    let Some(begun) = begun else {
        let reason = "this browser has begun no such sign-in here in the last five minutes, or it has been used \
                      already. Sign in once more; your browser must accept the cookie of this page";
        let error = ProviderError::Refused(reason.to_owned());
        return refused(&console, visitor, "", error);
    };
    let granted = match back.error {
        Some(error) => Err(ProviderError::Refused(format!(
            "{} answers “{}”",
            provider.name(),
            word(&error)
        ))),
        None => {
            let returned = Returned {
                code: back.code,
                issuer: back.iss,
            };
            provider.finish(&begun.flow, &returned).await
        }
    };
    match granted {
        Ok(granted) => enter(&console, visitor, &begun.next, granted).await,
        Err(error) => refused(&console, visitor, &begun.next, error),
    }
}

/// Opens a session, if the API accepts the token.
async fn enter(console: &Console, visitor: Visitor, next: &str, granted: Granted) -> Answer {
    let asking = Asking {
        token: Some(granted.token.clone()),
        ..visitor.asking.clone()
    };
    if let Err(refusal) = asking.ask(ME.ask()).await {
        let error = ProviderError::Refused(refusal.problem.detail);
        return refused(console, visitor, next, error);
    }
    // A new name: knowing the previous one is useless.
    let name = draw()?;
    console.sessions.end(&visitor.name);
    let now = Instant::now();
    console.sessions.begin_granted(&name, granted, now);
    let onwards = Onwards {
        title: "You are signed in",
        link: "Continue to the console".to_owned(),
        to: next.to_owned(),
    };
    renamed(page(&onwards)?, name)
}

fn refused(console: &Console, visitor: Visitor, next: &str, error: ProviderError) -> Answer {
    let (status, told) = match error {
        ProviderError::Away => {
            let provider = console.provider.as_ref();
            let name = provider.map_or("The provider", |provider| provider.name());
            let told = format!(
                "{name} doesn't answer this server as it should. Try again in a moment; the server's log says more."
            );
            (StatusCode::SERVICE_UNAVAILABLE, told)
        }
        ProviderError::Refused(reason) => {
            let told = format!("You are not signed in: {reason}.");
            (StatusCode::FORBIDDEN, told)
        }
    };
    sign_in::form(console, status, visitor.csrf, next, told)
}

/// A word that came with an address, fit to be shown.
fn word(text: &str) -> String {
    let plain = text.chars().filter(|c| c.is_ascii_graphic() || *c == ' ');
    plain.take(WORD_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::word;

    #[test]
    fn words_of_others_are_short_and_plain() {
        assert_eq!(word("access_denied"), "access_denied");
        assert_eq!(word("a\u{202e}b\nc"), "abc");
        assert_eq!(word(&"x".repeat(500)).len(), super::WORD_CHARS_MAX);
    }
}
