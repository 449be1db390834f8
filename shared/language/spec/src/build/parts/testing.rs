//! Text in, findings out: shared by the tests of the readers.

use swirl_model::workflow::Workflow;

use crate::options::Options;
use crate::reader::{self, Reading};
use crate::resource::MapResources;

/// The first three lines of each document in these tests.
const HEAD: &str = "id: test\nversion: 1.0.0\nspecVersion: '0.8'\n";

pub(crate) fn read_with(body: &str, resources: &[(&str, &str)], provided: &[&str]) -> Reading {
    let mut map = MapResources::default();
    for (uri, text) in resources {
        map.insert(*uri, text.as_bytes().to_vec());
    }
    let options = Options {
        provided: provided.iter().map(|name| (*name).to_owned()).collect(),
        ..Options::default()
    };
    reader::read(format!("{HEAD}{body}").as_bytes(), &map, &options)
}

/// `severity code pointer line`, one finding per line.
pub(crate) fn show(reading: &Reading) -> String {
    let lines: Vec<String> = reading
        .diagnostics
        .iter()
        .map(|d| {
            let severity = format!("{:?}", d.severity).to_lowercase();
            format!("{severity} {} {} {}", d.code, d.pointer, d.line)
        })
        .collect();
    lines.join("\n")
}

pub(crate) fn findings(body: &str) -> String {
    show(&read_with(body, &[], &[]))
}

/// The findings about actions in an operation state, with a defined function `f`. The actions begin in line 8 of the
/// document.
pub(crate) fn of_actions(actions: &str) -> String {
    findings(&in_actions(actions))
}

pub(crate) fn in_actions(actions: &str) -> String {
    format!(
        "functions: [{{name: f, operation: 'a.json#f'}}, {{name: e, type: expression, operation: .a}}]\nstates:\n- {{name: A, type: operation, end: true, actions: [\n  {actions}\n  ]}}\n"
    )
}

/// A single inject state, for definitions around the states.
pub(crate) const STATES: &str = "states: [{name: A, type: inject, data: {}, end: true}]\n";

pub(crate) fn workflow(body: &str) -> Workflow {
    let reading = read_with(body, &[], &[]);
    let shown = show(&reading);
    reading.workflow.unwrap_or_else(|| panic!("{shown}"))
}
