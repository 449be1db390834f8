//! Rust files stay short. Files that were long when the rule was introduced are in `xtask/long-files.toml` with their
//! length. An entry may only shrink, and is removed when its file is short enough.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use super::Tree;
use crate::finding::Finding;

/// The maximum number of lines.
const LENGTH_MAX: usize = 600;
const LIST: &str = "xtask/long-files.toml";

pub fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let list = tree.text(LIST).unwrap_or_default();
    let mut listed: BTreeMap<String, usize> = toml::from_str(list).context(LIST)?;
    let mut findings = Vec::new();
    for text in tree.ending(".rs") {
        let length = text.text.lines().count();
        let message = match listed.remove(&text.path) {
            None if length > LENGTH_MAX => {
                format!("is {length} lines long; the limit is {LENGTH_MAX}: split it")
            }
            Some(_) if length <= LENGTH_MAX => {
                format!("is short enough now: remove it from {LIST}")
            }
            Some(was) if length > was => {
                format!("has grown from {was} to {length} lines; files in {LIST} may only shrink")
            }
            Some(was) if length < was => {
                format!("has shrunk from {was} to {length} lines: note that in {LIST}")
            }
            None | Some(_) => continue,
        };
        findings.push(Finding::new(&text.path, message));
    }
    findings.extend(listed.into_keys().map(|path| {
        Finding::new(
            LIST,
            format!("lists {path}, which doesn't exist: remove it"),
        )
    }));
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::messages;

    fn found(listed: &str, length: usize) -> Vec<String> {
        messages(check(&Tree::of(&[
            (LIST, listed),
            ("a.rs", &"x\n".repeat(length)),
        ])))
    }

    #[test]
    fn a_file_has_a_limit() {
        assert_eq!(found("", 600), [""; 0]);
        assert_eq!(
            found("", 601),
            ["a.rs: is 601 lines long; the limit is 600: split it"]
        );
    }

    #[test]
    fn a_listed_file_may_only_shrink() {
        let list = "\"a.rs\" = 700";
        assert_eq!(found(list, 700), [""; 0]);
        assert!(found(list, 701)[0].contains("has grown"));
        assert!(found(list, 699)[0].contains("has shrunk"));
        assert!(found(list, 600)[0].contains("remove it"));
        assert!(found("\"b.rs\" = 700", 1)[0].contains("lists b.rs"));
    }
}
