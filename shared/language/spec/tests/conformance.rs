//! Checks the reader against the conformance suite: a definition that a scenario runs must be read without errors, and
//! one that it expects to be rejected must be rejected at the locations that it states.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use swirl_documents::diagnostic::Severity;
use swirl_documents::source::{self, Limits, Node};
use swirl_spec::Options;
use swirl_spec::reader::{self, Reading};
use swirl_spec::resource::MapResources;

fn scenarios(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            scenarios(&entry, found);
        } else if entry.to_string_lossy().ends_with(".scenario.yaml") {
            found.push(entry);
        }
    }
}

fn resources(scenario: &Node) -> MapResources {
    let mut resources = MapResources::default();
    let members = scenario
        .get("resources")
        .and_then(Node::members)
        .unwrap_or_default();
    for member in members {
        let content = match member.value().as_str() {
            Some(text) => text.to_owned(),
            None => member.value().to_data().to_string(),
        };
        resources.insert(member.key(), content.into_bytes());
    }
    resources
}

fn read(path: &Path, scenario: &Node, workflow: &Node) -> Reading {
    let functions = scenario
        .get("functions")
        .and_then(Node::members)
        .unwrap_or_default();
    let provided: HashSet<String> = functions.iter().map(|f| f.key().to_owned()).collect();
    let options = Options {
        provided,
        // As in `swirl test`: a function without an answer does no harm as long as nothing calls it.
        custom_types: scenario.at("/expect/rejected").map(|_| BTreeSet::new()),
        ..Options::default()
    };
    let resources = resources(scenario);
    match workflow.as_str() {
        None => reader::read_node(workflow, &resources, &options),
        Some(file) => {
            let document = std::fs::read(path.with_file_name(file)).unwrap();
            reader::read(&document, &resources, &options)
        }
    }
}

/// Found by the code that calls functions, with their documents. `swirl test` covers these.
const OF_FUNCTIONS: [&str; 2] = ["function-arguments", "function-invalid"];

/// The differences from the scenario's expectation.
fn differences(path: &Path) -> Vec<String> {
    let text = std::fs::read(path).unwrap();
    let scenario = source::parse(&text, &Limits::default()).unwrap();
    let workflows = scenario
        .get("workflows")
        .and_then(Node::items)
        .unwrap_or_default();
    let mut found = Vec::new();
    let mut differences = Vec::new();
    for workflow in workflows {
        let reading = read(path, &scenario, workflow);
        for finding in reading.diagnostics.iter() {
            let text = format!("{} {}: {}", finding.code, finding.pointer, finding.message);
            if finding.severity == Severity::Error {
                found.push((finding.pointer.clone(), finding.code.to_string(), text));
            }
        }
    }
    let rejected = scenario.at("/expect/rejected").and_then(Node::items);
    let by_function = |row: &Node| {
        let code = row.get("code").and_then(Node::as_str);
        code.is_some_and(|code| OF_FUNCTIONS.contains(&code))
    };
    match rejected {
        Some(rows) if found.is_empty() && rows.iter().all(by_function) => {}
        None => differences.extend(found.into_iter().map(|(_, _, text)| text)),
        Some(rows) => {
            if found.is_empty() {
                differences.push("nothing was refused".to_owned());
            }
            for row in rows.iter().filter(|row| !by_function(row)) {
                let text = |key: &str| row.get(key).and_then(Node::as_str);
                let hit = found.iter().any(|(pointer, code, message)| {
                    text("path").is_none_or(|path| path == pointer)
                        && text("code").is_none_or(|wanted| wanted == code)
                        && text("message").is_none_or(|part| message.contains(part))
                });
                if !hit {
                    let all: Vec<&str> = found.iter().map(|(_, _, text)| text.as_str()).collect();
                    differences.push(format!("wanted {}, got {all:?}", row.to_data()));
                }
            }
        }
    }
    differences
}

fn all_below(folder: &str) -> (PathBuf, Vec<PathBuf>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../..")
        .join(folder);
    let mut all = Vec::new();
    scenarios(&folder, &mut all);
    (folder, all)
}

#[test]
fn scenarios_are_accepted_or_rejected_as_expected() {
    for (folder, least) in [
        ("tests/conformance/0.1", 40),
        ("tests/conformance/0.1-early", 40),
        ("tests/conformance/0.5", 40),
        ("tests/conformance/0.6", 35),
        ("tests/conformance/0.7", 20),
        ("tests/conformance/0.8", 100),
        ("tests/conformance/0.9", 45),
        ("tests/conformance/1.0", 60),
        ("examples", 10),
    ] {
        let (folder, all) = all_below(folder);
        assert!(
            all.len() >= least,
            "{} scenarios in {}",
            all.len(),
            folder.display()
        );
        let mut wrong = Vec::new();
        for path in &all {
            // Its functions are in a file beside it, which the runner finds.
            if path.with_file_name("functions.yaml").exists() {
                continue;
            }
            // The same for the default catalog.
            if path.ends_with("functions/default-catalog.scenario.yaml") {
                continue;
            }
            let name = path.strip_prefix(&folder).unwrap().display();
            wrong.extend(
                differences(path)
                    .into_iter()
                    .map(|text| format!("{name}: {text}")),
            );
        }
        assert!(
            wrong.is_empty(),
            "{} of {}:\n{}",
            wrong.len(),
            all.len(),
            wrong.join("\n")
        );
    }
}

/// The other tests rely on this: an expectation that isn't met is noticed.
#[test]
fn wrong_expectations_are_noticed() {
    let (folder, _) = all_below("tests/conformance/0.8");
    let text = std::fs::read_to_string(folder.join("validation/id-and-key.scenario.yaml")).unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("a.scenario.yaml");
    let accepted = text.split("expect:").next().unwrap();
    for expect in [
        "{status: completed}",
        "{rejected: [{path: /nowhere}]}",
        "{rejected: [{code: nothing}]}",
    ] {
        std::fs::write(&path, format!("{accepted}expect: {expect}\n")).unwrap();
        assert_eq!(differences(&path).len(), 1, "{expect}");
    }
    std::fs::write(&path, text).unwrap();
    assert!(differences(&path).is_empty());
}
