//! Every crate has a description and uses the workspace's lints. Libraries without an example in their documentation
//! have no documentation tests: rustdoc would read each of them, one after another, to find none.

use anyhow::{Context, Result};
use serde::Deserialize;

use super::Tree;
use crate::finding::Finding;

#[derive(Deserialize)]
struct Manifest {
    package: Package,
    lints: Option<Lints>,
    #[serde(default)]
    lib: Library,
}

#[derive(Deserialize, Default)]
struct Library {
    doctest: Option<bool>,
}

#[derive(Deserialize)]
struct Package {
    description: Option<String>,
}

#[derive(Deserialize)]
struct Lints {
    #[serde(default)]
    workspace: bool,
}

pub fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for folder in &tree.crates {
        let path = format!("{folder}/Cargo.toml");
        let Some(text) = tree.text(&path) else {
            findings.push(Finding::new(path, "is missing, or ignored by git"));
            continue;
        };
        let manifest: Manifest = toml::from_str(text).with_context(|| path.clone())?;
        if manifest
            .package
            .description
            .is_none_or(|text| text.trim().is_empty())
        {
            findings.push(Finding::new(&path, "has no description"));
        }
        if !manifest.lints.is_some_and(|lints| lints.workspace) {
            findings.push(Finding::new(&path, "lacks '[lints] workspace = true'"));
        }
        if tree.text(&format!("{folder}/src/lib.rs")).is_some() {
            let is_tested = manifest.lib.doctest != Some(false);
            let message = match (has_examples(tree, folder), is_tested) {
                (true, false) => "has 'doctest = false', and an example in its documentation",
                (false, true) => {
                    "lacks 'doctest = false' in '[lib]': its documentation has no example"
                }
                _ => continue,
            };
            findings.push(Finding::new(&path, message));
        }
    }
    Ok(findings)
}

/// Whether documentation in a crate's library has a block of code.
fn has_examples(tree: &Tree, folder: &str) -> bool {
    let sources = format!("{folder}/src/");
    let mut texts = tree.texts.iter();
    texts.any(|text| {
        text.path.starts_with(&sources)
            && text.path.ends_with(".rs")
            && text.text.lines().any(begins_example)
    })
}

/// Whether a line begins a block of code in documentation, or may end one.
fn begins_example(line: &str) -> bool {
    let line = line.trim_start();
    let text = line.strip_prefix("///").or(line.strip_prefix("//!"));
    text.is_some_and(|text| {
        let fence = text.trim_start().strip_prefix("```");
        fence.is_some_and(|language| language != "text")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::messages;

    fn found(manifest: &str) -> Vec<String> {
        let mut tree = Tree::of(&[("a/Cargo.toml", manifest)]);
        tree.crates.push("a".to_owned());
        messages(check(&tree))
    }

    #[test]
    fn description_and_lints_must_be_there() {
        let good = "[package]\nname = \"a\"\ndescription = \"A.\"\n[lints]\nworkspace = true\n";
        assert_eq!(found(good), [""; 0]);
        assert_eq!(
            found("[package]\ndescription = \" \"\n[lints]\nworkspace = false\n").len(),
            2
        );
    }

    #[test]
    fn libraries_without_examples_have_no_documentation_tests() {
        let found = |doctest: &str, source: &str| {
            let manifest =
                format!("[package]\ndescription = \"A.\"\n[lints]\nworkspace = true\n{doctest}");
            let files = [
                ("a/Cargo.toml", manifest.as_str()),
                ("a/src/lib.rs", "//! A.\n"),
                ("a/src/b.rs", source),
            ];
            let mut tree = Tree::of(&files);
            tree.crates.push("a".to_owned());
            messages(check(&tree)).len()
        };
        let without = "[lib]\ndoctest = false\n";
        let example = "/// ```\n/// b();\n/// ```\npub fn b() {}\n";
        assert_eq!((found(without, ""), found("", example)), (0, 0));
        assert_eq!((found("", ""), found(without, example)), (1, 1));
    }
}
