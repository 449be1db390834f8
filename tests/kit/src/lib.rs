//! Reads the features of the conformance kit of DSL 1.0, and checks what they say of a run, in virtual time or over HTTP.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::ffi::OsString;
use std::path::Path;

use swirl_model::Data;

/// The folder of the kit's features. Without it the tests say that they are skipped.
pub fn folder() -> Option<OsString> {
    let folder = std::env::var_os("SWIRL_CTK");
    if folder.is_none() {
        eprintln!("skipped: SWIRL_CTK doesn't name the folder of the kit's features");
    }
    folder
}

pub struct Case {
    pub name: String,
    /// Each with its block, if it has one.
    pub steps: Vec<(String, Option<String>)>,
}

/// The result of a run.
#[derive(Debug, Default)]
pub struct Seen {
    pub status: String,
    pub output: Data,
    /// As DSL 1.0 describes errors.
    pub error: Data,
    /// The names of the tasks that began, in order.
    pub tasks: Vec<String>,
}

impl Case {
    pub fn definition(&self) -> String {
        self.block("a workflow with definition").unwrap_or_default()
    }

    pub fn input(&self) -> String {
        let input = self.block("the workflow input is");
        input.unwrap_or_else(|| "{}".to_owned())
    }

    fn block(&self, word: &str) -> Option<String> {
        let step = self.steps.iter().find(|(step, _)| step.contains(word));
        step.and_then(|(_, block)| block.clone())
    }

    /// # Errors
    /// The first step that doesn't hold.
    pub fn check(&self, seen: &Seen) -> Result<(), String> {
        for (step, block) in &self.steps {
            let given = step.starts_with("a workflow") || step.contains("input is");
            if !given && step != "the workflow is executed" {
                check(step, block.as_deref(), seen).map_err(|why| format!("{step}: {why}"))?;
            }
        }
        Ok(())
    }
}

/// Examines each scenario of the kit. Panics with those that fail.
pub fn examine_all(folder: &Path, mut examine: impl FnMut(&Case) -> Result<(), String>) {
    let files = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = files.map(|it| it.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "feature"));
    files.sort();
    let (mut passed, mut failed) = (0, Vec::new());
    for file in files {
        for case in cases(&std::fs::read_to_string(&file).unwrap()) {
            let result = examine(&case);
            eprintln!("{}: {result:?}", case.name);
            match result {
                Ok(()) => passed += 1,
                Err(why) => failed.push((case.name, why)),
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(passed > 0, "the folder has no features");
    eprintln!("{passed} passed");
}

/// The scenarios of a feature.
pub fn cases(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut block: Option<Vec<&str>> = None;
    for line in text.lines() {
        let bare = line.trim();
        if bare.starts_with("\"\"\"") {
            let step = cases.last_mut().and_then(|case| case.steps.last_mut());
            match (block.take(), step) {
                (Some(lines), Some(step)) => step.1 = Some(unindented(&lines)),
                _ => block = Some(Vec::new()),
            }
            continue;
        }
        if let Some(lines) = &mut block {
            lines.push(line);
        } else if let Some(name) = bare.strip_prefix("Scenario:") {
            let name = name.trim().to_owned();
            let steps = Vec::new();
            cases.push(Case { name, steps });
        } else if !bare.is_empty() && !bare.starts_with('#') {
            let words = ["Given ", "When ", "Then ", "And "];
            let step = words.iter().find_map(|word| bare.strip_prefix(word));
            if let (Some(step), Some(case)) = (step, cases.last_mut()) {
                case.steps.push((step.to_owned(), None));
            }
        }
    }
    cases
}

fn unindented(lines: &[&str]) -> String {
    let filled = lines.iter().filter(|line| !line.trim().is_empty());
    let least = filled
        .map(|line| line.len() - line.trim_start().len())
        .min();
    let least = least.unwrap_or(0);
    let lines = lines.iter().map(|line| line.get(least..).unwrap_or(""));
    lines.collect::<Vec<_>>().join("\n")
}

pub fn yaml(text: &str) -> Data {
    let limits = swirl_documents::source::Limits::default();
    let tree = swirl_documents::source::parse(text.as_bytes(), &limits);
    tree.map(|node| node.to_data()).unwrap_or_default()
}

fn property(data: &Data, path: &str) -> Option<Data> {
    path.split('.')
        .try_fold(data.clone(), |data, name| data.get(name))
}

/// The words in quotes.
fn quoted(step: &str) -> Vec<&str> {
    step.split('\'').skip(1).step_by(2).collect()
}

fn check(step: &str, block: Option<&str>, seen: &Seen) -> Result<(), String> {
    let output = &seen.output;
    let status = |wanted: &str| match seen.status == wanted {
        true => Ok(()),
        false => Err(format!("it is {}: {:?}", seen.status, seen.error)),
    };
    let same = |found: &Data| {
        let wanted = yaml(block.unwrap_or_default());
        match wanted == *found {
            true => Ok(()),
            false => Err(format!("expected {wanted}, got {found}")),
        }
    };
    let place = |task: &str| seen.tasks.iter().position(|name| name == task);
    let words: Vec<&str> = step.split_whitespace().collect();
    match words.as_slice() {
        ["the", "workflow", "should", "complete"] => status("completed"),
        ["the", "workflow", "should", "complete", "with", ..] => {
            status("completed").and_then(|()| same(output))
        }
        ["the", "workflow", "should", "fault"] => status("faulted"),
        ["the", "workflow", "should", "fault", "with", ..] => {
            status("faulted")?;
            same(&seen.error)
        }
        ["the", "workflow", "should", "cancel"] => status("cancelled"),
        [
            "the",
            "workflow",
            "output",
            "should",
            "have",
            "properties",
            ..,
        ] => {
            let missing = quoted(step);
            let mut missing = missing
                .into_iter()
                .filter(|path| property(output, path).is_none());
            missing.next().map_or(Ok(()), |path| {
                Err(format!("'{path}' is missing in {output}"))
            })
        }
        [
            "the",
            "workflow",
            "output",
            "should",
            "have",
            "a",
            _,
            "property",
            "with",
            "value:",
        ] => {
            let path = quoted(step)[0];
            same(&property(output, path).unwrap_or_default())
        }
        [
            "the",
            "workflow",
            "output",
            "should",
            "have",
            "a",
            _,
            "property",
            "containing",
            n,
            _,
        ] => {
            let found = property(output, quoted(step)[0]).unwrap_or_default();
            let count = found.as_array().map(|items| items.len().to_string());
            match count.as_deref() == Some(n) {
                true => Ok(()),
                false => Err(format!("expected {n} items, got {found}")),
            }
        }
        [task, "should", "run", "first"] if place(task) == Some(0) => Ok(()),
        [task, "should", "run", "last"]
            if place(task).map(|at| at + 1) == Some(seen.tasks.len()) =>
        {
            Ok(())
        }
        [task, "should", "run", "after", other] if place(task) > place(other) => Ok(()),
        [task, "should", "run", "before", other] if place(task) < place(other) => Ok(()),
        _ => Err(format!("it doesn't hold, or isn't known: {:?}", seen.tasks)),
    }
}
