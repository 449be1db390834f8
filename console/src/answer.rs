//! Pages as answers, and pages for errors.

use askama::Template;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Redirect, Response};
use serde_json::Value;

use crate::asking::Refusal;

/// The result of a page's handler.
pub type Answer = Result<Response, Failure>;

/// A page.
pub fn page(template: &impl Template) -> Answer {
    with_status(StatusCode::OK, template)
}

pub fn with_status(status: StatusCode, template: &impl Template) -> Answer {
    match template.render() {
        Ok(text) => Ok((status, Html(text)).into_response()),
        Err(error) => {
            let detail = format!("the page cannot be written: {error}");
            Err(Failure::new(StatusCode::INTERNAL_SERVER_ERROR, detail))
        }
    }
}

/// Redirects to another page, so that reloading it doesn't send the form again.
pub fn go_to(path: &str) -> Answer {
    Ok(Redirect::to(path).into_response())
}

/// A failure, shown as a page.
#[derive(Debug)]
pub struct Failure {
    pub status: StatusCode,
    pub detail: String,
    code: String,
}

impl Failure {
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Failure {
        Failure {
            status,
            detail: detail.into(),
            code: String::new(),
        }
    }

    /// The kind of failure, for people.
    pub fn title(&self) -> &'static str {
        words(self.status).0
    }

    pub fn not_found(what: &str) -> Failure {
        Failure::new(StatusCode::NOT_FOUND, what)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        Failure {
            status: refusal.status,
            detail: refusal.problem.detail,
            code: refusal.problem.code,
        }
    }
}

#[derive(Template)]
#[template(path = "failure.html")]
struct FailurePage {
    title: &'static str,
    detail: String,
    code: String,
    help: &'static str,
}

/// A title, and what to do.
fn words(status: StatusCode) -> (&'static str, &'static str) {
    match status {
        StatusCode::FORBIDDEN => (
            "You are not allowed to do this",
            "Ask the operator of this server for a token with the role named above, and sign in with it.",
        ),
        StatusCode::NOT_FOUND => (
            "There is nothing here",
            "It may have been removed when its time was over, or there is a mistake in the address.",
        ),
        StatusCode::CONFLICT => (
            "That is not possible now",
            "Things have changed, or somebody else was faster. Go back, reload the page, and look again.",
        ),
        StatusCode::SERVICE_UNAVAILABLE => (
            "The server cannot answer now",
            "Try again in a moment. If that doesn't help, the server's log says more.",
        ),
        status if status.is_client_error() => (
            "The request was not understood",
            "Go back, and correct what the message names.",
        ),
        _ => (
            "Something went wrong",
            "This is not your fault. The server's log says more.",
        ),
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        if self.status == StatusCode::UNAUTHORIZED {
            return self.status.into_response();
        }
        let (title, help) = words(self.status);
        let page = FailurePage {
            title,
            detail: self.detail,
            code: self.code,
            help,
        };
        let text = page.render().unwrap_or_else(|_| title.to_owned());
        (self.status, Html(text)).into_response()
    }
}

/// A member that is text; otherwise empty.
pub fn text(value: &Value, name: &str) -> String {
    match &value[name] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
