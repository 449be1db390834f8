//! Deploying a definition: written in the console, or begun with a deployed one, with the files that it refers to.

use askama::Template;
use axum::Json;
use axum::extract::Query;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use swirl_api::definitions::{
    DEPLOY, DeployQuery, Deployed, Deployment, GET, GetQuery, Outcome, Version,
};
use swirl_authoring::lsp::completions;
use tokio::task::spawn_blocking;

use super::findings::{Found, found};
use super::instance::bare;
use super::panel::Panel;
use crate::answer::{Answer, Failure, go_to, page, with_status};
use crate::asking::segment;
use crate::shell::Shell;
use crate::visitor::{Form, StyleNonce, Visitor, draw};

#[derive(Template)]
#[template(path = "deploy.html")]
struct Editor {
    shell: Shell,
    /// The nonce that the editor's style sheets must have.
    nonce: String,
    document: String,
    /// The number of files that are there.
    given: usize,
    /// The files that it refers to: their names as the document has them, and their contents. The last ones are empty.
    files: Vec<(String, String)>,
    reason: String,
    refused: String,
    checked: Checked,
    panel: Panel,
}

/// The outcome of a check; alone on the page for the editor's script.
#[derive(Template)]
#[template(path = "checked.html")]
struct Checked {
    told: String,
    findings: Vec<Found>,
    /// The picture of the definition; empty if its text has errors.
    chart: String,
}

/// The origin of a document, for messages.
const NAME: &str = "definition written in the console";

/// For how many more files there are fields.
const ROOM: usize = 2;

/// Where findings will be.
const NOTHING_YET: &str = "Nothing has been checked yet.";

/// A definition to begin with.
const EXAMPLE: &str = "\
id: greeting
version: 1.0.0
specVersion: '0.8'
name: Greeting
description: Greets a person by name.
states:
  - name: Greet
    type: inject
    data:
      text: Hello
    stateDataFilter:
      output: '${ {greeting: (.text + \", \" + (.name // \"stranger\") + \"!\")} }'
    end: true
";

#[derive(Deserialize, Default)]
pub struct Begin {
    /// ID/VERSION of a definition to begin with.
    #[serde(default)]
    from: String,
    #[serde(default)]
    example: String,
}

pub async fn editor(visitor: Visitor, Query(begin): Query<Begin>) -> Answer {
    let (mut document, mut files) = (String::new(), Vec::new());
    if let Some((id, version)) = begin.from.split_once('/') {
        let at = Version {
            id: decoded(id),
            version: decoded(version),
        };
        let query = GetQuery {
            contents: true,
            ..GetQuery::default()
        };
        let found = visitor.asking.ask(GET.at(&at).query(query)).await?;
        document = raised(&found.document, &at.version);
        files = found.contents.unwrap_or_default().into_iter().collect();
    } else if !begin.example.is_empty() {
        EXAMPLE.clone_into(&mut document);
    }
    let shell = Shell::new(&visitor, "definitions", "Deploy a definition").await?;
    let editor = Editor {
        shell,
        nonce: draw()?,
        document,
        given: files.len(),
        files: with_room(files),
        reason: String::new(),
        refused: String::new(),
        checked: Checked::nothing(),
        panel: Panel::empty(),
    };
    editor.answer(StatusCode::OK)
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// With empty fields for more files.
fn with_room(mut files: Vec<(String, String)>) -> Vec<(String, String)> {
    files.resize_with(files.len() + ROOM, Default::default);
    files
}

/// The files of a form.
pub fn files_of(form: &Form) -> Vec<(String, String)> {
    let names = form.all("file-name").into_iter();
    let files = names.zip(form.all("file-content"));
    let files =
        files.map(|(name, content)| (name.trim().to_owned(), content.replace("\r\n", "\n")));
    files
        .filter(|(name, content)| !name.is_empty() || !content.trim().is_empty())
        .collect()
}

/// The document with a higher version: the first line that names this version at the beginning gets the next one. A
/// definition never changes under its version.
fn raised(document: &str, version: &str) -> String {
    let Some(next) = next_version(version) else {
        return document.to_owned();
    };
    let is_it = |line: &&str| {
        let line = line.trim_start().trim_start_matches('"');
        line.starts_with("version") && line.contains(version)
    };
    match document.lines().find(is_it) {
        Some(line) => document.replacen(line, &line.replacen(version, &next, 1), 1),
        None => document.to_owned(),
    }
}

/// The last number of a version is raised.
fn next_version(version: &str) -> Option<String> {
    let (first, last) = match version.rsplit_once('.') {
        Some((first, last)) => (format!("{first}."), last),
        None => (String::new(), version),
    };
    let number: u64 = last.parse().ok()?;
    Some(format!("{first}{}", number.checked_add(1)?))
}

impl Checked {
    fn nothing() -> Checked {
        Checked {
            told: NOTHING_YET.to_owned(),
            findings: Vec::new(),
            chart: String::new(),
        }
    }
}

impl Editor {
    /// As it was filled in.
    async fn of(
        visitor: &Visitor,
        form: &Form,
        checked: Checked,
        panel: Panel,
    ) -> Result<Editor, Failure> {
        let files = files_of(form);
        Ok(Editor {
            shell: Shell::new(visitor, "definitions", "Deploy a definition").await?,
            nonce: draw()?,
            document: form.get("document").replace("\r\n", "\n"),
            given: files.len(),
            files: with_room(files),
            reason: form.get("reason").to_owned(),
            refused: String::new(),
            checked,
            panel,
        })
    }

    fn answer(self, status: StatusCode) -> Answer {
        let mut response = with_status(status, &self)?;
        response.extensions_mut().insert(StyleNonce(self.nonce));
        Ok(response)
    }
}

/// A request that deploys what was written in a form, or checks it.
fn sent(form: &Form, dry_run: bool) -> (Deployment, DeployQuery) {
    let deployment = Deployment {
        name: Some(NAME.to_owned()),
        // Browsers end lines with CR LF.
        document: form.get("document").replace("\r\n", "\n"),
        resources: files_of(form).into_iter().collect(),
    };
    let query = DeployQuery {
        dry_run,
        diagram: dry_run,
        reason: form.reason_query().reason,
        ..DeployQuery::default()
    };
    (deployment, query)
}

/// Checks a document that is being written, and draws it.
pub async fn check(visitor: Visitor, form: Form) -> Answer {
    page(&checked(&visitor, &form).await?)
}

/// What fits at the cursor of a document that is being written, as the language server says it: nothing but the form is
/// needed for that.
pub async fn complete(_: Visitor, form: Form) -> Answer {
    let number = |name: &str| {
        let detail = || format!("'{name}' must be a whole number");
        let number = form.get(name).parse::<usize>();
        number.map_err(|_| Failure::new(StatusCode::BAD_REQUEST, detail()))
    };
    let (line, character) = (number("line")?, number("character")?);
    let document = form.get("document").replace("\r\n", "\n");
    let files = files_of(&form);
    let found = spawn_blocking(move || completions(&document, line, character, files)).await;
    let found = found.map_err(|error| {
        let detail = format!("the completions cannot be found: {error}");
        Failure::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    })?;
    Ok(Json(found).into_response())
}

/// The page of the editor with the outcome of a check, for browsers without scripts.
pub async fn look(visitor: Visitor, form: Form) -> Answer {
    let checked = checked(&visitor, &form).await?;
    let editor = Editor::of(&visitor, &form, checked, Panel::of(&form)).await?;
    editor.answer(StatusCode::OK)
}

/// The page of the editor with the outcome of a rehearsal.
pub async fn with_panel(
    visitor: &Visitor,
    form: &Form,
    status: StatusCode,
    panel: Panel,
) -> Answer {
    let editor = Editor::of(visitor, form, Checked::nothing(), panel).await?;
    editor.answer(status)
}

/// A refusal is an answer here, not a failure of the request.
async fn checked(visitor: &Visitor, form: &Form) -> Result<Checked, Failure> {
    let (deployment, query) = sent(form, true);
    if deployment.document.trim().is_empty() {
        return Ok(Checked::nothing());
    }
    let call = DEPLOY.ask().query(query).body(&deployment);
    let (told, findings, diagram) = match visitor.asking.ask(call).await {
        Ok(Deployed {
            id,
            version,
            outcome,
            diagnostics,
            diagram,
            ..
        }) => {
            let told = match outcome {
                Outcome::Unchanged => format!("✓ {id} {version} is deployed like this already."),
                _ => format!("✓ It can be deployed as {id} {version}."),
            };
            (told, diagnostics.unwrap_or_default(), diagram)
        }
        Err(refusal) if refusal.status == StatusCode::UNAUTHORIZED => return Err(refusal.into()),
        Err(refusal) => {
            let findings = refusal.problem.more.diagnostics;
            let told = match findings.len() {
                0 => format!("✕ {}", refusal.problem.detail),
                1 => "✕ 1 finding.".to_owned(),
                count => format!("✕ {count} findings."),
            };
            (told, findings, refusal.problem.more.diagram)
        }
    };
    Ok(Checked {
        told,
        findings: found(findings, &deployment.document),
        chart: bare(&diagram.unwrap_or_default()),
    })
}

pub async fn deploy(visitor: Visitor, form: Form) -> Answer {
    let (deployment, query) = sent(&form, false);
    let call = DEPLOY.ask().query(query).body(&deployment);
    match visitor.asking.ask(call).await {
        Ok(deployed) => {
            let done = match deployed.outcome {
                Outcome::Unchanged => "unchanged",
                _ => "deployed",
            };
            let path = format!("{}/{}", segment(&deployed.id), segment(&deployed.version));
            go_to(&format!("/console/definitions/{path}?done={done}"))
        }
        Err(refusal) => {
            let is_about_it = matches!(
                refusal.status,
                StatusCode::UNPROCESSABLE_ENTITY | StatusCode::CONFLICT
            );
            if !is_about_it {
                return Err(refusal.into());
            }
            let problem = refusal.problem;
            let checked = Checked {
                told: String::new(),
                findings: found(problem.more.diagnostics, &deployment.document),
                chart: String::new(),
            };
            let mut editor = Editor::of(&visitor, &form, checked, Panel::of(&form)).await?;
            editor.refused = problem.detail;
            editor.answer(refusal.status)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_version_has_the_next_number() {
        for (version, next) in [
            ("1.0.0", Some("1.0.1")),
            ("7", Some("8")),
            ("1.0.9", Some("1.0.10")),
            ("1.0.0-rc", None),
        ] {
            assert_eq!(next_version(version).as_deref(), next, "{version}");
        }
        let yaml = "id: a\nversion: '1.0'\nspecVersion: '0.8'\n";
        assert_eq!(
            raised(yaml, "1.0"),
            "id: a\nversion: '1.1'\nspecVersion: '0.8'\n"
        );
        let tasks = "document:\n  dsl: 1.0.0\n  version: 1.0.0\n";
        assert_eq!(
            raised(tasks, "1.0.0"),
            "document:\n  dsl: 1.0.0\n  version: 1.0.1\n"
        );
        assert_eq!(raised("{\"version\": \"2\"}", "2"), "{\"version\": \"2\"}");
        assert_eq!(
            raised("{\n\"version\": \"2\"}", "2"),
            "{\n\"version\": \"3\"}"
        );
    }

    #[test]
    fn files_come_with_the_document() {
        let form = Form::of(&[
            ("document", "id: a"),
            ("file-name", " shop.yaml "),
            ("file-content", "openapi: 3.0.0\r\n"),
            ("file-name", ""),
            ("file-content", " "),
        ]);
        let (deployment, _) = sent(&form, true);
        assert_eq!(deployment.resources.len(), 1);
        assert_eq!(deployment.resources["shop.yaml"], "openapi: 3.0.0\n");
    }
}
