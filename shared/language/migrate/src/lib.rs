//! Converts canonical workflows to documents of edition 0.8. This is the inverse of reading, for documents of any
//! edition.
//!
//! A construct that 0.8 cannot express is an obstacle, and a workflow with an obstacle is not written. To guarantee the
//! same behaviour, the written document is read again and must be lowered to the same workflow (`same.rs`).

mod actions;
mod alone;
mod conditions;
mod errors;
mod event_states;
mod events;
mod expressions;
mod filters;
mod flows;
mod functions;
mod jq;
mod next;
mod objects;
mod places;
mod results;
mod retries;
mod same;
mod schedule;
mod simplify;
mod states;
mod tasks;
#[cfg(test)]
mod tests;
mod text;
mod ways;
mod workflow;
mod writer;

use swirl_model::workflow::{StateId, Version, Workflow};

use swirl_documents::diagnostic::SourceLocation;
use swirl_documents::source::Node;
use swirl_spec::Options;
use swirl_spec::reader;
use swirl_spec::resource::MapResources;
pub use tasks::{
    COMMUNICATION, Target, migrate_to_tasks, own_type_of, refused, task_names, task_version,
};
pub use text::{Format, yaml};

/// Something that the other edition cannot express.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// Its location in the original document.
    pub place: SourceLocation,
    /// The state's name.
    pub state: Option<String>,
    /// A sentence without its full stop.
    pub message: String,
}

impl Obstacle {
    /// An obstacle in a state, or in the document as a whole.
    fn of(root: &Node, workflow: &Workflow, state: Option<StateId>, message: String) -> Obstacle {
        let state = state.map(|id| workflow[id].name.to_string());
        let place = match &state {
            Some(name) => places::of_state(root, name),
            None => root.place(),
        };
        Obstacle {
            place,
            state,
            message,
        }
    }
}

/// A document of another edition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migrated {
    pub text: String,
    /// Notes about the parts that are expressed differently than before.
    pub notes: Vec<String>,
    /// Definitions that it runs as sub-workflows and that were parts of it.
    pub parts: Vec<PartDefinition>,
}

/// A definition that was part of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartDefinition {
    pub id: String,
    pub text: String,
}

/// Facts that the author knows but the definition doesn't state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Assume {
    /// Actions return objects or nothing.
    pub objects: bool,
    /// Iterations may run one after another.
    pub sequential: bool,
    /// Each start event may begin an instance of its own, also one that correlates with an active instance.
    pub starts: bool,
}

/// Writes a workflow as a document of edition 0.8. `root` is the document from which it was read.
///
/// # Errors
/// Everything that the edition cannot express.
pub fn migrate(
    workflow: &Workflow,
    root: &Node,
    format: Format,
    assume: Assume,
) -> Result<Migrated, Vec<Obstacle>> {
    if workflow.tasks.is_some() {
        return Err(vec![Obstacle {
            place: root.place(),
            state: None,
            message: "a document of DSL 1.0 has tasks, which edition 0.8 can't express".to_owned(),
        }]);
    }
    let mut whole = workflow.clone();
    let mut notes = Vec::new();
    if whole.version == Version::Latest {
        // Edition 0.8 has no default version.
        whole.version = Version::Literal(Version::LATEST.to_owned());
    }
    let flows::Parted { parts, refused, .. } = flows::parted(&mut whole, assume, &mut notes);
    let mut obstacles: Vec<Obstacle> = Vec::new();
    for flows::Refused { state, message } in refused {
        obstacles.push(Obstacle {
            place: places::of_state(root, &state),
            state: Some(state),
            message,
        });
    }
    let mut written = Vec::new();
    for part in parts {
        match one(&part, root, format, assume, Vec::new()) {
            Ok((text, _)) => written.push(PartDefinition { id: part.id, text }),
            Err(mut found) => obstacles.append(&mut found),
        }
    }
    match one(&whole, root, format, assume, notes) {
        Ok((text, notes)) if obstacles.is_empty() => Ok(Migrated {
            text,
            notes,
            parts: written,
        }),
        Ok(_) => Err(shown(obstacles)),
        Err(mut found) => {
            found.append(&mut obstacles);
            Err(shown(found))
        }
    }
}

fn shown(mut obstacles: Vec<Obstacle>) -> Vec<Obstacle> {
    obstacles.retain(|obstacle| obstacle.message != states::STATES_STAY);
    obstacles
}

/// One document, and notes about the parts that it expresses differently.
fn one(
    workflow: &Workflow,
    root: &Node,
    format: Format,
    assume: Assume,
    mut notes: Vec<String>,
) -> Result<(String, Vec<String>), Vec<Obstacle>> {
    let (mut simple, mut more) = simplify::simplify(workflow);
    notes.append(&mut more);
    functions::simplify(&mut simple, &mut notes);
    filters::simplify(&mut simple, assume, &mut notes);
    let in_jq = jq::rewrite(&mut simple, &mut notes);
    let mut writer = writer::Writer::new(&simple, root, in_jq, assume);
    let document = writer.document();
    notes.append(&mut writer.notes);
    if !writer.obstacles.is_empty() {
        return Err(writer.obstacles);
    }
    let text = text::write(&document, format, workflow.edition, &notes);
    let obstacles = check(&simple, &text, root);
    if obstacles.is_empty() {
        Ok((text, notes))
    } else {
        Err(obstacles)
    }
}

/// Reads the written document, and reports its differences from the original workflow.
fn check(wanted: &Workflow, text: &str, root: &Node) -> Vec<Obstacle> {
    let options = Options {
        provided: wanted
            .functions
            .iter()
            .map(|function| function.name.to_string())
            .collect(),
        ..Options::default()
    };
    let reading = reader::read(text.as_bytes(), &MapResources::default(), &options);
    let at_root = |message: String| Obstacle {
        place: root.place(),
        state: None,
        message,
    };
    let Some(found) = reading.workflow else {
        let errors = reading
            .diagnostics
            .as_slice()
            .iter()
            .filter(|finding| finding.is_error());
        let obstacles = errors.map(|finding| {
            let place = finding.pointer.as_str();
            at_root(format!(
                "edition 0.8 refuses it: {} (at {place} of the document that would be written)",
                finding.message
            ))
        });
        return obstacles.collect();
    };
    let (found, _) = simplify::simplify(&found);
    let differences = same::differences(wanted, &found).into_iter();
    differences
        .map(|difference| match difference.state {
            Some(name) => Obstacle {
                place: places::of_state(root, &name),
                message: difference.message,
                state: Some(name),
            },
            None => at_root(difference.message),
        })
        .collect()
}
