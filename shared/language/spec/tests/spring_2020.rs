//! The definitions in two specifications of spring 2020: `text-tasks/` has those of the tasks draft,
//! `text-0.1-release/` those of the release of 0.1, unchanged. Complete definitions validate. Outlines, which omit the
//! workflow's head or definitions that they refer to, have exactly the findings listed here.

use std::collections::BTreeMap;
use std::path::Path;

use swirl_spec::Options;
use swirl_spec::reader::{self, Reading};
use swirl_spec::resource::MapResources;

fn files(folder: &str) -> BTreeMap<String, Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, std::fs::read(entry.path()).unwrap())
        })
        .collect()
}

fn read(bytes: &[u8]) -> Reading {
    reader::read(bytes, &MapResources::default(), &Options::default())
}

fn findings(reading: &Reading) -> Vec<String> {
    let findings = reading.diagnostics.iter();
    findings
        .map(|finding| format!("{} {} {}", finding.severity, finding.code, finding.pointer))
        .collect()
}

/// Outlines: the first three have no head, and the first refers to undefined events.
const OUTLINES: [(&str, &[&str]); 4] = [
    (
        "exampleevent",
        &[
            "error missing-property ",
            "warning version-missing ",
            "warning missing-property /STATES/0",
            "error unknown-event /STATES/0/eventsActions/0/eventRefs/0",
            "error unknown-event /STATES/0/eventsActions/0/eventRefs/1",
            "error unknown-event /STATES/0/eventsActions/0/eventRefs/2",
        ],
    ),
    (
        "sendconfirmation",
        &[
            "error missing-property ",
            "warning version-missing ",
            "warning function-type-unknown /functions/0",
            "warning missing-property /STATES/0",
        ],
    ),
    (
        "lowrisk",
        &[
            "error missing-property ",
            "warning version-missing ",
            "warning function-type-unknown /functions/0",
            "warning function-type-unknown /functions/1",
        ],
    ),
    (
        "processsalesorders",
        &[
            "warning version-not-semver /version",
            "error empty-list /STATES",
        ],
    ),
];

fn check(folder: &str, states: &str, edition: &str) {
    let files = files(folder);
    assert!(files.len() >= 6, "{}", files.len());
    for (name, bytes) in &files {
        // Nothing in the metadata example shows its edition.
        let text = String::from_utf8(bytes.clone()).unwrap();
        let key = "\"metadata\": {\n    \"loglevel\"";
        let text = text.replace(key, &format!("\"schemaVersion\": \"0.1\", {key}"));
        let reading = read(text.as_bytes());
        let found = findings(&reading);
        let taken = reading.edition.as_ref().unwrap().edition.to_string();
        assert_eq!(taken, edition, "{name}: {found:?}");
        let outline = OUTLINES.iter().find(|(part, _)| name.contains(part));
        let expected: Vec<String> = match outline {
            Some((_, expected)) => expected
                .iter()
                .map(|line| line.replace("STATES", states))
                .collect(),
            // Complete except for the id and the version.
            None => vec![
                "warning missing-property ".to_owned(),
                "warning version-missing ".to_owned(),
                "warning function-type-unknown /functions/0".to_owned(),
            ],
        };
        assert_eq!(found, expected, "{folder}/{name}");
        assert_eq!(reading.workflow.is_some(), outline.is_none(), "{name}");
    }
}

#[test]
fn definitions_of_the_tasks_draft() {
    check("tests/text-tasks", "tasks", "tasks draft");
}

#[test]
fn definitions_of_the_release_of_0_1() {
    check("tests/text-0.1-release", "states", "0.1 (release)");
}

/// With a head of its own, an outline is a complete definition.
#[test]
fn outlines_with_a_head_validate() {
    for folder in ["tests/text-tasks", "tests/text-0.1-release"] {
        for (name, bytes) in files(folder) {
            let is_outline = name.contains("sendconfirmation") || name.contains("lowrisk");
            if !is_outline {
                continue;
            }
            let text = String::from_utf8(bytes).unwrap();
            let text = if name.ends_with(".json") {
                let inner = text.trim_start().trim_start_matches('{');
                format!("{{\"id\": \"a\", \"name\": \"a\", \"version\": \"1.0.0\", {inner}")
            } else {
                format!("id: a\nname: a\nversion: 1.0.0\n{text}")
            };
            let reading = read(text.as_bytes());
            assert!(
                reading.workflow.is_some(),
                "{name}: {:?}",
                findings(&reading)
            );
        }
    }
}
