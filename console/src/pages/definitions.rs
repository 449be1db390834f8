//! Definitions: the deployed ones, and a single one with its picture, its document and its files.

use std::collections::BTreeMap;

use askama::Template;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use futures::stream::{self, StreamExt, TryStreamExt};
use serde::Deserialize;
use swirl_api::counts::{COUNT, CountQuery, Counted, Counts};
use swirl_api::definitions::{
    ACTIVATE, DELETE, Definition, DefinitionSummary, DeleteQuery, GET, GetQuery, LIST, STATES,
    StatesQuery, Version,
};
use swirl_api::instance::quoted;
use swirl_api::{Finding, Instant};
use url::form_urlencoded::byte_serialize;

use super::Done;
use super::findings::{Found, found};
use super::instance::bare;
use super::occupied::Occupied;
use super::panel::Panel;
use super::search::address;
use crate::answer::{Answer, go_to, page};
use crate::asking::{Refusal, segment};
use crate::shell::Shell;
use crate::visitor::{Form, Visitor};

/// Of how many workflows the list has the description, which takes a look at each: without a search, and with one.
const DESCRIBED: usize = 50;
const SEARCHED: usize = 2_000;
/// How many of them are looked at at once.
const AT_ONCE: usize = 16;

#[derive(Template)]
#[template(path = "definitions.html")]
struct List {
    shell: Shell,
    /// A part of a name, a description or an event.
    q: String,
    /// Older versions are shown, too.
    old: bool,
    rows: Vec<Row>,
    is_new: bool,
    /// There are more workflows than a search reads the descriptions of.
    is_partly: bool,
}

struct Row {
    id: String,
    version: String,
    path: String,
    workflow_path: String,
    about: String,
    deployed: Instant,
    latest: bool,
    events: Vec<String>,
    scheduled: bool,
    paused: bool,
    next: Option<Instant>,
    /// Of all versions; only at the current one.
    counts: Option<Counts>,
}

#[derive(Deserialize, Default)]
pub struct Find {
    #[serde(default)]
    q: String,
    #[serde(default)]
    old: String,
}

pub async fn index(visitor: Visitor, Query(find): Query<Find>, Query(done): Query<Done>) -> Answer {
    let shell = Shell::new(&visitor, "definitions", "Definitions").await?;
    let found = visitor.asking.ask_pages(LIST.ask()).await?;
    let is_new = found.definitions.is_empty();
    let counted = visitor.asking.ask(COUNT.ask()).await?.workflows;
    let counts: BTreeMap<&str, Counts> = counted
        .iter()
        .map(|one| (one.id.as_str(), one.counts))
        .collect();
    let (q, old) = (find.q.trim().to_owned(), !find.old.is_empty());
    let all = found.definitions.into_iter();
    let all = all.filter(|one| old || one.latest);
    let mut rows: Vec<Row> = all.map(|one| row(one, &counts)).collect();
    // By name, the newest version first.
    rows.reverse();
    rows.sort_by(|a, b| a.id.cmp(&b.id));
    let most = if q.is_empty() { DESCRIBED } else { SEARCHED };
    let workflows = rows.iter().filter(|row| row.latest).count();
    let described = rows.iter_mut().filter(|row| row.latest).take(most);
    let described: Vec<_> = described.map(|row| describe(&visitor, row)).collect();
    let described = stream::iter(described).buffer_unordered(AT_ONCE);
    described.try_collect::<()>().await?;
    rows.retain(|row| row.has(&q));
    page(&List {
        shell: shell.with_done(done.done.as_deref()),
        q,
        old,
        rows,
        is_new,
        is_partly: workflows > SEARCHED,
    })
}

async fn describe(visitor: &Visitor, row: &mut Row) -> Result<(), Refusal> {
    row.about = about(visitor, &row.id, &row.version).await?;
    Ok(())
}

/// The title and the description of a definition; empty if it was deleted meanwhile.
async fn about(visitor: &Visitor, id: &str, version: &str) -> Result<String, Refusal> {
    let at = Version {
        id: id.to_owned(),
        version: version.to_owned(),
    };
    match visitor.asking.ask(GET.at(&at)).await {
        Ok(found) => {
            let title = found.title.filter(|title| title != id);
            let parts: Vec<String> = title.into_iter().chain(found.description).collect();
            Ok(parts.join(": "))
        }
        Err(refusal) if refusal.status == StatusCode::NOT_FOUND => Ok(String::new()),
        Err(refusal) => Err(refusal),
    }
}

impl Row {
    /// Whether it has this text somewhere.
    fn has(&self, q: &str) -> bool {
        let q = q.to_lowercase();
        let texts = [&self.id, &self.about].into_iter().chain(&self.events);
        q.is_empty()
            || texts
                .into_iter()
                .any(|text| text.to_lowercase().contains(&q))
    }
}

fn row(row: DefinitionSummary, counts: &BTreeMap<&str, Counts>) -> Row {
    let (id, version) = (row.head.id, row.head.version);
    let counts = counts.get(id.as_str()).copied().unwrap_or_default();
    Row {
        path: format!("{}/{}", segment(&id), segment(&version)),
        workflow_path: segment(&id),
        about: String::new(),
        counts: row.latest.then_some(counts),
        id,
        version,
        deployed: row.head.deployed_at,
        latest: row.latest,
        events: row.events,
        scheduled: row.schedule.is_some(),
        paused: row.schedule.as_ref().is_some_and(|one| one.paused),
        next: row.schedule.and_then(|one| one.next),
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
    latest: bool,
    scheduled: bool,
    /// The files as parameters of an address and as texts, and whether one is shown.
    files: Vec<(String, String, bool)>,
    /// The file that is shown.
    file: Option<String>,
    /// All versions of the workflow, the newest first.
    versions: Vec<OfVersion>,
    /// There are more instances than were counted by version.
    is_partly_counted: bool,
    panel: Panel,
}

/// A version of the workflow.
struct OfVersion {
    version: String,
    path: String,
    is_latest: bool,
    deployed: Instant,
    running: Option<InStatus>,
    faulted: Option<InStatus>,
    /// The page that compares it with the version that is shown, the older one first; empty for that version.
    compared: String,
}

/// The instances of a version that have this status; not given if there are none.
struct InStatus {
    count: u64,
    /// The list of them.
    path: String,
}

#[derive(Deserialize, Default)]
pub struct Look {
    /// A file to show.
    #[serde(default)]
    file: Option<String>,
}

pub async fn show(
    visitor: Visitor,
    Path((id, version)): Path<(String, String)>,
    Query(look): Query<Look>,
    Query(done): Query<Done>,
) -> Answer {
    let shell = Shell::new(&visitor, "definitions", format!("{id} {version}")).await?;
    let at = Version { id, version };
    let query = GetQuery {
        diagnostics: true,
        contents: look.file.is_some(),
    };
    let mut definition = visitor.asking.ask(GET.at(&at).query(query)).await?;
    let contents = definition.contents.take().unwrap_or_default();
    let file = look.file.unwrap_or_default();
    let files = definition.resources.iter().map(|uri| {
        let parameter: String = byte_serialize(uri.as_bytes()).collect();
        (parameter, uri.clone(), *uri == file)
    });
    let files: Vec<_> = files.collect();
    let all = visitor.asking.ask_pages(LIST.ask()).await?.definitions;
    let mut all: Vec<DefinitionSummary> =
        all.into_iter().filter(|one| one.head.id == at.id).collect();
    all.reverse();
    let this = all.iter().find(|one| one.head.version == at.version);
    let latest = this.is_some_and(|one| one.latest);
    let scheduled = this.is_some_and(|one| one.schedule.is_some());
    let counted = match all.len() {
        0 | 1 => None,
        _ => {
            let query = CountQuery {
                workflow: Some(at.id.clone()),
                ..CountQuery::default()
            };
            Some(visitor.asking.ask(COUNT.ask().query(query)).await?)
        }
    };
    let is_partly_counted = counted.as_ref().is_some_and(|counted| !counted.complete);
    let versions = versions(all, &at.version, counted.as_ref());
    let findings = definition.diagnostics.take().unwrap_or_default();
    let query = StatesQuery { diagram: true };
    let mut counted = visitor.asking.ask(STATES.at(&at).query(query)).await?;
    let mut panel = Panel::empty();
    if !definition.events.is_empty() {
        panel.input.clear();
    }
    page(&Page {
        shell: shell.with_done(done.done.as_deref()),
        path: format!("{}/{}", segment(&at.id), segment(&at.version)),
        workflow_path: segment(&at.id),
        told: attention(&findings),
        findings: found(findings, &definition.document),
        found: definition,
        chart: bare(&counted.diagram.take().unwrap_or_default()),
        occupied: Occupied::new(counted),
        latest,
        scheduled,
        file: contents.get(&file).cloned(),
        files,
        versions,
        is_partly_counted,
        panel,
    })
}

/// The rows for the versions of a workflow, of which one is shown. The newest comes first.
fn versions(all: Vec<DefinitionSummary>, shown: &str, counted: Option<&Counted>) -> Vec<OfVersion> {
    let this = all.iter().position(|one| one.head.version == shown);
    let row = |(index, one): (usize, DefinitionSummary)| {
        let version = one.head.version;
        let (older, newer) = match this.is_some_and(|this| index < this) {
            true => (shown, version.as_str()),
            false => (version.as_str(), shown),
        };
        let with: String = byte_serialize(older.as_bytes()).collect();
        let id = segment(&one.head.id);
        let of_version =
            counted.and_then(|all| all.versions.iter().find(|of| of.version == version));
        let in_status = |count: u64, status: &str| {
            let query = format!("version = {}", quoted(&version));
            let fields = [
                ("workflow", &*one.head.id),
                ("status", status),
                ("query", &query),
            ];
            (count > 0).then(|| InStatus {
                count,
                path: address(&fields),
            })
        };
        OfVersion {
            running: of_version.and_then(|of| in_status(of.running, "running")),
            faulted: of_version.and_then(|of| in_status(of.faulted, "faulted")),
            compared: match this == Some(index) {
                true => String::new(),
                false => format!(
                    "/console/definitions/{id}/{}/compare?with={with}",
                    segment(newer)
                ),
            },
            path: format!("{id}/{}", segment(&version)),
            is_latest: one.latest,
            deployed: one.head.deployed_at,
            version,
        }
    };
    all.into_iter().enumerate().map(row).collect()
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

pub async fn activate(
    visitor: Visitor,
    Path((id, version)): Path<(String, String)>,
    form: Form,
) -> Answer {
    let at = Version { id, version };
    let call = ACTIVATE.at(&at).query(form.reason_query());
    visitor.asking.ask(call).await?;
    let path = format!("{}/{}", segment(&at.id), segment(&at.version));
    go_to(&format!("/console/definitions/{path}?done=activated"))
}
