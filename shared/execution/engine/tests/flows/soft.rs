//! Tests of what branches say after a soft workflow timeout (docs/language.md#decision-81).

use swirl_engine::{Command, Event, Input, Rejection};
use swirl_model::instance::EndStatus;
use swirl_model::scope::{BranchResult, Said};
use swirl_model::workflow::*;
use swirl_model::{WorkflowError, data};

use crate::ROOT;
use crate::retries::iterating;
use crate::rig::{Make, Rig, after, end, seconds};

fn waits(fork: u32, index: u32, turn: u32, waits: bool) -> Input {
    Input::Waits {
        fork,
        said: Said { index, turn, waits },
    }
}

fn done(index: u32) -> (u32, BranchResult) {
    let result = BranchResult::Done {
        merges: Vec::new(),
        result: Some(data!({"f": 1})),
        context: None,
        ended: None,
    };
    (index, result)
}

fn joined(fork: u32, results: Vec<(u32, BranchResult)>, done: u32) -> Input {
    Input::Joined {
        fork,
        results,
        done: Some(done),
    }
}

fn extended(fork: u32, open: u32, needed: u32) -> Result<Vec<Command>, Rejection> {
    Ok(vec![Command::ExtendFork { fork, open, needed }])
}

#[test]
fn what_a_branch_said_last_counts() {
    let (mut rig, fork) = iterating(IterationMode::Parallel, None);
    assert_eq!(rig.ask(waits(fork, 0, 5, true), 1), extended(fork, 3, 2));
    for late in [waits(fork, 0, 3, false), waits(fork, 0, 5, true)] {
        assert_eq!(rig.ask(late, 1), Err(Rejection::Outdated));
    }
    assert_eq!(rig.ask(waits(fork, 0, 8, false), 1), extended(fork, 3, 3));
    assert_eq!(
        rig.ask(waits(fork, 0, 5, true), 1),
        Err(Rejection::Outdated)
    );
}

/// Only the number of results that the state needs concerns it, however many branches end until then.
#[test]
fn branches_that_only_waited_are_joined_when_they_end() {
    let (mut rig, fork) = iterating(IterationMode::Parallel, None);
    rig.ask(waits(fork, 0, 5, true), 1).unwrap();
    rig.ask(waits(fork, 1, 5, true), 1).unwrap();
    let one = || joined(fork, vec![done(2)], 1);
    assert_eq!(rig.ask(one(), 1), extended(fork, 3, 3));
    assert_eq!(rig.ask(one(), 1), extended(fork, 3, 3), "once more");
    let all = joined(fork, vec![done(0), done(1), done(2)], 3);
    let commands = rig.ask(all, 1).unwrap();
    let is_end = |command: &Command| matches!(command, Command::End { status, .. } if *status == EndStatus::Completed);
    assert!(commands.iter().any(is_end), "{commands:?}");
}

/// Notifications of a batch come without results.
#[test]
fn the_next_batch_begins_after_an_iteration_that_only_waited() {
    let (mut rig, fork) = iterating(IterationMode::Sequential, None);
    assert_eq!(rig.ask(waits(fork, 0, 5, true), 1), extended(fork, 1, 0));
    let none = joined(fork, Vec::new(), 0);
    assert_eq!(rig.ask(none, 1), extended(fork, 1, 1));
    let batch = joined(fork, Vec::new(), 1);
    assert_eq!(rig.ask(batch, 1), extended(fork, 2, 2));
}

#[test]
fn a_faulted_scope_takes_in_which_branches_only_wait() {
    let (mut rig, fork) = iterating(IterationMode::Parallel, None);
    let failed = (1, BranchResult::Failed(WorkflowError::new("Bad", "")));
    rig.ask(joined(fork, vec![failed], 0), 1).unwrap();
    assert_eq!(rig.ask(waits(fork, 0, 5, true), 2), Ok(Vec::new()));
    assert_eq!(rig.ask(waits(fork, 1, 4, true), 2), Ok(Vec::new()));
    let commands = rig.ask(Input::Retry, 3).unwrap();
    let [
        Command::Reopen,
        revive @ Command::ReviveBranch { .. },
        extend,
    ] = &commands[..]
    else {
        panic!("{commands:?}")
    };
    assert!(
        matches!(revive, Command::ReviveBranch { index: 1, .. }),
        "{revive:?}"
    );
    // The failed branch runs.
    let (open, needed) = (3, 2);
    assert_eq!(extend, &Command::ExtendFork { fork, open, needed });
}

#[test]
fn a_state_that_is_never_left_needs_no_word_of_branches_that_wait() {
    let mut make = Make::new();
    let (input, body) = (make.expr("[1, 2, 3]"), make.calls("f"));
    make.state(ROOT, StateKind::Sleep(seconds(3600).unwrap()), end());
    let before = StateKind::Foreach(Foreach {
        input,
        output: None,
        param: "item".into(),
        mode: IterationMode::Parallel,
        body: Body::Actions(body),
        pause: None,
    });
    make.state(ROOT, before, end());
    make.0.timeout = Some(WorkflowTimeout {
        duration: seconds(3).unwrap(),
        interrupt: false,
        run_before: Some(StateId(1)),
    });
    let mut rig = Rig::new(make.0, data!({}), |name, _| after(5, name));
    rig.event("none", 4);
    let forked = rig.history.iter().find_map(|event| match event {
        Event::Forked { fork, .. } => Some(*fork),
        _ => None,
    });
    let heard = rig.ask(waits(forked.unwrap(), 0, 5, true), 4);
    assert_eq!(heard, Ok(Vec::new()));
}
