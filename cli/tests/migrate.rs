//! Round trip: each scenario of an older edition also runs with its documents migrated to 0.8.

#![allow(clippy::print_stdout, reason = "a test")]

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use swirl_documents::source::{self, Limits, Node};
use swirl_migrate::{Assume, Format, migrate};
use swirl_scenario::file::WorkflowSource;
use swirl_scenario::run::VirtualRunner;
use swirl_scenario::{Observed, ObservedInstance, Runner, Scenario, discover};
use swirl_spec::edition::Edition;
use swirl_spec::resource::{FileResources, MapResources, ResourceError, Resources};
use swirl_spec::{Options, read_node};

/// The editions' folders, and the minimum number of their scenarios that run with migrated documents: unchanged, and if
/// results of actions are assumed to be objects.
const EDITIONS: [(&str, usize, usize); 8] = [
    ("0.1-early", 41, 46),
    ("0.1", 45, 46),
    ("0.1-release", 23, 24),
    ("tasks", 28, 28),
    ("0.5", 58, 58),
    ("0.6", 28, 28),
    ("0.7", 40, 40),
    ("0.9", 15, 15),
];

struct Files {
    given: MapResources,
    files: FileResources,
}

impl Resources for Files {
    fn fetch(&self, uri: &str, base: Option<&str>) -> Result<Vec<u8>, ResourceError> {
        let given = self.given.fetch(uri, base);
        given.or_else(|missing| self.files.fetch(uri, base).map_err(|_| missing))
    }
}

enum Outcome {
    /// It has only documents of 0.8, or documents that must be rejected.
    NotMeant,
    Migrated,
    /// It can't be migrated, with the reasons.
    Not(Vec<String>),
    Failed(String),
}

fn resources(scenario: &Scenario, file: &Path) -> Files {
    let mut given = MapResources::default();
    for (uri, content) in &scenario.resources {
        given.insert(uri.clone(), content.clone());
    }
    let folder = file.parent().unwrap_or(Path::new("."));
    Files {
        given,
        files: FileResources::new(folder, 1 << 20),
    }
}

fn round_trip(file: &Path, assume: Assume) -> Outcome {
    let mut scenario = Scenario::load(file).unwrap();
    if scenario.expect.rejected.is_some() {
        return Outcome::NotMeant;
    }
    let provided: HashSet<String> = scenario.functions.keys().cloned().collect();
    let options = Options {
        provided,
        ..Options::default()
    };
    let mut reasons = Vec::new();
    let mut is_meant = false;
    let (mut migrated, mut parts) = (Vec::new(), Vec::new());
    for source in &scenario.workflows {
        let (root, at): (Node, PathBuf) = match source {
            WorkflowSource::Path(path) => {
                let text = std::fs::read(path).unwrap();
                (
                    source::parse(&text, &Limits::default()).unwrap(),
                    path.clone(),
                )
            }
            WorkflowSource::Inline(node) => (node.clone(), file.to_owned()),
        };
        let reading = read_node(&root, &resources(&scenario, &at), &options);
        let (Some(workflow), Some(detected)) = (reading.workflow, reading.edition) else {
            return Outcome::NotMeant;
        };
        if detected.edition == Edition::V0_8 {
            migrated.push(source.clone());
            continue;
        }
        is_meant = true;
        match migrate(&workflow, &root, Format::Yaml, assume) {
            Ok(done) => {
                let node = source::parse(done.text.as_bytes(), &Limits::default()).unwrap();
                let json = migrate(&workflow, &root, Format::Json, assume).unwrap();
                let json = source::parse(json.text.as_bytes(), &Limits::default()).unwrap();
                assert_eq!(node.to_data(), json.to_data(), "{}", file.display());
                migrated.push(WorkflowSource::Inline(node));
                for part in done.parts {
                    let node = source::parse(part.text.as_bytes(), &Limits::default()).unwrap();
                    parts.push(WorkflowSource::Inline(node));
                }
            }
            Err(obstacles) => reasons.extend(obstacles.into_iter().map(|one| one.message)),
        }
    }
    if !is_meant {
        return Outcome::NotMeant;
    }
    if !reasons.is_empty() {
        return Outcome::Not(reasons);
    }
    let names: HashSet<String> = parts.iter().filter_map(id_of).collect();
    migrated.append(&mut parts);
    scenario.workflows = migrated;
    match VirtualRunner.run(&scenario) {
        Ok(observed) => match scenario.expect.check(&whole(observed, &names)) {
            differences if differences.is_empty() => Outcome::Migrated,
            differences => Outcome::Failed(format!("{differences:?}")),
        },
        Err(error) => Outcome::Failed(error.to_string()),
    }
}

fn id_of(source: &WorkflowSource) -> Option<String> {
    match source {
        WorkflowSource::Inline(node) => Some(node.get("id")?.as_str()?.to_owned()),
        WorkflowSource::Path(_) => None,
    }
}

/// Attributes the calls and events of sub-workflows that were part of a definition to that definition. A sub-workflow
/// that wasn't started by its parent is left out, which makes the scenario fail.
fn whole(mut observed: Observed, parts: &HashSet<String>) -> Observed {
    let is_part = |one: &mut ObservedInstance| one.subflow && parts.contains(&one.workflow);
    let gone: Vec<ObservedInstance> = observed.instances.extract_if(.., is_part).collect();
    if let Some(first) = observed.instances.first_mut() {
        for part in gone {
            first.calls.extend(part.calls);
            first.produced.extend(part.produced);
        }
        first.calls.sort_by_key(|call| call.at_ms);
    }
    observed
}

#[test]
fn scenarios_of_other_editions_pass_with_migrated_documents() {
    round_trips(Assume::default(), |(_, least, _)| least);
}

/// Scenarios whose results aren't objects fail and aren't counted.
#[test]
fn scenarios_pass_where_results_are_objects() {
    round_trips(
        Assume {
            objects: true,
            ..Assume::default()
        },
        |(_, _, least)| least,
    );
}

/// These expect what 0.8 doesn't have.
const NOT_MEANT: [&str; 2] = [
    // Its function isn't answered, which later editions refuse, called or not (docs/language.md#decision-99).
    "tasks/function-not-called.scenario.yaml",
    // Internal errors have a status.
    "0.9/errors/input-of-the-root-is-described.scenario.yaml",
];

fn round_trips(assume: Assume, least: fn((&str, usize, usize)) -> usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/conformance");
    let mut failures = Vec::new();
    for row in EDITIONS {
        let (edition, least) = (row.0, least(row));
        let (files, errors) = discover::files(&[folder.join(edition)]);
        assert!(errors.is_empty() && !files.is_empty(), "{edition}");
        let (mut passed, mut not, mut not_meant) = (0, 0, 0);
        let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
        for file in &files {
            if NOT_MEANT.iter().any(|end| file.ends_with(end)) {
                not_meant += 1;
                continue;
            }
            match round_trip(file, assume) {
                Outcome::NotMeant => not_meant += 1,
                Outcome::Migrated => passed += 1,
                Outcome::Not(list) => {
                    not += 1;
                    for reason in list.into_iter().collect::<HashSet<_>>() {
                        let short: String = reason.chars().take(150).collect();
                        *reasons.entry(short).or_default() += 1;
                    }
                }
                Outcome::Failed(_) if assume.objects => not += 1,
                Outcome::Failed(why) => failures.push(format!("{}: {why}", file.display())),
            }
        }
        println!(
            "{edition}: {passed} of {} scenarios migrated and passed, {not} not migratable, {not_meant} without a document to migrate",
            files.len()
        );
        let mut reasons: Vec<(usize, String)> = reasons
            .into_iter()
            .map(|(reason, count)| (count, reason))
            .collect();
        reasons.sort_by(|a, b| b.cmp(a));
        for (count, reason) in reasons {
            println!("  {count} x {reason}");
        }
        if passed < least {
            failures.push(format!(
                "{edition}: {passed} migrated, and there were {least}"
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn swirl(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_swirl"));
    let output = command.args(arguments).current_dir(folder).output();
    let output = output.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

const OLD: &str = "{id: a, name: A, version: 1.0.0, schemaVersion: '0.5', states: [{name: S, start: true, type: inject, data: {a: 1}, end: END}]}";

const WITH_STATES: &str = r#"{"id": "b", "name": "B", "version": "1.0.0", "schema-version": "0.1", "starts-at": "P", "states": [
  {"name": "P", "type": "PARALLEL", "end": true, "branches": [{"name": "One", "wait-for-completion": true, "starts-at": "D", "states": [
    {"name": "D", "type": "DELAY", "time-delay": "PT1S", "end": true}]}]}]}"#;

/// In these the results are objects and the data is a list.
#[test]
fn an_object_replaces_the_list_of_a_parallel_state() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/conformance");
    for file in [
        "0.1/parallel/list-then-object",
        "0.1-early/list-then-object",
    ] {
        let file = folder.join(format!("{file}.scenario.yaml"));
        for objects in [false, true] {
            match round_trip(
                &file,
                Assume {
                    objects,
                    ..Assume::default()
                },
            ) {
                Outcome::Migrated => {}
                Outcome::Not(reasons) => panic!("{}: {reasons:?}", file.display()),
                Outcome::Failed(why) => panic!("{}: {why}", file.display()),
                Outcome::NotMeant => panic!("{}", file.display()),
            }
        }
    }
}

#[test]
fn the_command() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let write = |name: &str, end: &str| {
        std::fs::write(folder.join(name), OLD.replace("END", end)).unwrap();
    };
    write("good.sw.yaml", "true");
    write("bad.sw.yaml", "{terminate: true}");

    let (code, document, messages) = swirl(folder, &["migrate", "good.sw.yaml"]);
    assert_eq!((code, messages.as_str()), (Some(0), ""));
    assert!(
        document.starts_with("# Migrated from edition 0.5.\nid: a\n"),
        "{document}"
    );

    let line = ["migrate", "good.sw.yaml", "-o", "new.sw.json"];
    assert_eq!(
        swirl(folder, &line),
        (Some(0), String::new(), String::new())
    );
    let (code, valid, _) = swirl(folder, &["validate", "new.sw.json"]);
    assert!(code == Some(0) && valid.contains("edition 0.8"), "{valid}");
    let (code, _, messages) = swirl(folder, &["migrate", "new.sw.json"]);
    assert!(
        code == Some(1) && messages.contains("already a document of edition 0.8"),
        "{messages}"
    );

    std::fs::write(folder.join("branch.sw.json"), WITH_STATES).unwrap();
    let (code, _, messages) = swirl(folder, &["migrate", "branch.sw.json"]);
    assert_eq!(code, Some(2), "{messages}");
    assert!(
        messages.contains("2 documents") && messages.contains("-o DIR/"),
        "{messages}"
    );
    let line = ["migrate", "branch.sw.json", "-o", "parts/"];
    assert_eq!(
        swirl(folder, &line),
        (Some(0), String::new(), String::new())
    );
    for file in ["parts/branch.sw.yaml", "parts/b-P-One.sw.yaml"] {
        let (code, output, _) = swirl(folder, &["validate", file]);
        assert!(
            code == Some(0) && output.contains("edition 0.8"),
            "{output}"
        );
    }
    let (code, _, messages) = swirl(folder, &line);
    assert!(
        code == Some(2) && messages.contains("already exists"),
        "{messages}"
    );

    let (code, document, messages) = swirl(folder, &["migrate", "bad.sw.yaml", "-o", "x.yaml"]);
    assert_eq!((code, document.as_str()), (Some(1), ""));
    assert!(!folder.join("x.yaml").exists());
    let wanted = "bad.sw.yaml:1:65: state 'S': an end with 'terminate' ends the parents too";
    assert!(messages.starts_with(wanted), "{messages}");

    let (code, report, _) = swirl(folder, &["migrate", "bad.sw.yaml", "--output", "json"]);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(code, Some(1));
    assert_eq!(report["migrated"], false);
    assert_eq!(report["obstacles"][0]["pointer"], "/states/0");
}

/// The messages of `swirl migrate` for a document.
fn refused(folder: &Path, document: &str, more: &[&str]) -> String {
    std::fs::write(folder.join("w.sw.yaml"), document).unwrap();
    let line = [&["migrate", "w.sw.yaml"], more].concat();
    let (code, text, messages) = swirl(folder, &line);
    assert_eq!(code, Some(1), "{text}\n{messages}");
    messages
}

fn written(folder: &Path, document: &str, more: &[&str]) -> String {
    std::fs::write(folder.join("w.sw.yaml"), document).unwrap();
    let line = [&["migrate", "w.sw.yaml", "--output", "json"], more].concat();
    let (code, text, messages) = swirl(folder, &line);
    assert_eq!(code, Some(0), "{text}\n{messages}");
    text
}

const BRANCHES: &str = "\
id: w
name: w
version: 1.0.0
events: [{name: a, source: /s, type: a}]
functions: [{name: f, resource: 'a.json#f', type: rest}]
states:
  - name: P
    type: PARALLEL
    start: {kind: DEFAULT}
    branches:
      - {name: one, waitForCompletion: true, states: [FIRST, {name: Z, type: RELAY, inject: {z: 1}, end: {kind: DEFAULT}}]}
      - {name: two, waitForCompletion: true, states: [SECOND, {name: Z, type: RELAY, inject: {z: 1}, end: {kind: DEFAULT}}]}
    end: {kind: DEFAULT}
";
const RELAYS: &str =
    "{name: A, type: RELAY, inject: {y: 1}, start: {kind: DEFAULT}, transition: {nextState: Z}}";
const SLEEPS: &str =
    "{name: A, type: DELAY, timeDelay: PT1S, start: {kind: DEFAULT}, transition: {nextState: Z}}";
const CALLS: &str = "{name: A, type: OPERATION, actionMode: SEQUENTIAL, actions: [{functionRef: {refName: f}}], start: {kind: DEFAULT}, transition: {nextState: Z}}";
const WAITS: &str = "{name: A, type: EVENT, timeout: PT1M, eventsActions: [{eventRefs: [a], actions: []}], start: {kind: DEFAULT}, transition: {nextState: Z}}";

#[test]
fn branches_that_would_behave_differently_as_sub_workflows() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let document =
        |first: &str, second: &str| BRANCHES.replace("FIRST", first).replace("SECOND", second);
    for (first, second) in [(SLEEPS, RELAYS), (CALLS, SLEEPS)] {
        let text = written(folder, &document(first, second), &[]);
        assert!(
            text.contains("w-P-one") && text.contains("w-P-two"),
            "{text}"
        );
    }
    let stops = "it stops when another one fails, and nothing handles that error";
    for (first, second, reason) in [
        (CALLS, CALLS, stops),
        (WAITS, SLEEPS, "it waits for an event"),
    ] {
        let messages = refused(folder, &document(first, second), &[]);
        let wanted = "w.sw.yaml:7:5: state 'P': the branch 'one' has states, and cannot become a sub-workflow: ";
        assert!(
            messages.starts_with(&format!("{wanted}{reason}")),
            "{messages}"
        );
    }
    let filtered = document(SLEEPS, SLEEPS).replace(
        "    start: {kind: DEFAULT}\n",
        "    start: {kind: DEFAULT}\n    stateDataFilter: {dataInputPath: $.list}\n",
    );
    let messages = refused(folder, &filtered, &[]);
    assert!(messages.contains("begins with an object"), "{messages}");
}

#[test]
fn reasons_refer_to_the_document() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let terminates = "\
id: w
name: w
version: 1.0.0
tasks:
  - {name: A, type: inject, data: {a: 1}, start: {kind: default}, transition: {nextTask: B}}
  - {name: B, type: delay, timeDelay: PT1S, end: {kind: terminate}}
";
    let messages = refused(folder, terminates, &[]);
    assert!(
        messages.starts_with("w.sw.yaml:6:5: state 'B': an end with"),
        "{messages}"
    );
    let window = "\
id: w
name: w
version: 1.0.0
events: [{name: bid, source: /a, type: bid}]
states:
  - name: A
    type: EVENT
    start: {kind: SCHEDULED, schedule: {interval: 2024-01-01T01:00:00Z/PT1H}}
    eventsActions: [{eventRefs: [bid], actions: []}]
    end: {kind: DEFAULT}
";
    let messages = refused(folder, window, &[]);
    let wanted = "w.sw.yaml:6:5: state 'A': instances may be started in a window of time only";
    assert!(
        messages.starts_with(wanted) && messages.contains("(1 point)"),
        "{messages}"
    );
    let subflow = "\
id: w
name: w
version: 1.0.0
states:
  - {name: A, type: SUBFLOW, workflowId: child, waitForCompletion: true, start: {kind: DEFAULT}, end: {kind: DEFAULT}}
";
    let text = written(folder, subflow, &[]);
    assert!(text.contains("errorRef: StartRefused"), "{text}");
    let literal = r#"{"name":"w","states":[{"name":"A","type":"OPERATION","start":true,"action-mode":"SEQUENTIAL","actions":[{"function":{"name":"http://x/a.json#f","type":"rest","parameters":{"from":"one","of":["${ x }", 2]}}}],"next-state":"E"},{"name":"E","type":"END"}]}"#;
    let text = written(folder, literal, &["--assume", "objects"]);
    assert!(
        text.contains(r#"from: one"#) && text.contains("$${ x }"),
        "{text}"
    );
}

const SCENARIO: &str = "{workflows: [good.sw.yaml], input: {b: 2}, expect: {status: completed, states: [S], output: {a: 1, b: 2}}}";

#[test]
fn to_dsl_1_0_with_its_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("good.sw.yaml"), OLD.replace("END", "true")).unwrap();
    let ends = OLD.replace("END", "{terminate: true}");
    std::fs::write(folder.join("bad.sw.yaml"), ends).unwrap();
    std::fs::write(folder.join("good.scenario.yaml"), SCENARIO).unwrap();
    let differs = SCENARIO.replace("a: 1,", "a: 3,");
    std::fs::write(folder.join("differs.scenario.yaml"), differs).unwrap();

    let (code, document, messages) = swirl(folder, &["migrate", "--to", "1.0", "good.sw.yaml"]);
    assert_eq!((code, messages.as_str()), (Some(0), ""));
    assert!(document.contains("namespace: default\n"), "{document}");

    let line = |scenario: &'static str, to: &'static str| {
        let file = "good.sw.yaml";
        [
            "migrate",
            "--to",
            "1.0",
            "--namespace",
            "shop",
            file,
            "--scenario",
            scenario,
            "-o",
            to,
        ]
    };
    let (code, _, messages) = swirl(folder, &line("good.scenario.yaml", "new"));
    assert_eq!(code, Some(0), "{messages}");
    let (code, output, _) = swirl(folder, &["test", "new"]);
    assert_eq!(code, Some(0), "{output}");
    let text = std::fs::read_to_string(folder.join("new/good.scenario.yaml")).unwrap();
    assert!(
        text.contains("tasks:\n      - S\n") || text.contains("tasks:\n    - S\n"),
        "{text}"
    );
    let text = std::fs::read_to_string(folder.join("new/good.sw.yaml")).unwrap();
    assert!(text.contains("namespace: shop"), "{text}");

    let (code, _, messages) = swirl(folder, &line("differs.scenario.yaml", "other"));
    assert!(
        code == Some(1) && messages.contains("nothing was written"),
        "{messages}"
    );
    assert!(!folder.join("other").exists());

    let (code, _, messages) = swirl(folder, &["migrate", "--to", "1.0", "bad.sw.yaml"]);
    assert!(
        code == Some(1) && messages.contains("DSL 1.0 cannot express this (1 point)"),
        "{messages}"
    );
}
