//! Paths in code type in `ARCHITECTURE.md` exist, because an outdated map would mislead.

use anyhow::Result;
use pulldown_cmark::{Event, Options, Parser};
use regex::Regex;

use super::Tree;
use crate::finding::Finding;

const MAP: &str = "ARCHITECTURE.md";

pub fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let Some(text) = tree.text(MAP) else {
        return Ok(Vec::new());
    };
    // A folder with a trailing slash, or a file with a folder or a known ending.
    let path = Regex::new(r"^(?:[\w.-]+/)+$|^(?:[\w.-]+/)+[\w.-]+\.\w+$|^[\w-]+\.(?:md|toml)$")?;
    let mut findings = Vec::new();
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        if let Event::Code(code) = event
            && path.is_match(&code)
            && !tree.has_any(&code)
        {
            let line = text[..range.start].matches('\n').count() + 1;
            findings.push(Finding::at(MAP, line, format!("'{code}' doesn't exist")));
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::messages;

    #[test]
    fn named_paths_exist() {
        let map = "`a/` `a/b.rs` `a::b` `x/y` `swirl run`\n`a/c.rs` `d/` `deny.toml`\n";
        assert_eq!(
            messages(check(&Tree::of(&[
                ("ARCHITECTURE.md", map),
                ("a/b.rs", "")
            ]))),
            [
                "ARCHITECTURE.md:2: 'a/c.rs' doesn't exist",
                "ARCHITECTURE.md:2: 'd/' doesn't exist",
                "ARCHITECTURE.md:2: 'deny.toml' doesn't exist",
            ]
        );
    }
}
