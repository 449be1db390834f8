//! Words that mark unfinished work, or work only on one machine.

use anyhow::Result;
use regex::Regex;

use super::Tree;
use crate::finding::Finding;

/// A pattern, the files in which it is searched, and the problem with it. The patterns are assembled from parts so that
/// this file doesn't match them.
const WORDS: [(&str, &str, &str); 7] = [
    (concat!(r"\bto", r"do!"), ".rs", "is unfinished"),
    (concat!(r"\bunimpl", r"emented!"), ".rs", "is unfinished"),
    (concat!(r"\bdb", r"g!"), ".rs", "is a leftover of debugging"),
    (
        concat!(r"#\[ign", r"ore"),
        ".rs",
        "hides a test: fix it or delete it",
    ),
    (
        concat!(r"\bFIX", r"ME\b"),
        "",
        "is unfinished: do it, or say in words what is missing",
    ),
    (
        concat!(r"\bXX", r"X\b"),
        "",
        "is unfinished: do it, or say in words what is missing",
    ),
    (
        concat!(r#"(?:^|[\s"'`(=<]|file://)/(?:home|root|work|Use"#, r"rs)/"),
        "",
        "is a path of somebody's machine",
    ),
];

pub fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (pattern, end, message) in WORDS {
        let pattern = Regex::new(pattern)?;
        for text in tree.ending(end) {
            for (index, line) in text.text.lines().enumerate() {
                if let Some(hit) = pattern.find(line) {
                    let word = hit.as_str().trim();
                    findings.push(Finding::at(
                        &text.path,
                        index + 1,
                        format!("'{word}' {message}"),
                    ));
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

    fn found(path: &str, line: &str) -> Vec<String> {
        messages(check(&Tree::of(&[(path, line)])))
    }

    #[test]
    fn each_word_is_found() {
        for line in [
            concat!("    to", "do!()"),
            concat!("std::unimpl", "emented!()"),
            concat!("let x = db", "g!(1);"),
            concat!("#[ign", "ore = \"slow\"]"),
            concat!("// FIX", "ME: later"),
            concat!("// XX", "X"),
            concat!("\"/ho", "me/me/x\""),
            concat!("see /wo", "rk/x"),
        ] {
            assert_eq!(found("a.rs", line).len(), 1, "{line}");
        }
        assert!(found("a.rs", concat!("\n/ro", "ot/x"))[0].starts_with("a.rs:2: "));
    }

    #[test]
    fn similar_words_are_allowed() {
        for line in [
            "a/work/b",
            "XXXX",
            "https://x.org/home/y",
            "dbgx!",
            "https://example.com/root/",
        ] {
            assert_eq!(found("a.md", line), [""; 0], "{line}");
        }
        assert_eq!(found("a.md", concat!("no `to", "do!` in code")), [""; 0]);
    }
}
