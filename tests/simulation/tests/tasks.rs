//! Random documents of DSL 1.0: a limited number of seeds, and what they consist of.

use std::collections::BTreeMap;

use serde_json::Value;
use swirl_simulation::cluster::{Faults, Mutant};
use swirl_simulation::generate::Case;
use swirl_simulation::tasks::{CLUSTER_MARGIN_MS, MOMENT_MARGIN_MS, generate::generate};
use swirl_simulation::{Mode, Totals, check_hard, check_mode, hard, plans};

fn cases(count: u64) -> impl Iterator<Item = Case> {
    (0..count).map(|seed| generate(seed, 1 + (seed % 8) as usize))
}

#[test]
fn seeds_have_the_outcome_of_the_reference_whatever_the_faults() {
    let mut totals = Totals::default();
    // Seed 207 has an instance that two events start, each produced by another one.
    let further = [207].map(|seed| generate(seed, 1 + (seed % 8) as usize));
    for case in cases(30).chain(further) {
        for mode in Mode::of_seed(case.seed, None) {
            let found = check_mode(&case, mode, &mut totals).expect("the run comes to its end");
            let seed = case.seed;
            assert!(
                found.is_empty(),
                "seed {seed}, {mode:?}: {}",
                found.join("\n")
            );
        }
    }
    assert!(totals.runs > 70, "{totals}");
}

#[test]
fn every_document_is_valid() {
    for case in cases(300) {
        for text in plans::documents(&case) {
            let resources = swirl_spec::resource::MapResources::default();
            let options = swirl_spec::Options::default();
            let reading = swirl_spec::read(text.as_bytes(), &resources, &options);
            let found = reading.diagnostics;
            assert!(
                reading.workflow.is_some(),
                "seed {}: {text}\n{found:?}",
                case.seed
            );
        }
    }
}

/// Otherwise little is compared.
#[test]
fn most_outcomes_are_decided() {
    for margin in [MOMENT_MARGIN_MS, CLUSTER_MARGIN_MS] {
        let open = cases(300).filter(|case| {
            let undecided = plans::undecided(case, margin).expect("it is valid");
            undecided.is_some()
        });
        let open = open.count();
        assert!(open < 45, "{open} of 300 at {margin} ms");
    }
}

/// Counts the properties of a document by name.
fn names(value: &Value, found: &mut BTreeMap<String, usize>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                *found.entry(name.clone()).or_default() += 1;
                names(value, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| names(item, found)),
        Value::String(text) => *found.entry(format!("'{text}'")).or_default() += 1,
        _ => {}
    }
}

#[test]
fn every_construct_is_generated() {
    let mut found = BTreeMap::new();
    let mut ends: BTreeMap<String, usize> = BTreeMap::new();
    for case in cases(400) {
        for text in case.older.iter().chain([&case.main, &case.sub]) {
            names(&serde_json::from_str(text).expect("it is JSON"), &mut found);
        }
        for line in plans::expected(&case).expect("it is valid") {
            let mut words = line.split(' ');
            let end = words.nth(1).unwrap_or_default().to_owned();
            *ends.entry(end).or_default() += 1;
        }
    }
    for what in [
        "set",
        "do",
        "for",
        "while",
        "each",
        "at",
        "switch",
        "when",
        "fork",
        "compete",
        "try",
        "catch",
        "errors",
        "as",
        "exceptWhen",
        "retry",
        "delay",
        "backoff",
        "linear",
        "exponential",
        "jitter",
        "limit",
        "count",
        "duration",
        "raise",
        "wait",
        "call",
        "run",
        "await",
        "return",
        "emit",
        "listen",
        "one",
        "any",
        "all",
        "until",
        "foreach",
        "read",
        "correlate",
        "expect",
        "schedule",
        "on",
        "if",
        "input",
        "from",
        "schema",
        "output",
        "export",
        "timeout",
        "then",
        "'exit'",
        "'end'",
        "'continue'",
        "functions",
        "with",
        "timeouts",
        "extensions",
        "before",
        "after",
        "evaluate",
        "instance",
        "metadata",
    ] {
        assert!(found.contains_key(what), "no '{what}'");
    }
    for (end, least) in [("completed", 400), ("faulted", 40)] {
        let count = ends.get(end).copied().unwrap_or_default();
        assert!(count >= least, "{end}: {count} of {ends:?}");
    }
}

#[test]
fn hard_cases_have_the_same_kinds_of_outcomes() {
    for hard in hard::all_of_tasks() {
        for seed in 0..2 {
            let faults = Faults::of_seed(seed);
            let found = check_hard(&hard, &faults, Mutant::None).expect("it comes to its end");
            let name = hard.name;
            assert!(found.is_empty(), "{name}, {seed}: {}", found.join("\n"));
        }
    }
}
