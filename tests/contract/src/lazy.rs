//! Scopes that are only read, and that are acquired by the first commit if at all. A backend may also acquire them
//! immediately.

use swirl_model::data;
use swirl_model::event::{Command, Input};
use swirl_model::scope::Work;
use swirl_model::workflow::EventId;
use swirl_ports::execution::Record;
use swirl_ports::{Acquired, InboxItem, Released};

use crate::Backend;
use crate::kit::*;

fn leaving(commands: Vec<Command>) -> Change {
    Change {
        release: true,
        ..change(commands).at(blocked(Work::Sleep))
    }
}

pub async fn the_first_commit_wins(b: Backend) {
    b.create(new("a")).await;
    let mut first = b.hold_lazily(&root("a")).await;
    let second = b.store.read_snapshot(&root("a"), LEASE_MS).await.unwrap();
    assert!(b.commit(&mut first, leaving(vec![])).await.released);
    match second {
        Acquired::Held(mut second) => {
            let late = b.try_commit(&mut second, leaving(vec![])).await;
            assert!(late.is_none(), "the other one was faster");
        }
        Acquired::Busy => {}
        Acquired::Gone => panic!("it is there"),
    }
    assert!(!b.is_busy(&root("a")).await, "nobody is left with a lease");
    let scopes = b.store.scopes(&root("a").instance).await.unwrap();
    assert_eq!(scopes[0].rev, 1);
}

pub async fn a_continuing_reader_acquires_the_lease(b: Backend) {
    b.create(new("a")).await;
    let mut held = b.hold_lazily(&root("a")).await;
    b.commit(&mut held, change(vec![]).at(calling(1))).await;
    assert!(held.lease.is_taken());
    assert!(b.is_busy(&root("a")).await);
    assert!(b.store.renew(&held.lease, LEASE_MS).await.unwrap());
    b.commit(&mut held, change(vec![])).await;
    assert_eq!(b.release(&held).await, Released::Free);
}

pub async fn a_holder_is_not_disturbed(b: Backend) {
    b.create(new("a")).await;
    let mut looked = b.hold_lazily(&root("a")).await;
    if looked.lease.is_taken() {
        return;
    }
    let mut holder = b.hold(&root("a")).await;
    assert!(b.try_commit(&mut looked, leaving(vec![])).await.is_none());
    assert_eq!(b.release(&looked).await, Released::Free);
    let late = b.store.read_snapshot(&root("a"), LEASE_MS).await.unwrap();
    assert!(matches!(late, Acquired::Busy));
    b.commit(&mut holder, change(vec![])).await;
}

pub async fn inputs_between_read_and_commit_are_not_lost(b: Backend) {
    b.create(new("a")).await;
    let answer = |call| Input::CallDone {
        call,
        result: Ok(data!(call)),
    };
    b.add(&root("a"), answer(1)).await;
    let mut held = b.hold_lazily(&root("a")).await;
    assert_eq!(held.inbox.len(), 1);
    b.add(&root("a"), answer(2)).await;
    let outcome = b
        .commit(&mut held, leaving(vec![]).consumed(&["call-1"]))
        .await;
    if outcome.released {
        assert_eq!(outcome.wake, [root("a")], "there is something to do");
    } else {
        let (items, _) = b.store.drain(&held.lease).await.unwrap().unwrap();
        assert_eq!(items.len(), 1);
        b.release(&held).await;
    }
    let next = b.hold_lazily(&root("a")).await;
    let ids: Vec<&str> = next.inbox.iter().map(|item| item.id.as_str()).collect();
    assert_eq!(ids, ["call-2"]);
}

pub async fn a_continuing_reader_gets_later_inputs(b: Backend) {
    b.create(new("a")).await;
    let mut held = b.hold_lazily(&root("a")).await;
    let cancel = Input::CallDone {
        call: 9,
        result: Ok(data!(9)),
    };
    b.add(&root("a"), cancel).await;
    b.commit(&mut held, change(vec![]).at(calling(1))).await;
    assert!(held.lease.is_taken());
    b.store.wait_input(&held.lease).await;
    let (items, _) = b.store.drain(&held.lease).await.unwrap().unwrap();
    assert_eq!(items.len(), 1);
}

pub async fn nothing_begins_in_a_suspended_instance(b: Backend) {
    b.create(new("a")).await;
    let mut looked = b.hold_lazily(&root("a")).await;
    if looked.lease.is_taken() {
        return;
    }
    let id = root("a").instance;
    b.store.suspend(&id, true, None).await.unwrap();
    assert!(b.try_commit(&mut looked, leaving(vec![])).await.is_none());
    let awake = b.store.suspend(&id, false, None).await.unwrap();
    assert_eq!(awake.unwrap().wake, [root("a")], "it is woken to continue");
}

pub async fn a_branch_can_be_read_without_a_lease(b: Backend) {
    b.create(new("a")).await;
    b.act(
        &root("a"),
        change(vec![fork("r", 1, 2, 1, 1)]).at(forked(1, 2)),
    )
    .await;
    let looked = b.hold_lazily(&scope("a", "r.1.0")).await;
    b.release(&looked).await;
    let held = b.hold(&scope("a", "r.1.0")).await;
    assert_eq!(format!("{:?}", looked.record), format!("{:?}", held.record));
    assert_eq!(looked.header, held.header);
    assert_eq!((looked.inbox, looked.closed), (held.inbox, held.closed));
    let closed = b
        .store
        .read_snapshot(&scope("a", "r.1.1"), LEASE_MS)
        .await
        .unwrap();
    assert!(matches!(closed, Acquired::Gone), "it may not begin yet");
}

/// Readers may cache the common data of branches, but not their changing data.
pub async fn branches_can_be_read_one_after_another(b: Backend) {
    b.create(new("a")).await;
    let begun = change(vec![fork("r", 1, 3, 1, 1)]).at(forked(1, 3));
    b.act(&root("a"), begun).await;
    let first = b.hold_lazily(&scope("a", "r.1.0")).await;
    b.release(&first).await;
    let more = Command::ExtendFork {
        fork: 1,
        open: 3,
        needed: 3,
    };
    b.act(&root("a"), change(vec![more]).at(forked(1, 3))).await;
    for branch in ["r.1.1", "r.1.2", "r.1.0"] {
        let branch = scope("a", branch);
        let looked = b.hold_lazily(&branch).await;
        b.release(&looked).await;
        let held = b.hold(&branch).await;
        b.release(&held).await;
        let open = |record: &Record| match record {
            Record::Branch { fork, .. } => (fork.open, fork.needed),
            Record::Scope(scope) => panic!("{scope:?}"),
        };
        assert_eq!(open(&looked.record), (3, 3));
        assert_eq!(format!("{:?}", looked.record), format!("{:?}", held.record));
        assert_eq!(looked.header, held.header);
    }
}

pub async fn a_call_in_flight_is_acquired(b: Backend) {
    b.create(new("a")).await;
    let mut held = b.hold(&root("a")).await;
    b.commit(&mut held, change(vec![]).at(calling(1))).await;
    b.release(&held).await;
    let held = b.hold_lazily(&root("a")).await;
    assert!(held.lease.is_taken());
    assert!(b.is_busy(&root("a")).await);
}

/// The instance waits for the event and has got it. Returns the item's id.
async fn delivered(b: &Backend, id: &str) -> String {
    b.waiting("a", vec![filter("t", &[("order", Some("1"))])])
        .await;
    let kept = [filter("t", &[("order", None)])];
    let event = event(id, "t", &[("order", "1")]);
    assert_eq!(b.ingest(&event, &kept).await.woken, [root("a")]);
    InboxItem::new(Input::Event {
        wait: 1,
        slot: 0,
        def: EventId(0),
        event,
        offered: false,
        early: false,
    })
    .id
}

pub async fn a_delivered_event_is_read_with_its_scope(b: Backend) {
    let item = delivered(&b, "1").await;
    let read = b.store.read_delivered(&root("a"), LEASE_MS).await.unwrap();
    let Acquired::Held(mut held) = read else {
        panic!("no process holds it: {read:?}")
    };
    assert_eq!(event_ids(&held.inbox), ["1"]);
    let next = Command::Subscribe(subscription(2, vec![filter("u", &[])]));
    let used = leaving(vec![next]).consumed(&[&item]);
    assert!(b.commit(&mut held, used).await.released);
    assert!(b.inbox(&root("a")).await.is_empty());
    let second = event("2", "u", &[]);
    assert_eq!(b.ingest(&second, &[]).await.woken, [root("a")]);
    assert_eq!(event_ids(&b.inbox(&root("a")).await), ["2"]);
}

pub async fn an_outdated_delivery_is_refused(b: Backend) {
    let item = delivered(&b, "1").await;
    // Another process may be faster.
    b.act(&root("a"), leaving(vec![]).consumed(&[&item])).await;
    let read = b.store.read_delivered(&root("a"), LEASE_MS).await.unwrap();
    let Acquired::Held(mut held) = read else {
        panic!("no process holds it: {read:?}")
    };
    if held.inbox.is_empty() {
        return;
    }
    let late = b
        .try_commit(&mut held, leaving(vec![]).consumed(&[&item]))
        .await;
    assert!(late.is_none(), "the event was consumed before");
    let scopes = b.store.scopes(&root("a").instance).await.unwrap();
    assert_eq!(scopes[0].rev, 2);
}

pub async fn a_delivery_to_a_held_scope_is_not_read(b: Backend) {
    b.waiting("a", vec![filter("t", &[])]).await;
    let mut holder = b.hold(&root("a")).await;
    b.ingest(&event("1", "t", &[]), &[]).await;
    let read = b.store.read_delivered(&root("a"), LEASE_MS).await.unwrap();
    assert!(matches!(read, Acquired::Busy));
    let (items, _) = b.store.drain(&holder.lease).await.unwrap().unwrap();
    assert_eq!(event_ids(&items), ["1"]);
    b.commit(&mut holder, change(vec![]).consumed(&[&items[0].id]))
        .await;
}
