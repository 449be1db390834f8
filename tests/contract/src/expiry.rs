//! Leases that expire because their holder is gone or too slow.

use std::thread::sleep;
use std::time::Duration;

use swirl_model::data;
use swirl_model::event::Input;
use swirl_model::scope::Work;
use swirl_ports::{Acquired, Held, Released};

use crate::Backend;
use crate::kit::*;

const SHORT_MS: u64 = 60;

fn wait() {
    // Time has to pass: a lease expires.
    sleep(Duration::from_millis(2 * SHORT_MS));
}

async fn hold_shortly(b: &Backend) -> Held {
    match b.store.acquire(&root("a"), SHORT_MS).await.unwrap() {
        Acquired::Held(held) => *held,
        other => panic!("it cannot be held: {other:?}"),
    }
}

pub async fn an_expired_lease_is_taken_over(b: Backend) {
    b.create(new("a")).await;
    b.add(
        &root("a"),
        Input::CallDone {
            call: 1,
            result: Ok(data!(1)),
        },
    )
    .await;
    let mut first = hold_shortly(&b).await;
    assert_eq!(first.inbox.len(), 1);
    wait();
    assert_eq!(b.store.runnable(10).await.unwrap(), [root("a")]);
    let mut second = b.hold(&root("a")).await;
    assert!(second.lease.token > first.lease.token);
    assert_eq!(
        second.inbox, first.inbox,
        "what nobody acted on is given again"
    );
    assert!(b.try_commit(&mut first, change(vec![])).await.is_none());
    assert!(!b.store.renew(&first.lease, LEASE_MS).await.unwrap());
    assert!(b.store.drain(&first.lease).await.unwrap().is_none());
    assert_eq!(b.release(&first).await, Released::Lost);
    // The call returns, because there is nothing to wait for.
    b.store.wait_input(&first.lease).await;
    assert!(b.is_busy(&root("a")).await);
    b.commit(
        &mut second,
        change(vec![])
            .at(blocked(Work::Sleep))
            .consumed(&["call-1"]),
    )
    .await;
    assert_eq!(b.release(&second).await, Released::Free);
    assert!(b.store.runnable(10).await.unwrap().is_empty());
}

pub async fn a_renewed_lease_stays(b: Backend) {
    b.create(new("a")).await;
    let held = hold_shortly(&b).await;
    assert!(b.store.renew(&held.lease, LEASE_MS).await.unwrap());
    wait();
    assert!(b.is_busy(&root("a")).await);
    assert!(b.store.runnable(10).await.unwrap().is_empty());
}

pub async fn a_late_holder_without_a_successor_continues(b: Backend) {
    b.create(new("a")).await;
    let mut held = hold_shortly(&b).await;
    wait();
    b.commit(&mut held, change(vec![])).await;
    assert_eq!(b.release(&held).await, Released::Free);
}

pub async fn a_holder_that_takes_no_input_loses_its_lease(b: Backend) {
    b.create(new("a")).await;
    let mut first = b.hold(&root("a")).await;
    let reclaim = async || b.store.reclaim(&root("a"), "call-1").await.unwrap();
    assert!(!reclaim().await, "there is no such input");
    let call = Input::CallDone {
        call: 1,
        result: Ok(data!(1)),
    };
    b.add(&root("a"), call).await;
    assert!(reclaim().await && !reclaim().await, "once");
    assert_eq!(b.store.runnable(10).await.unwrap(), [root("a")]);
    let mut second = b.hold(&root("a")).await;
    assert_eq!(second.inbox.len(), 1);
    assert!(!reclaim().await, "this holder has taken it");
    assert!(b.try_commit(&mut first, change(vec![])).await.is_none());
    assert!(b.store.drain(&first.lease).await.unwrap().is_none());
    b.commit(&mut second, change(vec![]).consumed(&["call-1"]))
        .await;
    assert!(!reclaim().await, "it has been consumed");
}
