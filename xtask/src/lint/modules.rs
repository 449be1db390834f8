//! Every Rust file is part of a target: its first file leads to it through `mod` lines.
//!
//! This works line by line, without a parser: it reads `mod name;` on a line of its own, with or without a `#[path]` on
//! the line before, and `include!` with a plain file name. File modules inside inline modules aren't followed; we have
//! none. Crates outside of the workspace aren't checked.

use std::collections::BTreeSet;

use anyhow::Result;
use regex::Regex;

use super::{Tree, folder, join};
use crate::finding::Finding;

pub fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let declared = Regex::new(
        r#"(?m)^\s*(?:#\[path\s*=\s*"([^"]+)"\]\s*)?(?:pub(?:\([^)]*\))?\s+)?mod\s+(?:r#)?(\w+)\s*;"#,
    )?;
    let included = Regex::new(r#"\binclude!\(\s*"([^"]+\.rs)"\s*\)"#)?;
    let mut reached: BTreeSet<String> = BTreeSet::new();
    let mut open: Vec<(String, bool)> =
        tree.roots.iter().map(|path| (path.clone(), true)).collect();
    while let Some((path, root)) = open.pop() {
        let Some(text) = tree.text(&path) else {
            continue;
        };
        if !reached.insert(path.clone()) {
            continue;
        }
        let here = folder(&path).to_owned();
        let below = match path.strip_suffix("/mod.rs") {
            _ if root => here.clone(),
            Some(folder) => folder.to_owned(),
            None => path.trim_end_matches(".rs").to_owned(),
        };
        for found in declared.captures_iter(text) {
            let name = &found[2];
            let candidates = match found.get(1) {
                Some(given) => vec![join(&here, given.as_str())],
                None => vec![
                    join(&below, &format!("{name}.rs")),
                    join(&below, &format!("{name}/mod.rs")),
                ],
            };
            open.extend(candidates.into_iter().flatten().map(|path| (path, false)));
        }
        for found in included.captures_iter(text) {
            open.extend(join(&here, &found[1]).map(|path| (path, false)));
        }
    }
    let strangers: Vec<String> = tree
        .ending("/Cargo.toml")
        .map(|text| folder(&text.path).to_owned())
        .filter(|folder| !tree.crates.contains(folder))
        .map(|folder| format!("{folder}/"))
        .collect();
    let dead = tree.ending(".rs").map(|text| &text.path).filter(|path| {
        !reached.contains(*path) && !strangers.iter().any(|folder| path.starts_with(folder))
    });
    let message = "is part of no target: declare it with 'mod', or delete it";
    Ok(dead.map(|path| Finding::new(path, message)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::messages;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let mut tree = Tree::of(files);
        tree.roots.push("a/src/lib.rs".to_owned());
        tree.crates.push("a".to_owned());
        messages(check(&tree))
    }

    #[test]
    fn modules_are_followed() {
        let good = [
            (
                "a/src/lib.rs",
                "mod b;\npub(crate) mod c;\n#[cfg(test)]\nmod f;\n",
            ),
            (
                "a/src/b.rs",
                "pub mod d;\n#[path = \"odd/e2.rs\"]\nmod e;\n",
            ),
            ("a/src/b/d.rs", ""),
            ("a/src/odd/e2.rs", ""),
            ("a/src/c/mod.rs", "mod g;\ninclude!(\"h.rs\");"),
            ("a/src/c/g.rs", ""),
            ("a/src/c/h.rs", ""),
            ("a/src/f.rs", ""),
        ];
        assert_eq!(found(&good), [""; 0]);
    }

    #[test]
    fn dead_files_are_found() {
        let files = [
            ("a/src/lib.rs", "// mod b;\nmod c;\n"),
            ("a/src/b.rs", ""),
            ("a/src/c.rs", ""),
            ("a/src/d/c.rs", ""),
        ];
        let found = found(&files);
        assert_eq!(found.len(), 2);
        assert!(found[0].starts_with("a/src/b.rs: ") && found[1].starts_with("a/src/d/c.rs: "));
    }

    #[test]
    fn crates_outside_of_the_workspace_are_not_checked() {
        let files = [
            ("a/src/lib.rs", ""),
            ("fuzz/Cargo.toml", ""),
            ("fuzz/x/y.rs", ""),
        ];
        assert_eq!(found(&files), [""; 0]);
    }
}
