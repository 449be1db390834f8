//! Files that pages refer to. They change with the build only, and so does their address.

use axum::extract::Path;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

const CSS: &str = include_str!("../assets/console.css");
const SCRIPT: &str = include_str!("../assets/console.js");
const TRY: &str = include_str!("../assets/try.js");
const FILES: &str = include_str!("../assets/files.js");
const EDITOR: &str = include_str!("../assets/editor.js");
/// Built by `console/editor/build.js`. The licences of its packages have to be passed on with it.
const CODEMIRROR: &str = include_str!("../assets/codemirror.js");
const LICENCES: &str = include_str!("../assets/codemirror.licences.txt");
const ICON: &str = include_str!("../assets/icon.svg");

pub async fn asset(Path(name): Path<String>) -> Response {
    let (kind, text) = match name.as_str() {
        "console.css" => ("text/css", CSS.to_owned()),
        // The style sheet of pictures, for pictures only.
        "chart.css" => (
            "text/css",
            format!(".chart {{ {} }}", swirl_presentation::style()),
        ),
        "console.js" => ("text/javascript", SCRIPT.to_owned()),
        "try.js" => ("text/javascript", TRY.to_owned()),
        "files.js" => ("text/javascript", FILES.to_owned()),
        "editor.js" => ("text/javascript", EDITOR.to_owned()),
        "codemirror.js" => ("text/javascript", CODEMIRROR.to_owned()),
        "codemirror.licences.txt" => ("text/plain", LICENCES.to_owned()),
        "icon.svg" => ("image/svg+xml", ICON.to_owned()),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    let mut response = text.into_response();
    let kind = format!("{kind}; charset=utf-8");
    if let Ok(kind) = HeaderValue::try_from(kind) {
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
    }
    response
}
