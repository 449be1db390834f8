//! A scenario of an older edition, rewritten for its documents as DSL 1.0 (`swirl migrate --to 1.0 --scenario`).
//!
//! The rewritten scenario expects the same. What it can't know before it runs, the tasks of the new documents, is taken
//! from its run, in which the tasks of the old states must have begun in the order of the old scenario's `states`.

mod moving;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use swirl_documents::source::{self, Limits, Node};
use swirl_migrate::{
    Assume, Format, Migrated, Obstacle, Target, migrate_to_tasks, refused, task_names,
};
use swirl_model::Data;
use swirl_model::workflow::Workflow;
use swirl_spec::edition::Edition;

use self::moving::{Moving, items};
use crate::file::{FileError, Scenario, WorkflowSource};
use crate::observed::ObservedInstance;
use crate::resources::ScenarioResources;
use crate::run::read_all;

use crate::{Observed, RunError};

/// A scenario with its migrated documents.
#[derive(Debug, Clone)]
pub struct MigratedScenario {
    /// The file's content. It doesn't expect `tasks` yet.
    pub content: Data,
    /// In the order of `workflows`.
    pub documents: Vec<Document>,
    /// Parts of the scenario that expect less than before.
    pub notes: Vec<String>,
    /// The states that instances must enter, and where they are expected.
    states: Vec<(Option<usize>, Vec<String>)>,
    /// The names of the tasks of states, by workflow.
    names: BTreeMap<String, BTreeMap<String, String>>,
}

#[derive(Debug, Clone)]
pub struct Document {
    /// The file that the scenario names; `None`: the document is inside the scenario.
    pub path: Option<PathBuf>,
    /// The old id, and the new one.
    pub ids: (String, String),
    /// `None`: it is of DSL 1.0 already.
    pub migrated: Option<Migrated>,
    pub node: Node,
}

/// Why a scenario isn't migrated.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("{0}")]
    Scenario(String),
    /// Its documents can be migrated, but no scenario of theirs is equal to it.
    #[error("{0}")]
    Unfit(String),
    /// Of a document.
    #[error("DSL 1.0 cannot express '{id}' ({} points)", obstacles.len())]
    Document {
        id: String,
        path: Option<PathBuf>,
        obstacles: Vec<Obstacle>,
    },
}

/// Migrates a scenario and all of its documents.
///
/// # Errors
/// The scenario or a document can't be migrated.
pub fn migrate(
    content: &[u8],
    path: &Path,
    target: &Target,
    assume: Assume,
) -> Result<MigratedScenario, MigrateError> {
    let scenario = Scenario::parse(content, path)?;
    let root = source::parse(content, &Limits::default())
        .map_err(|_| MigrateError::Scenario("the scenario cannot be read".to_owned()))?;
    if scenario.expect.rejected.is_some() {
        let message =
            "the scenario expects that its documents are refused; there is nothing to migrate";
        return Err(MigrateError::Scenario(message.to_owned()));
    }
    let mut moving = Moving::default();
    let (mut documents, mut names) = (Vec::new(), BTreeMap::new());
    for ((_, reading), source) in read_all(&scenario)?.into_iter().zip(&scenario.workflows) {
        let (node, path) = source_of(source)?;
        let Some(workflow) = reading.workflow else {
            let message = "a document of the scenario isn't valid";
            return Err(MigrateError::Scenario(message.to_owned()));
        };
        let of_1_0 = reading
            .edition
            .is_some_and(|found| found.edition == Edition::V1_0);
        let document = match of_1_0 {
            true => Document {
                ids: (workflow.id.clone(), workflow.id.clone()),
                path,
                migrated: None,
                node,
            },
            false => {
                let resources_at = path.clone().unwrap_or_else(|| scenario.path.clone());
                let resources = ScenarioResources::new(&scenario.resources, &resources_at);
                document(&workflow, node, path, &resources, target, assume)?
            }
        };
        if document.migrated.is_some() {
            moving.learn(&workflow, &document.ids.0, &document.ids.1);
            let of_this: &mut BTreeMap<String, String> =
                names.entry(document.ids.1.clone()).or_default();
            of_this.extend(task_names(&workflow));
        }
        if documents.is_empty() {
            moving.first.clone_from(&document.ids.1);
        }
        documents.push(document);
    }
    if documents.iter().all(|document| document.migrated.is_none()) {
        let message = "all documents of the scenario are of DSL 1.0 already";
        return Err(MigrateError::Scenario(message.to_owned()));
    }
    let content = moving.scenario(&root.to_data(), &workflows(&documents));
    if let Some(why) = moving.unfit.first() {
        return Err(MigrateError::Unfit(why.clone()));
    }
    Ok(MigratedScenario {
        content,
        documents,
        notes: moving.notes,
        states: moving.states,
        names,
    })
}

fn source_of(source: &WorkflowSource) -> Result<(Node, Option<PathBuf>), MigrateError> {
    match source {
        WorkflowSource::Inline(node) => Ok((node.clone(), None)),
        WorkflowSource::Path(path) => {
            let unreadable = |why: String| {
                MigrateError::Run(RunError::Unreadable(format!("{}: {why}", path.display())))
            };
            let text = swirl_documents::files::read(path, swirl_documents::files::BYTES_MAX)
                .map_err(|error| unreadable(error.to_string()))?;
            let node = source::parse(&text, &Limits::default())
                .map_err(|_| unreadable("cannot be read".to_owned()))?;
            Ok((node, Some(path.clone())))
        }
    }
}

fn document(
    workflow: &Workflow,
    node: Node,
    path: Option<PathBuf>,
    resources: &ScenarioResources,
    target: &Target,
    assume: Assume,
) -> Result<Document, MigrateError> {
    let failed = |obstacles| MigrateError::Document {
        id: workflow.id.clone(),
        path: path.clone(),
        obstacles,
    };
    let migrated =
        migrate_to_tasks(workflow, &node, Format::Yaml, target, assume).map_err(failed)?;
    let obstacles = refused(&migrated.text, &node, resources);
    if !obstacles.is_empty() {
        return Err(failed(obstacles));
    }
    let node = source::parse(migrated.text.as_bytes(), &Limits::default())
        .map_err(|_| MigrateError::Scenario("a migrated document cannot be read".to_owned()))?;
    Ok(Document {
        ids: (workflow.id.clone(), target.id_of(&workflow.id)),
        path,
        migrated: Some(migrated),
        node,
    })
}

impl MigratedScenario {
    /// The scenario, to be run. `path` is the file for which it is meant.
    ///
    /// # Errors
    /// It isn't a valid scenario.
    pub fn scenario(&self, path: &Path) -> Result<Scenario, FileError> {
        let text = swirl_migrate::yaml(&self.content);
        let mut scenario = Scenario::parse(text.as_bytes(), path)?;
        let nodes = self.documents.iter();
        scenario.workflows = nodes
            .map(|document| WorkflowSource::Inline(document.node.clone()))
            .collect();
        Ok(scenario)
    }

    /// Completes the scenario with the tasks that began in its run, and compares them with the old states. Returns the
    /// differences.
    pub fn take_tasks(&mut self, observed: &Observed) -> Vec<String> {
        let mut differences = Vec::new();
        let expect = self.content.get("expect").unwrap_or_default();
        let with_subflows = expect
            .get("subflows")
            .is_some_and(|value| value == Data::bool(true));
        let shown: Vec<&ObservedInstance> = observed
            .instances
            .iter()
            .filter(|instance| with_subflows || !instance.subflow)
            .collect();
        for (place, states) in std::mem::take(&mut self.states) {
            let Some(instance) = shown.get(place.unwrap_or(0)) else {
                continue;
            };
            let found = self.entered(instance);
            if found != states {
                differences.push(format!(
                    "states: expected {}, and the tasks of the states were {}",
                    states.join(", "),
                    found.join(", ")
                ));
            }
            let tasks = instance.tasks.iter();
            let tasks = tasks.map(|(name, _)| Data::string(name.as_str())).collect();
            self.expect_tasks(place, Data::array(tasks));
        }
        differences
    }

    /// The states whose tasks began, on the main path.
    fn entered(&self, instance: &ObservedInstance) -> Vec<String> {
        let Some(names) = self.names.get(&instance.workflow) else {
            return instance.states.clone();
        };
        let tasks = instance.tasks.iter();
        let main = tasks.filter(|(_, place)| {
            place.matches('/').count() == 3
                || (place.contains("-compensation") && place.contains("/compensate-"))
        });
        main.filter_map(|(name, _)| names.get(name).cloned())
            .collect()
    }

    fn expect_tasks(&mut self, place: Option<usize>, tasks: Data) {
        let mut expect = self.content.get("expect").unwrap_or_default();
        match place {
            None => expect.set("tasks", tasks),
            Some(place) => {
                let instances = expect.get("instances").unwrap_or_default();
                let mut rows: Vec<Data> = items(&instances).collect();
                if let Some(row) = rows.get_mut(place) {
                    row.set("tasks", tasks);
                }
                expect.set("instances", Data::array(rows));
            }
        }
        self.content.set("expect", expect);
    }
}

fn workflows(documents: &[Document]) -> Data {
    let entries = documents.iter().map(|document| match &document.path {
        Some(path) => {
            let name = path.file_name().unwrap_or_default();
            Data::string(name.to_string_lossy().into_owned())
        }
        None => document.node.to_data(),
    });
    Data::array(entries.collect())
}
