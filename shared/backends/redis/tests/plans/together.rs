//! Concurrent commits, and commits that continue under a lease, need no second request.

use std::sync::Arc;
use std::time::Duration;

use swirl_contract::Backend;
use swirl_contract::kit::*;
use swirl_model::event::{Command, Input};
use swirl_model::ids::{InstanceId, ScopeId, ScopeRef};
use swirl_model::instance::EndStatus;
use swirl_model::scope::{Cursor, Scope, Work};
use swirl_ports::execution::Record;
use swirl_ports::{Commit, Committed, ExecutionStore, Held, Removed};
use swirl_servers::RedisServer;
use tokio::time::timeout;

use crate::plans::side::Side;

fn branch(index: u32) -> ScopeRef {
    ScopeRef {
        instance: InstanceId::new("a"),
        scope: ScopeId::new(format!("r.1.{index}")),
    }
}

/// Branches that were all read before any of them reported are written by one function each.
#[tokio::test]
async fn branches_that_end_together_do_not_conflict() {
    const BRANCHES: u32 = 100;
    let server = RedisServer::start().unwrap();
    let side = Side::new(&server, "together", 100_000).await;
    let b = Backend::of(Arc::new(side.store.clone()), ());
    b.create(new("a")).await;
    let forks = vec![fork("r", 1, BRANCHES, BRANCHES, BRANCHES)];
    b.act(&root("a"), change(forks).at(forked(1, BRANCHES)))
        .await;
    let mut held = Vec::new();
    for index in 0..BRANCHES {
        held.push(b.hold_lazily(&branch(index)).await);
    }
    let before = side.store.second_reads();
    let reports = held.iter().map(|held| {
        let report = change(vec![Command::Report(done())]).at(Cursor::Ended);
        let last = Change {
            release: true,
            ..report
        };
        b.commit_of(held, last)
    });
    let committed = futures::future::join_all(reports).await;
    let notified = committed.iter().filter(
        |committed| matches!(committed, Committed::Done { joins, .. } if *joins == [root("a")]),
    );
    assert_eq!(notified.count(), 1, "the last one notifies the parent");
    assert!(
        committed
            .iter()
            .all(|committed| matches!(committed, Committed::Done { .. }))
    );
    assert_eq!(side.store.second_reads(), before);
    assert_eq!(b.hold(&root("a")).await.inbox.len(), 1);
}

/// Commits while the branches of a fork commit: a third of them with a result, a third with their first record.
async fn commit_among_branches(b: &Backend, branches: u32, last: Change) -> Committed {
    b.create(new("a")).await;
    let forks = vec![fork("r", 1, 2 * branches, branches, branches)];
    b.act(&root("a"), change(forks).at(forked(1, branches)))
        .await;
    let mut held = Vec::new();
    for index in 0..branches {
        held.push(b.hold_lazily(&branch(index)).await);
    }
    let own = b.hold_lazily(&root("a")).await;
    let commits = held.iter().zip(0..).filter_map(|(held, index)| {
        let commit = match index % 3 {
            0 => change(vec![Command::Report(done())]).at(Cursor::Ended),
            1 => change(Vec::new()).at(blocked(Work::Sleep)),
            _ => return None,
        };
        Some(b.commit_of(
            held,
            Change {
                release: true,
                ..commit
            },
        ))
    });
    let (before, after): (Vec<_>, Vec<_>) = commits.enumerate().partition(|(at, _)| at % 2 == 0);
    let before = futures::future::join_all(before.into_iter().map(|(_, commit)| commit));
    let after = futures::future::join_all(after.into_iter().map(|(_, commit)| commit));
    let (_, committed, _) = futures::join!(before, b.commit_of(&own, last), after);
    committed
}

/// Branches with a record have been cancelled, and when they are gone nothing is left of their fork.
async fn end_branches(b: &Backend, side: &mut Side) {
    let id = InstanceId::new("a");
    for scope in b.store.scopes(&id).await.unwrap() {
        if scope.id.is_root() {
            continue;
        }
        let at = ScopeRef {
            instance: id.clone(),
            scope: scope.id,
        };
        let mut held = b.hold(&at).await;
        assert!(held.closed, "{at}");
        let ids: Vec<_> = held.inbox.iter().map(|item| item.id.clone()).collect();
        assert_eq!(ids, ["cancel"], "{at}");
        let last = change(vec![Command::Drop]).at(Cursor::Ended);
        b.commit(&mut held, last.consumed(&["cancel"])).await;
    }
    let left = side.dump();
    let left: Vec<_> = left.iter().filter(|line| line.contains("r.1")).collect();
    assert!(left.is_empty(), "{left:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_closes_while_its_branches_commit() {
    let server = RedisServer::start().unwrap();
    for _ in 0..8 {
        server.cli(&["FLUSHALL"]).unwrap();
        let mut side = Side::new(&server, "closes", 100_000).await;
        let b = Backend::of(Arc::new(side.store.clone()), ());
        let closes = Change {
            release: true,
            ..change(vec![Command::CloseFork(1)]).at(blocked(Work::Sleep))
        };
        let committed = commit_among_branches(&b, 60, closes).await;
        let Committed::Done { wake, .. } = committed else {
            panic!("{committed:?}");
        };
        let scopes = b.store.scopes(&InstanceId::new("a")).await.unwrap();
        assert_eq!(wake.len(), scopes.len() - 1, "all that have begun");
        end_branches(&b, &mut side).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_ends_while_its_branches_commit() {
    let server = RedisServer::start().unwrap();
    for _ in 0..8 {
        server.cli(&["FLUSHALL"]).unwrap();
        let mut side = Side::new(&server, "ends", 100_000).await;
        let b = Backend::of(Arc::new(side.store.clone()), ());
        let end = Command::End {
            status: EndStatus::Completed,
            output: None,
            error: None,
        };
        let ends = Change {
            release: true,
            ..change(vec![end]).at(Cursor::Ended)
        };
        let committed = commit_among_branches(&b, 60, ends).await;
        assert!(matches!(committed, Committed::Done { .. }), "{committed:?}");
        end_branches(&b, &mut side).await;
        let removed = b.store.remove(&InstanceId::new("a")).await.unwrap();
        assert_eq!(removed, Removed::Done);
    }
}

/// The numbers of a fork that is extended are guarded, so the commit is repeated until no branch is faster.
#[tokio::test(flavor = "multi_thread")]
async fn a_fork_is_extended_while_its_branches_commit() {
    let server = RedisServer::start().unwrap();
    for _ in 0..8 {
        server.cli(&["FLUSHALL"]).unwrap();
        let side = Side::new(&server, "extends", 100_000).await;
        let b = Backend::of(Arc::new(side.store.clone()), ());
        let extend = Command::ExtendFork {
            fork: 1,
            open: 60,
            needed: 60,
        };
        let extends = Change {
            release: true,
            ..change(vec![extend]).at(forked(1, 60))
        };
        let committed = commit_among_branches(&b, 30, extends).await;
        let Committed::Done { wake, .. } = committed else {
            panic!("{committed:?}");
        };
        assert_eq!(wake.len(), 30, "those that may begin now");
        let held = b.hold(&branch(59)).await;
        let Record::Branch { fork, .. } = &held.record else {
            panic!("it has not begun");
        };
        assert_eq!((fork.open, fork.needed), (60, 60));
    }
}

/// A turn that continues under its lease, until an input arrives in between.
#[tokio::test]
async fn calls_under_a_lease_are_written_at_once() {
    let server = RedisServer::start().unwrap();
    let side = Side::new(&server, "calls", 100_000).await;
    let b = Backend::of(Arc::new(side.store.clone()), ());
    b.create(new("a")).await;
    let mut held = b.hold_lazily(&root("a")).await;
    let mut scope = scope_of(&held.record);
    let before = side.store.second_reads();
    for call in 1..=5 {
        scope.cursor = calling(call);
        let next = commit_with(&held, &scope, call > 1);
        let committed = side.store.commit(next).await.unwrap();
        let Committed::Done { token, .. } = committed else {
            panic!("{call}: {committed:?}");
        };
        held.lease.token = token.unwrap_or(held.lease.token);
        scope.rev += 1;
    }
    assert_eq!(side.store.second_reads(), before);
    // By now the lease lasts longer, and the next commit needs no second request either.
    assert!(side.store.renew(&held.lease, LEASE_MS).await.unwrap());
    scope.cursor = calling(6);
    let next = commit_with(&held, &scope, true);
    side.store.commit(next).await.unwrap();
    scope.rev += 1;
    assert_eq!(side.store.second_reads(), before);
    // An answer that arrives after another input.
    let cancel = Input::Cancel {
        status: EndStatus::Cancelled,
    };
    b.add(&root("a"), cancel).await;
    let committed = side.store.commit(commit_with(&held, &scope, true)).await;
    assert!(
        matches!(committed, Ok(Committed::InboxChanged)),
        "{committed:?}"
    );
}

/// A timer that fires while a call is in flight changes the inbox and the timers of the held scope. The commit is
/// planned again with the current state.
#[tokio::test]
async fn a_commit_is_planned_again_after_a_change() {
    let server = RedisServer::start().unwrap();
    let side = Side::new(&server, "again", 100_000).await;
    let b = Backend::of(Arc::new(side.store.clone()), ());
    b.create(new("a")).await;
    let mut held = b.hold_lazily(&root("a")).await;
    let mut scope = scope_of(&held.record);
    scope.cursor = calling(1);
    scope.timers.push(timer(1, 5));
    let mut first = commit_with(&held, &scope, false);
    first.commands.push(Command::Arm(timer(1, 5)));
    let committed = side.store.commit(first).await.unwrap();
    let Committed::Done { token, .. } = committed else {
        panic!("{committed:?}");
    };
    held.lease.token = token.unwrap();
    scope.rev += 1;
    assert!(b.add(&root("a"), Input::Timer { seq: 1 }).await);
    let items = side.store.drain(&held.lease).await.unwrap();
    assert_eq!(items.unwrap().0.len(), 1);
    let before = side.store.second_reads();
    scope.timers.clear();
    let mut next = commit_with(&held, &scope, true);
    next.consumed = vec![Input::Timer { seq: 1 }.id()];
    let committed = side.store.commit(next).await.unwrap();
    assert!(matches!(committed, Committed::Done { .. }), "{committed:?}");
    assert_eq!(side.store.second_reads(), before + 1);
    let due = side.store.due_timers(at(1_000), 10).await.unwrap();
    assert_eq!(due, Vec::new());
}

/// A holder that waits for a long call polls without a function, until there is something new.
#[tokio::test]
async fn waiting_for_an_answer_runs_no_function() {
    let server = RedisServer::start().unwrap();
    let mut side = Side::new(&server, "waiting", 100_000).await;
    let b = Backend::of(Arc::new(side.store.clone()), ());
    b.create(new("a")).await;
    b.act(
        &root("a"),
        change(vec![fork("r", 1, 1, 1, 1)]).at(forked(1, 1)),
    )
    .await;
    for scope in [root("a"), branch(0)] {
        let held = b.hold(&scope).await;
        let before = side.functions();
        // The holder polls after some 20 ms.
        let wait = timeout(Duration::from_millis(200), b.store.wait_input(&held.lease));
        assert!(wait.await.is_err(), "nothing came");
        assert_eq!(side.functions(), before);
        let cancel = Input::Cancel {
            status: EndStatus::Cancelled,
        };
        b.add(&scope, cancel).await;
        timeout(Duration::from_secs(10), b.store.wait_input(&held.lease))
            .await
            .expect("the input arrives");
    }
}

fn commit_with(held: &Held, scope: &Scope, require_unchanged_inbox: bool) -> Commit {
    Commit {
        lease: held.lease.clone(),
        scope: scope.clone(),
        consumed: Vec::new(),
        refused: Vec::new(),
        history: Vec::new(),
        commands: Vec::new(),
        at: at(5),
        require_unchanged_inbox,
        fits: false,
        release: false,
        lease_ms: LEASE_MS,
    }
}
