//! Proof that the checkers find bugs: each broken variant is run with the seed that `docs/dev/simulation.md` states, and
//! the expected checker must report it.

use swirl_simulation::cluster::{Faults, Mutant};
use swirl_simulation::generate::{Case, generate};
use swirl_simulation::{check_cluster, check_hard, hard, tasks};

/// The documented seed comes first. If the order of the store's calls changes, another seed may be needed.
fn finds(mutant: Mutant, seed: u64, words: &str, case: impl Fn(u64) -> Case) {
    let found = (seed..seed + 60).find(|seed| {
        let case = case(*seed);
        let checked = check_cluster(&case, &Faults::of_seed(*seed), mutant);
        checked.is_ok_and(|checked| checked.violations.iter().any(|text| text.contains(words)))
    });
    eprintln!("{mutant:?} is found at seed {found:?} by '{words}'");
    assert!(found.is_some(), "nothing found {mutant:?}");
}

#[test]
fn a_lost_operator_command() {
    for hard in hard::all().iter().take(3) {
        let found = check_hard(hard, &Faults::of_seed(1), Mutant::LostCommand);
        assert!(found.is_ok_and(|found| !found.is_empty()), "{}", hard.name);
    }
}

macro_rules! mutants {
    ($($name:ident: $mutant:ident, $seed:literal, $words:literal;)+) => {$(
        #[test]
        fn $name() {
            finds(Mutant::$mutant, $seed, $words, |seed| generate(seed, 5));
        }
    )+};
}

mutants! {
    a_store_that_forgets_the_revision: NoRevisionCheck, 58, "transition once";
    an_inbox_that_hands_out_twice: InboxTwice, 0, "input once";
    a_join_that_counts: JoinCounts, 18, "join once";
    timers_that_fire_early: TimersEarly, 0, "timer early";
    drawn_call_keys: DrawnKeys, 0, "call keys";
    drawn_event_ids: DrawnEvents, 0, "produced";
    dropped_early_events: EarlyEventDropped, 1, "reference";
    a_lost_outbox: LostOutbox, 13, "reference";
    a_history_in_another_order: HistoryReordered, 0, "history in order";
    an_ended_instance_that_changes: EndedChanged, 0, "ended is final";
    messages_lost_without_a_sweep: NeverSweeps, 2, "not all has ended";
}

/// Of documents of DSL 1.0.
macro_rules! mutants_of_tasks {
    ($($name:ident: $mutant:ident, $seed:literal, $words:literal;)+) => {$(
        #[test]
        fn $name() {
            finds(Mutant::$mutant, $seed, $words, |seed| tasks::generate::generate(seed, 5));
        }
    )+};
}

mutants_of_tasks! {
    tasks_with_a_store_that_forgets_the_revision: NoRevisionCheck, 13, "transition once";
    tasks_with_an_inbox_that_hands_out_twice: InboxTwice, 1, "input once";
    tasks_with_timers_that_fire_early: TimersEarly, 3, "timer early";
    tasks_with_drawn_call_keys: DrawnKeys, 0, "call keys";
    tasks_with_drawn_event_ids: DrawnEvents, 3, "produced";
    tasks_with_dropped_early_events: EarlyEventDropped, 21, "reference";
    tasks_with_a_lost_outbox: LostOutbox, 55, "reference";
}
