//! Tests wait for conditions and not for a fixed time, because a time that is enough here is too short on a slower
//! machine.

use anyhow::Result;
use regex::Regex;

use super::Tree;
use crate::finding::Finding;

/// A comment with this prefix, in the lines before the pause, gives the reason for it.
const REASON: &str = "// Time has to pass: ";
/// The number of lines before the pause.
const NEAR: usize = 4;

/// Integration tests, and code that only they use.
fn is_test(path: &str) -> bool {
    path.ends_with(".rs") && (path.contains("/tests/") || path.starts_with("tests/contract/"))
}

pub fn check(tree: &Tree) -> Result<Vec<Finding>> {
    // In two parts, so that the rule doesn't find itself.
    let pause = Regex::new(concat!(r"\bsle", r"ep\("))?;
    let mut findings = Vec::new();
    for text in tree.texts.iter().filter(|text| is_test(&text.path)) {
        let lines: Vec<&str> = text.text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let before = &lines[index.saturating_sub(NEAR)..index];
            let has_reason = before.iter().any(|line| line.contains(REASON));
            if pause.is_match(line) && !has_reason {
                findings.push(Finding::at(
                    &text.path,
                    index + 1,
                    format!(
                        "a test waits for a time: wait for a condition (swirl_servers::until, \
                         eventually), or say why in a comment, `{REASON}...`"
                    ),
                ));
            }
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::messages;

    const PAUSE: &str = concat!("    tokio::time::sle", "ep(MOMENT).await;");

    fn found(path: &str, text: &str) -> usize {
        messages(check(&Tree::of(&[(path, text)]))).len()
    }

    #[test]
    fn a_pause_needs_a_reason() {
        let reasoned = format!("    {REASON}a lease runs out.\n{PAUSE}");
        let far = format!("    {REASON}a lease runs out.\n\n\n\n\n{PAUSE}");
        for (path, text, count) in [
            ("cli/tests/a.rs", PAUSE, 1),
            ("tests/contract/src/a.rs", PAUSE, 1),
            ("cli/tests/a.rs", &*reasoned, 0),
            ("cli/tests/a.rs", &*far, 1),
            ("cli/src/a.rs", PAUSE, 0),
            ("docs/tests/a.md", PAUSE, 0),
        ] {
            assert_eq!(found(path, text), count, "{path}: {text}");
        }
    }
}
