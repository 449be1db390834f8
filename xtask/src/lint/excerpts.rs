//! Code in `docs/clients.md` is that of programs which are run: a block after a link to a program has only lines of it.

use std::collections::BTreeSet;

use anyhow::Result;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::{Tree, folder, join};
use crate::finding::Finding;

const PAGE: &str = "docs/clients.md";
/// The words for languages, and the ends of their programs' names.
const LANGUAGES: [(&str, &str); 4] = [
    ("go", ".go"),
    ("java", ".java"),
    ("python", ".py"),
    ("ts", ".ts"),
];

pub fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let Some(page) = tree.text(PAGE) else {
        return Ok(Vec::new());
    };
    let mut findings = Vec::new();
    // Those that were linked since the last heading or block.
    let mut linked: Vec<String> = Vec::new();
    let mut end = None;
    for (event, range) in Parser::new_ext(page, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { .. }) | Event::End(TagEnd::CodeBlock) => {
                linked.clear();
                end = None;
            }
            Event::Start(Tag::Link { dest_url, .. }) => {
                linked.extend(join(folder(PAGE), &dest_url));
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(word))) => {
                let mut all = LANGUAGES.iter();
                end = all.find(|(name, _)| *name == &*word).map(|(_, end)| *end);
            }
            Event::Text(code) => {
                let Some(end) = end else { continue };
                let first = page[..range.start].matches('\n').count() + 1;
                let programs = linked.iter().filter(|path| path.ends_with(end));
                let lines: BTreeSet<&str> = programs
                    .filter_map(|path| tree.text(path))
                    .flat_map(|text| text.lines().map(str::trim))
                    .collect();
                if lines.is_empty() {
                    findings.push(Finding::at(PAGE, first, "no program is linked before this"));
                    continue;
                }
                for (index, line) in code.lines().enumerate() {
                    if !lines.contains(line.trim()) && !line.trim().is_empty() {
                        let message = format!("'{}' isn't a line of the program", line.trim());
                        findings.push(Finding::at(PAGE, first + index, message));
                    }
                }
            }
            _ => {}
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::messages;

    #[test]
    fn excerpts_are_lines_of_the_linked_program() {
        let page = "# A\n\nIn Go ([x](../c/x.go)):\n\n```go\na := 1\n\n  b()\n```\n\n```sh\nls\n```\n\n# B\n\n```go\na := 1\n```\n";
        let tree = Tree::of(&[(PAGE, page), ("c/x.go", "func f() {\n\ta := 1\n\tc()\n}\n")]);
        assert_eq!(
            messages(check(&tree)),
            [
                "docs/clients.md:8: 'b()' isn't a line of the program",
                "docs/clients.md:18: no program is linked before this",
            ]
        );
    }
}
