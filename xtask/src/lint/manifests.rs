//! Every crate has a description and uses the workspace's lints.

use anyhow::{Context, Result};
use serde::Deserialize;

use super::Tree;
use crate::finding::Finding;

#[derive(Deserialize)]
struct Manifest {
    package: Package,
    lints: Option<Lints>,
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
    }
    Ok(findings)
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
}
