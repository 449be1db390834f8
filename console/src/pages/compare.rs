//! Two versions of a definition: the lines in which the documents and their files differ, and both pictures.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use askama::Template;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use serde::Deserialize;
use swirl_api::definitions::{Definition, GET, GetQuery, LIST, Version};
use swirl_api::diagrams::{self, DefinitionId};

use super::instance::bare;
use crate::answer::{Answer, Failure, page};
use crate::asking::{Refusal, segment};
use crate::difference::{Difference, difference};
use crate::shell::Shell;
use crate::visitor::Visitor;

/// How many lines are shown.
const LINES_MAX: usize = 2_000;
/// How long lines are looked for. After that, more of them than necessary count as changed.
const COMPARING_MAX: Duration = Duration::from_millis(500);

#[derive(Template)]
#[template(path = "compare.html")]
struct Page {
    shell: Shell,
    id: String,
    old: Side,
    new: Side,
    /// All versions, the newest first.
    versions: Vec<String>,
    /// The states that only one of them has.
    added: Vec<String>,
    removed: Vec<String>,
    /// The document, then the files that differ.
    parts: Vec<Part>,
}

/// One of the versions.
struct Side {
    version: String,
    path: String,
    chart: String,
}

struct Part {
    title: String,
    found: Difference,
    /// Why there is nothing to compare; otherwise empty.
    note: &'static str,
}

#[derive(Deserialize, Default)]
pub struct Other {
    /// The version that it is compared with.
    #[serde(default)]
    with: String,
}

pub async fn show(
    visitor: Visitor,
    Path((id, version)): Path<(String, String)>,
    Query(other): Query<Other>,
) -> Answer {
    let title = format!("{id}: {} and {version}", other.with);
    let shell = Shell::new(&visitor, "definitions", title).await?;
    let (old, old_side) = side(&visitor, &id, &other.with).await?;
    let (new, new_side) = side(&visitor, &id, &version).await?;
    let all = visitor.asking.ask_pages(LIST.ask()).await?.definitions;
    let all = all.into_iter().filter(|one| one.head.id == id);
    let mut versions: Vec<String> = all.map(|one| one.head.version).collect();
    versions.reverse();
    let only = |these: &[String], others: &[String]| {
        let these = these.iter().filter(|state| !others.contains(state));
        these.cloned().collect()
    };
    let (added, removed) = (
        only(&new.states, &old.states),
        only(&old.states, &new.states),
    );
    // Long texts take a moment, in which other pages are answered.
    let compared = tokio::task::spawn_blocking(move || parts(&old, &new)).await;
    let parts = compared.map_err(|error| {
        let detail = format!("the versions cannot be compared: {error}");
        Failure::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    })?;
    page(&Page {
        shell,
        id,
        old: old_side,
        new: new_side,
        versions,
        added,
        removed,
        parts,
    })
}

async fn side(visitor: &Visitor, id: &str, version: &str) -> Result<(Definition, Side), Refusal> {
    let at = Version {
        id: id.to_owned(),
        version: version.to_owned(),
    };
    let query = GetQuery {
        contents: true,
        ..GetQuery::default()
    };
    let found = visitor.asking.ask(GET.at(&at).query(query)).await?;
    let drawn = diagrams::DEFINITION.at(&DefinitionId {
        id: id.to_owned(),
        version: version.to_owned(),
    });
    // A definition that this build cannot read has no picture.
    let chart = visitor.asking.text(drawn).await.unwrap_or_default();
    let side = Side {
        path: format!("{}/{}", segment(id), segment(version)),
        version: at.version,
        chart: bare(&chart),
    };
    Ok((found, side))
}

fn parts(old: &Definition, new: &Definition) -> Vec<Part> {
    let deadline = Instant::now() + COMPARING_MAX;
    let mut left = LINES_MAX;
    let document = difference(&old.document, &new.document, deadline, &mut left);
    let mut parts = vec![Part {
        title: "Document".to_owned(),
        note: match document.groups.is_empty() {
            true => "It is the same.",
            false => "",
        },
        found: document,
    }];
    let (old, new) = (old.contents.as_ref(), new.contents.as_ref());
    let names = old.into_iter().chain(new).flat_map(|files| files.keys());
    for name in names.collect::<BTreeSet<_>>() {
        let of = |files: Option<&BTreeMap<String, String>>| files?.get(name).cloned();
        let (before, after) = (of(old), of(new));
        if before == after {
            continue;
        }
        parts.push(Part {
            title: name.clone(),
            note: match (&before, &after) {
                (None, _) => "The file is new.",
                (_, None) => "The document no longer refers to this file.",
                _ => "",
            },
            found: difference(
                &before.unwrap_or_default(),
                &after.unwrap_or_default(),
                deadline,
                &mut left,
            ),
        });
    }
    parts
}
