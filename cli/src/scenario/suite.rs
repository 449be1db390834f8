//! Running many scenario files.

use std::path::PathBuf;
use std::time::Instant;

use super::discover;
use super::file::Scenario;
use super::report::{Outcome, Tally, Verdict};
use super::{RunError, Runner};

/// What a suite tells while it runs.
pub trait Listener {
    /// A scenario has ended.
    fn verdict(&mut self, verdict: &Verdict);
    /// A file cannot be read, or is no scenario.
    fn unreadable(&mut self, message: &str);
}

/// Runs all scenarios that the paths name. One that cannot be read doesn't keep the others from
/// running.
pub fn run(
    paths: &[PathBuf],
    runner: &dyn Runner,
    listener: &mut dyn Listener,
) -> (Tally, Vec<Verdict>) {
    let mut tally = Tally::default();
    let mut verdicts = Vec::new();
    let (files, errors) = discover::files(paths);
    for error in errors {
        tally.unreadable += 1;
        listener.unreadable(&error.to_string());
    }
    for file in files {
        let scenario = match Scenario::load(&file) {
            Ok(scenario) => scenario,
            Err(error) => {
                tally.unreadable += 1;
                listener.unreadable(&error.to_string());
                continue;
            }
        };
        let began = Instant::now();
        let outcome = match runner.run(&scenario) {
            Ok(observed) => match scenario.expect.check(&observed) {
                differences if differences.is_empty() => Outcome::Passed,
                differences => Outcome::Failed(differences),
            },
            Err(RunError::Unreadable(message)) => {
                tally.unreadable += 1;
                listener.unreadable(&format!("{}: {message}", file.display()));
                continue;
            }
            Err(RunError::Skipped(why)) => Outcome::Skipped(why),
            Err(error) => Outcome::Broken(error.to_string()),
        };
        let verdict = Verdict {
            file,
            name: scenario.name,
            outcome,
            took: began.elapsed(),
        };
        tally.count(&verdict.outcome);
        listener.verdict(&verdict);
        verdicts.push(verdict);
    }
    (tally, verdicts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Observed, ObservedInstance};

    /// Answers by the scenario's name.
    struct Named;

    impl Runner for Named {
        fn run(&self, scenario: &Scenario) -> Result<Observed, RunError> {
            let instance = |status: &str| ObservedInstance {
                status: status.into(),
                ..Default::default()
            };
            match scenario.name.as_str() {
                "skip" => Err(RunError::Skipped("not here".into())),
                "call" => Err(RunError::UnlistedFunction("f".into())),
                "file" => Err(RunError::Unreadable("w.json: no such file".into())),
                status => Ok(Observed {
                    instances: vec![instance(status)],
                    rejected: None,
                }),
            }
        }
    }

    #[derive(Default)]
    struct Lines(Vec<String>);

    impl Listener for Lines {
        fn verdict(&mut self, verdict: &Verdict) {
            self.0.push(verdict.text(false));
        }

        fn unreadable(&mut self, message: &str) {
            self.0.push(format!("error: {message}\n"));
        }
    }

    #[test]
    fn each_file_has_its_say() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["completed", "faulted", "skip", "call", "file"] {
            let text = format!("name: {name}\nworkflows: [w]\nexpect: {{status: completed}}\n");
            std::fs::write(folder.path().join(format!("{name}.scenario.yaml")), text).unwrap();
        }
        std::fs::write(
            folder.path().join("x.scenario.yaml"),
            "workflows: [w]\nexpcet: {}\n",
        )
        .unwrap();
        let mut lines = Lines::default();
        let (tally, verdicts) = run(&[folder.path().to_owned()], &Named, &mut lines);
        assert_eq!(
            tally,
            Tally {
                passed: 1,
                failed: 2,
                skipped: 1,
                unreadable: 2
            }
        );
        assert_eq!(verdicts.len(), 4);
        let text = lines
            .0
            .concat()
            .replace(&format!("{}/", folder.path().display()), "");
        insta::assert_snapshot!(text, @r#"
        FAILED  call (call.scenario.yaml)
                the function 'f' was called, and the scenario doesn't say how it answers; list it under 'functions'
        ok      completed (completed.scenario.yaml)
        FAILED  faulted (faulted.scenario.yaml)
                status: expected completed, got faulted
        error: file.scenario.yaml: w.json: no such file
        skipped skip (skip.scenario.yaml)
                not here
        error: x.scenario.yaml:1:1: a scenario needs 'expect'
        x.scenario.yaml:2:1: a scenario has no key 'expcet'
          help: did you mean 'expect'?
        "#);
    }
}
