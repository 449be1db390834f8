//! The glossary in `ARCHITECTURE.md` explains words of the code: each word, or its plural, is the name of a type, a
//! variant, a module, a field or a crate.

use std::collections::BTreeSet;

use anyhow::Result;
use regex::Regex;

use super::Tree;
use crate::finding::Finding;

const PAGE: &str = "ARCHITECTURE.md";
const HEADING: &str = "## Glossary";
/// Names in tests and tools don't count as names of the program.
const OTHERS: [&str; 4] = ["bench/", "fuzz/", "tests/", "xtask/"];

pub fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let Some(page) = tree.text(PAGE) else {
        return Ok(Vec::new());
    };
    let names = names(tree)?;
    let mut findings = Vec::new();
    let mut before = String::new();
    let lines = page.lines().enumerate();
    let rows = lines.skip_while(|(_, line)| *line != HEADING).skip(1);
    let rows = rows.take_while(|(_, line)| !line.starts_with("## "));
    for (index, line) in rows.filter(|(_, line)| line.starts_with("| ")) {
        let word = line.split('|').nth(1).unwrap_or_default().trim();
        if word == "word" || word.starts_with("---") {
            continue;
        }
        if !names.contains(&plain(word)) && !names.contains(&format!("{}s", plain(word))) {
            let message =
                format!("the glossary explains '{word}', which names nothing in the code");
            findings.push(Finding::at(PAGE, index + 1, message));
        }
        if *word < *before {
            let message =
                format!("'{word}' comes after '{before}': words are in alphabetical order");
            findings.push(Finding::at(PAGE, index + 1, message));
        }
        before = word.to_owned();
    }
    Ok(findings)
}

/// The common form of the names of types and fields.
fn plain(name: &str) -> String {
    name.replace([' ', '_'], "").to_lowercase()
}

fn names(tree: &Tree) -> Result<BTreeSet<String>> {
    let defined = Regex::new(r"\b(?:struct|enum|trait|type|mod)\s+(?:r#)?(\w+)")?;
    let field = Regex::new(r"(?m)^\s+(?:pub(?:\([^)]*\))?\s+)?(?:r#)?([a-z]\w*):\s")?;
    let variant = Regex::new(r"(?m)^\s+([A-Z]\w*)(?:,$|\(|\s*\{)")?;
    let mut names = BTreeSet::new();
    let code = tree.ending(".rs");
    for text in code.filter(|text| !OTHERS.iter().any(|other| text.path.starts_with(other))) {
        for pattern in [&defined, &field, &variant] {
            let found = pattern.captures_iter(&text.text);
            names.extend(found.map(|found| plain(&found[1])));
        }
    }
    for path in &tree.crates {
        names.extend(path.split('/').map(plain));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::messages;

    fn found(rows: &str) -> Vec<String> {
        let page = format!(
            "# A\n\n{HEADING}\n\n| word | meaning |\n| --- | --- |\n{rows}\n## B\n| x | y |\n"
        );
        let mut tree = Tree::of(&[
            (PAGE, &page),
            (
                "a/src/a.rs",
                "pub struct StateData {\n    pub inbox: u8,\n}\nenum E {\n    Forked,\n}\n",
            ),
            ("tests/a.rs", "struct Checker;\n"),
        ]);
        tree.crates.push("shared/execution/ports".to_owned());
        messages(check(&tree))
    }

    #[test]
    fn words_are_names_in_the_code() {
        assert_eq!(
            found("| forked | f |\n| inbox | i |\n| port | p |\n| state data | s |\n"),
            [""; 0]
        );
        let messages = found("| checker | c |\n");
        assert!(messages[0].contains("ARCHITECTURE.md:7: "), "{messages:?}");
        assert!(messages[0].contains("'checker'"), "{messages:?}");
        assert!(found("| port | p |\n| inbox | i |\n")[0].contains("alphabetical"));
    }
}
