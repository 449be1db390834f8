//! Short documents for the tests in this folder.

use swirl_model::workflow::Workflow;

use crate::options::Options;
use crate::reader::{Reading, read};
use crate::resource::MapResources;

pub(super) fn reading(text: &str) -> Reading {
    read(
        text.as_bytes(),
        &MapResources::default(),
        &Options::default(),
    )
}

/// A workflow with these tasks, given as YAML from line 4 on.
pub(super) fn of_tasks(body: &str) -> String {
    format!("id: test\nname: test\nversion: 1.0.0\n{body}")
}

/// `severity code pointer line` for each finding.
pub(super) fn findings(body: &str) -> String {
    show(&reading(&of_tasks(body)))
}

pub(super) fn show(reading: &Reading) -> String {
    let lines: Vec<String> = reading
        .diagnostics
        .iter()
        .map(|finding| {
            format!(
                "{} {} {} {}",
                finding.severity, finding.code, finding.pointer, finding.line
            )
        })
        .collect();
    lines.join("\n")
}

pub(super) fn workflow(body: &str) -> Workflow {
    let reading = reading(&of_tasks(body));
    match reading.workflow {
        Some(workflow) => workflow,
        None => panic!("{}", show(&reading)),
    }
}
