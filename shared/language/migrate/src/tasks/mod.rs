//! Converts canonical workflows of states to documents of DSL 1.0.
//!
//! Each state becomes a task of the same name. Where the states' data was merged, the tasks' output says so in jq. The
//! result isn't comparable with the original as workflows; it is read again, and scenarios prove that both behave alike.

mod actions;
mod calls;
mod compensation;
mod document;
mod emit;
mod errors;
mod event_start;
mod event_states;
mod events;
mod expressions;
mod filters;
mod flow;
mod forks;
mod jq_text;
mod merge;
mod raise;
mod retries;
mod schedule;
mod start_data;
mod starts;
mod states;
mod target;
#[cfg(test)]
mod tests;
mod writer;

use swirl_documents::source::Node;
use swirl_documents::{codes, source};
use swirl_model::workflow::Workflow;
use swirl_spec::Options;
use swirl_spec::reader;
use swirl_spec::resource::Resources;

use super::{Assume, Format, Migrated, Obstacle, jq, simplify, text};
pub use errors::{COMMUNICATION, own_type_of};
pub use target::{Target, task_version};
pub use writer::task_names;

/// Writes a workflow of states as a document of DSL 1.0. `root` is the document from which it was read.
///
/// # Errors
/// Everything that DSL 1.0 cannot express.
pub fn migrate_to_tasks(
    workflow: &Workflow,
    root: &Node,
    format: Format,
    target: &Target,
    assume: Assume,
) -> Result<Migrated, Vec<Obstacle>> {
    if workflow.tasks.is_some() {
        return Err(vec![Obstacle {
            place: root.place(),
            state: None,
            message: "it is a document of DSL 1.0 already".to_owned(),
        }]);
    }
    let mut whole = workflow.clone();
    jq::in_jq(&mut whole);
    simplify::templates(&mut whole);
    let mut writer = writer::Writer::new(&whole, root, target, assume);
    let document = writer.document();
    if !writer.obstacles.is_empty() {
        return Err(writer.obstacles);
    }
    let notes = writer.notes;
    let text = text::write(&document, format, workflow.edition, &notes);
    Ok(Migrated {
        text,
        notes,
        parts: Vec::new(),
    })
}

/// Reads the written document again: the reasons why DSL 1.0 refuses it. Parts that are not carried out yet are no
/// reason.
#[must_use]
pub fn refused(text: &str, root: &Node, resources: &dyn Resources) -> Vec<Obstacle> {
    let Ok(node) = source::parse(text.as_bytes(), &source::Limits::default()) else {
        return Vec::new();
    };
    let reading = reader::read_node(&node, resources, &Options::default());
    let findings = reading.diagnostics.as_slice().iter();
    let errors = findings.filter(|one| one.is_error() && one.code != codes::NOT_CARRIED_OUT);
    let obstacles = errors.map(|finding| Obstacle {
        place: root.place(),
        state: None,
        message: format!(
            "DSL 1.0 refuses it: {} (at {} of the document that would be written)",
            finding.message, finding.pointer
        ),
    });
    obstacles.collect()
}
