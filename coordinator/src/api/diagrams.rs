//! Diagrams of definitions, and of an instance's progress in its definition.

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use swirl_api::diagrams::{DefinitionId, DrawQuery};
use swirl_api::instance::InstanceId;
use swirl_ports::HistoryPart;
use swirl_presentation::{Rewound, Trail};

use super::Api;
use super::pictures::Shown;
use super::problem::{Problem, bounded};
use super::request::Parameters;
use super::rewind;

/// The number of entries that are drawn: the last ones of a history.
const ENTRIES_MAX: usize = 20_000;

pub async fn definition(
    State(api): State<Api>,
    Path(DefinitionId { id, version }): Path<DefinitionId>,
) -> Result<Response, Problem> {
    let registry = &api.service.registry;
    let found = registry.resolve(&id, Some(&version)).await?;
    let definition = found
        .map_err(|unknown| Problem::not_found("unknown-workflow", bounded(&unknown.to_string())))?;
    Ok(picture(
        api.pictures.get(&definition, Shown::Nothing).await?,
    ))
}

pub async fn instance(
    State(api): State<Api>,
    Path(InstanceId { id }): Path<InstanceId>,
    Parameters(drawn): Parameters<DrawQuery>,
) -> Result<Response, Problem> {
    let called = api.service.called(&id).await?;
    if let Some(at) = drawn.at {
        let found = api.queries.instance(&called).await?;
        let instance = found.ok_or_else(|| Problem::no_instance(&id))?;
        let past = rewind::past(&api, &instance, at).await?;
        let rewound = Rewound::new(&past.definition.workflow, &past.entries);
        let trail = Shown::Trail(Trail::rewound(&past.entries, &rewound));
        return Ok(picture(api.pictures.get(&past.definition, trail).await?));
    }
    let found = api.queries.view(&called).await?;
    let (instance, scopes) = found.ok_or_else(|| Problem::no_instance(&id))?;
    let definition = api
        .service
        .registry
        .get(&instance.header.definition)
        .await?;
    // Only these entries are read, so that a long history doesn't delay its page.
    let drawn = HistoryPart::Last(ENTRIES_MAX);
    let history = api.queries.history_page(&called, drawn).await?;
    let trail = Trail::new(&definition.workflow, &history.entries, &scopes);
    let trail = Shown::Trail(trail);
    Ok(picture(api.pictures.get(&definition, trail).await?))
}

fn picture(svg: Bytes) -> Response {
    let mut response = svg.into_response();
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("image/svg+xml");
    headers.insert(header::CONTENT_TYPE, kind);
    // Names from a definition are only text in the image, and opening the image by itself runs no script.
    headers.insert(
        HeaderName::from_static("content-security-policy"),
        HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; sandbox"),
    );
    response
}
