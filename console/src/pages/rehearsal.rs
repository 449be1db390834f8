//! “Try it”: a definition runs in virtual time, with mocks, before it is deployed or after.

use askama::Template;
use axum::extract::Path;
use axum::http::{HeaderValue, header};
use axum::response::IntoResponse;
use swirl_api::definitions::{GET, GetQuery, Version};

use super::deploy;
use super::panel::{Panel, file_name};
use crate::answer::{Answer, with_status};
use crate::asking::segment;
use crate::shell::Shell;
use crate::visitor::{Form, Visitor};

/// Of a deployed definition.
#[derive(Template)]
#[template(path = "rehearsal.html")]
struct Page {
    shell: Shell,
    id: String,
    version: String,
    path: String,
    panel: Panel,
}

/// Rehearses the text in the editor.
pub async fn of_draft(visitor: Visitor, form: Form) -> Answer {
    let document = form.get("document").replace("\r\n", "\n");
    let definition = (document, deploy::files_of(&form));
    let rehearsed = Panel::of(&form).rehearse(&visitor, definition);
    let (status, panel) = rehearsed.await?;
    deploy::with_panel(&visitor, &form, status, panel).await
}

/// Rehearses a deployed definition.
pub async fn of_deployed(
    visitor: Visitor,
    Path((id, version)): Path<(String, String)>,
    form: Form,
) -> Answer {
    let at = Version { id, version };
    let query = GetQuery {
        contents: true,
        ..GetQuery::default()
    };
    let found = visitor.asking.ask(GET.at(&at).query(query)).await?;
    let resources = found.contents.unwrap_or_default().into_iter().collect();
    let rehearsed = Panel::of(&form).rehearse(&visitor, (found.document, resources));
    let (status, panel) = rehearsed.await?;
    let title = format!("Try {} {}", at.id, at.version);
    let page = Page {
        shell: Shell::new(&visitor, "definitions", title).await?,
        path: format!("{}/{}", segment(&at.id), segment(&at.version)),
        id: at.id,
        version: at.version,
        panel,
    };
    with_status(status, &page)
}

/// Gives a scenario back as a file: nothing is kept on the server.
pub async fn save(_: Visitor, form: Form) -> Answer {
    let text = form.get("scenario").replace("\r\n", "\n");
    let name = file_name(form.get("name").trim_end_matches(".scenario.yaml"));
    let mut response = text.into_response();
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("application/yaml; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, kind);
    if let Ok(value) = HeaderValue::try_from(format!("attachment; filename=\"{name}\"")) {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
    Ok(response)
}
