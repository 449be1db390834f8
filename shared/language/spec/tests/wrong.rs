//! Invalid documents, with one mistake each if possible: the findings, their locations and their texts.
//!
//! Each file begins with `# expect: CODE LINE`, once for each intended finding; for files that cannot have comments,
//! this is in `expect.txt`. It is asserted in addition to the snapshot, so that a snapshot can't be accepted with the
//! finding missing. Other first lines: `# resource: URI = CONTENT`, `# workflows: ID, ID` (the deployed ones), `# now:
//! INSTANT` and `# limit: bytes N`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use swirl_documents::codes;
use swirl_documents::diagnostic::Severity;
use swirl_model::time::Timestamp;
use swirl_spec::Options;
use swirl_spec::reader::{self, Reading};
use swirl_spec::resource::MapResources;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wrong")
}

/// The folders with documents of editions other than 0.8. Each has its own snapshot.
fn editions() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// An invalid document and its findings.
struct Wrong {
    name: String,
    bytes: Vec<u8>,
    /// Code and line.
    expected: Vec<(String, usize)>,
    resources: MapResources,
    options: Options,
}

fn all() -> Vec<Wrong> {
    let table = std::fs::read_to_string(folder().join("expect.txt")).unwrap();
    let mut aside: BTreeMap<&str, (String, usize)> = table
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            (words[0], (words[1].to_owned(), words[2].parse().unwrap()))
        })
        .collect();
    let mut names = names_in("");
    for edition in editions() {
        names.extend(names_in(&format!("{edition}/")));
    }
    let all = names
        .into_iter()
        .map(|name| {
            let expected = aside.remove(name.as_str());
            wrong(name, expected)
        })
        .collect();
    assert!(aside.is_empty(), "no such files: {aside:?}");
    all
}

/// The documents in a folder, with the folder before their names.
fn names_in(edition: &str) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder().join(edition))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".yaml") || name.ends_with(".json"))
        .map(|name| format!("{edition}{name}"))
        .collect();
    names.sort();
    names
}

fn wrong(name: String, expected: Option<(String, usize)>) -> Wrong {
    let bytes = std::fs::read(folder().join(&name)).unwrap();
    let mut expected = Vec::from_iter(expected);
    let mut resources = MapResources::default();
    let mut options = Options::default();
    let text = String::from_utf8_lossy(&bytes);
    for line in text.lines().map_while(|line| line.strip_prefix("# ")) {
        let Some((what, rest)) = line.split_once(": ") else {
            continue;
        };
        match what {
            "expect" => {
                let (code, line) = rest.split_once(' ').unwrap();
                expected.push((code.to_owned(), line.parse().unwrap()));
            }
            "resource" => {
                let (uri, content) = rest.split_once(" = ").unwrap();
                resources.insert(uri, content.as_bytes().to_vec());
            }
            "workflows" => {
                options.workflows = Some(rest.split(", ").map(str::to_owned).collect());
            }
            "now" => options.now = Some(Timestamp::parse(rest).unwrap()),
            "limit" => {
                let bytes = rest.strip_prefix("bytes ").unwrap();
                options.limits.bytes_max = bytes.parse().unwrap();
            }
            other => panic!("{name}: unknown line '# {other}: ...'"),
        }
    }
    Wrong {
        name,
        bytes,
        expected,
        resources,
        options,
    }
}

fn read(wrong: &Wrong) -> Reading {
    reader::read(&wrong.bytes, &wrong.resources, &wrong.options)
}

#[test]
fn each_mistake_is_found_at_its_location() {
    let mut missed = Vec::new();
    for wrong in all() {
        let reading = read(&wrong);
        let found: Vec<(String, usize)> = reading
            .diagnostics
            .iter()
            .map(|finding| (finding.code.to_string(), finding.line))
            .collect();
        if wrong.expected.is_empty() {
            missed.push(format!("{}: expects nothing", wrong.name));
        }
        for expected in &wrong.expected {
            let (code, line) = expected;
            if !found.contains(expected) {
                let name = &wrong.name;
                missed.push(format!("{name}: wanted {code} {line}, got {found:?}"));
            }
        }
        // There is a workflow exactly if there are no errors.
        if reading.workflow.is_some() == reading.diagnostics.has_errors() {
            missed.push(format!("{}: workflow and findings disagree", wrong.name));
        }
    }
    assert!(missed.is_empty(), "{}\n{}", missed.len(), missed.join("\n"));
}

#[test]
fn the_texts_of_findings() {
    let all = all();
    let (others, of_0_8): (Vec<&Wrong>, Vec<&Wrong>) =
        all.iter().partition(|wrong| wrong.name.contains('/'));
    snapshot("wrong", &of_0_8);
    for edition in editions() {
        let here = |wrong: &&&Wrong| wrong.name.starts_with(&format!("{edition}/"));
        let of_edition: Vec<&Wrong> = others.iter().filter(here).copied().collect();
        assert!(of_edition.len() >= 15, "{edition}: {}", of_edition.len());
        snapshot(&format!("wrong-{edition}"), &of_edition);
    }
}

fn snapshot(name: &str, all: &[&Wrong]) {
    let mut text = String::new();
    for wrong in all {
        writeln!(text, "{}", wrong.name).unwrap();
        for finding in read(wrong).diagnostics.iter() {
            let severity = match finding.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Info => "info",
            };
            writeln!(
                text,
                "  {severity} {} {}:{} {}: {}",
                finding.code, finding.line, finding.column, finding.pointer, finding.message
            )
            .unwrap();
        }
    }
    insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!(name, text);
    });
}

#[test]
fn every_code_is_caused_by_a_document() {
    let caused: BTreeSet<String> = all()
        .iter()
        .flat_map(|wrong| wrong.expected.iter().map(|(code, _)| code.clone()))
        .collect();
    // Codes that no document can cause, and why.
    let by_callers = "callers of functions report it when a definition is deployed";
    let exceptions = [
        (codes::FUNCTION_ARGUMENTS.as_str(), by_callers),
        (codes::FUNCTION_DOCUMENT.as_str(), by_callers),
        (codes::FUNCTION_INVALID.as_str(), by_callers),
        (codes::FUNCTION_WITHOUT_ADDRESS.as_str(), by_callers),
    ];
    let missing: Vec<&str> = codes::TABLE
        .iter()
        .map(|entry| entry.code.as_str())
        .filter(|code| !caused.contains(*code))
        .filter(|code| exceptions.iter().all(|(except, _)| except != code))
        .collect();
    assert!(missing.is_empty(), "no document causes {missing:?}");
    for (code, why) in exceptions {
        assert!(
            !caused.contains(code),
            "'{code}' can be caused after all: {why}"
        );
    }
}
