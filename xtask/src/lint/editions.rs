//! Only the readers of documents know editions of the language: code that runs instances doesn't name any. Comments may
//! name the section of a specification that something implements.

use anyhow::Result;
use regex::Regex;

use super::Tree;
use crate::finding::Finding;

/// The code that runs and stores instances.
const FOLDERS: [&str; 3] = [
    "shared/execution/engine/",
    "shared/execution/runtime/",
    "shared/backends/",
];
/// Words that only code for specific editions needs.
const NAMES: &str =
    r#"(?i:\beditions?\b)|\b[vV]0_[0-9]|"0\.[0-9]+"|\bspecVersion\b|\btasks draft\b"#;

pub fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let names = Regex::new(NAMES)?;
    let mut findings = Vec::new();
    let code = [".rs", ".lua"].into_iter().flat_map(|end| tree.ending(end));
    for text in code.filter(|text| FOLDERS.iter().any(|folder| text.path.starts_with(folder))) {
        for (index, line) in text.text.lines().enumerate() {
            let start = line.trim_start();
            if start.starts_with("//") || start.starts_with("--") {
                continue;
            }
            if let Some(hit) = names.find(line) {
                let message = format!(
                    "'{}' is an edition's business: lower it to something that the canonical workflow says",
                    hit.as_str()
                );
                findings.push(Finding::at(&text.path, index + 1, message));
            }
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::messages;

    #[test]
    fn only_code_that_runs_instances_is_checked() {
        let tree = Tree::of(&[
            (
                "shared/execution/engine/src/a.rs",
                "//! 0.8, \"Sleep State\"\nif workflow.edition == x {}\n",
            ),
            (
                "shared/backends/redis/src/b.rs",
                "let a = 0.5;\nlet b = \"0.5\";\n",
            ),
            ("shared/language/spec/src/c.rs", "Edition::V0_8\n"),
        ]);
        let found = messages(check(&tree));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].contains("shared/execution/engine/src/a.rs:2"),
            "{found:?}"
        );
        assert!(
            found[1].contains("shared/backends/redis/src/b.rs:2"),
            "{found:?}"
        );
    }
}
