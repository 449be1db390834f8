//! Rules for the repository itself. Each has a file, and a line in [`RULES`].

mod book;
mod circles;
mod decisions;
mod editions;
mod errors;
mod excerpts;
mod glossary;
mod layout;
mod length;
mod links;
mod manifests;
mod modules;
mod ports;
mod sleeps;
mod untyped;
mod whitespace;
mod words;

use std::path::Path;

use anyhow::{Context, Result};
use cargo_metadata::Metadata;
use ignore::WalkBuilder;

use crate::cargo;
use crate::finding::Finding;

type Rule = fn(&Tree) -> Result<Vec<Finding>>;

const RULES: [Rule; 17] = [
    book::check,
    circles::check,
    decisions::check,
    editions::check,
    errors::check,
    excerpts::check,
    glossary::check,
    layout::check,
    length::check,
    links::check,
    manifests::check,
    modules::check,
    ports::check,
    sleeps::check,
    untyped::check,
    whitespace::check,
    words::check,
];

/// The repository's files, except those that git ignores.
pub struct Tree {
    /// All paths, sorted, relative to the root, with `/` between the parts.
    pub paths: Vec<String>,
    /// The text files, except `Cargo.lock` and licence texts, which others write.
    pub texts: Vec<Text>,
    /// The source files where cargo's targets begin.
    pub roots: Vec<String>,
    /// Folders of the workspace's crates, without a trailing `/`.
    pub crates: Vec<String>,
}

pub struct Text {
    pub path: String,
    pub text: String,
}

pub fn check() -> Result<Vec<Finding>> {
    let tree = Tree::read(&cargo::root(), &cargo::members()?)?;
    println!("{} files", tree.paths.len());
    let mut findings = Vec::new();
    for rule in RULES {
        findings.extend(rule(&tree)?);
    }
    Ok(findings)
}

impl Tree {
    fn read(root: &Path, metadata: &Metadata) -> Result<Tree> {
        let relative = |path: &Path| {
            let path = path.strip_prefix(root).unwrap_or(path);
            path.to_string_lossy().replace('\\', "/")
        };
        let mut tree = Tree {
            paths: Vec::new(),
            texts: Vec::new(),
            roots: Vec::new(),
            crates: Vec::new(),
        };
        let walk = WalkBuilder::new(root)
            .hidden(false)
            .parents(false)
            .require_git(false)
            .filter_entry(|entry| entry.file_name() != ".git")
            .build();
        for entry in walk {
            let entry = entry?;
            if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                continue;
            }
            let path = relative(entry.path());
            let bytes = std::fs::read(entry.path()).with_context(|| path.clone())?;
            if !matches!(path.as_str(), "Cargo.lock" | "LICENSE")
                && !bytes.contains(&0)
                && let Ok(text) = String::from_utf8(bytes)
            {
                tree.texts.push(Text {
                    path: path.clone(),
                    text,
                });
            }
            tree.paths.push(path);
        }
        tree.paths.sort();
        for package in &metadata.packages {
            let folder = package.manifest_path.parent();
            tree.crates
                .extend(folder.map(|folder| relative(folder.as_std_path())));
            let roots = package
                .targets
                .iter()
                .map(|target| relative(target.src_path.as_std_path()));
            tree.roots.extend(roots);
        }
        Ok(tree)
    }

    pub fn has(&self, path: &str) -> bool {
        self.paths
            .binary_search_by(|other| other.as_str().cmp(path))
            .is_ok()
    }

    /// Whether this is a file, or a folder that contains files.
    pub fn has_any(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let prefix = format!("{path}/");
        path.is_empty()
            || self.has(path)
            || self.paths.iter().any(|other| other.starts_with(&prefix))
    }

    pub fn text(&self, path: &str) -> Option<&str> {
        self.texts
            .iter()
            .find(|text| text.path == path)
            .map(|text| text.text.as_str())
    }

    /// The texts whose names have this ending.
    pub fn ending<'a>(&'a self, end: &'a str) -> impl Iterator<Item = &'a Text> {
        self.texts
            .iter()
            .filter(move |text| text.path.ends_with(end))
    }

    /// A tree for a test, given by paths and texts.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Tree {
        let mut paths: Vec<String> = files.iter().map(|(path, _)| path.to_string()).collect();
        paths.sort();
        let text = |(path, text): &(&str, &str)| Text {
            path: path.to_string(),
            text: text.to_string(),
        };
        Tree {
            paths,
            texts: files.iter().map(text).collect(),
            roots: Vec::new(),
            crates: Vec::new(),
        }
    }
}

/// Joins a folder and a relative path that may contain `.` and `..`; `None` if the result is outside of the tree.
pub fn join(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The folder that contains a file. The root is empty.
pub fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

#[cfg(test)]
pub fn messages(findings: Result<Vec<Finding>>) -> Vec<String> {
    findings.unwrap().iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined() {
        assert_eq!(join("docs/adr", "../x.md").as_deref(), Some("docs/x.md"));
        assert_eq!(join("", "./a//b").as_deref(), Some("a/b"));
        assert_eq!(join("docs", "../../x"), None);
    }

    #[test]
    fn ignored_files_are_skipped() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| std::fs::write(root.path().join(path), text).unwrap();
        std::fs::create_dir(root.path().join("target")).unwrap();
        write(".gitignore", "/target\n");
        write("target/a.rs", "");
        write("b.md", "");
        let mut tree = Tree::read(root.path(), &cargo::members().unwrap()).unwrap();
        tree.paths.sort();
        assert_eq!(tree.paths, [".gitignore", "b.md"]);
    }
}
