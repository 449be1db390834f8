//! Every page of `docs/` is in the book's table of contents. [`super::links`] checks that the entries point to existing
//! pages.

use anyhow::Result;

use super::{Tree, join};
use crate::finding::Finding;

const FOLDER: &str = "docs/";
const SUMMARY: &str = "docs/SUMMARY.md";

pub fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let contents = tree.text(SUMMARY).unwrap_or_default();
    let targets = contents.split("](").skip(1);
    let targets = targets.filter_map(|rest| join("docs", rest.split(')').next()?));
    let listed: Vec<String> = targets.collect();
    let mut findings = Vec::new();
    for text in tree.ending(".md") {
        let is_page = text.path.starts_with(FOLDER) && text.path != SUMMARY;
        if is_page && !listed.contains(&text.path) {
            let message = format!("is not in the book: add it to {SUMMARY}");
            findings.push(Finding::new(&text.path, message));
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::messages;

    #[test]
    fn pages_are_in_the_book() {
        let tree = Tree::of(&[
            (SUMMARY, "# Summary\n\n- [A](a.md)\n  - [B](b/c.md)\n"),
            ("docs/a.md", ""),
            ("docs/b/c.md", ""),
            ("docs/d.md", ""),
            ("README.md", ""),
        ]);
        assert_eq!(
            messages(check(&tree)),
            ["docs/d.md: is not in the book: add it to docs/SUMMARY.md"]
        );
    }
}
