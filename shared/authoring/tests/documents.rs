//! Each document of the examples and of the conformance suite survives formatting.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::{Path, PathBuf};

use swirl_authoring::format::{Error, format};
use swirl_documents::source::{Limits, parse};

/// All YAML and JSON files below a folder of the repository.
fn files(folder: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders = vec![root.join(folder)];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let ending = path.extension().and_then(|ending| ending.to_str());
            match ending {
                _ if path.is_dir() => folders.push(path),
                Some("yaml" | "yml" | "json") => files.push(path),
                _ => {}
            }
        }
    }
    files.sort();
    files
}

#[test]
fn formatting_preserves_documents_and_is_stable() {
    let files = [files("examples"), files("tests/conformance")].concat();
    assert!(files.len() > 1000, "{}", files.len());
    let mut wrong = Vec::new();
    let mut unreadable = Vec::new();
    for file in files {
        let before = std::fs::read(&file).unwrap();
        let data = |document: &[u8]| {
            parse(document, &Limits::default())
                .unwrap()
                .to_data()
                .to_string()
        };
        match format(&before) {
            Ok(after) => {
                if data(&before) != data(after.as_bytes()) {
                    wrong.push(format!("{}: another meaning", file.display()));
                }
                match format(after.as_bytes()) {
                    Ok(again) if again == after => {}
                    _ => wrong.push(format!("{}: changes again", file.display())),
                }
            }
            // Documents that no reader accepts, such as those with duplicate keys.
            Err(Error::Unreadable(_)) => unreadable.push(file),
            Err(error) => wrong.push(format!("{}: {error}", file.display())),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(unreadable.len() < 10, "{unreadable:?}");
}
