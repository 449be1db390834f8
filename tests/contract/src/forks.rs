//! Branches: they are created from the fork, joined once, and closed together.

use swirl_model::Data;
use swirl_model::event::{Command, Input};
use swirl_model::ids::ScopeRef;
use swirl_model::instance::EndStatus;
use swirl_model::scope::{BranchResult, Cursor, Work};
use swirl_ports::execution::Record;
use swirl_ports::{Committed, InboxItem, Released};

use crate::kit::*;
use crate::{Backend, INSTANCE_BYTES};

fn branch(index: u32) -> ScopeRef {
    scope("a", &format!("r.1.{index}"))
}

/// Creates an instance whose root scope forked, and returns the woken scopes.
async fn fork_of(b: &Backend, total: u32, open: u32, needed: u32) -> Vec<ScopeRef> {
    b.create(new("a")).await;
    let commands = vec![fork("r", 1, total, open, needed)];
    b.act(&root("a"), change(commands).at(forked(1, total)))
        .await
        .wake
}

async fn report(b: &Backend, index: u32, result: BranchResult) -> Vec<ScopeRef> {
    let ends = matches!(result, BranchResult::Done { .. });
    let cursor = if ends {
        Cursor::Ended
    } else {
        blocked(Work::Begin)
    };
    b.act(
        &branch(index),
        change(vec![Command::Report(result)]).at(cursor),
    )
    .await
    .wake
}

/// The branches that each item reports.
fn notified(items: &[InboxItem]) -> Vec<Vec<u32>> {
    let results = items.iter().filter_map(|item| match &item.input {
        Input::Joined { results, .. } => Some(results.iter().map(|(index, _)| *index).collect()),
        _ => None,
    });
    results.collect()
}

pub async fn branches_join_once(b: Backend) {
    assert_eq!(
        fork_of(&b, 3, 3, 3).await,
        [branch(0), branch(1), branch(2)]
    );
    let held = b.hold(&branch(2)).await;
    let Record::Branch { fork, index: 2 } = &held.record else {
        panic!(
            "a branch that has not begun has no record: {:?}",
            held.record
        )
    };
    assert_eq!(fork.total, 3);
    b.release(&held).await;
    assert!(report(&b, 2, done()).await.is_empty());
    assert!(report(&b, 0, done()).await.is_empty());
    assert!(b.is_gone(&branch(0)).await);
    assert_eq!(report(&b, 1, done()).await, [root("a")]);
    assert_eq!(notified(&b.inbox(&root("a")).await), [vec![0, 1, 2]]);
    b.act(
        &root("a"),
        change(vec![Command::CloseFork(1)]).consumed(&["fork-1-1"]),
    )
    .await;
    assert!(b.inbox(&root("a")).await.is_empty());
}

pub async fn a_failed_branch_is_reported_at_once(b: Backend) {
    fork_of(&b, 3, 3, 3).await;
    assert_eq!(
        report(&b, 1, BranchResult::Failed(fault())).await,
        [root("a")]
    );
    assert_eq!(notified(&b.inbox(&root("a")).await), [vec![1]]);
    assert!(
        report(&b, 0, done()).await.is_empty(),
        "it has been notified"
    );
    let scopes = b.store.scopes(&root("a").instance).await.unwrap();
    assert_eq!(scopes.len(), 2, "what failed stays as it is");
}

pub async fn a_closed_fork_cancels_the_rest(b: Backend) {
    fork_of(&b, 3, 3, 1).await;
    let mut running = b.hold(&branch(1)).await;
    b.commit(&mut running, change(vec![]).at(blocked(Work::Sleep)))
        .await;
    let mut not_started = b.hold(&branch(2)).await;
    report(&b, 0, done()).await;
    let outcome = b.act(&root("a"), change(vec![Command::CloseFork(1)])).await;
    assert_eq!(outcome.wake, [branch(1)]);
    assert!(
        b.try_commit(&mut not_started, change(vec![]))
            .await
            .is_none()
    );
    assert!(b.is_gone(&branch(2)).await);
    b.store.wait_input(&running.lease).await;
    let (items, closed) = b.store.drain(&running.lease).await.unwrap().unwrap();
    assert!(closed);
    assert_eq!(
        items[0].input,
        Input::Cancel {
            status: EndStatus::Cancelled
        }
    );
    let end = change(vec![Command::Drop])
        .at(Cursor::Ended)
        .consumed(&["cancel"]);
    b.commit(&mut running, end).await;
    assert_eq!(b.release(&running).await, Released::Lost);
    assert!(b.is_gone(&branch(1)).await);
}

pub async fn batches_open_more_branches(b: Backend) {
    assert_eq!(fork_of(&b, 4, 2, 2).await, [branch(0), branch(1)]);
    assert!(b.is_gone(&branch(2)).await);
    report(&b, 0, done()).await;
    report(&b, 1, done()).await;
    // Before the last batch, only the notification of the parent matters, not the results.
    assert_eq!(notified(&b.inbox(&root("a")).await).len(), 1);
    let extend = Command::ExtendFork {
        fork: 1,
        open: 4,
        needed: 4,
    };
    let outcome = b
        .act(&root("a"), change(vec![extend]).consumed(&["fork-1-1"]))
        .await;
    assert_eq!(outcome.wake, [branch(2), branch(3)]);
    report(&b, 3, done()).await;
    report(&b, 2, done()).await;
    assert_eq!(notified(&b.inbox(&root("a")).await), [vec![0, 1, 2, 3]]);
    // Existing results are reported immediately.
    let extend = Command::ExtendFork {
        fork: 1,
        open: 4,
        needed: 3,
    };
    b.act(&root("a"), change(vec![extend]).consumed(&["fork-1-2"]))
        .await;
    assert_eq!(notified(&b.inbox(&root("a")).await).len(), 1);
}

/// A scope may need fewer results for a while, or none, and is notified at once if they are there.
pub async fn a_fork_may_need_less_for_a_while(b: Backend) {
    fork_of(&b, 3, 3, 3).await;
    let needs = |needed| {
        let (fork, open) = (1, 3);
        change(vec![Command::ExtendFork { fork, open, needed }])
    };
    b.act(&root("a"), needs(0)).await;
    let inbox = b.inbox(&root("a")).await;
    assert_eq!(notified(&inbox), [Vec::<u32>::new()]);
    assert!(
        matches!(inbox[0].input, Input::Joined { done: Some(0), .. }),
        "{inbox:?}"
    );
    b.act(&root("a"), needs(1).consumed(&["fork-1-1"])).await;
    assert!(b.inbox(&root("a")).await.is_empty());
    assert_eq!(report(&b, 2, done()).await, [root("a")]);
    assert_eq!(notified(&b.inbox(&root("a")).await), [vec![2]]);
    b.act(&root("a"), needs(2).consumed(&["fork-1-2"])).await;
    assert_eq!(report(&b, 0, done()).await, [root("a")]);
    assert_eq!(notified(&b.inbox(&root("a")).await), [vec![0, 2]]);
    b.act(&root("a"), needs(3).consumed(&["fork-1-3"])).await;
    assert_eq!(report(&b, 1, done()).await, [root("a")]);
    assert_eq!(notified(&b.inbox(&root("a")).await), [vec![0, 1, 2]]);
}

pub async fn a_failed_branch_is_revived(b: Backend) {
    fork_of(&b, 2, 2, 2).await;
    report(&b, 0, BranchResult::Failed(fault())).await;
    report(&b, 1, done()).await;
    let revive = Command::ReviveBranch {
        fork: 1,
        index: 0,
        input: Box::new(Input::Retry),
        others: false,
    };
    let outcome = b
        .act(&root("a"), change(vec![revive]).consumed(&["fork-1-1"]))
        .await;
    assert_eq!(outcome.wake, [branch(0)]);
    assert_eq!(b.inbox(&branch(0)).await[0].input, Input::Retry);
    assert_eq!(report(&b, 0, done()).await, [root("a")]);
    assert_eq!(notified(&b.inbox(&root("a")).await), [vec![0, 1]]);
}

pub async fn another_failed_branch_is_reported(b: Backend) {
    fork_of(&b, 3, 3, 3).await;
    for index in [2, 0] {
        report(&b, index, BranchResult::Failed(fault())).await;
    }
    let revive = Command::ReviveBranch {
        fork: 1,
        index: 2,
        input: Box::new(Input::Retry),
        others: false,
    };
    let one = change(vec![revive]).consumed(&["fork-1-1"]);
    let woken = b.act(&root("a"), one).await.wake;
    assert_eq!(woken, [branch(2)], "the parent is held by who asked");
    assert_eq!(notified(&b.inbox(&root("a")).await), [vec![0]]);
}

pub async fn all_failed_branches_are_revived(b: Backend) {
    fork_of(&b, 4, 4, 4).await;
    for index in [2, 0, 3] {
        report(&b, index, BranchResult::Failed(fault())).await;
    }
    report(&b, 1, done()).await;
    let revive = Command::ReviveBranch {
        fork: 1,
        index: 2,
        input: Box::new(Input::Retry),
        others: true,
    };
    let all = change(vec![revive]).consumed(&["fork-1-1"]);
    let mut woken = b.act(&root("a"), all).await.wake;
    woken.sort();
    assert_eq!(woken, [branch(0), branch(2), branch(3)]);
    assert_eq!(b.inbox(&branch(3)).await[0].input, Input::Retry);
    for index in [0, 2] {
        assert_eq!(report(&b, index, done()).await, []);
    }
    assert_eq!(report(&b, 3, done()).await, [root("a")]);
    assert_eq!(notified(&b.inbox(&root("a")).await), [vec![0, 1, 2, 3]]);
}

/// The result of a branch that nothing waited for is reported when the fork is asked again.
pub async fn a_failure_is_reported_again(b: Backend) {
    fork_of(&b, 2, 2, 2).await;
    report(&b, 1, BranchResult::Failed(fault())).await;
    b.act(&root("a"), change(vec![]).consumed(&["fork-1-1"]))
        .await;
    let extend = Command::ExtendFork {
        fork: 1,
        open: 2,
        needed: 2,
    };
    b.act(&root("a"), change(vec![extend])).await;
    assert_eq!(notified(&b.inbox(&root("a")).await), [vec![1]]);
}

/// A caller that revives all failed branches doesn't know whether any failed.
pub async fn only_failed_branches_are_revived(b: Backend) {
    let revive = |others| {
        let revive = Command::ReviveBranch {
            fork: 1,
            index: 0,
            input: Box::new(Input::Retry),
            others,
        };
        change(vec![revive])
    };
    fork_of(&b, 3, 3, 1).await;
    // None failed, so running branches get nothing.
    assert_eq!(b.act(&root("a"), revive(true)).await.wake, []);
    assert!(b.inbox(&branch(0)).await.is_empty());
    report(&b, 0, done()).await;
    report(&b, 2, BranchResult::Failed(fault())).await;
    let told_of = change(vec![]).consumed(&["fork-1-1"]);
    b.act(&root("a"), told_of).await;
    // The result of an ended branch stays, and is reported again.
    let outcome = b.act(&root("a"), revive(true)).await;
    assert_eq!(outcome.wake, [branch(2)]);
    assert_eq!(b.inbox(&branch(2)).await[0].input, Input::Retry);
    let inbox = b.inbox(&root("a")).await;
    assert_eq!(notified(&inbox), [vec![0]]);
    assert!(
        matches!(inbox[0].input, Input::Joined { done: Some(1), .. }),
        "{inbox:?}"
    );
}

/// A batch is reported without results, only with their number.
pub async fn a_batch_reports_the_number_of_results(b: Backend) {
    fork_of(&b, 4, 2, 2).await;
    report(&b, 0, done()).await;
    report(&b, 1, done()).await;
    let inbox = b.inbox(&root("a")).await;
    let batch = Input::Joined {
        fork: 1,
        results: Vec::new(),
        done: Some(2),
    };
    assert_eq!(inbox[0].input, batch);
}

pub async fn branches_of_branches_are_closed_too(b: Backend) {
    fork_of(&b, 1, 1, 1).await;
    let inner = fork("r.1.0", 2, 2, 2, 2);
    b.act(&branch(0), change(vec![inner]).at(forked(2, 2)))
        .await;
    let leaf = scope("a", "r.1.0.2.1");
    let mut held = b.hold(&leaf).await;
    b.commit(&mut held, change(vec![]).at(blocked(Work::Sleep)))
        .await;
    b.act(&root("a"), change(vec![Command::CloseFork(1)])).await;
    assert!(
        b.store.drain(&held.lease).await.unwrap().unwrap().1,
        "its fork's fork is closed"
    );
    let mut branch = b.hold(&branch(0)).await;
    assert!(branch.closed);
    let end = change(vec![Command::CloseFork(2), Command::Drop]).at(Cursor::Ended);
    let outcome = b.commit(&mut branch, end).await;
    assert_eq!(outcome.wake, [leaf]);
    let (items, _) = b.store.drain(&held.lease).await.unwrap().unwrap();
    assert_eq!(items.len(), 1);
}

/// The results of a fork share a size limit. Exceeding it is an error of the branch, which may be handled.
pub async fn results_share_a_limit(b: Backend) {
    let large = |letter: &str| BranchResult::Done {
        merges: Vec::new(),
        result: Some(Data::from(serde_json::Value::from(letter.repeat(4_000)))),
        ended: None,
        context: None,
    };
    fork_of(&b, 4, 4, 4).await;
    assert!(report(&b, 0, large("a")).await.is_empty());
    assert!(report(&b, 1, large("b")).await.is_empty());
    assert_eq!(report(&b, 2, large("c")).await, [root("a")]);
    let inbox = b.inbox(&root("a")).await;
    let Input::Joined { results, .. } = &inbox[0].input else {
        panic!("{:?}", inbox[0])
    };
    assert_eq!(results[2], (2, BranchResult::too_large(10_000)));
    assert_eq!(results[0], (0, large("a")));
    // Only stored results count, so a small one still fits.
    assert!(report(&b, 3, done()).await.is_empty());
    // The branch continues like a failed one.
    let revive = Command::ReviveBranch {
        fork: 1,
        index: 2,
        input: Box::new(Input::Retry),
        others: false,
    };
    let outcome = b
        .act(&root("a"), change(vec![revive]).consumed(&["fork-1-1"]))
        .await;
    assert_eq!(outcome.wake, [branch(2)]);
    assert_eq!(report(&b, 2, large("c")).await, [root("a")]);
    let revive = Command::ReviveBranch {
        fork: 1,
        index: 2,
        input: Box::new(Input::Retry),
        others: false,
    };
    b.act(&root("a"), change(vec![revive]).consumed(&["fork-1-2"]))
        .await;
    assert_eq!(report(&b, 2, done()).await, [root("a")]);
    assert_eq!(notified(&b.inbox(&root("a")).await), [vec![0, 1, 2, 3]]);
}

/// All scopes of an instance, the origins of its forks, and their results share a size limit.
pub async fn the_scopes_of_an_instance_share_a_limit(b: Backend) {
    let data = |bytes: usize| Data::string("x".repeat(bytes));
    let grow = |bytes: usize| change(vec![]).at(blocked(Work::Sleep)).data(data(bytes));
    fork_of(&b, 4, 4, 4).await;
    b.act(&branch(0), grow(40_000)).await;
    b.act(&branch(1), grow(40_000)).await;
    let mut held = b.hold(&branch(2)).await;
    let Committed::Full(room) = b.commit_of(&held, grow(40_000)).await else {
        panic!("three of 40 KB don't fit into {INSTANCE_BYTES} bytes")
    };
    assert_eq!(room.limit, INSTANCE_BYTES);
    assert!((15_000..25_000).contains(&room.bytes), "{room:?}");
    // Nothing has changed, and the scope is still held.
    assert!(
        b.store
            .scopes(&root("a").instance)
            .await
            .unwrap()
            .iter()
            .all(|scope| scope.id != branch(2).scope)
    );
    b.commit(&mut held, grow(room.bytes - 1_000)).await;
    b.release(&held).await;

    // A commit that makes the scope smaller is always accepted, and so is one that was reduced to fit.
    b.act(&branch(0), grow(39_000)).await;
    let mut held = b.hold(&branch(1)).await;
    let more = b.commit_of(&held, grow(60_000)).await;
    assert!(matches!(more, Committed::Full(_)), "{more:?}");
    b.commit(
        &mut held,
        Change {
            fits: true,
            ..grow(60_000)
        },
    )
    .await;
    b.release(&held).await;

    // A fork and a result count as well.
    let mut forked = fork("r.1.0", 2, 1, 1, 1);
    if let Command::Fork(fork) = &mut forked {
        fork.items = Some(data(30_000));
    }
    let held = b.hold(&branch(0)).await;
    let forking = b
        .commit_of(&held, change(vec![forked]).data(data(39_000)))
        .await;
    assert!(matches!(forking, Committed::Full(_)), "{forking:?}");
    b.release(&held).await;
    let result = |bytes: usize| BranchResult::Done {
        merges: Vec::new(),
        result: Some(data(bytes)),
        ended: None,
        context: None,
    };
    let end = |bytes: usize| {
        change(vec![Command::Report(result(bytes)), Command::Drop]).at(Cursor::Ended)
    };
    let held = b.hold(&branch(3)).await;
    let reporting = b.commit_of(&held, end(9_000)).await;
    assert!(matches!(reporting, Committed::Full(_)), "{reporting:?}");
    b.release(&held).await;

    // Removed scopes free their share.
    b.act(&branch(1), end(10)).await;
    b.act(&branch(2), end(10)).await;
    b.act(&branch(3), end(9_000)).await;
    b.act(&branch(0), grow(80_000)).await;
    b.act(&root("a"), change(vec![Command::CloseFork(1)])).await;
    let mut held = b.hold(&branch(0)).await;
    b.commit(&mut held, change(vec![Command::Drop]).at(Cursor::Ended))
        .await;
    b.act(&root("a"), grow(98_000)).await;
}

/// External inputs that wait in an inbox count until they are processed or their scope is removed.
pub async fn waiting_inputs_count(b: Backend) {
    let data = |bytes: usize| Data::string("x".repeat(bytes));
    let grow = |bytes: usize| change(vec![]).at(blocked(Work::Sleep)).data(data(bytes));
    let input = |call: u32| Input::CallDone {
        call,
        result: Ok(data(50_000)),
    };
    fork_of(&b, 4, 4, 4).await;
    assert!(b.add(&branch(0), input(1)).await);
    assert!(!b.add(&branch(0), input(1)).await, "it is known");
    let held = b.hold(&branch(1)).await;
    let full = b.commit_of(&held, grow(60_000)).await;
    assert!(matches!(full, Committed::Full(_)), "{full:?}");
    b.release(&held).await;
    b.act(&branch(1), grow(40_000)).await;

    // Once processed, its result counts instead.
    let id = InboxItem::new(input(1)).id;
    b.act(&branch(0), grow(50_000).consumed(&[&id])).await;
    let held = b.hold(&branch(2)).await;
    let full = b.commit_of(&held, grow(30_000)).await;
    assert!(matches!(full, Committed::Full(_)), "{full:?}");
    b.release(&held).await;

    let dropped = || change(vec![Command::Drop]).at(Cursor::Ended);
    b.act(&branch(0), dropped()).await;
    assert!(b.add(&branch(3), input(1)).await);
    let held = b.hold(&branch(1)).await;
    let full = b.commit_of(&held, grow(90_000)).await;
    assert!(matches!(full, Committed::Full(_)), "{full:?}");
    b.release(&held).await;
    b.act(&branch(3), dropped()).await;
    b.act(&branch(1), grow(90_000)).await;
}
