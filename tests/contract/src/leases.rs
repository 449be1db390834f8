//! Leases, revisions, inboxes.

use futures::future::{Either, join, pending, select};
use swirl_model::data;
use swirl_model::event::{Command, Input};
use swirl_model::ids::InstanceId;
use swirl_model::instance::EndStatus;
use swirl_model::scope::{Cursor, Work};
use swirl_ports::{InboxItem, Lease, Released};

use crate::Backend;
use crate::kit::*;

fn call(call: u32) -> Input {
    Input::CallDone {
        call,
        result: Ok(data!(call)),
    }
}

fn ids(items: &[InboxItem]) -> Vec<&str> {
    items.iter().map(|item| item.id.as_str()).collect()
}

pub async fn a_scope_has_a_single_holder(b: Backend) {
    b.create(new("a")).await;
    let first = b.hold(&root("a")).await;
    assert!(b.is_busy(&root("a")).await);
    assert!(b.store.renew(&first.lease, LEASE_MS).await.unwrap());
    assert_eq!(b.release(&first).await, Released::Free);
    assert_eq!(b.release(&first).await, Released::Lost);
    let second = b.hold(&root("a")).await;
    assert!(second.lease.token > first.lease.token);
    assert!(!b.store.renew(&first.lease, LEASE_MS).await.unwrap());
    assert!(b.store.drain(&first.lease).await.unwrap().is_none());
}

pub async fn commits_need_the_lease_and_the_revision(b: Backend) {
    b.create(new("a")).await;
    let mut first = b.hold(&root("a")).await;
    b.release(&first).await;
    assert!(b.try_commit(&mut first, change(vec![])).await.is_none());
    let mut second = b.hold(&root("a")).await;
    b.commit(&mut second, change(vec![])).await;
    let scopes = b.store.scopes(&root("a").instance).await.unwrap();
    assert_eq!(scopes[0].rev, 1);
    b.release(&second).await;
    let mut third = b.hold(&root("a")).await;
    // The record of the first one is too old, whoever holds the lease.
    first.lease = Lease::new(root("a"), third.lease.token);
    assert!(b.try_commit(&mut first, change(vec![])).await.is_none());
    b.release(&third).await;
    third = b.hold(&root("a")).await;
    b.commit(&mut third, change(vec![])).await;
}

pub async fn attempts_count_until_the_record_changes(b: Backend) {
    b.create(new("a")).await;
    let scope = root("a");
    let attempt = || async { b.store.attempt(&scope).await.unwrap() };
    assert_eq!((attempt().await, attempt().await), (1, 2));
    b.store.clear_attempts(&scope, false).await.unwrap();
    assert_eq!(attempt().await, 2);
    // Neither a lease nor an input changes the record.
    let mut held = b.hold(&scope).await;
    assert!(b.add(&scope, call(1)).await);
    assert_eq!(attempt().await, 3);
    b.commit(&mut held, change(vec![])).await;
    b.store.clear_attempts(&scope, false).await.unwrap();
    assert_eq!((attempt().await, attempt().await), (1, 2));
    b.store.clear_attempts(&scope, true).await.unwrap();
    assert_eq!(attempt().await, 1);
    // Each scope has its own count, even a branch without a record.
    let branch = swirl_model::ids::ScopeRef {
        scope: scope.scope.child(1, 0),
        ..scope.clone()
    };
    assert_eq!(b.store.attempt(&branch).await.unwrap(), 1);
    assert_eq!(b.store.attempt(&root("gone")).await.unwrap(), 0);
}

pub async fn inputs_are_delivered_once_and_in_order(b: Backend) {
    b.create(new("a")).await;
    assert!(b.add(&root("a"), call(2)).await);
    assert!(b.add(&root("a"), call(1)).await);
    assert!(!b.add(&root("a"), call(2)).await);
    let mut held = b.hold(&root("a")).await;
    assert_eq!(ids(&held.inbox), ["call-2", "call-1"]);
    assert!(b.add(&root("a"), Input::Retry).await);
    let (items, closed) = b.store.drain(&held.lease).await.unwrap().unwrap();
    assert_eq!((ids(&items), closed), (vec!["retry"], false));
    assert!(
        b.store
            .drain(&held.lease)
            .await
            .unwrap()
            .unwrap()
            .0
            .is_empty()
    );
    b.commit(&mut held, change(vec![]).consumed(&["call-2", "retry"]))
        .await;
    assert!(
        !b.add(&root("a"), call(2)).await,
        "consumed once is consumed for good"
    );
    assert!(
        b.add(&root("a"), Input::Retry).await,
        "an operator may say it again"
    );
    assert_eq!(b.release(&held).await, Released::More);
    b.store.drain(&held.lease).await.unwrap();
    assert_eq!(b.release(&held).await, Released::Free);
    let again = b.hold(&root("a")).await;
    assert_eq!(ids(&again.inbox), ["call-1", "retry"]);
}

pub async fn a_new_input_keeps_the_lease(b: Backend) {
    b.create(new("a")).await;
    let held = b.hold(&root("a")).await;
    b.add(&root("a"), call(1)).await;
    assert_eq!(b.release(&held).await, Released::More);
    assert!(b.is_busy(&root("a")).await);
    let (items, _) = b.store.drain(&held.lease).await.unwrap().unwrap();
    assert_eq!(ids(&items), ["call-1"]);
    assert_eq!(b.release(&held).await, Released::Free);
}

pub async fn a_waiting_holder_is_woken(b: Backend) {
    b.create(new("a")).await;
    let held = b.hold(&root("a")).await;
    let add = async {
        b.add(&root("a"), call(1)).await;
        pending::<()>().await;
    };
    // The wait ends, and not because there is no waker.
    let wait = b.store.wait_input(&held.lease);
    assert!(matches!(select(wait, Box::pin(add)).await, Either::Left(_)));
    b.store.drain(&held.lease).await.unwrap();
    let end = async {
        b.store
            .suspend(&root("a").instance, true, None)
            .await
            .unwrap();
        b.add(&root("a"), call(2)).await;
        b.store
            .suspend(&root("a").instance, false, None)
            .await
            .unwrap();
    };
    join(b.store.wait_input(&held.lease), end).await;
    assert_eq!(
        ids(&b.store.drain(&held.lease).await.unwrap().unwrap().0),
        ["call-2"]
    );
}

pub async fn missing_scopes_accept_nothing(b: Backend) {
    assert!(b.is_gone(&root("a")).await);
    assert!(!b.add(&root("a"), call(1)).await);
    b.create(new("a")).await;
    assert!(b.is_gone(&scope("a", "r.1.0")).await);
    assert!(!b.add(&scope("a", "r.1.0"), call(1)).await);
    let end = Command::End {
        status: EndStatus::Completed,
        output: None,
        error: None,
    };
    b.act(&root("a"), change(vec![end]).at(Cursor::Ended)).await;
    assert!(b.is_gone(&root("a")).await);
    assert!(
        !b.add(
            &root("a"),
            Input::Cancel {
                status: EndStatus::Cancelled
            }
        )
        .await
    );
    b.create(new("b")).await;
    b.act(&root("b"), change(vec![]).at(blocked(Work::Sleep)))
        .await;
    assert!(!b.is_gone(&root("b")).await);
}

fn last(commands: Vec<Command>) -> Change {
    Change {
        release: true,
        ..change(commands)
    }
}

pub async fn a_commit_can_release_the_lease(b: Backend) {
    b.create(new("a")).await;
    let mut held = b.hold(&root("a")).await;
    assert!(b.commit(&mut held, last(vec![])).await.released);
    assert_eq!(b.release(&held).await, Released::Lost);

    // An input keeps the lease, and is noticed.
    let mut held = b.hold(&root("a")).await;
    assert!(b.add(&root("a"), call(1)).await);
    assert!(!b.commit(&mut held, last(vec![])).await.released);
    assert_eq!(b.release(&held).await, Released::More);
    let (items, _) = b.store.drain(&held.lease).await.unwrap().unwrap();
    assert_eq!(items.len(), 1);
    let consumed = vec![items[0].id.clone()];
    let done = Change {
        consumed,
        ..last(vec![])
    };
    assert!(b.commit(&mut held, done).await.released);

    // Effects are carried out before the next step of the scope.
    let mut held = b.hold(&root("a")).await;
    let outcome = b
        .commit(
            &mut held,
            last(vec![Command::Publish(event("e", "t", &[]))]),
        )
        .await;
    assert!(!outcome.released && outcome.outbox.len() == 1);
    assert!(b.is_busy(&root("a")).await);
    assert_eq!(b.release(&held).await, Released::Free);

    // Nothing is delivered after the end.
    let mut held = b.hold(&root("a")).await;
    let end = Command::End {
        status: EndStatus::Completed,
        output: None,
        error: None,
    };
    let done = Change {
        cursor: Some(Cursor::Ended),
        ..last(vec![Command::Publish(event("f", "t", &[])), end])
    };
    assert!(b.commit(&mut held, done).await.released);
    assert!(b.is_gone(&root("a")).await);
}

pub async fn an_unsure_commit_gets_new_inputs(b: Backend) {
    let unsure = || Change {
        require_unchanged_inbox: true,
        fits: false,
        ..change(vec![])
    };
    b.create(new("a")).await;
    let mut held = b.hold(&root("a")).await;
    assert!(b.try_commit(&mut held, unsure()).await.is_some());
    assert!(b.add(&root("a"), call(1)).await);
    assert!(b.try_commit(&mut held, unsure()).await.is_none());
    // Nothing took effect, and the lease is still valid.
    let (items, _) = b.store.drain(&held.lease).await.unwrap().unwrap();
    assert_eq!(items.len(), 1);
    // Items that were already delivered are not new.
    assert!(b.try_commit(&mut held, unsure()).await.is_some());

    let id = InstanceId::new("a");
    b.store.suspend(&id, true, None).await.unwrap();
    assert!(b.try_commit(&mut held, unsure()).await.is_none());
    b.store.suspend(&id, false, None).await.unwrap();
    assert!(b.try_commit(&mut held, unsure()).await.is_some());
}
