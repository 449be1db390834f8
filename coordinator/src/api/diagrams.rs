//! Diagrams of definitions, and of an instance's progress in its definition.

use axum::extract::{Path, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use swirl_ports::HistoryPart;
use swirl_presentation::{Format, Trail, render, render_with};

use super::Api;
use super::problem::{Problem, cut};

/// How much of a history is drawn: the last entries.
const ENTRIES_MAX: usize = 20_000;

pub async fn definition(
    State(api): State<Api>,
    Path((workflow, version)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let registry = &api.service.registry;
    let found = registry.resolve(&workflow, Some(&version)).await?;
    let definition = found
        .map_err(|unknown| Problem::not_found("unknown-workflow", cut(&unknown.to_string())))?;
    Ok(picture(render(&definition.workflow, Format::Svg)))
}

pub async fn instance(State(api): State<Api>, Path(id): Path<String>) -> Result<Response, Problem> {
    let called = api.service.called(&id).await?;
    let found = api.queries.view(&called).await?;
    let (instance, scopes) = found.ok_or_else(|| Problem::no_instance(&id))?;
    let definition = api
        .service
        .registry
        .get(&instance.header.definition)
        .await?;
    // Only these are read, so that a long history doesn't hold up its page.
    let drawn = HistoryPart::Last(ENTRIES_MAX);
    let history = api.queries.history_page(&called, drawn).await?;
    let trail = Trail::new(&definition.workflow, &history.entries, &scopes);
    Ok(picture(render_with(&definition.workflow, &trail)))
}

fn picture(svg: String) -> Response {
    let mut response = svg.into_response();
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("image/svg+xml");
    headers.insert(header::CONTENT_TYPE, kind);
    // A name in a definition is text in the picture; opening the picture by itself runs nothing.
    headers.insert(
        HeaderName::from_static("content-security-policy"),
        HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; sandbox"),
    );
    response
}
