//! A limited number of seeds, and proof that the checkers find bugs.

use swirl_simulation::generate::{Case, generate};
use swirl_simulation::rig::{Broken, Faults, run};
use swirl_simulation::{check, check_case};

#[test]
fn seeds_end_the_same_undisturbed_disturbed_and_with_crashes() {
    // The last repeats a state of the tasks draft by a condition over its result that names `$data`.
    for seed in (0..80).chain([2_000_331]) {
        let case = generate(seed, 1 + (seed % 8) as usize);
        let found = check_case(&case, Broken::No).expect("the run comes to its end");
        assert!(found.is_empty(), "seed {seed}: {}", found.join("\n"));
    }
}

/// Whether any of a few seeds reveals the bug, with words of the checker that must find it.
fn finds(broken: Broken, words: &str) {
    let found = (0..40).any(|seed| match check_case(&generate(seed, 4), broken) {
        Ok(found) => found.iter().any(|text| text.contains(words)),
        Err(_) => false,
    });
    assert!(found, "nothing found {broken:?}");
}

#[test]
fn a_commit_that_is_written_twice_is_found() {
    finds(Broken::CommitsTwice, "history of scope");
}

#[test]
fn calls_with_drawn_keys_are_found() {
    finds(Broken::DrawsKeys, "calls differ");
}

#[test]
fn lost_messages_without_a_sweep_are_found() {
    finds(Broken::NeverSweeps, "instance ");
}

#[test]
fn an_apply_that_leaves_events_out_is_found() {
    finds(Broken::DropsEvents, "apply gives another scope");
}

#[test]
fn faults_happen_and_commits_are_replayed() {
    let (mut crashes, mut replayed, mut not_replayed, mut repeated) = (0, 0, 0, 0);
    for seed in 0..20 {
        let case = generate(seed, 6);
        let calm = run(&case, Faults::none(seed), Broken::No).expect("it ends");
        let trace = run(&case, Faults::crashing(seed), Broken::No).expect("it ends");
        assert_eq!(check::compare(&calm, &trace, true), Vec::<String>::new());
        crashes += trace.crashes;
        replayed += trace.replayed;
        not_replayed += trace.not_replayed;
        repeated += trace.calls.len().saturating_sub(calm.calls.len());
    }
    assert!(
        crashes > 20 && replayed > 200 && repeated > 5,
        "{crashes} {replayed} {repeated}"
    );
    assert_eq!(not_replayed, 0, "of {replayed}");
}

/// An action fails in parallel with `quick`, and the state is repeated or left.
fn beside() -> Case {
    let case = generate(700_043, 4);
    let fails =
        |line: &str| line.contains("actionMode: parallel") && line.contains("{refName: late");
    let older = case.older.iter().flat_map(|text| text.lines());
    assert!(older.into_iter().any(fails), "{:?}", case.older);
    case
}

#[test]
fn a_failure_beside_another_action_ends_the_same() {
    let found = check_case(&beside(), Broken::No).expect("the run comes to its end");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_call_that_is_missing_beside_a_failure_is_found() {
    let calm = run(&beside(), Faults::none(0), Broken::No).expect("it ends");
    let mut other = run(&beside(), Faults::none(0), Broken::No).expect("it ends");
    assert_eq!(check::compare(&calm, &other, false), Vec::<String>::new());
    for function in ["quick", "late"] {
        let at = other
            .calls
            .iter()
            .position(|call| call.function == function);
        let missing = other.calls.remove(at.expect("it is called"));
        let found = check::compare(&calm, &other, false);
        assert!(
            found.iter().any(|text| text.starts_with("calls differ")),
            "{found:?}"
        );
        other.calls.push(missing);
    }
}

/// Otherwise the order would determine whether the other one is still called.
#[test]
fn no_action_fails_when_another_begins() {
    let mut at_once = 0;
    for seed in 0..2_000 {
        let case = generate(seed, 1);
        for line in case.older.iter().flat_map(|text| text.lines()) {
            let actions = line.matches("functionRef: {").count();
            if line.contains("actionMode: parallel") && actions > 1 {
                at_once += 1;
                assert!(!line.contains("{refName: broken"), "seed {seed}: {line}");
            }
        }
    }
    assert!(at_once > 50, "{at_once}");
}
