//! No two files use each other, and no larger number of files forms a ring. Those that did when the rule was introduced
//! are in `xtask/circles.toml`; an entry is removed when its files have been separated. A module and its own children
//! belong together and aren't checked.
//!
//! Calls of methods count too ([`methods`]), those of a module's children included: in most crates no ring may close
//! through them. `circles.toml` has the sizes of those that are left in the other crates, and the crates whose folders
//! are floors: no file may use one of a folder that is listed after its own.
//!
//! This works without a parser: it reads `use` lines, and paths that begin with `crate`, `super` or the name of a
//! module that the file declares. A re-exported name belongs to the file that defines it. Tests are skipped: they are
//! at the end of a file and may use anything.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use regex::Regex;

use super::{Tree, join};
use crate::finding::Finding;
use rings::Uses;

mod methods;
mod rings;

/// Crates of tests aren't checked.
const TESTS: &str = "tests/";
const LIST: &str = "xtask/circles.toml";
/// The maximum number of re-exports through which a name is followed.
const HOPS_MAX: usize = 8;

/// A file in a crate.
struct File<'t> {
    path: &'t str,
    /// The module's path, from the crate's root.
    module: Vec<String>,
    /// The text without tests and comments.
    code: String,
    /// The paths of its `use` lines, from the crate's root.
    uses: Vec<Use>,
}

struct Use {
    path: Vec<String>,
    /// The name in this file.
    name: String,
    is_public: bool,
}

/// The pairs and rings in `circles.toml`.
#[derive(Default, serde::Deserialize)]
struct Listed {
    /// The files of each ring.
    #[serde(default)]
    rings: Vec<BTreeSet<String>>,
    /// By crate, the number of files of each ring that calls of methods close.
    #[serde(default)]
    methods: BTreeMap<String, Vec<usize>>,
    /// By crate, its folders in `src`: the lowest floor first.
    #[serde(default)]
    floors: BTreeMap<String, Vec<String>>,
    #[serde(flatten)]
    pairs: BTreeMap<String, Vec<String>>,
}

pub fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let list = tree.text(LIST).unwrap_or_default();
    let Listed {
        mut rings,
        mut methods,
        floors,
        mut pairs,
    } = toml::from_str(list).context(LIST)?;
    let mut findings = Vec::new();
    let is_ours = |root: &&String| root.ends_with("src/lib.rs") && !root.starts_with(TESTS);
    let roots = tree.roots.iter().filter(is_ours);
    for root in roots.collect::<BTreeSet<_>>() {
        let files = files(tree, root)?;
        let uses = apart(&files)?;
        let folder = root.trim_end_matches("/src/lib.rs");
        let known = methods.remove(folder).unwrap_or_default();
        let mut all = uses.clone();
        methods::add(&files, &mut all)?;
        for (one, others) in &mut all {
            others.retain(|other| !lists(&pairs, one, other) && !lists(&pairs, other, one));
        }
        findings.extend(through_methods(folder, &uses, &all, known));
        let floors = floors.get(folder).map_or(&[][..], Vec::as_slice);
        findings.extend(upwards(folder, floors, &all));
        for (one, other) in of_two(&uses) {
            let known = pairs.get_mut(one).and_then(|known| {
                let at = known.iter().position(|known| known == other)?;
                Some(known.swap_remove(at))
            });
            if known.is_none() {
                let message =
                    format!("takes something from {other}, which takes something from it");
                findings.push(Finding::new(one, message));
            }
        }
        for ring in rings::find(&uses) {
            let known = rings
                .iter()
                .position(|known| known.iter().eq(ring.files.iter()));
            match known {
                Some(at) => drop(rings.swap_remove(at)),
                None => findings.push(Finding::new(ring.shortest[0], ring.message())),
            }
        }
    }
    findings.extend(methods.into_keys().map(|folder| {
        let message = format!("lists {folder} under methods, which is no crate: remove it");
        Finding::new(LIST, message)
    }));
    pairs.retain(|_, others| !others.is_empty());
    findings.extend(pairs.into_iter().map(|(path, others)| {
        let others = others.join(", ");
        let message = format!("lists {path} with {others}, which are apart: remove it");
        Finding::new(LIST, message)
    }));
    findings.extend(rings.into_iter().map(|files| {
        let files: Vec<String> = files.into_iter().collect();
        let message = format!(
            "lists a ring of {}, which is another now: remove it",
            files.join(", ")
        );
        Finding::new(LIST, message)
    }));
    Ok(findings)
}

fn files<'t>(tree: &'t Tree, root: &'t str) -> Result<Vec<File<'t>>> {
    let declared = Regex::new(r"(?m)^\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+(?:r#)?(\w+)\s*;")?;
    let comment = Regex::new(r"(?m)^\s*//.*$")?;
    let tests = Regex::new(r"#\[cfg\(test\)\]\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+\w+\s*(;|\{)")?;
    let mut found = Vec::new();
    let mut open = vec![(root.to_owned(), Vec::new())];
    while let Some((path, module)) = open.pop() {
        let Some(text) = tree.texts.iter().find(|text| text.path == path) else {
            continue;
        };
        let mut code = comment.replace_all(&text.text, "").into_owned();
        while let Some(test) = tests.captures(&code) {
            let (Some(all), is_file) = (test.get(0), &test[1] == ";") else {
                break;
            };
            let end = if is_file { all.end() } else { code.len() };
            code = format!("{}{}", &code[..all.start()], &code[end..]);
        }
        let below = match path
            .strip_suffix("/mod.rs")
            .or(path.strip_suffix("/lib.rs"))
        {
            Some(folder) => folder.to_owned(),
            None => path.trim_end_matches(".rs").to_owned(),
        };
        for name in declared
            .captures_iter(&code)
            .map(|found| found[1].to_owned())
        {
            let mut module: Vec<String> = module.clone();
            module.push(name.clone());
            for end in [format!("{name}.rs"), format!("{name}/mod.rs")] {
                if let Some(path) = join(&below, &end).filter(|path| tree.has(path)) {
                    open.push((path, module.clone()));
                }
            }
        }
        let uses = uses(&code, &module)?;
        let path = text.path.as_str();
        found.push(File {
            path,
            module,
            code,
            uses,
        });
    }
    Ok(found)
}

/// The paths of all top-level `use` lines, one for each name.
fn uses(code: &str, module: &[String]) -> Result<Vec<Use>> {
    let line = Regex::new(r"(?m)^(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")?;
    let mut found = Vec::new();
    for line in line.captures_iter(code) {
        let mut flat = Vec::new();
        flatten("", &line[2], &mut flat);
        for path in flat {
            let (path, alias) = match path.split_once(" as ") {
                Some((path, alias)) => (path.to_owned(), Some(alias.trim().to_owned())),
                None => (path, None),
            };
            let Some(path) = absolute(&path, module) else {
                continue;
            };
            let name = alias.or_else(|| path.last().cloned()).unwrap_or_default();
            let is_public = line.get(1).is_some();
            found.push(Use {
                path,
                name,
                is_public,
            });
        }
    }
    Ok(found)
}

/// Expands `a::{b, c::{self, d}}` to `a::b`, `a::c`, `a::c::d`.
fn flatten(before: &str, tree: &str, found: &mut Vec<String>) {
    let tree = tree.trim();
    let Some(brace) = tree.find('{') else {
        let path = format!("{before}{tree}");
        found.push(path.trim_end_matches("::self").to_owned());
        return;
    };
    let before = format!("{before}{}", tree[..brace].trim());
    let inner = tree[brace + 1..].trim_end().trim_end_matches('}');
    let (mut depth, mut from) = (0, 0);
    for (at, c) in inner.char_indices().chain([(inner.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !inner[from..at].trim().is_empty() {
                    flatten(&before, &inner[from..at], found);
                }
                from = at + 1;
            }
            _ => {}
        }
    }
}

/// A path from the crate's root; `None` if it leads elsewhere.
fn absolute(path: &str, module: &[String]) -> Option<Vec<String>> {
    let mut parts = path.split("::").map(str::trim).peekable();
    let mut found = match parts.peek().copied()? {
        "crate" => Vec::new(),
        // It belongs to another crate or to a child. The lookup determines which.
        _ => module.to_vec(),
    };
    for part in parts {
        match part {
            "crate" | "self" => {}
            "super" => drop(found.pop()?),
            part => found.push(part.to_owned()),
        }
    }
    Some(found)
}

/// The files that each file uses, except a module and its own children.
fn apart<'t>(files: &[File<'t>]) -> Result<Uses<'t>> {
    let mut uses = edges(files)?;
    let modules: BTreeMap<&str, &[String]> = files
        .iter()
        .map(|file| (file.path, &file.module[..]))
        .collect();
    let module = |path: &str| modules.get(path).copied().unwrap_or_default();
    for (one, others) in &mut uses {
        let one = module(one);
        others.retain(|other| {
            let other = module(other);
            !one.starts_with(other) && !other.starts_with(one)
        });
    }
    Ok(uses)
}

/// Whether these files are listed, because they use each other.
fn lists(pairs: &BTreeMap<String, Vec<String>>, one: &str, other: &str) -> bool {
    let known = pairs.get(one);
    known.is_some_and(|known| known.iter().any(|known| known == other))
}

/// The rings of a crate that calls of methods close must have the sizes that are listed, the largest first.
fn through_methods(
    folder: &str,
    uses: &Uses<'_>,
    all: &Uses<'_>,
    known: Vec<usize>,
) -> Vec<Finding> {
    let mut rings = rings::find(all);
    let mut pairs = of_two(all);
    let in_ring = |file: &str| rings.iter().any(|ring| ring.files.contains(file));
    pairs.retain(|(one, other)| !in_ring(one) || !in_ring(other));
    // Those that need no method are found already.
    let (found, found_pairs) = (rings::find(uses), of_two(uses));
    pairs.retain(|pair| !found_pairs.contains(pair));
    rings.retain(|ring| found.iter().all(|found| found.files != ring.files));
    let mut sizes: Vec<usize> = rings.iter().map(|ring| ring.files.len()).collect();
    sizes.sort_by_key(|size| std::cmp::Reverse(*size));
    sizes.extend(pairs.iter().map(|_| 2));
    if sizes == known {
        return Vec::new();
    }
    if !known.is_empty() {
        let message =
            format!("lists rings of {known:?} files in {folder}, and they have {sizes:?}");
        return vec![Finding::new(LIST, message)];
    }
    let of_rings = rings.iter().map(|ring| {
        Finding::new(
            ring.shortest[0],
            format!("{}, through methods", ring.message()),
        )
    });
    let of_pairs = pairs.iter().map(|(one, other)| {
        let message = format!("calls methods of {other}, which uses it");
        Finding::new(*one, message)
    });
    of_rings.chain(of_pairs).collect()
}

/// Uses of files on a higher floor.
fn upwards(folder: &str, floors: &[String], all: &Uses<'_>) -> Vec<Finding> {
    let floor = |path: &str| {
        let inside = path.strip_prefix(folder)?.strip_prefix("/src/")?;
        floors
            .iter()
            .position(|floor| inside.split('/').next() == Some(floor))
    };
    let mut found = Vec::new();
    for (one, others) in all {
        for other in others {
            if let (Some(low), Some(high)) = (floor(one), floor(other))
                && low < high
            {
                let message = format!(
                    "uses {other}, but the floor '{}' is below '{}'",
                    floors[low], floors[high]
                );
                found.push(Finding::new(*one, message));
            }
        }
    }
    found
}

/// Files that use each other.
fn of_two<'t>(uses: &Uses<'t>) -> Vec<(&'t str, &'t str)> {
    let takes = |one: &str, other: &str| uses.get(one).is_some_and(|all| all.contains(other));
    let mut found = Vec::new();
    for (one, others) in uses {
        let of_two = others
            .iter()
            .filter(|other| *one < **other && takes(other, one));
        found.extend(of_two.map(|other| (*one, *other)));
    }
    found
}

/// The files that each file uses.
fn edges<'t>(files: &[File<'t>]) -> Result<Uses<'t>> {
    let inline = Regex::new(r"\b((?:crate|super)(?:::\w+)+)")?;
    let call = Regex::new(r"(?:^|[^:\w])(\w+)((?:::\w+)+)")?;
    let mut edges = Uses::new();
    for file in files {
        let mut paths: Vec<Vec<String>> = Vec::new();
        // A facade re-exports its children, which doesn't count as a use.
        let own = file.uses.iter().filter(|found| !found.is_public);
        paths.extend(own.map(|found| found.path.clone()));
        let spelt = inline.captures_iter(&file.code);
        paths.extend(spelt.filter_map(|found| absolute(&found[1], &file.module)));
        let handed_on =
            |line: &&str| line.starts_with("pub use ") || line.starts_with("pub(crate) use ");
        let without: Vec<&str> = file.code.lines().filter(|line| !handed_on(line)).collect();
        let children: BTreeSet<&str> = children(file, files).collect();
        for found in call.captures_iter(&without.join("\n")) {
            if children.contains(&found[1]) {
                paths.extend(absolute(
                    &format!("{}{}", &found[1], &found[2]),
                    &file.module,
                ));
            }
        }
        let targets = edges.entry(file.path).or_default();
        for path in paths {
            let target = target(&path, files, HOPS_MAX);
            targets.extend(target.filter(|target| *target != file.path));
        }
    }
    Ok(edges)
}

fn children<'a>(file: &'a File<'_>, files: &'a [File<'_>]) -> impl Iterator<Item = &'a str> {
    let of = files.iter().filter(|child| {
        child.module.len() == file.module.len() + 1 && child.module.starts_with(&file.module)
    });
    of.filter_map(|child| child.module.last().map(String::as_str))
}

/// The file that defines this.
fn target<'t>(path: &[String], files: &[File<'t>], hops: usize) -> Option<&'t str> {
    let of = |module: &[String]| files.iter().find(|file| file.module == module);
    let (file, rest) = (0..=path.len()).rev().find_map(|length| {
        let (module, rest) = path.split_at(length);
        // The root alone is not enough, because it may be the path of another crate.
        of(module).map(|file| (file, rest))
    })?;
    let Some(name) = rest.first() else {
        return Some(file.path);
    };
    let handed_on = file.uses.iter().find(|found| found.name == *name);
    if let Some(handed_on) = handed_on
        && hops > 0
        && handed_on.path != path
    {
        // If the path leads out of the crate, no file here is used.
        return target(&handed_on.path, files, hops - 1);
    }
    let defined = [
        "fn",
        "struct",
        "enum",
        "trait",
        "type",
        "const",
        "static",
        "union",
        "macro_rules!",
    ];
    let is_defined = |kind: &&str| {
        let text = format!("{kind} {name}");
        file.code.match_indices(&text).any(|(at, _)| {
            let after = file.code[at + text.len()..].chars().next();
            after.is_none_or(|c| !c.is_alphanumeric() && c != '_')
        })
    };
    (name == "*" || defined.iter().any(is_defined)).then_some(file.path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::messages;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let mut tree = Tree::of(files);
        tree.roots.push("a/src/lib.rs".to_owned());
        messages(check(&tree))
    }

    #[test]
    fn files_that_use_each_other_are_found() {
        let circle = [
            ("a/src/lib.rs", "mod b;\nmod c;\npub use b::B;\n"),
            ("a/src/b.rs", "use super::c::{self, C};\npub struct B;\n"),
            ("a/src/c.rs", "pub struct C;\nfn f() { crate::b::g() }\n"),
        ];
        // `g` is not defined in `b`.
        assert_eq!(found(&circle), [""; 0]);
        let circle = [
            circle[0],
            circle[1],
            ("a/src/c.rs", "use crate::B;\npub struct C;\n"),
        ];
        assert_eq!(
            found(&circle),
            ["a/src/b.rs: takes something from a/src/c.rs, which takes something from it"]
        );
        let listed = [
            circle[0],
            circle[1],
            circle[2],
            (LIST, "\"a/src/b.rs\" = [\"a/src/c.rs\"]"),
        ];
        assert_eq!(found(&listed), [""; 0]);
        let listed = [circle[0], (LIST, "\"a/src/b.rs\" = [\"a/src/c.rs\"]")];
        assert!(found(&listed)[0].contains("remove it"));
    }

    #[test]
    fn rings_are_found() {
        let ring = [
            ("a/src/lib.rs", "mod b;\nmod c;\nmod d;\nmod e;\n"),
            ("a/src/b.rs", "use super::c::C;\npub struct B;\n"),
            ("a/src/c.rs", "use super::d::D;\npub struct C;\n"),
            (
                "a/src/d.rs",
                "use super::b::B;\nuse super::e::E;\npub struct D;\n",
            ),
            ("a/src/e.rs", "pub struct E;\n"),
        ];
        assert_eq!(
            found(&ring),
            [
                "a/src/b.rs: is in a ring: a/src/b.rs uses a/src/c.rs uses a/src/d.rs uses a/src/b.rs"
            ]
        );
        let listed = |list| [ring[0], ring[1], ring[2], ring[3], ring[4], (LIST, list)];
        let all = r#"rings = [["a/src/b.rs", "a/src/c.rs", "a/src/d.rs"]]"#;
        assert_eq!(found(&listed(all)), [""; 0]);
        let other = r#"rings = [["a/src/b.rs", "a/src/c.rs", "a/src/d.rs", "a/src/e.rs"]]"#;
        assert_eq!(found(&listed(other)).len(), 2);
        let open = [ring[0], ring[1], ring[2], ring[4], (LIST, all)];
        assert!(found(&open)[0].contains("remove it"));
    }

    #[test]
    fn rings_through_methods_are_found() {
        let files = |c: &'static str| {
            [
                ("a/src/lib.rs", "mod b;\nmod c;\nmod d;\n"),
                (
                    "a/src/b.rs",
                    "pub struct B {\n    d: Arc<D>,\n}\nimpl B {\n    fn f(&self) {\n        self\n            .g()\n    }\n}\n",
                ),
                ("a/src/c.rs", c),
                (
                    "a/src/d.rs",
                    "pub struct D;\nimpl D {\n    pub fn b(&self) -> B {\n        todo()\n    }\n}\n",
                ),
            ]
        };
        let ring = ["a/src/b.rs: calls methods of a/src/c.rs, which uses it"];
        for call in [
            "impl B {\n    fn g(&self) {\n        self.f()\n    }\n}\n",
            "impl B {\n    fn g(&self) {\n        Self::f(self)\n    }\n}\n",
            "impl B {\n    fn g(&self) {}\n}\nfn h(b: &mut B) {\n    b.f();\n}\n",
            "impl B {\n    fn g(&self) {\n        self.d.b().f()\n    }\n}\n",
        ] {
            assert_eq!(found(&files(call)), ring, "{call}");
        }
        // Its own method of that name, another type, and a value of unknown type.
        for call in [
            "impl B {\n    fn g(&self) {\n        self.i()\n    }\n    fn i(&self) {}\n}\n",
            "impl B {\n    fn g(&self) {}\n}\nfn h(d: &D) {\n    d.f();\n}\n",
            "impl B {\n    fn g(&self) {\n        let b = other();\n        b.f();\n    }\n}\n",
        ] {
            assert_eq!(found(&files(call)), [""; 0], "{call}");
        }
        let call = "impl B {\n    fn g(&self) {\n        self.f()\n    }\n}\n";
        let listed = |list| {
            let mut all = files(call).to_vec();
            all.push((LIST, list));
            found(&all)
        };
        assert_eq!(listed("[methods]\na = [2]\n"), [""; 0]);
        assert_eq!(
            listed("[methods]\na = [3]\n"),
            ["xtask/circles.toml: lists rings of [3] files in a, and they have [2]"]
        );
    }

    #[test]
    fn no_file_uses_a_higher_floor() {
        let files = [
            ("a/src/lib.rs", "mod b;\nmod c;\n"),
            (
                "a/src/b/mod.rs",
                "pub struct B;\nimpl B {\n    fn f(&self) {\n        self.g();\n    }\n}\n",
            ),
            (
                "a/src/c/mod.rs",
                "use crate::b::B;\nimpl B {\n    fn g(&self) {}\n}\n",
            ),
            (
                LIST,
                "methods = { a = [2] }\nfloors = { a = [\"b\", \"c\"] }\n",
            ),
        ];
        assert_eq!(
            found(&files),
            ["a/src/b/mod.rs: uses a/src/c/mod.rs, but the floor 'b' is below 'c'"]
        );
        let mut turned = files;
        turned[3].1 = "methods = { a = [2] }\nfloors = { a = [\"c\", \"b\"] }\n";
        assert_eq!(
            found(&turned),
            ["a/src/c/mod.rs: uses a/src/b/mod.rs, but the floor 'c' is below 'b'"]
        );
    }

    #[test]
    fn a_module_and_its_children_belong_together() {
        let files = [
            ("a/src/lib.rs", "mod b;\n"),
            (
                "a/src/b/mod.rs",
                "mod c;\npub struct B;\nfn f() { c::g() }\n",
            ),
            ("a/src/b/c.rs", "use super::B;\npub fn g() {}\n"),
        ];
        assert_eq!(found(&files), [""; 0]);
    }

    #[test]
    fn tests_and_comments_are_left_out() {
        let files = [
            ("a/src/lib.rs", "mod b;\nmod c;\n"),
            (
                "a/src/b.rs",
                "/// [`crate::c::C`]\npub struct B;\n#[cfg(test)]\nmod tests { use crate::c::C; }\n",
            ),
            ("a/src/c.rs", "use crate::b::B;\npub struct C;\n"),
        ];
        assert_eq!(found(&files), [""; 0]);
    }
}
