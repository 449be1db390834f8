//! The editions of the language, with one folder each, and the table that lists them.

mod tasks;
mod v0_1;
mod v0_1_early;
mod v0_1_release;
mod v0_5;
mod v0_6;
mod v0_7;
mod v0_8;
mod v0_9;
pub(crate) mod v1_0;

use swirl_documents::source::Node;

use crate::build::ctx::Ctx;
use crate::build::dialect::Dialect;
use crate::build::rule::Rule;
use crate::edition::Edition;

/// A row of the table of editions.
pub(crate) struct EditionRow {
    pub edition: Edition,
    pub dialect: Dialect,
    /// Reads a document, after its rules were applied, into the context, and reports findings there. There is a workflow
    /// only if none of them is an error.
    pub read: fn(&mut Ctx<'_>, &Node),
    /// The properties of the definition itself, with the names that the reader compares.
    pub properties: fn() -> Vec<&'static str>,
    /// The rules that rewrite a document before it is read.
    pub rules: &'static [Rule],
}

/// One line for each edition.
pub(crate) const EDITIONS: &[EditionRow] = &[
    EditionRow {
        edition: Edition::V0_1Early,
        dialect: Dialect::PATHS,
        read: v0_1_early::read,
        properties: v0_1_early::properties,
        rules: &[],
    },
    EditionRow {
        edition: Edition::V0_1,
        dialect: Dialect::PATHS,
        read: v0_1::read,
        properties: v0_1::properties,
        rules: &[],
    },
    EditionRow {
        edition: Edition::V0_1Release,
        dialect: Dialect::JSONPATH,
        read: v0_1_release::read,
        properties: v0_1_release::properties,
        rules: &[],
    },
    EditionRow {
        edition: Edition::Tasks,
        dialect: Dialect::JSONPATH,
        read: tasks::read,
        properties: tasks::properties,
        rules: &[],
    },
    EditionRow {
        edition: Edition::V0_5,
        dialect: v0_5::DIALECT,
        read: v0_8::read,
        properties: v0_5::properties,
        rules: v0_5::RULES,
    },
    EditionRow {
        edition: Edition::V0_6,
        dialect: v0_6::DIALECT,
        read: v0_8::read,
        properties: v0_8::properties,
        rules: v0_6::RULES,
    },
    EditionRow {
        edition: Edition::V0_7,
        dialect: v0_7::DIALECT,
        read: v0_8::read,
        properties: v0_8::properties,
        rules: v0_7::RULES,
    },
    EditionRow {
        edition: Edition::V0_8,
        dialect: v0_8::DIALECT,
        read: v0_8::read,
        properties: v0_8::properties,
        rules: v0_8::RULES,
    },
    EditionRow {
        edition: Edition::V0_9,
        dialect: v0_9::DIALECT,
        read: v0_9::read,
        properties: v0_8::properties,
        rules: v0_9::RULES,
    },
    EditionRow {
        edition: Edition::V1_0,
        dialect: v1_0::DIALECT,
        read: v1_0::read,
        properties: v1_0::properties,
        rules: &[],
    },
];

/// The edition's line.
pub(crate) fn row(edition: Edition) -> Option<&'static EditionRow> {
    EDITIONS.iter().find(|entry| entry.edition == edition)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_edition_has_a_row() {
        for edition in Edition::ALL {
            let lines = EDITIONS.iter().filter(|entry| entry.edition == edition);
            assert_eq!(lines.count(), 1, "{edition}");
        }
    }
}
