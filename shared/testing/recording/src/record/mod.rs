//! Creates scenarios from real instances: the implementation of `swirl record`.
//!
//! An [`Export`] contains the API's answers about an instance. Its history has the calls with their answers, the events
//! with their times, and the expected outcome. The definition is part of the scenario or is referred to as a file. A
//! run in virtual time determines the order in which the answers are needed, and a second run checks that the scenario
//! passes.

pub(crate) mod answering;
mod compose;
mod export;
pub(crate) mod facts;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;

use swirl_api::Status;
use swirl_documents::source::{self, Limits};
use swirl_migrate as migrate;
use swirl_model::Data;
use swirl_model::ids::{DefinitionId, InstanceId};
use swirl_model::redact::CUT;
use swirl_model::time::Timestamp;
use swirl_model::workflow::{FunctionKind, Workflow};
use swirl_scenario::expect::Difference;
use swirl_scenario::file::Scenario;
use swirl_scenario::mock::is_sysout;
use swirl_scenario::requests::SentRequests;
use swirl_scenario::run::{Keeps, VirtualRunner, read_all, run_with};
use swirl_scenario::{FileError, Observed, RunError, Runner};
use swirl_spec::Options;
use swirl_spec::resource::{MapResources, ResourceError, Resources};

use self::answering::Answering;
use self::compose::{Composed, Parts};
pub use self::export::{Export, ExportError, Exported, ExportedDefinition, Recorded};
use self::facts::Facts;

/// The reason why no scenario was created.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error(transparent)]
    Export(#[from] ExportError),
    #[error("the export lacks the definition {0}")]
    NoDefinition(DefinitionId),
    #[error("the definition {0} is not valid any more: {1}")]
    Definition(DefinitionId, String),
    /// The history lacks facts, described in sentences.
    #[error("{}", .0.iter().map(String::as_str).collect::<Vec<_>>().join("\n"))]
    Missing(BTreeSet<String>),
    /// The result is not a valid scenario, which is a bug.
    #[error("the scenario that was made cannot be read: {0}")]
    Scenario(#[from] FileError),
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Definitions that the scenario refers to as files: the path in the scenario, by workflow.
pub type Files = BTreeMap<String, String>;

/// The created scenario.
#[derive(Debug)]
pub struct Made {
    /// The scenario file as YAML.
    pub text: String,
    /// The expectations that it lacks, with reasons, as sentences.
    pub notes: Vec<String>,
    /// The differences between its run and the recording; empty if it passes.
    pub differences: Vec<Difference>,
}

/// The definitions of a scenario.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    pub workflows: Vec<Data>,
    pub resources: BTreeMap<String, String>,
    pub secrets: Data,
    /// Functions that a scenario must mock, because otherwise the definition couldn't run.
    pub custom: BTreeSet<String>,
    /// A schedule starts instances of the first workflow.
    pub scheduled: bool,
    /// Definitions that have tasks, not states.
    pub of_tasks: BTreeSet<DefinitionId>,
}

/// Creates a scenario from the first instance of an export. `path` is the path of the new file; paths in it are
/// relative to its folder.
///
/// # Errors
/// See [`RecordError`]. A scenario that doesn't pass is not an error; [`Made`] has its differences.
pub fn record(export: &Export, files: &Files, path: &Path) -> Result<Made, RecordError> {
    let basis = Basis::new(export)?;
    let sources = sources(export, &basis.read, files)?;
    let (instances, facts) = (&basis.instances, &basis.facts);
    let mut parts = basis.parts(&sources);
    let drafted = Scenario::parse(text(&parts.compose(), &instances[0], &[]).as_bytes(), path)?;
    in_order(&drafted, facts, &mut parts)?;
    let composed = parts.compose();
    let text = text(&composed, &instances[0], &export.cut());
    let scenario = Scenario::parse(text.as_bytes(), path)?;
    let differences = match VirtualRunner.run(&scenario) {
        Ok(observed) => scenario.expect.check(&observed),
        Err(error) => vec![Difference {
            what: "the run".to_owned(),
            message: error.to_string(),
            details: Vec::new(),
        }],
    };
    Ok(Made {
        text,
        notes: composed.notes.into_iter().collect(),
        differences,
    })
}

/// Returns the environment of a recording: its definitions, but no answers to calls.
///
/// # Errors
/// See [`RecordError`].
pub(crate) fn drafted(export: &Export, files: &Files) -> Result<(Scenario, Facts), RecordError> {
    let basis = Basis::new(export)?;
    let sources = sources(export, &basis.read, files)?;
    let composed = basis.parts(&sources).compose();
    let text = text(&composed, &basis.instances[0], &[]);
    let scenario = Scenario::parse(text.as_bytes(), Path::new("recorded.scenario.yaml"))?;
    Ok((scenario, basis.facts))
}

/// A parsed export.
struct Basis {
    /// Never empty.
    instances: Vec<Recorded>,
    /// One for each instance.
    read: Vec<Definition>,
    facts: Facts,
}

impl Basis {
    fn new(export: &Export) -> Result<Basis, RecordError> {
        let instances = export.recorded()?;
        let read = workflows(export, &instances)?;
        let workflows: Vec<&Workflow> = read.iter().map(|one| &one.workflow).collect();
        let facts = facts::facts(&instances, &workflows);
        if !facts.missing.is_empty() {
            return Err(RecordError::Missing(facts.missing));
        }
        Ok(Basis {
            instances,
            read,
            facts,
        })
    }

    fn parts<'p>(&'p self, sources: &'p Sources) -> Parts<'p> {
        Parts {
            instances: &self.instances,
            facts: &self.facts,
            sources,
            calls: self.facts.calls.iter().collect(),
            order: (0..self.instances.len()).collect(),
        }
    }
}

/// Returns the ids of instances that the last instance of an export may have started: sub-workflows and its
/// continuation by `continueAs`. Not all of them need exist.
///
/// # Errors
/// The export cannot be read, or its definition isn't valid.
pub fn started_by(export: &Export, index: usize) -> Result<Vec<InstanceId>, RecordError> {
    let Some(exported) = export.instances.get(index) else {
        return Ok(Vec::new());
    };
    let one = exported.read()?;
    let read = workflow(export, &one.header.definition, one.header.started_at)?;
    let calls = facts::subflows(&one, &read.workflow);
    let mut ids: Vec<InstanceId> = calls
        .iter()
        .map(|(scope, call)| one.subflow(scope, *call))
        .collect();
    if one.status != Status::Running {
        ids.push(one.continuation());
    }
    Ok(ids)
}

/// A definition, and the documents that the reader fetched for it.
struct Definition {
    id: DefinitionId,
    workflow: Workflow,
    fetched: BTreeSet<String>,
}

/// One definition for each recorded instance.
fn workflows(export: &Export, instances: &[Recorded]) -> Result<Vec<Definition>, RecordError> {
    let each = instances.iter();
    each.map(|one| workflow(export, &one.header.definition, one.header.started_at))
        .collect()
}

fn workflow(export: &Export, id: &DefinitionId, now: Timestamp) -> Result<Definition, RecordError> {
    let found = export.definition(id);
    let found = found.ok_or_else(|| RecordError::NoDefinition(id.clone()))?;
    let resources = Noted::of(found);
    let options = Options {
        // The connectors of the server aren't known here.
        custom_types: None,
        now: Some(now),
        ..Options::default()
    };
    let reading = swirl_spec::read(found.document.as_bytes(), &resources, &options);
    let Some(workflow) = reading.workflow else {
        let mut errors = reading
            .diagnostics
            .iter()
            .filter(|finding| finding.is_error());
        let why = errors.next().map(|finding| finding.message.clone());
        return Err(RecordError::Definition(id.clone(), why.unwrap_or_default()));
    };
    let fetched = resources.fetched.into_inner().unwrap_or_default();
    Ok(Definition {
        id: id.clone(),
        workflow,
        fetched,
    })
}

/// The resources of a deployed definition, and records of those that the reader requested.
struct Noted {
    map: MapResources,
    fetched: Mutex<BTreeSet<String>>,
}

impl Noted {
    fn of(definition: &ExportedDefinition) -> Noted {
        let mut map = MapResources::default();
        for (uri, text) in &definition.resources {
            map.insert(uri.clone(), text.clone());
        }
        Noted {
            map,
            fetched: Mutex::default(),
        }
    }
}

impl Resources for Noted {
    fn fetch(&self, uri: &str, base: Option<&str>) -> Result<Vec<u8>, ResourceError> {
        let found = self.map.fetch(uri, base)?;
        if let Ok(mut fetched) = self.fetched.lock() {
            fetched.insert(uri.to_owned());
        }
        Ok(found)
    }
}

/// The definitions as the scenario contains them: documents, or file names.
fn sources(export: &Export, read: &[Definition], files: &Files) -> Result<Sources, RecordError> {
    let mut sources = Sources {
        secrets: Data::object(),
        scheduled: read
            .first()
            .is_some_and(|one| one.workflow.schedule.is_some()),
        ..Sources::default()
    };
    let mut known: BTreeSet<&DefinitionId> = BTreeSet::new();
    for one in read {
        if !known.insert(&one.id) {
            continue;
        }
        if one.workflow.tasks.is_some() {
            sources.of_tasks.insert(one.id.clone());
        }
        let found = export.definition(&one.id);
        let found = found.ok_or_else(|| RecordError::NoDefinition(one.id.clone()))?;
        let file = files.get(&*one.id.workflow);
        let source = match file {
            Some(path) => Data::string(path.as_str()),
            None => {
                let node = source::parse(found.document.as_bytes(), &Limits::default());
                let node = node.map_err(|error| {
                    RecordError::Definition(one.id.clone(), error.message.clone())
                })?;
                node.to_data()
            }
        };
        // A file replaces all recorded versions.
        if file.is_none() || !sources.workflows.contains(&source) {
            sources.workflows.push(source);
        }
        for (uri, text) in &found.resources {
            // A file has its own resources next to it.
            let is_wanted = one.fetched.contains(uri) && (file.is_none() || uri.contains("://"));
            if is_wanted {
                sources.resources.insert(uri.clone(), text.clone());
            }
        }
        let functions = one.workflow.functions.iter();
        let custom = functions.filter(|function| {
            matches!(function.kind, FunctionKind::Custom(_)) && !is_sysout(function)
        });
        sources
            .custom
            .extend(custom.map(|function| function.name.to_string()));
        let secrets = facts::secrets(&one.workflow, &found.document);
        for (name, value) in secrets.as_object().into_iter().flat_map(|all| all.iter()) {
            if let Some(name) = Data(name.clone()).as_str() {
                sources.secrets.set(name, Data(value.clone()));
            }
        }
    }
    Ok(sources)
}

/// Sorts answers and instances in the order in which a run needs them.
fn in_order<'p>(
    drafted: &Scenario,
    facts: &'p Facts,
    parts: &mut Parts<'p>,
) -> Result<(), RecordError> {
    let answering = Answering::new(facts.calls.clone());
    let readings = read_all(drafted)?;
    if readings
        .iter()
        .any(|(_, reading)| reading.workflow.is_none())
    {
        // The later run reports this problem.
        return Ok(());
    }
    let Ok(observed) = run_with(
        drafted,
        readings,
        answering.caller(),
        &SentRequests::default(),
        Keeps::Lines,
        || Ok(()),
    ) else {
        return Ok(());
    };
    let taken = answering.taken();
    let asked = taken.order.iter().map(|index| &facts.calls[*index]);
    let others = (0..facts.calls.len()).filter(|index| !taken.order.contains(index));
    parts.calls = asked
        .chain(others.map(|index| &facts.calls[index]))
        .collect();
    parts.order = instances_in_order(&observed, &taken.instances, parts.instances);
    Ok(())
}

fn instances_in_order(
    observed: &Observed,
    known: &BTreeMap<String, usize>,
    instances: &[Recorded],
) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::new();
    for seen in &observed.instances {
        let same = |index: &usize| *instances[*index].header.definition.workflow == *seen.workflow;
        let claimed = |index: &usize| known.values().any(|taken| taken == index);
        let free = |index: &usize| !order.contains(index) && same(index);
        let by_call = known.get(&seen.id).copied().filter(free);
        let found = by_call
            .or_else(|| (0..instances.len()).find(|index| free(index) && !claimed(index)))
            .or_else(|| (0..instances.len()).find(free));
        order.extend(found);
    }
    let others = (0..instances.len()).filter(|index| !order.contains(index));
    let others: Vec<usize> = others.collect();
    order.extend(others);
    order
}

/// What a recording lacks, and what it may still contain, as lines of text. `cut`: see [`Export::cut`].
pub fn cut_out(cut: &[String]) -> String {
    const PLACES_MAX: usize = 5;
    let mut text = match cut {
        [] => "No values of secrets were in what was recorded.".to_owned(),
        cut => {
            let places = cut.iter().take(PLACES_MAX).map(String::as_str);
            let places = places.collect::<Vec<_>>().join(", ");
            let more = match cut.len().saturating_sub(PLACES_MAX) {
                0 => String::new(),
                more => format!(", and {more} more"),
            };
            format!(
                "Values of secrets are cut out ('{CUT}'). In the export they are at: {places}{more}."
            )
        }
    };
    text.push_str(
        "\nAnswers of services and events are as they came. If a service repeats a secret, it is here.",
    );
    text
}

fn text(composed: &Composed, first: &Recorded, cut: &[String]) -> String {
    let header = &first.header;
    let (id, definition, at) = (&header.id, &header.definition, header.started_at);
    let from = format!("instance {id} of {definition}").replace('\n', " ");
    let mut text = format!("# Recorded from {from}, which was started at {at:.3}.\n");
    for line in cut_out(cut).lines() {
        text.push_str(&format!("# {line}\n"));
    }
    for note in &composed.notes {
        text.push_str(&format!("# {}\n", note.replace('\n', " ")));
    }
    // An export may come from anybody: its texts cannot end a comment.
    let mut text = printable(&text);
    text.push_str(&migrate::yaml(&composed.scenario));
    text
}

/// A text without characters that control a terminal. Line breaks stay.
pub fn printable(text: &str) -> String {
    let clean = |c: char| match c {
        '\n' => c,
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    text.chars().map(clean).collect()
}
