//! Clients that wait for the end of an instance.

use std::pin::pin;
use std::sync::Arc;

use futures::FutureExt;
use futures::executor::block_on;
use swirl_contract::Backend;
use swirl_contract::kit::*;
use swirl_embedded::{Embedded, Options};
use swirl_model::event::Command;
use swirl_model::instance::EndStatus;
use swirl_model::scope::Cursor;
use swirl_ports::{InstanceQueries, Removed};

fn last(status: EndStatus) -> Change {
    let end = Command::End {
        status,
        output: None,
        error: None,
    };
    let cursor = match status {
        EndStatus::Faulted => None,
        _ => Some(Cursor::Ended),
    };
    Change {
        cursor,
        release: true,
        ..change(vec![end])
    }
}

async fn waits_for_ends(store: Embedded) {
    let store = Arc::new(store);
    let b = Backend::of(store.clone(), ());
    assert!(store.notifies_ends());
    for status in [EndStatus::Completed, EndStatus::Faulted] {
        let id = format!("{status:?}");
        b.create(new(&id)).await;
        b.create(new(&format!("other than {id}"))).await;
        let instance = root(&id).instance;
        let mut first = pin!(store.wait_ended(&instance));
        let mut second = Box::pin(store.wait_ended(&instance));
        assert!(first.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        // A client that has gone is in nobody's way.
        drop(second);
        b.act(&root(&format!("other than {id}")), change(vec![]))
            .await;
        assert!(first.as_mut().now_or_never().is_none());
        let mut held = b.hold(&root(&id)).await;
        b.commit(&mut held, last(status)).await;
        first.await;
        // It has ended before.
        store.wait_ended(&instance).await;
        assert_eq!(store.has_ended(&instance).await.unwrap(), Some(true));
    }
    // There is nothing to wait for.
    let unknown = root("unknown").instance;
    store.wait_ended(&unknown).await;
    assert_eq!(store.has_ended(&unknown).await.unwrap(), None);
    let ended = root("Completed").instance;
    assert_eq!(b.store.remove(&ended).await.unwrap(), Removed::Done);
    store.wait_ended(&ended).await;
}

#[test]
fn in_memory() {
    block_on(waits_for_ends(Embedded::memory()));
}

#[test]
fn on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let store = Embedded::open(folder.path(), Options::default()).unwrap();
    block_on(waits_for_ends(store));
}

#[test]
fn an_end_that_nobody_waited_for_is_notified_when_it_is_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(Embedded::open(folder.path(), Options::default()).unwrap());
    let b = Backend::of(store.clone(), ());
    block_on(async {
        b.create(new("a")).await;
        let instance = root("a").instance;
        let mut waits = Box::pin(store.wait_ended(&instance));
        assert!(waits.as_mut().now_or_never().is_none());
        let mut held = b.hold(&root("a")).await;
        // Dropped once the change is made, before it is on disk, if the disk isn't faster.
        let _ = b
            .commit(&mut held, last(EndStatus::Completed))
            .now_or_never();
        waits.await;
    });
    drop((store, b));
    let store = Embedded::open(folder.path(), Options::default()).unwrap();
    let ended = block_on(store.has_ended(&root("a").instance));
    assert_eq!(ended.unwrap(), Some(true));
}
