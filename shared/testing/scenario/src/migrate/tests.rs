//! Proof: each scenario of an older edition passes with its documents and itself migrated to DSL 1.0.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use swirl_migrate::{Assume, Target};

use super::{MigrateError, migrate};
use crate::run::VirtualRunner;
use crate::{Runner, discover};

/// The folders, and the minimum number of their scenarios that pass on both sides.
const FOLDERS: [(&str, usize); 10] = [
    ("tests/conformance/0.1-early", 29),
    ("tests/conformance/0.1", 29),
    ("tests/conformance/0.1-release", 22),
    ("tests/conformance/tasks", 27),
    ("tests/conformance/0.5", 60),
    ("tests/conformance/0.6", 28),
    ("tests/conformance/0.7", 41),
    ("tests/conformance/0.8", 579),
    ("tests/conformance/0.9", 36),
    ("examples", 19),
];

/// Scenarios that can't pass on both sides, and why.
const UNLIKE: [(&str, &str); 4] = [
    (
        "eventref/answer-during-the-delay-is-kept.scenario.yaml",
        "an event that comes during a retry's delay: a task of DSL 1.0 listens while it runs",
    ),
    (
        "retries/event-of-a-switch-during-the-delay.scenario.yaml",
        "the same for a switch",
    ),
    (
        "functions/described-without-a-server.scenario.yaml",
        "its OpenAPI document names no server, so the request of a task cannot be made",
    ),
    (
        "functions/described-with-an-unusable-server.scenario.yaml",
        "the same for a server that cannot be used",
    ),
];

/// These would run for longer than all others together. They are migrated and read, and that is enough.
const LONG: [&str; 2] = [
    "foreach/ten-thousand-in-batches.scenario.yaml",
    "operation/loop-without-end.scenario.yaml",
];

enum Outcome {
    /// Nothing in it is to be migrated.
    NotMeant,
    Passed,
    /// It can't be migrated, with the reasons.
    Not(Vec<String>),
    /// It runs, but needs iterations at once, or start events that go to an active instance.
    Slower,
    /// It has a part that isn't carried out yet.
    Later,
    Failed(String),
}

fn proved(file: &Path) -> Outcome {
    let content = std::fs::read(file).unwrap();
    let one = |assume| migrate(&content, file, &Target::default(), assume);
    let assume = Assume {
        sequential: true,
        starts: true,
        ..Assume::default()
    };
    let mut migrated = match one(assume) {
        Ok(migrated) => migrated,
        Err(MigrateError::Scenario(_)) => return Outcome::NotMeant,
        Err(MigrateError::Document { obstacles, .. }) => {
            let reasons = obstacles.into_iter().map(|one| one.message);
            return Outcome::Not(reasons.collect());
        }
        Err(MigrateError::Unfit(why)) => return Outcome::Not(vec![why]),
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    let scenario = match migrated.scenario(file) {
        Ok(scenario) => scenario,
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    if LONG.iter().any(|name| file.ends_with(name)) {
        return Outcome::Passed;
    }
    let failed = match VirtualRunner.run(&scenario) {
        Ok(observed) => {
            let differences = scenario.expect.check(&observed);
            let states = migrated.take_tasks(&observed);
            if differences.is_empty() && states.is_empty() {
                // With its tasks, the scenario is complete.
                let whole = migrated.scenario(file).unwrap();
                let again = whole.expect.check(&observed);
                assert!(again.is_empty(), "{}: {again:?}", file.display());
                return Outcome::Passed;
            }
            format!("{differences:?} {states:?}")
        }
        Err(error) => error.to_string(),
    };
    let mut unlike = UNLIKE.iter();
    if let Some((_, why)) = unlike.find(|(name, _)| file.ends_with(name)) {
        return Outcome::Not(vec![(*why).to_owned()]);
    }
    if failed.contains("not-carried-out") {
        return Outcome::Later;
    }
    match one(Assume::default()) {
        Err(_) => Outcome::Slower,
        Ok(_) => Outcome::Failed(failed),
    }
}

/// All files of a folder, on all processors.
fn all_proved(files: &[PathBuf]) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let mut outcomes: Vec<(usize, Outcome)> = std::thread::scope(|scope| {
        let work = || {
            let mut done = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(file) = files.get(at) else {
                    return done;
                };
                done.push((at, proved(file)));
            }
        };
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap())
            .collect()
    });
    outcomes.sort_by_key(|(at, _)| *at);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

#[test]
fn scenarios_of_older_editions_pass_as_dsl_1_0() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut failures = Vec::new();
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for (folder, least) in FOLDERS {
        let (files, errors) = discover::files(&[root.join(folder)]);
        assert!(errors.is_empty() && !files.is_empty(), "{folder}");
        let (mut passed, mut not, mut slower, mut later, mut not_meant) = (0, 0, 0, 0, 0);
        for (file, outcome) in files.iter().zip(all_proved(&files)) {
            match outcome {
                Outcome::NotMeant => not_meant += 1,
                Outcome::Passed => passed += 1,
                Outcome::Slower => slower += 1,
                Outcome::Later => later += 1,
                Outcome::Not(list) => {
                    not += 1;
                    for reason in list.into_iter().collect::<HashSet<_>>() {
                        *reasons.entry(without_names(&reason)).or_default() += 1;
                    }
                }
                Outcome::Failed(why) => failures.push(format!("{}: {why}", file.display())),
            }
        }
        println!(
            "{folder}: {passed} passed, {not} can't be migrated, {slower} need iterations at once or start events for active instances, {later} aren't carried out yet, {not_meant} have nothing to migrate"
        );
        if passed < least {
            failures.push(format!("{folder}: {passed} passed, and there were {least}"));
        }
    }
    let mut reasons: Vec<(String, usize)> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for (reason, count) in reasons {
        println!("  {count} x {reason}");
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The reason without what it quotes.
fn without_names(reason: &str) -> String {
    let mut parts = reason.split(" '");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| match part.split_once("' ") {
        Some((_, rest)) => format!("{text} _ {rest}"),
        None => format!("{text} _"),
    })
}
