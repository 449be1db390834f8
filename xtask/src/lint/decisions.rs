//! References to numbered decisions contain an anchor in `docs/language.md`, and the page has that decision.

use std::collections::BTreeSet;

use anyhow::Result;
use regex::Regex;

use super::Tree;
use crate::finding::Finding;

const PAGE: &str = "docs/language.md";
/// Files whose comments or texts refer to decisions. Links in pages are checked together with all other links.
const ENDS: [&str; 4] = [".rs", ".lua", ".md", ".yaml"];
/// Test inputs, which quote texts of others.
const INPUTS: [&str; 2] = ["fuzz/corpus/", "shared/language/spec/tests/"];
/// Only the number, in prose. In a page, `[decision 9](...)` is a link.
const BARE: &str = r"(?i)(\[?)\bdecisions? [0-9]+";
const ANCHOR: &str = r"#decision-([0-9]+)";

pub fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let Some(page) = tree.text(PAGE) else {
        return Ok(Vec::new());
    };
    let (bare, anchor) = (Regex::new(BARE)?, Regex::new(ANCHOR)?);
    let decided = Regex::new(r#"<a id="decision-([0-9]+)"></a>"#)?;
    let mut findings = Vec::new();
    let mut numbers = BTreeSet::new();
    for (index, line) in page.lines().enumerate() {
        for found in decided.captures_iter(line) {
            if !numbers.insert(found[1].to_owned()) {
                let message = format!("decision {} is here twice", &found[1]);
                findings.push(Finding::at(PAGE, index + 1, message));
            }
        }
    }
    let texts = ENDS.into_iter().flat_map(|end| tree.ending(end));
    let is_input = |path: &str| INPUTS.iter().any(|folder| path.starts_with(folder));
    for text in texts.filter(|text| !is_input(&text.path) && text.path != file!()) {
        for (index, line) in text.text.lines().enumerate() {
            for found in bare.captures_iter(line).filter(|found| found[1].is_empty()) {
                let message = format!("'{}' isn't a link to {PAGE}", &found[0]);
                findings.push(Finding::at(&text.path, index + 1, message));
            }
            for found in anchor.captures_iter(line) {
                if !numbers.contains(&found[1]) {
                    let message = format!("{PAGE} has no decision {}", &found[1]);
                    findings.push(Finding::at(&text.path, index + 1, message));
                }
            }
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::messages;

    const DECIDED: &str = "<a id=\"decision-9\"></a>**9.** A result is merged.\n";

    fn found(path: &str, line: &str) -> Vec<String> {
        messages(check(&Tree::of(&[(PAGE, DECIDED), (path, line)])))
    }

    #[test]
    fn references_give_an_anchor_that_exists() {
        for line in [
            "// (docs/language.md#decision-9)",
            "[decision 9](language.md#decision-9)",
            "a decision of 9",
        ] {
            assert_eq!(found("a.rs", line), [""; 0], "{line}");
        }
        assert_eq!(
            found("a.rs", "\n// (decision 9)"),
            ["a.rs:2: 'decision 9' isn't a link to docs/language.md"]
        );
        assert_eq!(
            found("a.yaml", "# docs/language.md#decision-8"),
            ["a.yaml:1: docs/language.md has no decision 8"]
        );
    }

    #[test]
    fn numbers_are_unique() {
        let twice = DECIDED.repeat(2);
        assert_eq!(
            messages(check(&Tree::of(&[(PAGE, &twice)]))),
            ["docs/language.md:2: decision 9 is here twice"]
        );
    }
}
