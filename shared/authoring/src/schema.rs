//! JSON Schemas of the editions, for editors.
//!
//! This code knows nothing about the language. It gives the reader small documents with different values at each
//! location. From the reader's findings it derives which properties an object has, which are required, and which values
//! each may have. So a schema accepts what the reader accepts, and changes together with it. A schema doesn't include
//! checks across several locations (undefined names, unreachable states) or checks of expressions.

mod ask;
mod explore;
mod known;
mod render;
mod shape;
mod spelling;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use swirl_model::attribute::{ATTRIBUTES_MAX, AttributeKind};
use swirl_model::instance::Retention;
use swirl_model::workflow::Recording;
use swirl_spec::edition::Edition;
use swirl_spec::vocabulary;

use crate::lsp::properties::described;
use ask::Reader;
use explore::Explorer;
use known::LanguageObject;

const TASKS: &str = include_str!("schema/tasks.json");

/// The schema of an edition, in draft 7. Generating it takes the reader a few thousand small documents.
pub fn schema(edition: Edition) -> Value {
    if edition == Edition::V1_0 {
        // Lists of one-key maps are beyond what questions to the reader can find out. A test compares it with the reader.
        return serde_json::from_str(TASKS).unwrap_or_default();
    }
    let (root, objects) = explored(edition, other_names());
    let title = format!("Serverless Workflow {edition}");
    let mut schema = render::render(&title, root, &objects);
    if let Some(metadata) = schema.pointer_mut("/properties/metadata") {
        metadata["properties"] = json!({"swirl": own_metadata()});
    }
    schema
}

/// Metadata may contain anything, so the reader's findings don't show the part that it reads. Text there belongs to the
/// author.
fn own_metadata() -> Value {
    let kinds = AttributeKind::ALL.map(AttributeKind::as_str);
    let attribute = json!({
        "type": "object",
        "properties": {
            "value": {"type": "string", "description": "an expression over the state data"},
            "type": {"enum": kinds},
        },
        "required": ["value", "type"],
        "additionalProperties": false,
    });
    let search = json!({
        "type": "object",
        "description": "what instances are found by, as `@name` in queries",
        "maxProperties": ATTRIBUTES_MAX,
        "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_.-]{0,63}$"},
        "additionalProperties": attribute,
    });
    let outcomes = Retention::OUTCOMES.map(|outcome| {
        let duration =
            json!({"type": "string", "description": "an ISO 8601 duration, such as `P30D`"});
        (outcome.as_str().to_owned(), duration)
    });
    let retention = json!({
        "type": "object",
        "description": "how long ended instances are kept, by outcome",
        "properties": Map::from_iter(outcomes),
        "additionalProperties": false,
    });
    let history = json!({
        "type": "object",
        "description": "the data that the history keeps",
        "properties": {
            "data": {"enum": Recording::ALL.map(Recording::as_str)},
            "keepData": {
                "type": "string",
                "description": "how long that data is kept: an ISO 8601 duration, such as `P7D`",
            },
        },
        "additionalProperties": false,
    });
    json!({
        "properties": {"search": search, "retention": retention, "history": history},
        "additionalProperties": false,
    })
}

fn explored(edition: Edition, names: BTreeSet<String>) -> (usize, Vec<LanguageObject>) {
    let reader = Reader::new(edition, names, vocabulary::words());
    let mut explorer = Explorer::new(&reader);
    let root = explorer.definition(&vocabulary::of_definition(edition));
    (root, explorer.objects)
}

/// Names that exist in some edition.
fn other_names() -> BTreeSet<String> {
    let names = vocabulary::of_other_editions();
    names
        .into_iter()
        .chain(described())
        .map(str::to_owned)
        .collect()
}
