//! Joins: the parent of a complete fork reads the results. Few results come with its inbox, many are read page by page.

use swirl_model::Data;
use swirl_model::event::{Command, Input};
use swirl_model::ids::ScopeRef;
use swirl_model::scope::{BranchResult, Cursor, Work};
use swirl_ports::{Acquired, InboxItem};

use crate::kit::*;
use crate::{Backend, JOIN_LIMITS};

/// More results than a reader gets with its inbox.
const MANY: u32 = JOIN_LIMITS.results + 2;

async fn fork_of(b: &Backend, total: u32, open: u32, needed: u32) {
    b.create(new("a")).await;
    let Command::Fork(mut fork) = fork("r", 1, total, open, needed) else {
        unreachable!()
    };
    fork.results_max = 0;
    let change = change(vec![Command::Fork(fork)]).at(forked(1, total));
    b.act(&root("a"), change).await;
}

fn large(index: u32, bytes: usize) -> BranchResult {
    let letter = char::from(b'a' + (index % 26) as u8);
    BranchResult::Done {
        merges: Vec::new(),
        result: Some(Data::string(letter.to_string().repeat(bytes))),
        ended: None,
        context: None,
    }
}

/// Returns the scopes that a worker may continue, and those that a coordinator joins.
async fn report(
    b: &Backend,
    of: &ScopeRef,
    result: BranchResult,
) -> (Vec<ScopeRef>, Vec<ScopeRef>) {
    let cursor = match result.is_done() {
        true => Cursor::Ended,
        false => blocked(Work::Begin),
    };
    let outcome = b.act(of, change(vec![Command::Report(result)]).at(cursor));
    let outcome = outcome.await;
    (outcome.wake, outcome.joins)
}

fn branch(index: u32) -> ScopeRef {
    scope("a", &format!("r.1.{index}"))
}

fn results(item: &InboxItem) -> &[(u32, BranchResult)] {
    match &item.input {
        Input::Joined { results, .. } => results,
        other => panic!("{other:?}"),
    }
}

fn indexes(results: &[(u32, BranchResult)]) -> Vec<u32> {
    results.iter().map(|(index, _)| *index).collect()
}

/// Ends the branches in reverse order, and returns the outcome of the last one.
async fn end_all(b: &Backend, count: u32) -> (Vec<ScopeRef>, Vec<ScopeRef>) {
    let mut last = Default::default();
    for index in (0..count).rev() {
        assert_eq!(last, Default::default(), "before branch {index}");
        last = report(b, &branch(index), large(index, 10)).await;
    }
    last
}

pub async fn few_results_come_with_the_inbox(b: Backend) {
    let few = JOIN_LIMITS.results;
    fork_of(&b, few, few, few).await;
    assert_eq!(end_all(&b, few).await, (vec![root("a")], vec![]));
    let held = b.hold_lazily(&root("a")).await;
    assert!(held.large_joins.is_empty());
    let found = results(&held.inbox[0]);
    assert_eq!(indexes(found), Vec::from_iter(0..few));
    assert!(
        found
            .iter()
            .all(|(index, result)| *result == large(*index, 10))
    );
}

pub async fn many_results_are_left_to_a_coordinator(b: Backend) {
    fork_of(&b, MANY, MANY, MANY).await;
    assert_eq!(end_all(&b, MANY).await, (vec![], vec![root("a")]));
    // The message to the coordinator may be lost.
    assert_eq!(b.store.runnable(10).await.unwrap(), [root("a")]);
    let mut held = b.hold_lazily(&root("a")).await;
    assert_eq!(held.large_joins, [1]);
    assert!(results(&held.inbox[0]).is_empty());
    assert!(matches!(
        held.inbox[0].input,
        Input::Joined {
            done: Some(MANY),
            ..
        }
    ));
    let found = b.store.read_results(&root("a"), 1).await.unwrap();
    assert_eq!(indexes(&found), Vec::from_iter(0..MANY));
    assert!(
        found
            .iter()
            .all(|(index, result)| *result == large(*index, 10))
    );
    // If two may read it, one of them joins.
    let again = b.store.read_snapshot(&root("a"), LEASE_MS).await.unwrap();
    let join = || change(vec![Command::CloseFork(1)]).consumed(&["fork-1-1"]);
    b.commit(&mut held, join()).await;
    match again {
        Acquired::Held(mut again) => {
            assert!(b.try_commit(&mut again, join()).await.is_none());
        }
        Acquired::Busy => {}
        Acquired::Gone => panic!("it goes on"),
    }
    b.release(&held).await;
    assert_eq!(b.store.read_results(&root("a"), 1).await.unwrap(), []);
    assert!(b.inbox(&root("a")).await.is_empty());
    assert_eq!(b.store.runnable(10).await.unwrap(), []);
}

pub async fn large_results_are_left_to_a_coordinator(b: Backend) {
    fork_of(&b, 2, 2, 2).await;
    let bytes = JOIN_LIMITS.bytes as usize / 2;
    report(&b, &branch(0), large(0, bytes)).await;
    let last = report(&b, &branch(1), large(1, bytes)).await;
    assert_eq!(last, (vec![], vec![root("a")]));
    assert_eq!(b.hold_lazily(&root("a")).await.large_joins, [1]);
    let found = b.store.read_results(&root("a"), 1).await.unwrap();
    assert_eq!(found, [(0, large(0, bytes)), (1, large(1, bytes))]);
}

/// A batch completes without results to read, whatever its size. The last batch has all of them.
pub async fn a_batch_is_not_a_join(b: Backend) {
    fork_of(&b, 2 * MANY, MANY, MANY).await;
    assert_eq!(end_all(&b, MANY).await, (vec![root("a")], vec![]));
    let held = b.hold_lazily(&root("a")).await;
    assert!(held.large_joins.is_empty());
    assert!(results(&held.inbox[0]).is_empty());
    assert_eq!(b.store.read_results(&root("a"), 1).await.unwrap(), []);
    b.release(&held).await;
    let extend = Command::ExtendFork {
        fork: 1,
        open: 2 * MANY,
        needed: 2 * MANY,
    };
    b.act(&root("a"), change(vec![extend]).consumed(&["fork-1-1"]))
        .await;
    let mut last = Default::default();
    for index in MANY..2 * MANY {
        last = report(&b, &branch(index), large(index, 10)).await;
    }
    assert_eq!(last, (vec![], vec![root("a")]));
    let found = b.store.read_results(&root("a"), 1).await.unwrap();
    assert_eq!(indexes(&found), Vec::from_iter(0..2 * MANY));
}

/// The existing results count, not the branches.
pub async fn a_failure_among_many_goes_to_the_worker(b: Backend) {
    fork_of(&b, MANY, MANY, MANY).await;
    report(&b, &branch(3), large(3, 10)).await;
    let failed = report(&b, &branch(5), BranchResult::Failed(fault())).await;
    assert_eq!(failed, (vec![root("a")], vec![]));
    // Branches that end before the parent reads count as well.
    assert_eq!(report(&b, &branch(0), large(0, 10)).await, (vec![], vec![]));
    let held = b.hold_lazily(&root("a")).await;
    assert_eq!(indexes(results(&held.inbox[0])), [0, 3, 5]);
}

pub async fn some_of_many_are_enough(b: Backend) {
    fork_of(&b, MANY, MANY, 2).await;
    report(&b, &branch(7), large(7, 10)).await;
    let enough = report(&b, &branch(2), large(2, 10)).await;
    assert_eq!(enough, (vec![root("a")], vec![]));
    let mut held = b.hold_lazily(&root("a")).await;
    assert_eq!(indexes(results(&held.inbox[0])), [2, 7]);
    let join = change(vec![Command::CloseFork(1)]).consumed(&["fork-1-1"]);
    b.commit(&mut held, join).await;
    assert!(b.is_gone(&branch(0)).await);
}

pub async fn a_fork_of_a_branch_is_joined(b: Backend) {
    fork_of(&b, 1, 1, 1).await;
    let Command::Fork(mut inner) = fork("r.1.0", 2, MANY, MANY, MANY) else {
        unreachable!()
    };
    inner.results_max = 0;
    let inner = change(vec![Command::Fork(inner)]).at(forked(2, MANY));
    b.act(&branch(0), inner).await;
    let mut last = Default::default();
    for index in 0..MANY {
        let leaf = scope("a", &format!("r.1.0.2.{index}"));
        last = report(&b, &leaf, large(index, 10)).await;
    }
    assert_eq!(last, (vec![], vec![branch(0)]));
    assert_eq!(b.hold_lazily(&branch(0)).await.large_joins, [2]);
    let found = b.store.read_results(&branch(0), 2).await.unwrap();
    assert_eq!(indexes(&found), Vec::from_iter(0..MANY));
}

/// If a fork ends while its scope is held, the holder gets the results with its inputs.
pub async fn a_holder_gets_the_results(b: Backend) {
    fork_of(&b, 3, 3, 3).await;
    let held = b.hold(&root("a")).await;
    end_all(&b, 3).await;
    let (items, _) = b.store.drain(&held.lease).await.unwrap().unwrap();
    assert_eq!(indexes(results(&items[0])), [0, 1, 2]);
    b.release(&held).await;
}
