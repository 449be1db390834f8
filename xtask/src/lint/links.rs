//! Links within the repository point to existing files and headings, and every decision record is in the index.

use std::collections::BTreeSet;

use anyhow::Result;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::{Tree, folder, join};
use crate::finding::Finding;

const RECORDS: &str = "docs/adr/";
const INDEX: &str = "docs/adr/README.md";

pub fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut indexed: BTreeSet<String> = BTreeSet::new();
    for text in tree.ending(".md") {
        for (line, link) in links(&text.text) {
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = match path.strip_prefix('/') {
                Some(path) => join("", path),
                None if path.is_empty() => Some(text.path.clone()),
                None => join(folder(&text.path), path),
            };
            let Some(target) = target.filter(|target| tree.has_any(target)) else {
                findings.push(Finding::at(
                    &text.path,
                    line,
                    format!("the link to '{link}' leads nowhere"),
                ));
                continue;
            };
            let page = tree
                .text(&target)
                .filter(|_| target.ends_with(".md") && !anchor.is_empty());
            if page.is_some_and(|page| !anchors(page).contains(anchor)) {
                let message =
                    format!("the link to '{link}' leads to no heading or anchor of {target}");
                findings.push(Finding::at(&text.path, line, message));
            }
            if text.path == INDEX {
                indexed.insert(target);
            }
        }
    }
    for text in tree
        .ending(".md")
        .filter(|text| text.path.starts_with(RECORDS))
    {
        if text.path != INDEX && !indexed.contains(&text.path) {
            findings.push(Finding::new(
                &text.path,
                format!("is not in the index, {INDEX}"),
            ));
        }
    }
    Ok(findings)
}

fn parse(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES)
}

/// Links to something in the repository, with their lines.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (event, range) in parse(text).into_offset_iter() {
        let (Event::Start(Tag::Link { dest_url, .. }) | Event::Start(Tag::Image { dest_url, .. })) =
            event
        else {
            continue;
        };
        if !dest_url.contains("://") && !dest_url.starts_with("mailto:") {
            let line = text[..range.start].matches('\n').count() + 1;
            found.push((line, dest_url.to_string()));
        }
    }
    found
}

/// The anchors of a page: those that GitHub creates for its headings, and those of `<a id="...">`.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut heading: Option<String> = None;
    for event in parse(text) {
        match (event, &mut heading) {
            (Event::Start(Tag::Heading { .. }), _) => heading = Some(String::new()),
            (Event::End(TagEnd::Heading(_)), Some(title)) => {
                let slug = slug(title);
                let mut name = slug.clone();
                for count in 1.. {
                    if found.insert(name) {
                        break;
                    }
                    name = format!("{slug}-{count}");
                }
                heading = None;
            }
            (Event::Text(part) | Event::Code(part), Some(title)) => title.push_str(&part),
            (Event::InlineHtml(tag), _) => {
                let id = tag.strip_prefix("<a id=\"");
                found.extend(id.and_then(|id| id.strip_suffix("\">")).map(str::to_owned));
            }
            _ => {}
        }
    }
    found
}

fn slug(title: &str) -> String {
    let kept = title
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::messages;

    #[test]
    fn links_are_followed() {
        let page = "# A `b` c!\n[1](docs/) [2](docs/x.md#the-end) [3](#a-b-c) [4](https://x.y) \
                    ![5](/docs/x.md)\n\n```\n[no](link)\n```\n";
        let tree = Tree::of(&[
            ("README.md", page),
            (
                "docs/x.md",
                "## The end\n[up](../README.md) [7](#seven)\n\n<a id=\"seven\"></a>**7.** Z\n",
            ),
        ]);
        assert_eq!(messages(check(&tree)), [""; 0]);
    }

    #[test]
    fn dead_links_are_found() {
        let page = "# A\n\n[1](no.md)\n[2](#b)\n[3](../out.md)\n";
        assert_eq!(
            messages(check(&Tree::of(&[("README.md", page)]))),
            [
                "README.md:3: the link to 'no.md' leads nowhere",
                "README.md:4: the link to '#b' leads to no heading or anchor of README.md",
                "README.md:5: the link to '../out.md' leads nowhere",
            ]
        );
    }

    #[test]
    fn every_record_is_in_the_index() {
        let tree = Tree::of(&[
            ("docs/adr/README.md", "[1](0001-a.md)"),
            ("docs/adr/0001-a.md", ""),
            ("docs/adr/0002-b.md", ""),
        ]);
        assert_eq!(
            messages(check(&tree)),
            ["docs/adr/0002-b.md: is not in the index, docs/adr/README.md"]
        );
    }
}
