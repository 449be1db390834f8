//! A service that echoes everything that it received, in many encodings.
//!
//! The first part of a path determines how it answers; see [`reply`].

use std::fmt::Write as _;
use std::net::SocketAddr;

use axum::Router;
use axum::body::{Bytes, to_bytes};
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde_json::{Value, json};
use url::form_urlencoded;

use super::ACCESS;
use super::needles::encodings;

pub async fn serve() -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

async fn answer(request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    if path == "/openapi.json" {
        return axum::Json(openapi()).into_response();
    }
    let body = to_bytes(body, 1 << 20).await.unwrap_or_default();
    let headers = parts.headers.iter();
    let headers = headers.map(|(_, value)| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let uri = percent_encoding::percent_decode_str(&path)
        .decode_utf8_lossy()
        .into_owned();
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let got = [vec![path.clone(), uri, query.clone()], headers.collect()].concat();
    let is_token = path.ends_with("/token");
    reply(&path, &echo(&got, &query, &body, is_token), &body)
}

/// Everything that was received, decoded, and all of it in many encodings. The most encoded forms come first, because
/// an error shows only the beginning.
fn echo(got: &[String], query: &str, body: &Bytes, is_token: bool) -> Vec<String> {
    let body = String::from_utf8_lossy(body).into_owned();
    let mut found = Vec::new();
    for text in got {
        let encoded = text
            .strip_prefix("Basic ")
            .and_then(|basic| STANDARD.decode(basic).ok());
        if let Some(pair) = encoded.and_then(|pair| String::from_utf8(pair).ok()) {
            let (_, password) = pair.split_once(':').unwrap_or_default();
            if is_token {
                // RFC 6749, section 2.3.1.
                let pairs = format!("v={password}");
                let pairs = form_urlencoded::parse(pairs.as_bytes());
                found.extend(pairs.map(|(_, value)| value.into_owned()));
            }
            found.extend([password.to_owned(), pair.clone()]);
        }
        found.extend(text.strip_prefix("Bearer ").map(str::to_owned));
    }
    if let Ok(value) = serde_json::from_str::<Value>(&body) {
        leaves(&value, &mut found);
    }
    let pairs = form_urlencoded::parse(query.as_bytes());
    found.extend(pairs.map(|(_, value)| value.into_owned()));
    found.push(body);
    found.extend_from_slice(got);
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|text| text.len() >= 8 && seen.insert(text.clone()));
    let mut echoed = Vec::new();
    for text in &found {
        echoed.extend(encodings(text).into_iter().map(|(_, form)| form));
        for before in ["", "u", "us", "me:"] {
            let whole = format!("{before}{text}");
            echoed.extend([STANDARD.encode(&whole), URL_SAFE.encode(&whole)]);
        }
    }
    echoed
}

fn leaves(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| leaves(item, found)),
        Value::Object(members) => members.values().for_each(|member| leaves(member, found)),
        Value::String(text) => found.push(text.clone()),
        _ => {}
    }
}

/// A message that ends within the received text when it is cut at `limit` characters.
fn long(limit: usize, echoed: &[String]) -> String {
    let mut text = "x".repeat(limit - 12);
    for part in echoed {
        let _ = write!(text, "{part} ");
    }
    text
}

fn reply(path: &str, echoed: &[String], body: &Bytes) -> Response {
    let json = |status: u16, value: Value| {
        let status = StatusCode::from_u16(status).unwrap();
        (status, axum::Json(value)).into_response()
    };
    let all = || echoed.join(" ");
    match path.split('/').nth(1).unwrap_or_default() {
        "refuse" => json(400, json!({"got": echoed})),
        "refuse-all" => json(401, json!({"got": echoed})),
        "break" => (StatusCode::INTERNAL_SERVER_ERROR, long(500, echoed)).into_response(),
        "redirect" => {
            let to = [(header::LOCATION, format!("http://127.0.0.1:1{path}"))];
            (StatusCode::FOUND, to, all()).into_response()
        }
        "lie" => ([(header::CONTENT_TYPE, "application/json")], all()).into_response(),
        "good-token" => json(200, json!({"access_token": ACCESS, "token_type": "bearer"})),
        "bad-token" => json(
            401,
            json!({"error": "invalid_client", "error_description": all()}),
        ),
        "long-token" => json(
            400,
            json!({"error": "invalid_client", "error_description": long(200, echoed)}),
        ),
        "exact" => {
            let error = json!({"name": all(), "code": all(), "message": long(500, echoed)});
            let kind = [(header::CONTENT_TYPE, "application/vnd.swirl.error+json")];
            (kind, error.to_string()).into_response()
        }
        "given" => json(
            200,
            json!({"error": {"name": all(), "code": all(), "message": long(500, echoed)}}),
        ),
        "graphql" if body.windows(8).any(|part| part == b"__schema") => json(400, json!({})),
        "graphql" => json(
            200,
            json!({"errors": [
            {"message": long(500, echoed), "path": [all()], "extensions": {"code": all()}}]}),
        ),
        "graphql-result" => json(200, json!({"data": {"field": {"echo": echoed}}})),
        "odata" => json(
            400,
            json!({"error": {"code": all(), "message": long(500, echoed)}}),
        ),
        // Successful answers: echoes in values, in names of members, in a single text.
        _ => json(
            200,
            json!({"list": echoed, "text": all(),
            "names": echoed.iter().map(|part| (part.clone(), json!(1))).collect::<serde_json::Map<_, _>>()}),
        ),
    }
}

fn openapi() -> Value {
    let text = json!({"type": "string"});
    let mut paths = serde_json::Map::new();
    for mode in [
        "refuse",
        "refuse-all",
        "break",
        "redirect",
        "lie",
        "succeed",
    ] {
        let parameter = |name: &str, place: &str| json!({"name": name, "in": place, "required": place == "path", "schema": text});
        paths.insert(format!("/{mode}/{{item}}"), json!({"post": {
            "operationId": mode,
            "parameters": [parameter("item", "path"), parameter("q", "query"), parameter("X-Token", "header")],
            "requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}},
            "responses": {"200": {"description": "done"}},
        }}));
    }
    json!({"openapi": "3.0.3", "info": {"title": "Echo", "version": "1"},
        "servers": [{"url": "/"}], "paths": paths})
}
