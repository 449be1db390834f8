//! Several files, or a folder: definitions with the files that they refer to, deployed together as by
//! `swirl deploy FOLDER`.
//!
//! The files are chosen, listed with what was found in them, and sent once more to be deployed: nothing is kept
//! between.

use std::collections::BTreeMap;

use askama::Template;
use axum::http::StatusCode;
use swirl_api::definitions::{DEPLOY, DeployQuery, Deployed, Outcome, is_about_document};

use super::chosen::{FILES_MAX, File, Meaning, deployments, files_of, named};
use super::findings::{Found, found};
use crate::answer::{Answer, go_to, with_status};
use crate::asking::{Refusal, segment};
use crate::shell::Shell;
use crate::visitor::{Form, Visitor};

#[derive(Template)]
#[template(path = "folder.html")]
struct Page {
    shell: Shell,
    reason: String,
    /// Why nothing was deployed, or not everything.
    refused: String,
    listed: Option<Listed>,
}

/// The files that were chosen.
struct Listed {
    rows: Vec<Row>,
    /// A sentence about all of them.
    told: String,
    /// The number of definitions that can be deployed; none if another one cannot.
    ready: usize,
    /// Some of them are deployed already.
    goes_on: bool,
}

struct Row {
    path: String,
    /// `None` if the file was left out.
    content: Option<String>,
    kind: String,
    told: String,
    is_bad: bool,
    findings: Vec<Found>,
    /// The page of the definition, if it is deployed.
    link: String,
}

pub async fn choose(visitor: Visitor) -> Answer {
    let shell = shell(&visitor).await?;
    answer(shell, StatusCode::OK, String::new(), String::new(), None)
}

/// Lists the files of a form, or deploys them.
pub async fn list(visitor: Visitor, form: Form) -> Answer {
    // Asked for at once, since the session may end while definitions are deployed.
    let shell = shell(&visitor).await?;
    let (files, left_out) = files_of(&form);
    let reason = form.get("reason").to_owned();
    let checked = check(&visitor, &files).await?;
    let mut listed = listed(&files, checked);
    listed.rows.extend(left_out.into_iter().map(unread));
    if form.get("do") != "deploy" || listed.ready == 0 {
        let refused = match form.get("do") {
            "deploy" => "Nothing was deployed: see what was found.".to_owned(),
            _ => String::new(),
        };
        let status = match refused.is_empty() {
            true => StatusCode::OK,
            false => StatusCode::UNPROCESSABLE_ENTITY,
        };
        return answer(shell, status, reason, refused, Some(listed));
    }
    let reason_query = form.reason_query();
    let (mut deployed, mut refusals, mut failure) = (0, 0, None);
    for (index, deployment) in deployments(&files) {
        let row = &mut listed.rows[index];
        if failure.is_some() {
            "was not tried".clone_into(&mut row.told);
            continue;
        }
        let query = DeployQuery {
            reason: reason_query.reason.clone(),
            ..DeployQuery::default()
        };
        let call = DEPLOY.ask().query(query).body(&deployment);
        match about(visitor.asking.ask(call).await) {
            Ok(Ok(done)) => {
                deployed += 1;
                let (id, version) = (segment(&done.id), segment(&done.version));
                row.link = format!("/console/definitions/{id}/{version}");
                row.told = match done.outcome {
                    Outcome::Unchanged => "✓ deployed before".to_owned(),
                    _ => "✓ deployed".to_owned(),
                };
            }
            Ok(Err(refusal)) => {
                refusals += 1;
                refused(row, refusal, &deployment.document);
            }
            // No other one was tried, so there is nothing to tell: the visitor signs in again.
            Err(refusal)
                if deployed + refusals == 0 && refusal.status == StatusCode::UNAUTHORIZED =>
            {
                return Err(refusal.into());
            }
            Err(refusal) => {
                row.is_bad = true;
                row.told = format!(
                    "{} It may be deployed or not: deploying it again does no harm.",
                    sentence(&refusal.problem.detail)
                );
                failure = Some(refusal.status);
            }
        }
    }
    if deployed == listed.ready {
        return go_to("/console/definitions?done=deployed-files");
    }
    let told = partly(deployed, refusals, listed.ready);
    // What was refused has changed since it was checked. What failed may succeed the next time.
    listed.goes_on = refusals == 0;
    if refusals > 0 {
        listed.ready = 0;
    }
    listed.told.clear();
    let status = match failure {
        // The page is still to be seen after the session has ended.
        None | Some(StatusCode::UNAUTHORIZED) => StatusCode::CONFLICT,
        Some(status) => status,
    };
    answer(shell, status, reason, told, Some(listed))
}

/// How far the deployment of several definitions came, which didn't come to its end.
fn partly(deployed: usize, refused: usize, all: usize) -> String {
    let are = |count: usize| if count == 1 { "is" } else { "are" };
    let were = |count: usize| if count == 1 { "was" } else { "were" };
    let mut told = format!(
        "{deployed} of {all} definitions {} deployed.",
        are(deployed)
    );
    if refused > 0 {
        told += &format!(" {refused} {} refused.", were(refused));
    }
    let left = all.saturating_sub(deployed + refused);
    if left > 0 {
        told += &format!(" {left} {} not, because the server failed.", were(left));
    }
    told + " The table says which."
}

/// A text with a full stop at its end.
fn sentence(text: &str) -> String {
    format!("{}.", text.trim_end_matches('.'))
}

async fn shell(visitor: &Visitor) -> Result<Shell, Refusal> {
    Shell::new(visitor, "definitions", "Deploy several files").await
}

fn answer(
    shell: Shell,
    status: StatusCode,
    reason: String,
    refused: String,
    listed: Option<Listed>,
) -> Answer {
    let page = Page {
        shell,
        reason,
        refused,
        listed,
    };
    with_status(status, &page)
}

fn unread(path: String) -> Row {
    Row {
        path,
        content: None,
        kind: "Left out".to_owned(),
        told: format!("it isn't a text, or there are more than {FILES_MAX} files"),
        is_bad: false,
        findings: Vec::new(),
        link: String::new(),
    }
}

/// Separates refusals of a document from failures of the request.
fn about(answer: Result<Deployed, Refusal>) -> Result<Result<Deployed, Refusal>, Refusal> {
    match answer {
        Err(refusal) if is_about_document(refusal.status.as_u16()) => Ok(Err(refusal)),
        Err(refusal) => Err(refusal),
        deployed => Ok(deployed),
    }
}

/// A definition that was checked: its index, and the outcome.
type Checked = (usize, Result<Deployed, Refusal>);

async fn check(visitor: &Visitor, files: &[File]) -> Result<Vec<Checked>, Refusal> {
    let mut checked = Vec::new();
    for (index, deployment) in deployments(files) {
        let query = DeployQuery {
            dry_run: true,
            ..DeployQuery::default()
        };
        let call = DEPLOY.ask().query(query).body(&deployment);
        checked.push((index, about(visitor.asking.ask(call).await)?));
    }
    Ok(checked)
}

fn listed(files: &[File], checked: Vec<Checked>) -> Listed {
    let mut rows: Vec<Row> = files.iter().map(row).collect();
    // The definitions that use each file, and the file with each definition.
    let mut users: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let mut names: BTreeMap<String, &str> = BTreeMap::new();
    let count = checked.len();
    for (index, outcome) in checked {
        let (row, file) = (&mut rows[index], &files[index]);
        let deployed = match outcome {
            Ok(deployed) => deployed,
            Err(refusal) => {
                refused(row, refusal, &file.content);
                continue;
            }
        };
        let name = format!("{} {}", deployed.id, deployed.version);
        row.kind = format!("Definition {name}");
        row.told = match deployed.outcome {
            Outcome::Unchanged => "is deployed like this already".to_owned(),
            _ => "can be deployed".to_owned(),
        };
        row.findings = found(deployed.diagnostics.unwrap_or_default(), &file.content);
        let uris = named(files, file);
        for used in deployed.resources.iter().filter_map(|uri| uris.get(uri)) {
            users.entry(*used).or_default().push(name.clone());
        }
        if let Some(other) = names.insert(name.clone(), &file.path) {
            row.is_bad = true;
            row.told = format!("{other} is {name}, too");
        }
    }
    for (index, users) in users {
        rows[index].kind = format!("File of {}", users.join(", "));
    }
    let bad = rows.iter().filter(|row| row.is_bad).count();
    Listed {
        told: match (count, bad) {
            (0, _) => "There is no definition among these files: their names end in .sw.yaml or .sw.json, or they are \
                       .yaml or .json files with 'document.dsl', 'states' or 'tasks'."
                .to_owned(),
            (1, 0) => "✓ The definition can be deployed.".to_owned(),
            (count, 0) => format!("✓ All {count} definitions can be deployed."),
            (count, bad) => format!(
                "✕ {bad} of {count} definitions cannot be deployed. Correct what was found, and choose the files again."
            ),
        },
        ready: match bad {
            0 => count,
            _ => 0,
        },
        goes_on: false,
        rows,
    }
}

fn row(file: &File) -> Row {
    let kind = match file.meaning {
        Meaning::Definition => "Definition",
        Meaning::Scenario => "Scenario, for “swirl test”",
        Meaning::Other => "Other file",
    };
    let told = match file.meaning {
        Meaning::Scenario => "is not deployed",
        _ if file.content.trim().is_empty() => "is empty",
        _ => "",
    };
    Row {
        path: file.path.clone(),
        content: Some(file.content.clone()),
        kind: kind.to_owned(),
        told: told.to_owned(),
        is_bad: false,
        findings: Vec::new(),
        link: String::new(),
    }
}

fn refused(row: &mut Row, refusal: Refusal, document: &str) {
    let problem = refusal.problem;
    row.is_bad = true;
    row.findings = found(problem.more.diagnostics, document);
    row.told = match row.findings.len() {
        0 => problem.detail,
        1 => "1 finding".to_owned(),
        count => format!("{count} findings"),
    };
}

#[cfg(test)]
mod tests {
    use swirl_api::Finding;
    use swirl_api::Problem;

    use super::*;

    const STATES: &str = "id: w\nspecVersion: '0.8'\nstates: []\n";

    fn file(path: &str, content: &str) -> File {
        File::new(path.to_owned(), content.to_owned())
    }

    #[test]
    fn one_definition_that_is_refused_keeps_all_from_being_deployed() {
        let files = [
            file("a.sw.yaml", STATES),
            file("b.sw.yaml", STATES),
            file("c.json", "{}"),
        ];
        let fine = |uri: &str| {
            Ok(Deployed {
                id: "w".to_owned(),
                version: "1".to_owned(),
                outcome: Outcome::New,
                dry_run: true,
                diagnostics: None,
                resources: vec![uri.to_owned()],
                diagram: None,
            })
        };
        let empty = listed(&[file("日本.yaml", "\n")], Vec::new());
        assert_eq!(
            (&*empty.rows[0].path, &*empty.rows[0].told),
            ("日本.yaml", "is empty")
        );
        let found = listed(&files, vec![(0, fine("c.json"))]);
        assert_eq!(found.ready, 1);
        let kinds: Vec<&str> = found.rows.iter().map(|row| &*row.kind).collect();
        assert_eq!(kinds, ["Definition w 1", "Definition", "File of w 1"]);
        // Twice the same one.
        let found = listed(&files, vec![(0, fine("x")), (1, fine("x"))]);
        assert_eq!(found.ready, 0);
        assert_eq!(found.rows[1].told, "a.sw.yaml is w 1, too");
        let mut problem = Problem {
            status: 422,
            ..Problem::default()
        };
        problem.more.diagnostics = vec![Finding::error("x", "y")];
        let refusal = Refusal {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            problem,
        };
        let found = listed(&files, vec![(0, fine("x")), (1, Err(refusal))]);
        assert_eq!((found.ready, &*found.rows[1].told), (0, "1 finding"));
        assert!(found.told.starts_with("✕ 1 of 2"), "{}", found.told);
    }

    /// An API that refuses or fails as these answers say, one after another.
    fn visitor(answers: &'static [(u16, &'static str)]) -> Visitor {
        use axum::Router;
        use axum::http::Method;
        use std::sync::atomic::{AtomicUsize, Ordering};

        let count = std::sync::Arc::new(AtomicUsize::new(0));
        let router = Router::new().fallback(move |request: axum::extract::Request| {
            let (status, body) = match *request.method() {
                Method::GET => (
                    200,
                    r#"{"name": null, "roles": [], "open": true, "namespace": "n", "version": "1", "rehearsals": false}"#,
                ),
                _ => answers[count.fetch_add(1, Ordering::Relaxed)],
            };
            std::future::ready((StatusCode::from_u16(status).unwrap(), body))
        });
        Visitor {
            name: String::new(),
            asking: crate::asking::Asking {
                router,
                token: None,
                from: None,
                follows: None,
            },
            csrf: String::new(),
        }
    }

    const DONE: (u16, &str) = (
        201,
        r#"{"id": "w", "version": "1", "outcome": "new", "dryRun": false}"#,
    );

    /// The status and the page after three definitions were deployed, whose checks had succeeded.
    async fn deployed(answers: &'static [(u16, &'static str)]) -> (StatusCode, String) {
        let mut fields = Vec::from([("do", "deploy")]);
        for name in ["a.sw.yaml", "b.sw.yaml", "c.sw.yaml"] {
            fields.extend([("file-name", name), ("file-content", STATES)]);
        }
        let answer = list(visitor(answers), Form::of(&fields)).await;
        let response = answer.unwrap_or_else(axum::response::IntoResponse::into_response);
        let status = response.status();
        let body = axum::body::to_bytes(response.into_body(), 1 << 20).await;
        (status, String::from_utf8_lossy(&body.unwrap()).into_owned())
    }

    #[tokio::test]
    async fn a_deployment_that_stops_says_how_far_it_came() {
        const CHECKED: [(u16, &str); 3] = [
            (
                200,
                r#"{"id": "w", "version": "1", "outcome": "new", "dryRun": true}"#,
            ),
            (
                200,
                r#"{"id": "w", "version": "2", "outcome": "new", "dryRun": true}"#,
            ),
            (
                200,
                r#"{"id": "w", "version": "3", "outcome": "new", "dryRun": true}"#,
            ),
        ];
        const A: (u16, &str) = CHECKED[0];
        const B: (u16, &str) = CHECKED[1];
        const C: (u16, &str) = CHECKED[2];
        const FAILED: (u16, &str) = (
            503,
            r#"{"code": "unavailable", "detail": "the store is away", "status": 503}"#,
        );
        const REFUSED: (u16, &str) = (
            409,
            r#"{"code": "definition-conflict", "detail": "raise it", "status": 409}"#,
        );
        const OVER: (u16, &str) = (
            401,
            r#"{"code": "unauthorized", "detail": "sign in", "status": 401}"#,
        );

        let (status, page) = deployed(&[A, B, C, DONE, FAILED]).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        for part in [
            "1 of 3 definitions is deployed. 2 were not, because the server failed.",
            "<a href=\"/console/definitions/w/1\">a.sw.yaml</a>",
            "the store is away. It may be deployed or not",
            "was not tried",
            "Deploy the rest",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        // A session that is over would lead away from the page.
        let (status, page) = deployed(&[A, B, C, DONE, OVER]).await;
        assert_eq!(status, StatusCode::CONFLICT);
        assert!(page.contains("1 of 3 definitions is deployed."), "{page}");
        let (status, page) = deployed(&[A, B, C, DONE, REFUSED, DONE]).await;
        assert_eq!(status, StatusCode::CONFLICT);
        let told = "2 of 3 definitions are deployed. 1 was refused. The table says which.";
        assert!(page.contains(told) && page.contains("raise it"), "{page}");
        assert!(!page.contains("Deploy the rest"));
        let (status, page) = deployed(&[A, B, C, FAILED]).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        let told = "0 of 3 definitions are deployed. 3 were not, because the server failed.";
        assert!(page.contains(told), "{page}");
    }
}
