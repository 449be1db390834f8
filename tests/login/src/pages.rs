//! The provider's addresses.

use std::collections::BTreeMap;

use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::json;
use url::form_urlencoded;

use crate::Login;

pub fn router(login: Login) -> Router {
    let well_known = "/.well-known/openid-configuration";
    Router::new()
        .route(
            well_known,
            get(async |State(login): State<Login>| Json(login.discovery())),
        )
        .route(
            "/keys",
            get(async |State(login): State<Login>| Json(login.inner.key.jwks())),
        )
        .route("/authorize", get(ask).post(consent))
        .route("/token", post(token))
        .route("/logout", get(sign_out))
        .layer(from_fn_with_state(login.clone(), unless_down))
        .with_state(login)
}

async fn unless_down(State(login): State<Login>, request: Request, next: Next) -> Response {
    match login.is_down() {
        true => (StatusCode::BAD_GATEWAY, "out of order").into_response(),
        false => next.run(request).await,
    }
}

/// A page for browsers. Its form is sent to the same address.
async fn ask() -> Html<&'static str> {
    Html(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Provider</title><link rel=icon href=data:,>\
         <main><h1>The provider</h1><form method=post><button style='padding:8px'>Continue as Ada</button></form></main></html>",
    )
}

fn bad(error: impl ToString) -> Response {
    (StatusCode::BAD_REQUEST, error.to_string()).into_response()
}

async fn consent(State(login): State<Login>, uri: Uri) -> Response {
    match login.consent(&format!("{}{uri}", login.issuer)) {
        Ok(back) => Redirect::to(&back).into_response(),
        Err(error) => bad(error),
    }
}

async fn token(State(login): State<Login>, headers: HeaderMap, body: String) -> Response {
    let mut form: BTreeMap<String, String> = form_urlencoded::parse(body.as_bytes())
        .into_owned()
        .collect();
    if let Some(header) = headers.get(header::AUTHORIZATION) {
        let header = header.to_str().unwrap_or_default().to_owned();
        form.insert("authorization".to_owned(), header);
    }
    match login.exchange(form) {
        Ok(answer) => Json(answer).into_response(),
        Err(error) => (StatusCode::BAD_REQUEST, Json(json!({"error": error}))).into_response(),
    }
}

async fn sign_out(
    State(login): State<Login>,
    Query(query): Query<BTreeMap<String, String>>,
) -> Response {
    match login.sign_out(&query) {
        Ok(back) => Redirect::to(&back).into_response(),
        Err(error) => bad(error),
    }
}
