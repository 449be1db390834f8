//! The editions of the language, one folder each, and the table that lists them.

mod tasks;
mod v0_1;
mod v0_1_early;
mod v0_1_release;
mod v0_5;
mod v0_6;
mod v0_7;
pub(crate) mod v0_8;
mod v0_9;

use swirl_model::workflow::Workflow;

use crate::build::ctx::Ctx;
use crate::build::dialect::Dialect;
use crate::build::rewrite::Rule;
use crate::codes;
use crate::edition::{Detected, Edition};
use crate::reader::{Options, Reading};
use crate::resource::Resources;
use crate::source::Node;

/// An edition, as the table has it.
pub(crate) struct Entry {
    pub edition: Edition,
    /// The name of the edition.
    pub word: &'static str,
    pub dialect: Dialect,
    /// Reads a document into the context. Findings go there; there is a workflow only if there is
    /// no error among them.
    pub read: fn(&mut Ctx<'_>, &Node),
    /// The properties of the definition itself, by the names that the reader compares with.
    pub properties: fn() -> Vec<&'static str>,
    /// By which a document is rewritten before it is read.
    pub rules: &'static [Rule],
}

/// One line an edition.
pub(crate) const EDITIONS: &[Entry] = &[
    Entry {
        edition: Edition::V0_1Early,
        word: "0.1 (early draft)",
        dialect: Dialect::PATHS,
        read: v0_1_early::read,
        properties: v0_1_early::properties,
        rules: &[],
    },
    Entry {
        edition: Edition::V0_1,
        word: "0.1",
        dialect: Dialect::PATHS,
        read: v0_1::read,
        properties: v0_1::properties,
        rules: &[],
    },
    Entry {
        edition: Edition::V0_1Release,
        word: "0.1 (release)",
        dialect: Dialect::JSONPATH,
        read: v0_1_release::read,
        properties: v0_1_release::properties,
        rules: &[],
    },
    Entry {
        edition: Edition::Tasks,
        word: "tasks draft",
        dialect: Dialect::JSONPATH,
        read: tasks::read,
        properties: tasks::properties,
        rules: &[],
    },
    Entry {
        edition: Edition::V0_5,
        word: "0.5",
        dialect: v0_5::DIALECT,
        read: v0_5::read,
        properties: v0_5::properties,
        rules: v0_5::RULES,
    },
    Entry {
        edition: Edition::V0_6,
        word: "0.6",
        dialect: v0_6::DIALECT,
        read: v0_6::read,
        properties: v0_8::properties,
        rules: v0_6::RULES,
    },
    Entry {
        edition: Edition::V0_7,
        word: "0.7",
        dialect: v0_7::DIALECT,
        read: v0_7::read,
        properties: v0_8::properties,
        rules: v0_7::RULES,
    },
    Entry {
        edition: Edition::V0_8,
        word: "0.8",
        dialect: Dialect::JQ,
        read: v0_8::read,
        properties: v0_8::properties,
        rules: v0_8::RULES,
    },
    Entry {
        edition: Edition::V0_9,
        word: "0.9",
        dialect: v0_9::DIALECT,
        read: v0_9::read,
        properties: v0_8::properties,
        rules: v0_9::RULES,
    },
];

/// The edition's line.
pub(crate) fn of(edition: Edition) -> Option<&'static Entry> {
    EDITIONS.iter().find(|entry| entry.edition == edition)
}

/// Reads a document of a detected edition.
pub(crate) fn read(
    root: &Node,
    detected: Detected,
    resources: &dyn Resources,
    options: &Options,
) -> Reading {
    let entry = of(detected.edition);
    let dialect = entry.map_or(Dialect::JQ, |entry| entry.dialect);
    let mut ctx = Ctx::new(dialect, root.pointer(), resources, options);
    ctx.workflow.edition = detected.edition.word();
    ctx.workflow.merge_hint = dialect.merge_hint;
    if let Some(property) = detected.misled_by {
        misled(&mut ctx, root, property, &detected);
    } else if !detected.also.is_empty() {
        ambiguous(&mut ctx, root, &detected);
    }
    match entry {
        Some(entry) => {
            let mut root = root.clone();
            ctx.leave_out_absent(&mut root);
            (entry.read)(&mut ctx, &root);
            ctx.search_attributes(&root);
        }
        None => not_supported(&mut ctx, root),
    }
    let workflow: Option<Workflow> = ctx.is_clean().then_some(ctx.workflow);
    Reading {
        workflow,
        edition: Some(detected),
        diagnostics: ctx.diagnostics,
        resources_used: ctx.resources_used,
    }
}

/// Warns of a version that is not the edition that the document is written in.
fn misled(ctx: &mut Ctx<'_>, root: &Node, property: &str, detected: &Detected) {
    let edition = detected.edition;
    let mut message = format!(
        "the document is taken as edition {edition}: {}",
        detected.why
    );
    if !detected.also.is_empty() {
        message.push_str("; it could also be of edition ");
        message.push_str(&alternatives(&detected.also));
    }
    let (right, version) = version_key(edition);
    let hint =
        format!("write '{right}: \"{version}\"', or change the parts that are not of that edition");
    let place = root.get(property).unwrap_or(root);
    ctx.warn(place, codes::MISLEADING_EDITION, message, hint);
}

/// How a document says that it is of an edition.
fn version_key(edition: Edition) -> (&'static str, &'static str) {
    let property = match edition {
        Edition::V0_7 | Edition::V0_8 | Edition::V0_9 => "specVersion",
        Edition::V0_1 | Edition::V0_1Early => "schema-version",
        _ => "schemaVersion",
    };
    let version = match edition {
        Edition::V0_1 | Edition::V0_1Early | Edition::V0_1Release | Edition::Tasks => "0.1",
        edition => edition.word(),
    };
    (property, version)
}

/// Warns of a document that could be of another edition just as well.
fn ambiguous(ctx: &mut Ctx<'_>, root: &Node, detected: &Detected) {
    let message = format!(
        "the document does not say of which edition it is, and could also be of edition {}; it is taken as edition {}",
        alternatives(&detected.also),
        detected.edition
    );
    let (property, version) = version_key(detected.edition);
    let hint = format!(
        "add '{property}: \"{version}\"' if that is right, else 'specVersion' with the right one"
    );
    ctx.warn(root, codes::AMBIGUOUS_EDITION, message, hint);
}

fn alternatives(editions: &[Edition]) -> String {
    let words: Vec<&str> = editions.iter().map(|edition| edition.word()).collect();
    words.join(" or ")
}

/// Refuses a document whose edition has no reader.
pub(crate) fn not_supported(ctx: &mut Ctx<'_>, root: &Node) {
    let place = ["specVersion", "schemaVersion", "schema-version"]
        .iter()
        .find_map(|name| root.get(name))
        .unwrap_or(root);
    let message = format!(
        "the document is of edition {}, which this version does not read yet",
        ctx.workflow.edition
    );
    let hint = "write it in edition 0.8, and say so with 'specVersion: \"0.8\"'".to_owned();
    ctx.error(place, codes::EDITION_NOT_SUPPORTED, message, hint);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_edition_has_one_line() {
        for edition in Edition::ALL {
            let lines = EDITIONS.iter().filter(|entry| entry.edition == edition);
            assert_eq!(lines.count(), 1, "{edition}");
        }
    }
}
