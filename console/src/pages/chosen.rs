//! The files that were chosen to be deployed together: the definitions among them, and how these refer to the others.

use std::collections::BTreeMap;

use swirl_api::definitions::Deployment;
use swirl_model::file_names::{
    DEFINITION_ENDINGS, DOCUMENT_ENDINGS, FOLDER_FUNCTIONS_URI, FUNCTIONS_BESIDE, SCENARIO_ENDINGS,
};

use crate::visitor::Form;

/// How many files are considered.
pub const FILES_MAX: usize = 200;

/// A file that was chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct File {
    pub path: String,
    pub content: String,
    pub meaning: Meaning,
}

impl File {
    pub fn new(path: String, content: String) -> File {
        File {
            meaning: meaning(&path, &content),
            path,
            content,
        }
    }
}

/// The meaning of a file, by its name and its text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Meaning {
    Definition,
    Scenario,
    Other,
}

/// The files that were chosen, or listed before; and the names of those that aren't texts or are too many.
pub fn files_of(form: &Form) -> (Vec<File>, Vec<String>) {
    let listed = form.all("file-name").into_iter();
    let listed = listed.zip(form.all("file-content"));
    let listed = listed.map(|(path, content)| (path.to_owned(), Some(content.to_owned())));
    let chosen = form.files.iter().map(|file| {
        let content = String::from_utf8(file.content.clone());
        (file.path.clone(), content.ok())
    });
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    let mut left_out = Vec::new();
    for (path, content) in listed.chain(chosen) {
        let path = path.replace('\\', "/");
        let path = path.trim_matches('/');
        let is_hidden = path.split('/').any(|part| part.starts_with('.'));
        match content {
            _ if is_hidden || path.is_empty() => {}
            Some(content) if files.len() < FILES_MAX && !content.contains('\0') => {
                // Browsers end lines with CR LF.
                files.insert(path.to_owned(), content.replace("\r\n", "\n"));
            }
            _ => left_out.push(path.to_owned()),
        }
    }
    let files = files.into_iter();
    let files = files.map(|(path, content)| File::new(path, content));
    (files.collect(), left_out)
}

fn meaning(path: &str, content: &str) -> Meaning {
    let ends_in = |endings: &[&str]| endings.iter().any(|ending| path.ends_with(ending));
    if ends_in(&DEFINITION_ENDINGS) {
        return Meaning::Definition;
    }
    if ends_in(&SCENARIO_ENDINGS) {
        return Meaning::Scenario;
    }
    match ends_in(&DOCUMENT_ENDINGS) && holds_definition(content) {
        true => Meaning::Definition,
        false => Meaning::Other,
    }
}

/// Whether a text looks like a definition, in YAML or JSON. A mistake in it shouldn't hide it.
fn holds_definition(text: &str) -> bool {
    let is_json = text.trim_start().starts_with('{');
    let has = |key: &str| match is_json {
        true => text.contains(&format!("\"{key}\"")),
        false => text
            .lines()
            .filter_map(|line| line.strip_prefix(key))
            .any(|rest| rest.starts_with(':')),
    };
    let has_one = |keys: &[&str]| keys.iter().any(|key| has(key));
    let versions = ["specVersion", "schemaVersion", "schema-version"];
    has("document") && text.contains("dsl")
        || has_one(&["states", "tasks"]) && has_one(&versions)
        || has("states") && has_one(&["id", "key"])
}

/// The definitions among the files, each with its index and with all other files as it may refer to them.
///
/// One after another, since each has copies of all files.
pub fn deployments(files: &[File]) -> impl Iterator<Item = (usize, Deployment)> {
    let definitions = files.iter().enumerate();
    let definitions = definitions.filter(|(_, file)| file.meaning == Meaning::Definition);
    definitions.map(|(index, file)| {
        let resources = named(files, file).into_iter();
        let resources = resources.map(|(uri, of)| (uri, files[of].content.clone()));
        let deployment = Deployment {
            name: Some(file.path.clone()),
            document: file.content.clone(),
            resources: resources.collect(),
        };
        (index, deployment)
    })
}

/// The URIs by which a definition may refer to the other files, relative to its folder, with the index of each.
pub fn named(files: &[File], definition: &File) -> BTreeMap<String, usize> {
    let folder = folder_of(&definition.path);
    let others = files.iter().enumerate();
    let others: Vec<(usize, &File)> = others
        .filter(|(_, file)| file.meaning == Meaning::Other)
        .collect();
    let mut uris = BTreeMap::new();
    for (index, file) in &others {
        uris.insert(relative(folder, &file.path), *index);
    }
    // A file in a folder of the definition may refer to another one beside it, if no other file has this name.
    let name_of = |file: &File| file.path.rsplit('/').next().unwrap_or_default().to_owned();
    for (index, file) in &others {
        let name = name_of(file);
        let is_below = folder.is_empty() || file.path.starts_with(&format!("{folder}/"));
        let is_only = others
            .iter()
            .filter(|(_, other)| name_of(other) == name)
            .count()
            == 1;
        if is_below && is_only {
            uris.entry(name).or_insert(*index);
        }
    }
    let root = root_of(files);
    let is_functions = |file: &File| {
        let name = file.path.strip_prefix(root);
        name.is_some_and(|name| FUNCTIONS_BESIDE.contains(&name))
    };
    if let Some((index, _)) = others.iter().find(|(_, file)| is_functions(file)) {
        uris.insert(FOLDER_FUNCTIONS_URI.to_owned(), *index);
    }
    uris
}

/// The folder of a file, without a slash at its end.
fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// The folder that was chosen, with a slash; empty if the files are not all in one.
fn root_of(files: &[File]) -> &str {
    let first = files.first().and_then(|file| file.path.find('/'));
    let root = match (files.first(), first) {
        (Some(file), Some(end)) => &file.path[..=end],
        _ => "",
    };
    match files.iter().all(|file| file.path.starts_with(root)) {
        true => root,
        false => "",
    }
}

/// The path of a file as seen from a folder.
fn relative(folder: &str, path: &str) -> String {
    let from: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    let to: Vec<&str> = path.split('/').collect();
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..", from.len() - common);
    let parts: Vec<&str> = up.chain(to[common..].iter().copied()).collect();
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: &str = "id: w\nspecVersion: '0.8'\nstates: []\n";

    fn file(path: &str, content: &str) -> File {
        File::new(path.to_owned(), content.to_owned())
    }

    #[test]
    fn files_are_recognised_by_name_and_by_content() {
        let is = meaning;
        let tasks = "document: {dsl: 1.0.3, name: b}\ndo: []\n";
        for (path, content) in [
            ("empty.sw.yaml", ""),
            ("a/tasks.yaml", tasks),
            ("states.yml", STATES),
            ("old.json", r#"{"id": "w", "states": ["#),
        ] {
            assert_eq!(is(path, content), Meaning::Definition, "{path}");
        }
        assert_eq!(is("w.scenario.yaml", STATES), Meaning::Scenario);
        for (path, content) in [
            ("tasks.txt", tasks),
            ("openapi.yaml", "openapi: 3.0.0\ninfo: {title: states}\n"),
            ("data.json", r#"{"name": "Germany", "states": ["Bavaria"]}"#),
            ("functions.yaml", "functions: []"),
        ] {
            assert_eq!(is(path, content), Meaning::Other, "{path}");
        }
    }

    #[test]
    fn definitions_find_files_relative_to_their_folders() {
        let files = [
            file("shop/a.sw.yaml", STATES),
            file("shop/functions.yaml", "[]"),
            file("shop/inner/b.sw.yaml", STATES),
            file("shop/specs/pay.yaml", "openapi: 3.0.0"),
        ];
        let uris = |index: usize| {
            let uris = named(&files, &files[index]).into_iter();
            uris.map(|(uri, of)| format!("{uri} {of}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            uris(0),
            [
                "functions.yaml 1",
                "pay.yaml 3",
                "specs/pay.yaml 3",
                "swirl:functions-of-the-folder 1"
            ]
        );
        assert_eq!(
            uris(2),
            [
                "../functions.yaml 1",
                "../specs/pay.yaml 3",
                "swirl:functions-of-the-folder 1"
            ]
        );
        let all: Vec<_> = deployments(&files).collect();
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].1.resources["specs/pay.yaml"], "openapi: 3.0.0");
        assert_eq!(root_of(&[file("a/x", ""), file("ab/y", "")]), "");
    }

    #[test]
    fn hidden_files_and_those_that_are_no_texts_are_left_out() {
        let mut form = Form::of(&[("file-name", "a.yaml"), ("file-content", "x\r\ny")]);
        for (path, content) in [
            ("s/.git/config", &b"x"[..]),
            ("s/日本.yaml", b""),
            ("s/logo.png", b"\xff\xd8"),
            ("s\\b.yaml", b"1"),
            ("", b"1"),
        ] {
            form.files.push(crate::visitor::FormFile {
                path: path.to_owned(),
                content: content.to_owned(),
            });
        }
        let (files, left_out) = files_of(&form);
        let expected = [
            file("a.yaml", "x\ny"),
            file("s/b.yaml", "1"),
            file("s/日本.yaml", ""),
        ];
        assert_eq!(files, expected);
        assert_eq!(left_out, ["s/logo.png"]);
    }
}
