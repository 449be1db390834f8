//! The histories of scenarios as text, to examine a failure or to compare two runs.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use swirl_model::event::HistoryEntry;

use crate::file::Scenario;
use crate::observed::{Observed, ObservedInstance};
use crate::{RunError, Runner};

/// Wraps another runner, and records the histories of all instances.
pub struct Recounting<'r> {
    runner: &'r dyn Runner,
    text: Mutex<String>,
}

/// A line of the text.
#[derive(Serialize)]
struct Line<'a> {
    file: &'a Path,
    scenario: &'a str,
    instance: &'a str,
    definition: &'a str,
    status: &'a str,
    history: &'a [HistoryEntry],
}

impl<'r> Recounting<'r> {
    pub fn new(runner: &'r dyn Runner) -> Recounting<'r> {
        Recounting {
            runner,
            text: Mutex::default(),
        }
    }

    /// A JSON object per instance, each on a line, with the entries that the API's history has.
    pub fn into_text(self) -> String {
        let text = self.text.into_inner();
        text.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Runner for Recounting<'_> {
    fn run(&self, scenario: &Scenario) -> Result<Observed, RunError> {
        let observed = self.runner.run(scenario)?;
        let lines: Result<Vec<String>, _> = observed
            .instances
            .iter()
            .map(|instance| line(scenario, instance))
            .collect();
        let lines = lines.map_err(|error| RunError::Failed(error.to_string()))?;
        let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        text.extend(lines);
        Ok(observed)
    }
}

fn line(scenario: &Scenario, instance: &ObservedInstance) -> serde_json::Result<String> {
    let line = Line {
        file: &scenario.path,
        scenario: &scenario.name,
        instance: &instance.id,
        definition: &instance.definition,
        status: &instance.status,
        history: &instance.history,
    };
    Ok(serde_json::to_string(&line)? + "\n")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::run::VirtualRunner;

    const CHAIN: &str = "
workflows:
  - id: outer
    version: 1.0.0
    specVersion: '0.8'
    states: [{name: A, type: operation, actions: [{subFlowRef: inner}], end: true}]
  - id: inner
    version: 1.0.0
    specVersion: '0.8'
    states: [{name: B, type: sleep, duration: P30D, end: true}]
input: {}
expect: {status: completed}
";

    #[test]
    fn each_instance_is_a_line_and_two_runs_give_the_same_text() {
        let text = || {
            let path = Path::new("x.scenario.yaml");
            let scenario = Scenario::parse(CHAIN.as_bytes(), path).unwrap();
            let recounting = Recounting::new(&VirtualRunner);
            recounting.run(&scenario).unwrap();
            recounting.into_text()
        };
        let found = text();
        assert_eq!(found, text());
        let lines = found.lines().map(serde_json::from_str);
        let lines: Vec<Value> = lines.collect::<Result<_, _>>().unwrap();
        let definitions: Vec<_> = lines.iter().map(|line| &line["definition"]).collect();
        assert_eq!(definitions, ["outer:1.0.0", "inner:1.0.0"]);
        for line in &lines {
            assert!(line["history"].as_array().unwrap().len() > 1, "{line}");
        }
    }
}
