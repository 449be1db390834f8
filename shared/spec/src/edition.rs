//! Which edition of the language a document is written in.
//!
//! `specVersion` (`schema-version`, `schemaVersion` in older ones) says so; without it, the shape
//! does.

use std::fmt;

use crate::source::{Kind, Node};

/// An edition of the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Edition {
    /// 0.1, early draft (October 2019).
    V0_1Early,
    /// 0.1 (November 2019).
    V0_1,
    /// The draft with `tasks` (May 2020).
    Tasks,
    V0_5,
    V0_6,
    V0_7,
    V0_8,
    V0_9,
}

impl Edition {
    pub fn word(self) -> &'static str {
        match self {
            Edition::V0_1Early => "0.1 (early draft)",
            Edition::V0_1 => "0.1",
            Edition::Tasks => "tasks draft",
            Edition::V0_5 => "0.5",
            Edition::V0_6 => "0.6",
            Edition::V0_7 => "0.7",
            Edition::V0_8 => "0.8",
            Edition::V0_9 => "0.9",
        }
    }
}

impl fmt::Display for Edition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// What was found, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detected {
    pub edition: Edition,
    /// A clause that goes on "it is taken as edition ... because".
    pub why: String,
}

/// A version that names no edition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownEdition {
    /// The property that names it.
    pub property: &'static str,
    pub version: String,
}

const VERSIONS: [&str; 3] = ["specVersion", "schemaVersion", "schema-version"];

/// The edition that the document names, else the one whose shape it has.
pub fn detect(root: &Node) -> Result<Detected, UnknownEdition> {
    for property in VERSIONS {
        let Some(node) = root.get(property) else {
            continue;
        };
        if !matches!(node.kind(), Kind::String | Kind::Number) {
            continue;
        }
        let version = node.raw().trim();
        let Some(edition) = by_version(version) else {
            return Err(UnknownEdition {
                property,
                version: version.to_owned(),
            });
        };
        // Both drafts of 0.1 and what came between have the same number.
        let edition = match edition {
            Edition::V0_1 => match by_shape(root) {
                Some((shape @ (Edition::V0_1Early | Edition::Tasks), _)) => shape,
                _ => edition,
            },
            edition => edition,
        };
        return Ok(Detected {
            edition,
            why: format!("'{property}' is '{version}'"),
        });
    }
    let (edition, why) = by_shape(root).unwrap_or((
        Edition::V0_8,
        "nothing in it is of an older edition".to_owned(),
    ));
    Ok(Detected { edition, why })
}

/// Releases: 0.8.1 and v0.8 are of edition 0.8.
fn by_version(version: &str) -> Option<Edition> {
    let version = version.trim_start_matches(['v', 'V']);
    let mut parts = version.split('.');
    let edition = match (parts.next()?, parts.next()?) {
        ("0", "1") => Edition::V0_1,
        ("0", "5") => Edition::V0_5,
        ("0", "6") => Edition::V0_6,
        ("0", "7") => Edition::V0_7,
        ("0", "8") => Edition::V0_8,
        ("0", "9") => Edition::V0_9,
        _ => return None,
    };
    let patch = match parts.next() {
        None | Some("x") => true,
        Some(patch) => !patch.is_empty() && patch.bytes().all(|byte| byte.is_ascii_digit()),
    };
    (patch && parts.next().is_none()).then_some(edition)
}

fn by_shape(root: &Node) -> Option<(Edition, String)> {
    let states = root.get("states").and_then(Node::items).unwrap_or_default();
    let any_state = |test: &dyn Fn(&Node) -> bool| states.iter().any(test);
    let any_key =
        |names: &[&str]| any_state(&|state| names.iter().any(|name| state.get(name).is_some()));
    if root.get("starts-at").is_some() || root.get("startsAt").is_some() {
        return Some((Edition::V0_1, "it has 'starts-at'".to_owned()));
    }
    if any_state(&|state| state.get("start").and_then(Node::as_bool).is_some()) {
        return Some((Edition::V0_1Early, "a state has 'start: true'".to_owned()));
    }
    if any_state(&|state| {
        state
            .get("type")
            .and_then(Node::as_str)
            .is_some_and(|kind| kind == "END")
    }) {
        return Some((Edition::V0_1Early, "it has END states".to_owned()));
    }
    if any_key(&["next-state", "trigger-event", "event-refs"]) || root.get("trigger-defs").is_some()
    {
        return Some((Edition::V0_1, "its keys are in kebab-case".to_owned()));
    }
    if root.get("tasks").is_some() {
        return Some((Edition::Tasks, "it has 'tasks'".to_owned()));
    }
    if any_state(&|state| {
        let has_kind = |name: &str| {
            state
                .get(name)
                .is_some_and(|node| node.get("kind").is_some())
        };
        has_kind("start") || has_kind("end") || state.get("start").is_some()
    }) {
        return Some((
            Edition::V0_5,
            "states have 'start' or 'end' with a 'kind'".to_owned(),
        ));
    }
    if any_text(root, "{{") {
        return Some((Edition::V0_5, "its expressions stand in '{{ }}'".to_owned()));
    }
    if root.get("states").is_some() {
        return Some((
            Edition::V0_8,
            "it has 'states', and nothing of an older edition".to_owned(),
        ));
    }
    None
}

fn any_text(node: &Node, start: &str) -> bool {
    node.as_str()
        .is_some_and(|text| text.trim_start().starts_with(start))
        || node
            .items()
            .unwrap_or_default()
            .iter()
            .any(|item| any_text(item, start))
        || node
            .members()
            .unwrap_or_default()
            .iter()
            .any(|member| any_text(member.value(), start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Limits, parse};

    fn edition(text: &str) -> String {
        let root = parse(text.as_bytes(), &Limits::default()).unwrap();
        match detect(&root) {
            Ok(detected) => detected.edition.to_string(),
            Err(unknown) => format!("unknown {}", unknown.version),
        }
    }

    #[test]
    fn by_version_or_shape() {
        for (text, expected) in [
            ("specVersion: '0.8'", "0.8"),
            ("specVersion: 0.8", "0.8"),
            ("specVersion: v0.8", "0.8"),
            ("specVersion: 0.8.1", "0.8"),
            ("specVersion: '0.7'", "0.7"),
            ("specVersion: '0.9'", "0.9"),
            ("schemaVersion: '0.5'", "0.5"),
            ("specVersion: '1.0.0'", "unknown 1.0.0"),
            ("specVersion: '0.8.'", "unknown 0.8."),
            ("specVersion: '0.80'", "unknown 0.80"),
            ("specVersion: ''", "unknown "),
            ("states: [{name: A, type: inject, end: true}]", "0.8"),
            ("states: [{name: A, start: {kind: default}}]", "0.5"),
            ("states: [{name: A, start: true}]", "0.1 (early draft)"),
            ("tasks: []", "tasks draft"),
            ("starts-at: A\nstates: []", "0.1"),
            (
                "states: [{name: A, stateDataFilter: {dataInputPath: '{{ $.a }}'}}]",
                "0.5",
            ),
            ("a: 1", "0.8"),
            ("[]", "0.8"),
        ] {
            assert_eq!(edition(text), expected, "{text}");
        }
    }
}
