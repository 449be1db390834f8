//! Several processes with faults, for a limited number of seeds.

use swirl_simulation::cluster::{self, Faults, Mutant};
use swirl_simulation::generate::generate;
use swirl_simulation::{Mode, Totals, check_hard, check_mode, hard};

fn run(mode: Mode, seeds: impl Iterator<Item = u64>) -> Totals {
    let mut totals = Totals::default();
    for seed in seeds {
        let case = generate(seed, 1 + (seed % 8) as usize);
        let found = check_mode(&case, mode, &mut totals).expect("the run comes to its end");
        assert!(found.is_empty(), "seed {seed}: {}", found.join("\n"));
    }
    totals
}

#[test]
fn seeds_end_like_the_reference() {
    let counts = run(Mode::Cluster, 0..60).counts;
    assert!(counts.kills > 10 && counts.pauses > 10, "{counts:?}");
    assert!(counts.leases_run_out > 30, "{counts:?}");
    assert!(counts.refused_commits > 10, "{counts:?}");
    assert!(
        counts.failed_calls > 100 && counts.lost_answers > 100,
        "{counts:?}"
    );
    assert!(counts.joins > 50, "{counts:?}");
}

/// A process suspended a sub-workflow after its parent had been resumed, because it was frozen or died in between; or a
/// continuation after the instance that it continues.
#[test]
fn a_suspension_that_comes_late_is_undone() {
    run(
        Mode::Cluster,
        [704_209, 705_327, 803_805, 1_003_704].into_iter(),
    );
    run(Mode::Rollback, [1_011_608].into_iter());
}

/// One commit consumed two joins of a foreach with a bound and a pause.
#[test]
fn a_commit_has_two_joins() {
    run(Mode::Cluster, [802_551, 802_916].into_iter());
}

/// A process that had lost its lease stored an answer that another one had used.
#[test]
fn a_late_answer_has_no_effect() {
    run(Mode::Cluster, [1_507_861].into_iter());
}

#[test]
fn a_plan_waits_for_hours() {
    run(Mode::Cluster, [1_300_196].into_iter());
}

#[test]
fn a_store_on_disk_is_reopened() {
    assert!(run(Mode::Durable, 0..3).counts.reopened > 1);
}

#[test]
fn a_rolled_back_store_leaves_nothing_stuck() {
    assert!(run(Mode::Rollback, 0..3).counts.reopened > 2);
}

#[test]
fn hard_cases() {
    for hard in hard::all() {
        for seed in 0..2 {
            let found = check_hard(&hard, &Faults::of_seed(seed), Mutant::None)
                .expect("the run comes to its end");
            let name = hard.name;
            assert!(
                found.is_empty(),
                "{name}, seed {seed}: {}",
                found.join("\n")
            );
        }
    }
}

/// The process dies once at each point, with two branches and with three, which a worker or a coordinator joins.
#[test]
fn a_crash_at_every_point() {
    for (count, coordinators_join) in [(2, false), (3, false), (2, true), (3, true)] {
        let plan = hard::branches(count);
        let calm = cluster::run(&plan, &Faults::none(0), Mutant::None).expect("it ends");
        assert!(calm.violations.is_empty(), "{:?}", calm.violations);
        assert!(calm.turns > 50, "{}", calm.turns);
        let undisturbed = Faults {
            coordinators_join,
            ..Faults::none(0)
        };
        let all = cluster::run(&plan, &undisturbed, Mutant::None).expect("it ends");
        assert_eq!(all.counts.joins > 0, coordinators_join);
        for turn in 0..all.turns {
            let faults = Faults {
                killed_at: Some(turn),
                ..undisturbed.clone()
            };
            let trace = cluster::run(&plan, &faults, Mutant::None).expect("it ends");
            assert_eq!(trace.counts.kills, 1);
            let mut found = cluster::check::judge(&trace, &faults);
            found.extend(cluster::check::compare(&calm, &trace, true));
            assert!(found.is_empty(), "turn {turn}: {}", found.join("\n"));
        }
    }
}
