//! Runs many scenario files.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Instant;

use super::discover;
use super::file::Scenario;
use super::report::{Outcome, Tally, Unreadable, Verdict};
use super::{RunError, Runner};

/// Receives the results of a suite while it runs.
pub trait Listener {
    /// A scenario has ended.
    fn verdict(&mut self, verdict: &Verdict);
    /// A file cannot be read, or is not a valid scenario.
    fn unreadable(&mut self, message: &str);
}

/// Runs all scenarios in the given paths, `jobs` at a time. With a filter, it runs only those whose name or file
/// contains it, ignoring case. An unreadable file doesn't affect the others. Results are reported in the order of the
/// files.
pub fn run(
    paths: &[PathBuf],
    runner: &dyn Runner,
    jobs: usize,
    filter: Option<&str>,
    listener: &mut dyn Listener,
) -> Results {
    let mut results = Results::default();
    let (files, errors) = discover::files(paths);
    let mut note = |ran: Ran| match ran {
        Err(Left::Filtered) => {}
        Ok(verdict) => {
            results.tally.count(&verdict.outcome);
            listener.verdict(&verdict);
            results.verdicts.push(verdict);
        }
        Err(Left::Unreadable(unreadable)) => {
            results.tally.unreadable += 1;
            listener.unreadable(&unreadable.message);
            results.unreadable.push(unreadable);
        }
    };
    for error in errors {
        note(Err(Left::Unreadable(Unreadable {
            path: error.path().to_owned(),
            message: error.to_string(),
        })));
    }
    if jobs < 2 {
        files
            .into_iter()
            .map(|file| run_one(file, runner, filter))
            .for_each(&mut note);
    } else {
        at_once(&files, runner, jobs, filter, &mut note);
    }
    results
}

/// The results of a suite.
#[derive(Debug, Default)]
pub struct Results {
    pub tally: Tally,
    pub verdicts: Vec<Verdict>,
    pub unreadable: Vec<Unreadable>,
}

/// A verdict, or the reason why there is none.
type Ran = Result<Verdict, Left>;

/// The reason why a file was not run.
enum Left {
    Unreadable(Unreadable),
    /// It doesn't match the filter.
    Filtered,
}

/// Runs several scenarios at once, and reports each after those before it.
fn at_once(
    files: &[PathBuf],
    runner: &dyn Runner,
    jobs: usize,
    filter: Option<&str>,
    note: &mut dyn FnMut(Ran),
) {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = channel();
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(file) = files.get(index) else { return };
                    if sender
                        .send((index, run_one(file.clone(), runner, filter)))
                        .is_err()
                    {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut early = BTreeMap::new();
        let mut reported = 0;
        for (index, ran) in receiver {
            early.insert(index, ran);
            while let Some(ran) = early.remove(&reported) {
                note(ran);
                reported += 1;
            }
        }
    });
}

fn run_one(file: PathBuf, runner: &dyn Runner, filter: Option<&str>) -> Ran {
    let unreadable = |message: String| {
        Left::Unreadable(Unreadable {
            path: file.clone(),
            message,
        })
    };
    let scenario = Scenario::load(&file).map_err(|error| unreadable(error.to_string()))?;
    if filter.is_some_and(|filter| !is_meant(filter, &scenario)) {
        return Err(Left::Filtered);
    }
    let began = Instant::now();
    let outcome = match runner.run(&scenario) {
        Ok(observed) => match scenario.expect.check(&observed) {
            differences if differences.is_empty() => Outcome::Passed,
            differences => Outcome::Failed(differences),
        },
        Err(RunError::Unreadable(message)) => {
            return Err(unreadable(format!("{}: {message}", file.display())));
        }
        Err(RunError::Skipped(why)) => Outcome::Skipped(why),
        Err(error) => Outcome::Broken(error.to_string()),
    };
    Ok(Verdict {
        file,
        name: scenario.name,
        outcome,
        took: began.elapsed(),
    })
}

fn is_meant(filter: &str, scenario: &Scenario) -> bool {
    let filter = filter.to_lowercase();
    let file = scenario.path.display().to_string();
    [&scenario.name, &file]
        .iter()
        .any(|text| text.to_lowercase().contains(&filter))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Observed, ObservedInstance};

    /// Answers with the scenario's name.
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
                    ..Observed::default()
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
    fn each_file_is_reported() {
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
        let Results {
            tally,
            verdicts,
            unreadable,
        } = run(&[folder.path().to_owned()], &Named, 1, None, &mut lines);
        let mut again = Lines::default();
        run(&[folder.path().to_owned()], &Named, 3, None, &mut again);
        assert_eq!(again.0, lines.0, "several at once are reported in order");
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
        let names = unreadable
            .iter()
            .map(|file| file.path.strip_prefix(&folder));
        let names: Vec<_> = names.map(|name| name.unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["file.scenario.yaml", "x.scenario.yaml"]);
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
