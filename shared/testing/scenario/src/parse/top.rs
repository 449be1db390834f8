//! The top level of a scenario file.

use std::collections::BTreeMap;
use std::path::Path;

use swirl_documents::codes;
use swirl_documents::diagnostic::Diagnostic;
use swirl_documents::source::{self, Limits, Node};
use swirl_model::Data;
use swirl_model::time::{IsoDuration, Timestamp};

use super::reader::Reader;
use super::{expected, parts};
use crate::expect::Expect;
use crate::file::{CLOCK_DEFAULT, Problem, Scenario, UNTIL_DEFAULT, WorkflowSource};

const KEYS: [&str; 12] = [
    "name",
    "workflows",
    "input",
    "start",
    "clock",
    "secrets",
    "functions",
    "events",
    "resources",
    "until",
    "control",
    "expect",
];

pub(crate) fn scenario(content: &[u8], path: &Path) -> Result<Scenario, Vec<Problem>> {
    let (root, problems) = tree(content)?;
    let mut reader = Reader {
        problems,
        clock: default_clock(),
    };
    if !reader.object(&root, "a scenario", &KEYS) {
        return Err(reader.problems);
    }
    if let Some(node) = root.get("clock")
        && let Some(text) = reader.string(node, "'clock'")
    {
        match Timestamp::parse(text.trim()) {
            Ok(clock) => reader.clock = clock,
            Err(error) => {
                let message = format!("'clock' is not a valid instant: {error}");
                reader.wrong(
                    node,
                    message,
                    Some("write for example '2024-01-01T00:00:00Z'"),
                );
            }
        }
    }
    let r = &mut reader;
    let scenario = Scenario {
        path: path.to_owned(),
        name: root
            .get("name")
            .and_then(|node| r.string(node, "'name'"))
            .unwrap_or_else(|| file_name(path)),
        workflows: workflows(r, &root, path),
        input: root.get("input").map(Node::to_data),
        start: root
            .get("start")
            .map(|node| parts::starts(r, node))
            .unwrap_or_default(),
        clock: r.clock,
        secrets: root
            .get("secrets")
            .and_then(|node| r.map(node, "'secrets'"))
            .unwrap_or_else(Data::object),
        functions: root
            .get("functions")
            .map(|node| parts::functions(r, node))
            .unwrap_or_default(),
        events: root
            .get("events")
            .map(|node| parts::events(r, node))
            .unwrap_or_default(),
        resources: root
            .get("resources")
            .map(|node| resources(r, node))
            .unwrap_or_default(),
        until: match root.get("until") {
            Some(node) => r.moment(node, "'until'").unwrap_or_default(),
            None => default_until().add_to(r.clock),
        },
        control: root
            .get("control")
            .map(|node| parts::controls(r, node))
            .unwrap_or_default(),
        expect: match r.need(&root, "a scenario", "expect") {
            Some(node) => expected::expect(r, node),
            None => Expect::default(),
        },
    };
    if reader.problems.is_empty() {
        Ok(scenario)
    } else {
        reader
            .problems
            .sort_by_key(|problem| (problem.line, problem.column));
        Err(reader.problems)
    }
}

/// The document's tree, and problems that still permit one (duplicate keys).
fn tree(content: &[u8]) -> Result<(Node, Vec<Problem>), Vec<Problem>> {
    let parsed = source::read(content, &Limits::default());
    let problem = |finding: &Diagnostic| Problem {
        line: finding.line,
        column: finding.column,
        message: finding.message.clone(),
        hint: finding.hint.clone(),
    };
    let empty = |finding: &Diagnostic| Problem {
        message: "the scenario is empty".to_owned(),
        hint: Some("a scenario is an object with at least 'workflows' and 'expect'".to_owned()),
        ..problem(finding)
    };
    let errors = parsed
        .diagnostics
        .iter()
        .filter(|finding| finding.is_error());
    let problems: Vec<Problem> = errors
        .map(|finding| match finding.code == codes::EMPTY_DOCUMENT {
            true => empty(finding),
            false => problem(finding),
        })
        .collect();
    match parsed.root {
        Some(root) => Ok((root, problems)),
        None => Err(problems),
    }
}

fn default_clock() -> Timestamp {
    Timestamp::parse(CLOCK_DEFAULT).unwrap_or_default()
}

fn default_until() -> IsoDuration {
    IsoDuration::parse(UNTIL_DEFAULT).unwrap_or_default()
}

/// For `a/b.scenario.yaml` this is `b`.
fn file_name(path: &Path) -> String {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let end = name
        .find(".scenario.")
        .or_else(|| name.rfind('.'))
        .filter(|end| *end > 0);
    name[..end.unwrap_or(name.len())].to_owned()
}

fn workflows(r: &mut Reader, root: &Node, path: &Path) -> Vec<WorkflowSource> {
    let Some(node) = r.need(root, "a scenario", "workflows") else {
        return Vec::new();
    };
    let items = r.list(node, "'workflows'");
    if items.is_empty() && node.items().is_some() {
        r.wrong(
            node,
            "'workflows' is empty",
            Some("list at least the workflow under test"),
        );
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut found = Vec::new();
    for item in items {
        if item.members().is_some() {
            found.push(WorkflowSource::Inline(item.clone()));
        } else if item.as_str().is_some() {
            found.extend(
                r.string(item, "a workflow's path")
                    .map(|text| WorkflowSource::Path(folder.join(text))),
            );
        } else {
            r.wrong_kind(item, "an entry of 'workflows'", "a path or a definition");
        }
    }
    found
}

/// Content that isn't text is kept as JSON.
fn resources(r: &mut Reader, node: &Node) -> BTreeMap<String, String> {
    let Some(members) = node.members() else {
        r.wrong_kind(node, "'resources'", "an object");
        return BTreeMap::new();
    };
    members
        .iter()
        .map(|member| (member.key().to_owned(), member.value().to_data().to_text()))
        .collect()
}
