//! No white space at the end of a line, and a newline at the end of a file.

use anyhow::Result;

use super::Tree;
use crate::finding::Finding;

/// Test inputs, some of which are wrong on purpose.
const INPUTS: [&str; 3] = [
    "fuzz/corpus/",
    "shared/language/spec/tests/text/",
    "shared/language/spec/tests/wrong/",
];

pub fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let is_input = |path: &str| INPUTS.iter().any(|folder| path.starts_with(folder));
    for text in tree.texts.iter().filter(|text| !is_input(&text.path)) {
        for (index, line) in text.text.split('\n').enumerate() {
            if line.ends_with([' ', '\t', '\r']) {
                findings.push(Finding::at(
                    &text.path,
                    index + 1,
                    "white space at the end of the line",
                ));
            }
        }
        if !text.text.is_empty() && !text.text.ends_with('\n') {
            findings.push(Finding::new(&text.path, "doesn't end with a newline"));
        }
        if text.text.ends_with("\n\n") {
            findings.push(Finding::new(&text.path, "ends with empty lines"));
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::messages;

    #[test]
    fn line_and_file_ends_are_clean() {
        let found = |text: &str| messages(check(&Tree::of(&[("a.md", text)])));
        assert_eq!(found("a\n\nb\n"), [""; 0]);
        assert_eq!(found(""), [""; 0]);
        assert_eq!(
            found("a\nb \n"),
            ["a.md:2: white space at the end of the line"]
        );
        assert_eq!(
            found("a\r\n"),
            ["a.md:1: white space at the end of the line"]
        );
        assert_eq!(found("a"), ["a.md: doesn't end with a newline"]);
        assert_eq!(found("a\n\n"), ["a.md: ends with empty lines"]);
    }
}
