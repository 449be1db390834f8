//! Public error codes and their pages: each code has one page in `docs/errors/`, and there are no others.
//!
//! The table of codes is in the spec crate. Without it, nothing is compared.

use std::collections::BTreeSet;

use anyhow::Result;
use regex::Regex;

use super::Tree;
use crate::finding::Finding;

const PAGES: &str = "docs/errors/";
const TABLE: &str = "shared/language/documents/src/codes.rs";

pub fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let Some(table) = tree.text(TABLE) else {
        return Ok(Vec::new());
    };
    let row = Regex::new(r#"(?m)^\s*[A-Z0-9_]+ = "([a-z0-9-]+)":"#)?;
    let codes: BTreeSet<&str> = row
        .captures_iter(table)
        .filter_map(|found| found.get(1))
        .map(|code| code.as_str())
        .collect();
    let pages: BTreeSet<&str> = tree
        .ending(".md")
        .filter_map(|text| text.path.strip_prefix(PAGES)?.strip_suffix(".md"))
        .filter(|page| *page != "README")
        .collect();
    let mut findings = Vec::new();
    if codes.is_empty() {
        findings.push(Finding::new(
            TABLE,
            "no row of the table could be read: fix xtask/src/lint/errors.rs",
        ));
    }
    for code in codes.difference(&pages) {
        findings.push(Finding::new(
            TABLE,
            format!("'{code}' has no page {PAGES}{code}.md"),
        ));
    }
    for page in pages.difference(&codes) {
        findings.push(Finding::new(
            format!("{PAGES}{page}.md"),
            format!("no such code is in {TABLE}"),
        ));
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::messages;

    #[test]
    fn codes_and_pages_match() {
        let codes = "codes! {\n    BAD_CRON = \"bad-cron\": \"A cron expression.\";\n}\n";
        let page = ("docs/errors/bad-cron.md", "");
        assert_eq!(messages(check(&Tree::of(&[(TABLE, codes), page]))), [""; 0]);
        assert_eq!(
            messages(check(&Tree::of(&[
                (TABLE, codes),
                ("docs/errors/other.md", "")
            ]))),
            [
                "shared/language/documents/src/codes.rs: 'bad-cron' has no page docs/errors/bad-cron.md",
                "docs/errors/other.md: no such code is in shared/language/documents/src/codes.rs",
            ]
        );
        assert_eq!(messages(check(&Tree::of(&[(TABLE, "")]))).len(), 1);
    }
}
