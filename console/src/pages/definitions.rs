//! Definitions: the deployed ones, a single one with its picture and document, and deployment with
//! findings.

use askama::Template;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::Done;
use super::instance::bare;
use super::occupied::Occupied;
use crate::answer::{Answer, go_to, list, page, text, with_status};
use crate::asking::segment;
use crate::shell::Shell;
use crate::visitor::{Form, StyleNonce, Visitor, draw};

#[derive(Template)]
#[template(path = "definitions.html")]
struct List {
    shell: Shell,
    rows: Vec<Row>,
}

struct Row {
    id: String,
    version: String,
    path: String,
    workflow_path: String,
    deployed: String,
    latest: bool,
}

pub async fn index(visitor: Visitor, Query(done): Query<Done>) -> Answer {
    let shell = Shell::new(&visitor, "definitions", "Definitions").await?;
    let found = visitor
        .asking
        .rows(&["definitions"], &[], "definitions")
        .await?;
    let mut rows: Vec<Row> = found.iter().map(row).collect();
    // By name, the newest version first.
    rows.reverse();
    rows.sort_by(|a, b| a.id.cmp(&b.id));
    page(&List {
        shell: shell.with_done(done.done.as_deref()),
        rows,
    })
}

fn row(row: &Value) -> Row {
    let (id, version) = (text(row, "id"), text(row, "version"));
    Row {
        path: format!("{}/{}", segment(&id), segment(&version)),
        workflow_path: segment(&id),
        id,
        version,
        deployed: text(row, "deployedAt"),
        latest: row["latest"] == true,
    }
}

#[derive(Template)]
#[template(path = "definition.html")]
struct Page {
    shell: Shell,
    id: String,
    version: String,
    path: String,
    workflow_path: String,
    name: String,
    deployed: String,
    digest: String,
    resources: Vec<String>,
    document: String,
    chart: String,
    occupied: Occupied,
    /// How many parts of it do something else than they seem to; empty if none.
    told: String,
    findings: Vec<Finding>,
}

pub async fn show(
    visitor: Visitor,
    Path((id, version)): Path<(String, String)>,
    Query(done): Query<Done>,
) -> Answer {
    let shell = Shell::new(&visitor, "definitions", format!("{id} {version}")).await?;
    let path = ["definitions", id.as_str(), version.as_str()];
    let query = [("diagnostics", "true")];
    let found = visitor.asking.get(&path, &query).await?;
    let document = text(&found, "document");
    let findings = findings(&found, &document);
    let counted = ["definitions", id.as_str(), version.as_str(), "states"];
    let counted = visitor.asking.get(&counted, &[("diagram", "true")]).await?;
    let resources = list(&found, "resources").iter().filter_map(Value::as_str);
    page(&Page {
        shell: shell.with_done(done.done.as_deref()),
        path: format!("{}/{}", segment(&id), segment(&version)),
        workflow_path: segment(&id),
        name: text(&found, "name"),
        deployed: text(&found, "deployedAt"),
        digest: text(&found, "digest"),
        resources: resources.map(str::to_owned).collect(),
        told: attention(&findings),
        findings,
        document,
        chart: bare(&text(&counted, "diagram")),
        occupied: Occupied::new(&id, &version, &counted),
        id,
        version,
    })
}

/// Texts that look like expressions and are sent as they are: the workflow runs, and does something else.
fn attention(findings: &[Finding]) -> String {
    let unmarked = findings.iter();
    let unmarked = unmarked.filter(|one| one.code == "expression-not-marked");
    match unmarked.count() {
        0 => String::new(),
        1 => "1 text looks like an expression, and is sent as it is written.".to_owned(),
        count => {
            format!("{count} texts look like expressions, and are sent as they are written.")
        }
    }
}

#[derive(Template)]
#[template(path = "deploy.html")]
struct Editor {
    shell: Shell,
    /// The nonce that the editor's style sheets must have.
    nonce: String,
    document: String,
    reason: String,
    refused: String,
    told: String,
    findings: Vec<Finding>,
}

/// The findings alone, for the editor's script.
#[derive(Template)]
#[template(path = "findings.html")]
struct Findings {
    told: String,
    findings: Vec<Finding>,
}

struct Finding {
    severity: String,
    place: String,
    /// The number of that line; 0 if there is none.
    number: u64,
    /// The text of that line; empty if there is none.
    line: String,
    code: String,
    message: String,
    hint: String,
}

/// The origin of a document, for messages.
const NAME: (&str, &str) = ("name", "definition written in the console");

/// Where findings will be.
const NOTHING_YET: &str = "Nothing has been checked yet.";

pub async fn editor(visitor: Visitor) -> Answer {
    let shell = Shell::new(&visitor, "definitions", "Deploy a definition").await?;
    let editor = Editor {
        shell,
        nonce: draw()?,
        document: String::new(),
        reason: String::new(),
        refused: String::new(),
        told: NOTHING_YET.to_owned(),
        findings: Vec::new(),
    };
    editor.answer(StatusCode::OK)
}

impl Editor {
    fn answer(self, status: StatusCode) -> Answer {
        let mut response = with_status(status, &self)?;
        response.extensions_mut().insert(StyleNonce(self.nonce));
        Ok(response)
    }
}

/// Browsers end lines with CR LF.
fn document(form: &Form) -> String {
    form.get("document").replace("\r\n", "\n")
}

/// Checks a document that is being written. A refusal is an answer here, not a failure of the request.
pub async fn check(visitor: Visitor, form: Form) -> Answer {
    let document = document(&form);
    if document.trim().is_empty() {
        return page(&Findings {
            told: NOTHING_YET.to_owned(),
            findings: Vec::new(),
        });
    }
    let query = [NAME, ("dryRun", "true")];
    let sent = visitor
        .asking
        .post(&["definitions"], &query, &[], &document);
    let (told, body) = match sent.await {
        Ok(body) => {
            let (id, version) = (text(&body, "id"), text(&body, "version"));
            let told = match body["outcome"] == "unchanged" {
                true => format!("✓ {id} {version} is deployed like this already."),
                false => format!("✓ It can be deployed as {id} {version}."),
            };
            (told, body)
        }
        Err(refusal) if refusal.status == StatusCode::UNAUTHORIZED => return Err(refusal.into()),
        Err(refusal) => {
            let told = match refusal.problem.more.diagnostics.len() {
                0 => format!("✕ {}", refusal.problem.detail),
                1 => "✕ 1 finding.".to_owned(),
                count => format!("✕ {count} findings."),
            };
            (
                told,
                json!({"diagnostics": refusal.problem.more.diagnostics}),
            )
        }
    };
    page(&Findings {
        told,
        findings: findings(&body, &document),
    })
}

pub async fn deploy(visitor: Visitor, form: Form) -> Answer {
    let document = document(&form);
    let query = [&[NAME][..], &*form.reason()].concat();
    let sent = visitor
        .asking
        .post(&["definitions"], &query, &[], &document);
    match sent.await {
        Ok(body) => {
            let (id, version) = (text(&body, "id"), text(&body, "version"));
            let done = match body["outcome"] == "unchanged" {
                true => "unchanged",
                false => "deployed",
            };
            let path = format!("{}/{}", segment(&id), segment(&version));
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
            let shell = Shell::new(&visitor, "definitions", "Deploy a definition").await?;
            let found = json!({"diagnostics": refusal.problem.more.diagnostics});
            let editor = Editor {
                shell,
                nonce: draw()?,
                told: String::new(),
                findings: findings(&found, &document),
                reason: form.get("reason").to_owned(),
                refused: refusal.problem.detail,
                document,
            };
            editor.answer(refusal.status)
        }
    }
}

fn findings(body: &Value, document: &str) -> Vec<Finding> {
    let all = list(body, "diagnostics").iter();
    all.map(|one| finding(one, document)).collect()
}

fn finding(finding: &Value, document: &str) -> Finding {
    let line = finding["line"]
        .as_u64()
        .or(finding["position"]["line"].as_u64());
    let path = text(finding, "path");
    let written = |line: u64| {
        document
            .lines()
            .nth(usize::try_from(line).ok()?.checked_sub(1)?)
    };
    Finding {
        line: line.and_then(written).unwrap_or_default().trim().to_owned(),
        severity: text(finding, "severity"),
        number: line.unwrap_or(0),
        place: match (line, path.is_empty()) {
            (Some(line), _) => format!("line {line}"),
            (None, false) => path,
            (None, true) => String::new(),
        },
        code: text(finding, "code"),
        message: text(finding, "message"),
        hint: text(finding, "hint"),
    }
}

pub async fn delete(
    visitor: Visitor,
    Path((id, version)): Path<(String, String)>,
    form: Form,
) -> Answer {
    let path = ["definitions", id.as_str(), version.as_str()];
    visitor.asking.delete(&path, &form.reason()).await?;
    go_to("/console/definitions?done=deleted")
}
