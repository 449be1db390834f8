//! `swirl export`

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use swirl_api::history::{HistoryEntry, HistoryQuery};
use swirl_api::instance::{GET, HISTORY, InstanceId, LIST, ListQuery};
use swirl_api::{Condition, Instant, Problem};

use crate::client::{Answered, Client, Server};
use crate::terminal::Terminal;

/// The number of instances, and of entries of one instance, that are requested at a time.
const PAGE: u32 = 100;
const ENTRIES: usize = 2000;

/// Writes the histories of instances, one entry per line (NDJSON).
///
/// A line is an entry as in `swirl history --output json`, with its instance, workflow and version, and its number within the
/// history. Instances come newest first.
#[derive(Debug, clap::Args)]
#[command(
    disable_version_flag = true,
    after_long_help = "\
Examples:
  swirl export > histories.ndjson
  swirl export 2f6c0d9b
  swirl export --query 'workflow = order and ended > -1d' > yesterday.ndjson
  swirl export --cursor export.cursor >> histories.ndjson   # again after a failure: it continues

With --cursor the progress is noted in a file, and the same command continues there. After a crash some lines may come
again: an entry is known by 'instance', 'startedAt' and 'number'."
)]
pub struct Args {
    /// The instances to export: ids or their beginnings, or WORKFLOW/KEY. By default all that are kept.
    #[arg(value_name = "ID", conflicts_with_all = ["workflow", "version", "status", "query", "cursor"])]
    ids: Vec<String>,

    /// Only instances of this workflow.
    #[arg(long, value_name = "ID")]
    workflow: Option<String>,

    /// Only instances with this version of the workflow.
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,

    /// Only instances in this status, as for 'swirl list'.
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,

    /// Only instances that match this query, as for 'swirl list'.
    #[arg(long, value_name = "QUERY")]
    query: Option<String>,

    /// Record the progress in this file, and continue from there.
    #[arg(long, value_name = "FILE")]
    cursor: Option<PathBuf>,

    #[command(flatten)]
    server: Server,
}

/// The progress of an export.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Cursor {
    /// The selection that it belongs to.
    selection: Vec<(String, String)>,
    /// The position in the listing; `None` for the first page.
    after: Option<String>,
    /// The completed instances of that page.
    done: BTreeSet<String>,
    /// The instance in progress, and the number of its completed entries.
    #[serde(default)]
    under_way: Option<(String, u64)>,
    is_complete: bool,
}

/// An entry of a history as a line.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'e> {
    instance: &'e str,
    started_at: Instant,
    workflow: &'e str,
    version: &'e str,
    number: u64,
    #[serde(flatten)]
    entry: &'e HistoryEntry,
}

/// The reason why an export ends early.
enum Stop {
    Refused(Problem),
    Failed(anyhow::Error),
}

impl From<anyhow::Error> for Stop {
    fn from(error: anyhow::Error) -> Stop {
        Stop::Failed(error)
    }
}

impl From<Problem> for Stop {
    fn from(problem: Problem) -> Stop {
        Stop::Refused(problem)
    }
}

pub fn run(args: &Args, terminal: &Terminal) -> anyhow::Result<u8> {
    let cursor = match &args.cursor {
        Some(file) => begin(file, args.selection())?,
        None => Cursor {
            selection: args.selection(),
            ..Cursor::default()
        },
    };
    args.server.run(async |client| {
        let mut export = Export {
            client: &client,
            terminal,
            file: args.cursor.as_deref(),
            cursor,
        };
        match export.run(args).await {
            Ok(()) => Ok(0),
            Err(Stop::Refused(problem)) => {
                Answered::<()>(Err(problem)).show(terminal, |()| String::new())
            }
            Err(Stop::Failed(error)) => Err(error),
        }
    })
}

impl Args {
    fn selection(&self) -> Vec<(String, String)> {
        let given = [
            ("workflow", &self.workflow),
            ("version", &self.version),
            ("status", &self.status),
            ("query", &self.query),
        ];
        let given = given.into_iter();
        given
            .filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)))
            .collect()
    }
}

/// The cursor in a file, or a new one if there is no such file.
fn begin(file: &Path, selection: Vec<(String, String)>) -> anyhow::Result<Cursor> {
    let shown = file.display();
    let text = match swirl_documents::files::read_text(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Cursor {
                selection,
                ..Cursor::default()
            });
        }
        found => found.with_context(|| format!("{shown} cannot be read"))?,
    };
    let found: Cursor =
        serde_json::from_str(&text).with_context(|| format!("{shown} is not a cursor"))?;
    if found.selection != selection {
        bail!(
            "{shown} belongs to an export of other instances: give the same options, or another file"
        );
    }
    if found.is_complete {
        bail!("the export that {shown} belongs to is complete: remove the file to start over");
    }
    Ok(found)
}

struct Export<'e> {
    client: &'e Client,
    terminal: &'e Terminal,
    file: Option<&'e Path>,
    cursor: Cursor,
}

impl Export<'_> {
    async fn run(&mut self, args: &Args) -> Result<(), Stop> {
        if !args.ids.is_empty() {
            for id in &args.ids {
                let id = self.client.instance(id).await?;
                let found = self.client.ask(GET.at(&InstanceId { id })).await?.0?;
                self.instance(found.id, found.started_at).await?;
            }
            return Ok(());
        }
        loop {
            let query = ListQuery {
                workflow: args.workflow.clone(),
                version: args.version.clone(),
                status: args.status.as_deref().map(Condition::from),
                query: args.query.clone(),
                after: self.cursor.after.clone(),
                limit: Some(PAGE),
                ..ListQuery::default()
            };
            let page = self.client.ask(LIST.ask().query(query)).await?.0?;
            for row in page.instances {
                self.instance(row.id, row.started_at).await?;
            }
            self.cursor.done.clear();
            self.cursor.after = page.next;
            self.cursor.is_complete = self.cursor.after.is_none();
            self.note()?;
            if self.cursor.is_complete {
                return Ok(());
            }
        }
    }

    /// Writes the rest of an instance's history.
    async fn instance(&mut self, id: String, started_at: Instant) -> Result<(), Stop> {
        if self.cursor.done.contains(&id) {
            return Ok(());
        }
        let under_way = self.cursor.under_way.take();
        let mut known = under_way
            .filter(|(of, _)| *of == id)
            .map_or(0, |(_, known)| known);
        let call = HISTORY.at(&InstanceId { id: id.clone() });
        loop {
            let query = HistoryQuery {
                after: Some(known),
                limit: Some(ENTRIES),
                ..HistoryQuery::default()
            };
            let page = match self.client.ask(call.clone().query(query)).await?.0 {
                Err(problem) if problem.status == 404 => {
                    self.terminal
                        .message(&format!("instance {id} has since been removed"));
                    break;
                }
                page => page?,
            };
            if page.before > known {
                let gone = page.before - known;
                self.terminal
                    .message(&format!("instance {id}: {gone} entries are no longer kept"));
            }
            let mut lines = String::new();
            for (number, entry) in (page.before + 1..).zip(&page.entries) {
                let line = serde_json::to_string(&Line {
                    instance: &id,
                    started_at,
                    workflow: &page.workflow,
                    version: &page.version,
                    number,
                    entry,
                });
                lines.push_str(&(line.context("the output failed")? + "\n"));
            }
            self.terminal.result(&lines).context("the output failed")?;
            known = page.known();
            if !page.more {
                break;
            }
            self.cursor.under_way = Some((id.clone(), known));
            self.note()?;
        }
        self.cursor.under_way = None;
        self.cursor.done.insert(id);
        self.note()
    }

    /// Called after the lines are written, so that a continued export repeats some lines rather than omitting them.
    fn note(&self) -> Result<(), Stop> {
        let Some(file) = self.file else {
            return Ok(());
        };
        let written = replace(file, &self.cursor);
        Ok(written.with_context(|| format!("{} cannot be written", file.display()))?)
    }
}

/// After a crash there is either the old cursor or the new one.
fn replace(file: &Path, cursor: &Cursor) -> anyhow::Result<()> {
    let folder = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let mut draft = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    serde_json::to_writer(&mut draft, cursor)?;
    draft.persist(file)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_belongs_to_its_selection() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cursor");
        let selection = |workflow: &str| vec![("workflow".to_owned(), workflow.to_owned())];
        let new = begin(&file, selection("a")).unwrap();
        assert_eq!(new.after, None);
        let cursor = Cursor {
            after: Some("place".to_owned()),
            done: ["x".to_owned()].into(),
            under_way: Some(("y".to_owned(), 7)),
            ..new
        };
        std::fs::write(&file, serde_json::to_string(&cursor).unwrap()).unwrap();
        assert_eq!(begin(&file, selection("a")).unwrap(), cursor);
        let other = begin(&file, selection("b")).unwrap_err().to_string();
        assert!(other.contains("other instances"), "{other}");
        let complete = Cursor {
            is_complete: true,
            ..cursor
        };
        std::fs::write(&file, serde_json::to_string(&complete).unwrap()).unwrap();
        let complete = begin(&file, selection("a")).unwrap_err().to_string();
        assert!(complete.contains("is complete"), "{complete}");
        std::fs::write(&file, "{}").unwrap();
        assert!(begin(&file, Vec::new()).is_err());
    }
}
