//! The names that readers know, for tools that query them about documents.

use std::collections::BTreeSet;

use swirl_model::workflow::Language;

use crate::build::context;
use crate::build::elsewhere;
use crate::build::parts::states::KINDS;
use crate::build::rule::Rule;
use crate::build::written::name_of;
use crate::edition::{self, Edition};
use crate::editions;
use crate::template::Delimiters;

/// The properties that the definition itself may have in an edition, in addition to further ones.
pub fn of_definition(edition: Edition) -> Vec<&'static str> {
    editions::row(edition).map_or_else(Vec::new, |entry| (entry.properties)())
}

/// The properties of a task of DSL 1.0 that doesn't say yet what it does.
pub fn of_task() -> impl Iterator<Item = &'static str> {
    editions::v1_0::of_task()
}

/// The properties of which a task of DSL 1.0 has one, which says what it does.
pub fn kinds_of_task() -> impl Iterator<Item = &'static str> {
    editions::v1_0::kinds_of_task()
}

/// The kinds of states, in the words of 0.8.
pub fn kinds_of_state() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|kind| kind.word)
}

/// Whether a text can be a namespace or a name of DSL 1.0.
pub fn is_label(text: &str) -> bool {
    editions::v1_0::is_label(text)
}

/// Whether an edition with states, or with tasks in their place, defines the property at the top. The drafts of 2019,
/// whose names are in kebab-case, don't count.
pub(crate) fn is_of_definition(name: &str) -> bool {
    let editions = editions::EDITIONS.iter().filter(|entry| {
        let drafts = [Edition::V0_1Early, Edition::V0_1];
        !drafts.contains(&entry.edition) && entry.edition != Edition::V1_0
    });
    let mut all = editions.flat_map(|entry| (entry.properties)());
    name == "execTimeout" || all.any(|known| known == name)
}

/// Names in some edition for properties that have another name in other editions. A reader may accept a name that it
/// never suggests.
pub fn of_other_editions() -> BTreeSet<&'static str> {
    let mut all: BTreeSet<&str> = edition::signs().collect();
    for entry in editions::EDITIONS {
        all.extend((entry.properties)());
        let own = entry.dialect.own_names.iter();
        all.extend(own.flat_map(|(name, own)| [name_of(name), *own]));
        all.extend(entry.rules.iter().flat_map(Rule::names));
    }
    let elsewhere = elsewhere::PROPERTIES.iter();
    all.extend(elsewhere.flat_map(|(other, known, _)| [*other, *known]));
    all
}

/// Names in an edition's own rules. Some are valid only if another one is absent.
pub fn of_rules(edition: Edition) -> BTreeSet<&'static str> {
    let Some(entry) = editions::row(edition) else {
        return BTreeSet::new();
    };
    let of_rules = entry.rules.iter().flat_map(Rule::names);
    let own = entry.dialect.own_names.iter().map(|(_, own)| *own);
    of_rules.chain(own).collect()
}

/// Words that an edition accepts for a property in addition to those that its reader suggests.
pub fn of_property(edition: Edition, property: &str) -> BTreeSet<&'static str> {
    let rules = editions::row(edition).map_or(&[][..], |entry| entry.rules);
    let rules = rules.iter().filter(|rule| rule.names().contains(&property));
    let words = rules.flat_map(Rule::words);
    words.chain(edition::words_of(edition, property)).collect()
}

/// The language of expressions in a document that doesn't state one.
pub fn language(edition: Edition) -> Option<Language> {
    editions::row(edition).map(|entry| entry.dialect.language)
}

/// The members of `$WORKFLOW`.
pub fn members_of_workflow(edition: Edition) -> Vec<&'static str> {
    let entry = editions::row(edition);
    entry.map_or_else(Vec::new, |entry| {
        context::members_of_workflow(&entry.dialect)
    })
}

/// The delimiters around an expression in a text.
pub fn delimiters(edition: Edition) -> Option<Delimiters> {
    editions::row(edition).map(|entry| entry.dialect.delimiters)
}

/// Words of an edition for concepts that have other names in other editions.
pub fn words() -> Vec<&'static str> {
    let mut all: BTreeSet<&str> = edition::words().collect();
    for entry in editions::EDITIONS {
        all.extend(entry.rules.iter().flat_map(Rule::words));
    }
    all.extend(kinds_of_state());
    let elsewhere = elsewhere::WORDS.iter();
    all.extend(elsewhere.flat_map(|(other, known, _)| [*other, *known]));
    all.into_iter().collect()
}
