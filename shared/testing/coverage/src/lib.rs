//! Coverage: the parts of definitions that scenarios have run: states, transitions, error paths, retries and timeouts.
//!
//! The canonical workflow determines the parts that can run, and the histories of the instances determine the parts
//! that ran. The result is shown as text, as a page and as LCOV. Definitions inside scenario files aren't counted,
//! because they are part of the test.

mod html;
mod items;
mod lcov;
mod trace;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use swirl_documents::source::{self, Limits};
use swirl_engine::Definition;
use swirl_model::workflow::Workflow;

pub use html::html;
pub use items::{Item, ItemKind, line_of_task, lines_of_states};
pub use lcov::lcov;
use swirl_scenario::file::{Scenario, WorkflowSource};
use swirl_scenario::run::read_all;
use swirl_scenario::{Observed, RunError, Runner};

/// A definition and its coverage.
#[derive(Debug)]
pub struct Covered {
    pub file: PathBuf,
    pub title: String,
    pub items: Vec<Item>,
    id: String,
    /// The definition's text.
    document: String,
    workflow: Workflow,
}

/// The coverage of all definitions that scenarios refer to as files, by file.
#[derive(Debug, Default)]
pub struct Coverage {
    definitions: BTreeMap<PathBuf, Covered>,
}

impl Coverage {
    /// Adds the outcome of a scenario.
    pub fn add(&mut self, scenario: &Scenario, observed: &Observed) {
        let Ok(readings) = read_all(scenario) else {
            return;
        };
        for (source, (_, reading)) in scenario.workflows.iter().zip(readings) {
            let (WorkflowSource::Path(path), Some(workflow)) = (source, reading.workflow) else {
                continue;
            };
            let file = plain(path);
            let covered = self.definitions.entry(file.clone());
            let covered = covered.or_insert_with(|| Covered::new(file, path, workflow));
            for instance in &observed.instances {
                if instance.definition == covered.id {
                    trace::count(&covered.workflow, &instance.history, &mut covered.items);
                }
            }
        }
    }

    /// By file.
    pub fn definitions(&self) -> impl Iterator<Item = &Covered> {
        self.definitions.values()
    }

    /// A text table: each definition with its shares, followed by the parts that didn't run.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for covered in self.definitions() {
            text.push_str(&format!(
                "{}: {}\n",
                covered.file.display(),
                covered.shares()
            ));
            for item in covered.missed() {
                let kind = item.kind.as_str();
                text.push_str(&format!("  {}: {kind} not run: {}\n", item.line, item.name));
            }
        }
        text
    }
}

impl Covered {
    fn new(file: PathBuf, path: &Path, workflow: Workflow) -> Covered {
        let document = swirl_documents::files::read(path, swirl_documents::files::BYTES_MAX)
            .unwrap_or_default();
        let root = source::parse(&document, &Limits::default()).ok();
        Covered {
            items: items::items_of(&workflow, root.as_ref()),
            id: Definition::id_of(&workflow).to_string(),
            title: workflow.name.clone().unwrap_or_else(|| workflow.id.clone()),
            document: String::from_utf8_lossy(&document).into_owned(),
            file,
            workflow,
        }
    }

    pub fn missed(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|item| item.hits == 0)
    }

    /// The number of parts of a kind, and the number of those that ran.
    pub fn share(&self, kind: ItemKind) -> (usize, usize) {
        let of_kind = || self.items.iter().filter(|item| item.kind == kind);
        (
            of_kind().filter(|item| item.hits > 0).count(),
            of_kind().count(),
        )
    }

    /// `states 3 of 4, ways 2 of 2`.
    fn shares(&self) -> String {
        let shares = ItemKind::ALL.into_iter().filter_map(|kind| {
            let (ran, all) = self.share(kind);
            (all > 0).then(|| format!("{} {ran} of {all}", kind.words()))
        });
        shares.collect::<Vec<_>>().join(", ")
    }
}

/// Removes redundant `.` and `..` from a path, so that a file that two scenarios name differently counts once.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir
                if matches!(
                    plain.components().next_back(),
                    Some(std::path::Component::Normal(_))
                ) =>
            {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

/// Wraps another runner, and records what the scenarios cover.
pub struct Covering<'r> {
    runner: &'r dyn Runner,
    coverage: Mutex<Coverage>,
}

impl<'r> Covering<'r> {
    pub fn new(runner: &'r dyn Runner) -> Covering<'r> {
        Covering {
            runner,
            coverage: Mutex::default(),
        }
    }

    pub fn into_coverage(self) -> Coverage {
        self.coverage
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Runner for Covering<'_> {
    fn run(&self, scenario: &Scenario) -> Result<Observed, RunError> {
        let observed = self.runner.run(scenario)?;
        let mut coverage = self.coverage.lock().unwrap_or_else(PoisonError::into_inner);
        coverage.add(scenario, &observed);
        Ok(observed)
    }
}

#[cfg(test)]
mod tests;
