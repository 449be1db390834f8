//! Runs recorded instances with another definition: the implementation of `swirl replay`.
//!
//! The recorded definition and the changed one run in the same virtual time, both with the calls, events and operators'
//! actions of an [`Export`]. Their histories are compared line by line: in virtual time neither the clock nor the order
//! of branches makes a difference. A call gets its recorded answer. A call that was never recorded gets none, because
//! its result is unknown.

mod histories;
mod lines;
mod shown;
#[cfg(test)]
mod tests;

use std::path::Path;

use swirl_api::history::HistoryEntry;
use swirl_coverage::{line_of_task, lines_of_states};
use swirl_documents::source::{self, Limits};
use swirl_model::Data;
use swirl_model::ids::DefinitionId;
use swirl_model::workflow::Workflow;
use swirl_scenario::expect::{Difference, Wanted, WantedError};
use swirl_scenario::file::Scenario;
use swirl_scenario::requests::SentRequests;
use swirl_scenario::run::{Keeps, read_all, refused_documents, run_with};
use swirl_scenario::{Observed, RunError};

use self::histories::{Pair, pairs};
use self::lines::DifferingLine;
use crate::record::answering::{Answering, Taken};
use crate::record::facts::{Facts, secrets};
use crate::record::{Export, Files, RecordError, drafted, record};

/// A definition that replaces the recorded one of the same workflow.
#[derive(Debug)]
pub struct Changed {
    pub path: String,
    pub text: String,
    pub workflow: Workflow,
}

/// Where and how a changed definition departs from the recording.
#[derive(Debug)]
pub struct Replayed {
    /// The recorded instance's id.
    pub instance: String,
    pub definition: DefinitionId,
    /// The number of recorded lines of history, of all instances.
    pub lines: usize,
    /// The first line that differs.
    pub first: Option<Departure>,
    /// Differences in the outcome, and in the set of instances.
    pub result: Vec<Difference>,
    /// Calls for which no answer is recorded, by function, with their arguments.
    pub unanswered: Vec<(String, Data)>,
    /// The first line that comes at another time, if no line differs.
    pub shifted: Option<Departure>,
    /// Sentences.
    pub notes: Vec<String>,
}

/// A line of a history that differs.
#[derive(Debug, Clone)]
pub struct Departure {
    pub workflow: String,
    /// The instance itself departs, not one that it started.
    pub is_first: bool,
    /// The scope, by its name in the recorded history if it is there.
    pub scope: String,
    /// The state or task, if one was entered by then.
    pub state: Option<String>,
    pub is_of_tasks: bool,
    /// The line of this state or task in the changed definition, with its file.
    pub place: Option<(String, usize)>,
    /// Lines before it, which are the same.
    pub before: Vec<Line>,
    /// `None`: the recorded history ends here.
    pub expected: Option<Line>,
    /// `None`: the new history ends here.
    pub actual: Option<Line>,
    /// Differences between the two that their texts don't show.
    pub details: Vec<String>,
}

/// A line of a history.
#[derive(Debug, Clone)]
pub struct Line {
    /// Virtual milliseconds since the start.
    pub at_ms: i64,
    /// The entry as the API shows it.
    pub entry: HistoryEntry,
}

impl Replayed {
    /// Whether only times differ.
    pub fn is_same(&self) -> bool {
        self.first.is_none() && self.result.is_empty() && self.unanswered.is_empty()
    }
}

/// Replays the first instance of an export with other definitions.
///
/// # Errors
/// See [`RecordError`]. A refused definition is not an error: [`Replayed`] reports it.
pub fn replay(export: &Export, changed: &[Changed]) -> Result<Replayed, RecordError> {
    let instances = export.recorded()?;
    let header = &instances[0].header;
    let (before, facts) = drafted(export, &Files::new())?;
    let files = changed
        .iter()
        .map(|one| (one.workflow.id.clone(), one.path.clone()))
        .collect();
    let (mut after, _) = drafted(export, &files)?;
    allow(&mut after, changed);
    let made = record(export, &Files::new(), Path::new("recorded.scenario.yaml"))?;
    let mut replayed = Replayed {
        instance: header.id.to_string(),
        definition: header.definition.clone(),
        lines: instances.iter().map(|one| one.history.len()).sum(),
        first: None,
        result: Vec::new(),
        unanswered: Vec::new(),
        shifted: None,
        notes: Vec::new(),
    };
    if !made.differences.is_empty() {
        replayed.notes.push(format!(
            "the recorded definition doesn't repeat the recording exactly, and its run is compared: {}",
            swirl_scenario::report::details(&made.differences).trim_end()
        ));
    }
    let (recorded, _) = run(&before, &facts)?;
    if recorded.rejected.is_some() {
        let why = "it is refused by this version of swirl".to_owned();
        return Err(RecordError::Definition(header.definition.clone(), why));
    }
    let (new, taken) = match run(&after, &facts) {
        Ok(run) => run,
        // The changed definition never ends.
        Err(RunError::Failed(why)) => {
            replayed.result.push(difference("the run", why));
            return Ok(replayed);
        }
        Err(error) => return Err(error.into()),
    };
    compare(&recorded, &new, changed, &mut replayed);
    replayed.unanswered = taken.unknown;
    let vain = new.idle.iter().chain(&new.refused_starts);
    replayed
        .notes
        .extend(vain.map(|(key, why)| format!("{key}: {why}")));
    Ok(replayed)
}

/// Adds placeholders for functions and secrets that only a changed definition has, so that it can run.
fn allow(scenario: &mut Scenario, changed: &[Changed]) {
    for one in changed {
        for function in &one.workflow.functions {
            let answers = scenario.functions.entry(function.name.to_string());
            answers.or_default();
        }
        let own = secrets(&one.workflow, &one.text);
        for (name, value) in own.as_object().into_iter().flat_map(|all| all.iter()) {
            if let Some(name) = Data(name.clone()).as_str() {
                scenario.secrets.set(name, Data(value.clone()));
            }
        }
    }
}

fn run(scenario: &Scenario, facts: &Facts) -> Result<(Observed, Taken), RunError> {
    let answering = Answering::new(facts.calls.clone());
    let readings = read_all(scenario)?;
    let refused = readings
        .iter()
        .any(|(_, reading)| reading.workflow.is_none());
    if refused {
        let rejected = Observed {
            rejected: Some(refused_documents(readings)),
            ..Observed::default()
        };
        return Ok((rejected, Taken::default()));
    }
    let observed = run_with(
        scenario,
        readings,
        answering.caller(),
        &SentRequests::default(),
        Keeps::Data,
        || Ok(()),
    )?;
    Ok((observed, answering.taken()))
}

fn compare(recorded: &Observed, new: &Observed, changed: &[Changed], replayed: &mut Replayed) {
    if new.rejected.is_some() {
        replayed.result = swirl_scenario::Expect::default().check(new);
        return;
    }
    let known = pairs(recorded, new);
    let found = lines::compare(&known.pairs);
    let depart = |found: DifferingLine<'_>| departure(&found, changed);
    replayed.first = found.first.map(depart);
    if replayed.first.is_none() {
        replayed.shifted = found.shifted.map(depart);
    }
    let names = |list: &[swirl_scenario::ObservedInstance]| {
        let names: Vec<&str> = list.iter().map(|one| one.workflow.as_str()).collect();
        names.join(", ")
    };
    if known.unpaired {
        let (before, after) = (names(&recorded.instances), names(&new.instances));
        let message = format!("expected {before}, got {after}");
        replayed.result.push(difference("instances", message));
    }
    if let Some(first) = known.pairs.first() {
        end_of(first, &mut replayed.result);
    }
}

fn difference(what: &str, message: String) -> Difference {
    Difference {
        what: what.to_owned(),
        message,
        details: Vec::new(),
    }
}

/// Status, output and error.
fn end_of(pair: &Pair<'_>, found: &mut Vec<Difference>) {
    let (before, mut after) = (pair.recorded, pair.new.clone());
    let status = swirl_scenario::expect::STATUSES
        .into_iter()
        .find(|word| *word == before.status.as_str());
    let error = before.error.as_ref().map(|error| WantedError {
        name: Some(error.name.clone()),
        code: error.code.clone(),
        status: error.status,
        message: Some(pair.ids.text(&error.message)),
        ..WantedError::default()
    });
    let wanted = Wanted {
        status,
        output: before.output.as_ref().map(|output| pair.ids.data(output)),
        error,
        ..Wanted::default()
    };
    after.output = after.output.map(|output| pair.new_ids.data(&output));
    if let Some(error) = &mut after.error {
        error.message = pair.new_ids.text(&error.message);
    }
    wanted.check("", &after, found);
}

fn departure(found: &DifferingLine<'_>, changed: &[Changed]) -> Departure {
    let pair = found.pair;
    let mut all = changed.iter();
    let changed = all.find(|one| one.workflow.id == pair.new.workflow);
    let place = changed.zip(found.state).and_then(|(one, state)| {
        let root = source::parse(one.text.as_bytes(), &Limits::default()).ok()?;
        let line = if one.workflow.tasks.is_some() {
            let mut tasks = one.workflow.states.iter();
            let found = tasks.find(|task| &*task.name == state)?;
            line_of_task(Some(&root), found, found.task.as_ref()?)?
        } else {
            let lines = lines_of_states(Some(&root));
            lines.into_iter().find(|(name, _)| name == state)?.1
        };
        Some((one.path.clone(), line))
    });
    let line =
        |entry: &swirl_model::event::HistoryEntry, zero: swirl_model::time::Timestamp| Line {
            at_ms: entry.at.0 - zero.0,
            entry: entry.into(),
        };
    let (zero, new_zero) = (pair.recorded.started_at, pair.new.started_at);
    Departure {
        workflow: pair.recorded.workflow.clone(),
        is_first: found.is_first,
        scope: found.scope.to_owned(),
        state: found.state.map(str::to_owned),
        is_of_tasks: changed.is_some_and(|one| one.workflow.tasks.is_some()),
        place,
        before: found.before.iter().map(|entry| line(entry, zero)).collect(),
        expected: found.expected.map(|entry| line(entry, zero)),
        actual: found.actual.map(|entry| line(entry, new_zero)),
        details: found.details.clone(),
    }
}
