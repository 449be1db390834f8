//! The language's own examples. `text/` has the definitions in the specification of edition 0.8 (the release and the
//! version of August 2023) that have at least states, and `text/states/` has its single states. Nothing in them is
//! rejected as unknown. If an example omits something that its own specification requires, it has exactly the findings
//! listed here.

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
        .filter(|entry| entry.path().is_file())
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, std::fs::read(entry.path()).unwrap())
        })
        .collect()
}

fn read(bytes: &[u8]) -> Reading {
    reader::read(bytes, &MapResources::default(), &Options::default())
}

/// Findings that no example may have, because they would mean that we don't know a part of the language.
const NEVER: [&str; 7] = [
    "unknown-property",
    "unknown-value",
    "wrong-type",
    "bad-expression",
    "bad-path",
    "bad-duration",
    "expression-language",
];

/// Findings about outlines (only states, or no states at all) and about examples that contradict their specification.
const FINDINGS: [(&str, &[&str]); 17] = [
    ("01-greet-customers-workflow.json", &[]),
    (
        "02-send-confirm-state.json",
        &[
            "warning ambiguous-edition ",
            "error missing-property ",
            "warning version-missing ",
            "error unknown-function /states/0/actions/0/functionRef",
        ],
    ),
    (
        "03-check-applicant.json",
        &[
            "warning ambiguous-edition ",
            "error missing-property ",
            "warning version-missing ",
            "error unknown-function /states/0/dataConditions/0/condition",
            "error unknown-state /states/0/dataConditions/0/transition",
            "error unknown-function /states/0/dataConditions/1/condition",
            "error unknown-state /states/0/dataConditions/1/transition",
            "error unknown-state /states/0/defaultCondition/transition",
        ],
    ),
    (
        "04-simpleadd.json",
        &[
            "warning ambiguous-edition ",
            "warning missing-property ",
            "warning version-missing ",
        ],
    ),
    ("05-sample-workflow.json", &["error empty-list /states"]),
    ("06-sample-workflow.yaml", &["error empty-list /states"]),
    ("07-send-confirm-workflow.json", &[]),
    ("08-send-confirm-workflow.yaml", &[]),
    (
        "09-new-item-purchase.json",
        &[
            "warning ambiguous-edition ",
            "error missing-property ",
            "warning version-missing ",
            "error unknown-event /states/0/onEvents/0/eventRefs/0",
            "error unknown-function /states/0/onEvents/0/actions/0/functionRef/refName",
            "error unknown-function /states/0/onEvents/0/actions/1/functionRef/refName",
            "error unknown-state /states/0/transition",
            "warning compensation-unused /states/1",
            "error unknown-function /states/1/actions/0/functionRef/refName",
            "error unknown-function /states/1/actions/1/functionRef/refName",
        ],
    ),
    (
        "10-states.yaml",
        &[
            "warning ambiguous-edition ",
            "error missing-property ",
            "warning version-missing ",
            "error unknown-event /states/0/onEvents/0/eventRefs/0",
            "error unknown-function /states/0/onEvents/0/actions/0/functionRef/refName",
            "error unknown-function /states/0/onEvents/0/actions/1/functionRef/refName",
            "error unknown-state /states/0/transition",
            "warning compensation-unused /states/1",
            "error unknown-function /states/1/actions/0/functionRef/refName",
            "error unknown-function /states/1/actions/1/functionRef/refName",
        ],
    ),
    (
        "11-process-sales-orders.json",
        &["warning loose-form /states/0/actions/0/args"],
    ),
    (
        "12-greet-customers-workflow.json",
        &["warning version-not-semver /version"],
    ),
    (
        "13-simpleadd.json",
        &[
            "warning ambiguous-edition ",
            "warning missing-property ",
            "warning version-missing ",
            "warning loose-form /states/1/actions/0/actionFilter",
        ],
    ),
    (
        "14-sample-workflow.json",
        &[
            "warning version-not-semver /version",
            "error empty-list /states",
        ],
    ),
    (
        "15-sample-workflow.yaml",
        &[
            "warning version-not-semver /version",
            "error empty-list /states",
        ],
    ),
    (
        "16-send-confirm-workflow.json",
        &["warning version-not-semver /version"],
    ),
    (
        "17-send-confirm-workflow.yaml",
        &["warning version-not-semver /version"],
    ),
];

#[test]
fn definitions_get_exactly_these_findings() {
    let table: BTreeMap<&str, &[&str]> = BTreeMap::from(FINDINGS);
    let mut wrong = Vec::new();
    let all = files("tests/text");
    for (name, bytes) in &all {
        let reading = read(bytes);
        let found: Vec<String> = reading
            .diagnostics
            .iter()
            .map(|finding| format!("{} {} {}", finding.severity, finding.code, finding.pointer))
            .collect();
        if table.get(name.as_str()).copied()
            != Some(&found.iter().map(String::as_str).collect::<Vec<_>>()[..])
        {
            wrong.push(format!("(\n\"{name}\",\n&{found:#?},\n),"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(all.len(), table.len());
}

#[test]
fn every_part_of_a_state_is_known() {
    let mut wrong = Vec::new();
    let all = files("tests/text/states");
    assert!(all.len() >= 13, "{} states", all.len());
    for (name, bytes) in &all {
        let state = String::from_utf8(bytes.clone()).unwrap();
        let head = r#""id": "a", "version": "1.0.0", "specVersion": "0.8""#;
        let document = format!("{{{head}, \"states\": [{state}]}}");
        for finding in read(document.as_bytes()).diagnostics.iter() {
            // Left over from 0.7 in the release; the version of August 2023 has it under 'timeouts'.
            let left_over = name == "12-check-visa-status.json"
                && finding.pointer == "/states/0/eventTimeout"
                && finding.code.as_str() == "unknown-property";
            if NEVER.contains(&finding.code.as_str()) && !left_over {
                wrong.push(format!("{name}: {finding}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
