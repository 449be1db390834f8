//! Definitions: the deployed ones, a single one with its picture and document, and deployment with
//! findings.

use askama::Template;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use swirl_api::definitions::{
    DELETE, DEPLOY, Definition, DefinitionSummary, DeleteQuery, DeployQuery, Deployed, Deployment,
    GET, GetQuery, LIST, Outcome, STATES, StatesQuery, Version,
};
use swirl_api::{Finding, Instant};

use super::Done;
use super::instance::bare;
use super::occupied::Occupied;
use crate::answer::{Answer, go_to, page, with_status};
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
    deployed: Instant,
    latest: bool,
}

pub async fn index(visitor: Visitor, Query(done): Query<Done>) -> Answer {
    let shell = Shell::new(&visitor, "definitions", "Definitions").await?;
    let found = visitor.asking.ask_pages(LIST.ask()).await?;
    let mut rows: Vec<Row> = found.definitions.into_iter().map(row).collect();
    // By name, the newest version first.
    rows.reverse();
    rows.sort_by(|a, b| a.id.cmp(&b.id));
    page(&List {
        shell: shell.with_done(done.done.as_deref()),
        rows,
    })
}

fn row(row: DefinitionSummary) -> Row {
    let (id, version) = (row.head.id, row.head.version);
    Row {
        path: format!("{}/{}", segment(&id), segment(&version)),
        workflow_path: segment(&id),
        id,
        version,
        deployed: row.head.deployed_at,
        latest: row.latest,
    }
}

#[derive(Template)]
#[template(path = "definition.html")]
struct Page {
    shell: Shell,
    path: String,
    workflow_path: String,
    found: Definition,
    chart: String,
    occupied: Occupied,
    /// How many parts of it do something else than they seem to; empty if none.
    told: String,
    findings: Vec<Found>,
}

pub async fn show(
    visitor: Visitor,
    Path((id, version)): Path<(String, String)>,
    Query(done): Query<Done>,
) -> Answer {
    let shell = Shell::new(&visitor, "definitions", format!("{id} {version}")).await?;
    let at = Version { id, version };
    let query = GetQuery {
        diagnostics: true,
        ..GetQuery::default()
    };
    let mut definition = visitor.asking.ask(GET.at(&at).query(query)).await?;
    let findings = definition.diagnostics.take().unwrap_or_default();
    let query = StatesQuery { diagram: true };
    let mut counted = visitor.asking.ask(STATES.at(&at).query(query)).await?;
    page(&Page {
        shell: shell.with_done(done.done.as_deref()),
        path: format!("{}/{}", segment(&at.id), segment(&at.version)),
        workflow_path: segment(&at.id),
        told: attention(&findings),
        findings: found(findings, &definition.document),
        found: definition,
        chart: bare(&counted.diagram.take().unwrap_or_default()),
        occupied: Occupied::new(counted),
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
    findings: Vec<Found>,
}

/// The findings alone, for the editor's script.
#[derive(Template)]
#[template(path = "findings.html")]
struct Findings {
    told: String,
    findings: Vec<Found>,
}

struct Found {
    finding: Finding,
    place: String,
    /// The text of its line; empty if there is none.
    line: String,
}

/// The origin of a document, for messages.
const NAME: &str = "definition written in the console";

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

/// A request that deploys what was written in a form, or checks it.
fn sent(form: &Form, dry_run: bool) -> (Deployment, DeployQuery) {
    let deployment = Deployment {
        name: Some(NAME.to_owned()),
        // Browsers end lines with CR LF.
        document: form.get("document").replace("\r\n", "\n"),
        ..Deployment::default()
    };
    let query = DeployQuery {
        dry_run,
        reason: form.reason_query().reason,
        ..DeployQuery::default()
    };
    (deployment, query)
}

/// Checks a document that is being written. A refusal is an answer here, not a failure of the request.
pub async fn check(visitor: Visitor, form: Form) -> Answer {
    let (deployment, query) = sent(&form, true);
    if deployment.document.trim().is_empty() {
        return page(&Findings {
            told: NOTHING_YET.to_owned(),
            findings: Vec::new(),
        });
    }
    let call = DEPLOY.ask().query(query).body(&deployment);
    let (told, findings) = match visitor.asking.ask(call).await {
        Ok(Deployed {
            id,
            version,
            outcome,
            diagnostics,
            ..
        }) => {
            let told = match outcome {
                Outcome::Unchanged => format!("✓ {id} {version} is deployed like this already."),
                _ => format!("✓ It can be deployed as {id} {version}."),
            };
            (told, diagnostics.unwrap_or_default())
        }
        Err(refusal) if refusal.status == StatusCode::UNAUTHORIZED => return Err(refusal.into()),
        Err(refusal) => {
            let findings = refusal.problem.more.diagnostics;
            let told = match findings.len() {
                0 => format!("✕ {}", refusal.problem.detail),
                1 => "✕ 1 finding.".to_owned(),
                count => format!("✕ {count} findings."),
            };
            (told, findings)
        }
    };
    page(&Findings {
        told,
        findings: found(findings, &deployment.document),
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
            let shell = Shell::new(&visitor, "definitions", "Deploy a definition").await?;
            let problem = refusal.problem;
            let editor = Editor {
                shell,
                nonce: draw()?,
                told: String::new(),
                findings: found(problem.more.diagnostics, &deployment.document),
                reason: form.get("reason").to_owned(),
                refused: problem.detail,
                document: deployment.document,
            };
            editor.answer(refusal.status)
        }
    }
}

fn found(findings: Vec<Finding>, document: &str) -> Vec<Found> {
    let one = |finding: Finding| {
        let line = finding.line.and_then(|line| line.checked_sub(1));
        let line = line.and_then(|line| document.lines().nth(line));
        Found {
            line: line.unwrap_or_default().trim().to_owned(),
            place: match finding.line {
                Some(line) => format!("line {line}"),
                None => finding.path.clone().unwrap_or_default(),
            },
            finding,
        }
    };
    findings.into_iter().map(one).collect()
}

pub async fn delete(
    visitor: Visitor,
    Path((id, version)): Path<(String, String)>,
    form: Form,
) -> Answer {
    let query = DeleteQuery {
        force: false,
        reason: form.reason_query().reason,
    };
    let call = DELETE.at(&Version { id, version }).query(query);
    visitor.asking.ask(call).await?;
    go_to("/console/definitions?done=deleted")
}
