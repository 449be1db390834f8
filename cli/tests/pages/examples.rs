//! The examples of findings and lint rules in `docs/errors/` and `docs/lint/`: a wrong example has the finding of its
//! page, and a corrected one doesn't. Examples that are only a part of a definition are skipped.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::blocks;

/// Their findings require a service's document, or an edition that isn't stated.
const OTHER_INPUT: [&str; 2] = ["ambiguous-edition", "function-arguments"];

/// The lines that many examples omit.
const HEAD: [(&str, &str); 3] = [
    ("id:", "id: w"),
    ("version:", "version: 1.0.0"),
    ("specVersion:", "specVersion: \"0.8\""),
];

#[test]
fn examples_of_findings_have_their_finding() {
    let folder = tempfile::tempdir().unwrap();
    let mut checked = 0;
    for (code, page) in pages("errors") {
        if OTHER_INPUT.contains(&code.as_str()) {
            continue;
        }
        for block in blocks(&page) {
            let is_whole = block.text.lines().any(|line| line.starts_with("states:"));
            if !is_whole || block.text.contains("...") {
                continue;
            }
            let missing = HEAD
                .iter()
                .filter(|(key, _)| !block.text.lines().any(|line| line.starts_with(key)));
            let head: String = missing.map(|(_, line)| format!("{line}\n")).collect();
            let text = head + &block.text;
            let found = found(folder.path(), "validate", &text, "diagnostics", "code");
            let is_wrong = match block.before {
                "Wrong:" => true,
                "Fixed:" => false,
                other => panic!("{code}: an example after '{other}'"),
            };
            assert_eq!(found.contains(&code), is_wrong, "{code}: {found:?}\n{text}");
            checked += 1;
        }
    }
    assert!(checked >= 12, "{checked} examples");
}

#[test]
fn examples_of_rules_have_their_finding() {
    let folder = tempfile::tempdir().unwrap();
    let mut checked = 0;
    for (rule, page) in pages("lint") {
        for block in blocks(&page) {
            let found = found(folder.path(), "lint", &block.text, "findings", "rule");
            let expected: BTreeSet<String> = match block.before {
                "Found:" => [rule.clone()].into(),
                "Better:" => BTreeSet::new(),
                other => panic!("{rule}: an example after '{other}'"),
            };
            assert_eq!(found, expected, "{rule}\n{}", block.text);
            checked += 1;
        }
    }
    assert!(checked >= 12, "{checked} examples");
}

/// The pages in a folder of `docs/`, by name.
fn pages(folder: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs")
        .join(folder);
    let entries = std::fs::read_dir(root).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let page = |path: &PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).unwrap())
    };
    paths.iter().map(page).collect()
}

/// The values of `key` in the findings of a command about a definition.
fn found(folder: &Path, command: &str, text: &str, list: &str, key: &str) -> BTreeSet<String> {
    std::fs::write(folder.join("x.sw.yaml"), text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_swirl"))
        .current_dir(folder)
        .args([command, "--offline", "--output", "json", "x.sw.yaml"])
        .output()
        .unwrap();
    let output: Value = serde_json::from_slice(&output.stdout).unwrap();
    let files = output["files"].as_array().unwrap();
    let lists = files.iter().filter_map(|file| file[list].as_array());
    let values = lists.flatten().filter_map(|finding| finding[key].as_str());
    values.map(str::to_owned).collect()
}
