//! Instance ids that are used again.

use swirl_model::data;
use swirl_model::event::Command;
use swirl_model::instance::EndStatus;
use swirl_model::scope::Cursor;
use swirl_ports::Released;

use crate::Backend;
use crate::kit::*;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// A process may be frozen for longer than an instance is kept, and then return with numbers of a former instance with
/// the same id.
pub async fn a_reused_id_keeps_nothing_of_the_former_instance(b: Backend) {
    let publish = |id: &str| change(vec![Command::Publish(event(id, "t", &[]))]);
    b.create(new("a")).await;
    let mut late = b.hold(&root("a")).await;
    let sent = b.commit(&mut late, publish("1")).await.outbox;
    b.release(&late).await;
    let mut lazy = b.hold_lazily(&root("a")).await;
    b.release(&lazy).await;
    let end = Command::End {
        status: EndStatus::Completed,
        output: Some(data!({})),
        error: None,
    };
    let last = change(vec![end]).at(Cursor::Ended);
    b.act(&root("a"), last).await;
    b.store.flushed(&sent).await.unwrap();
    b.events.expire(at(30 * DAY_MS)).await.unwrap();
    assert!(b.store.view(&root("a").instance).await.unwrap().is_none());

    b.create(new("a")).await;
    let mut held = b.hold(&root("a")).await;
    assert_ne!(held.lease.token, late.lease.token);
    let outbox = b.commit(&mut held, publish("2")).await.outbox;
    b.store.flushed(&sent).await.unwrap();
    assert_eq!(b.store.unflushed(10).await.unwrap(), outbox);
    assert!(!b.store.renew(&late.lease, LEASE_MS).await.unwrap());
    assert_eq!(b.release(&late).await, Released::Lost);
    assert!(b.try_commit(&mut late, change(vec![])).await.is_none());
    b.release(&held).await;
    assert!(b.try_commit(&mut lazy, change(vec![])).await.is_none());
}
