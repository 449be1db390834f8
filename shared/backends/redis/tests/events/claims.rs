//! A process claims a kept event, stands still at any point, and continues after others have gone on.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use swirl_contract::Backend;
use swirl_contract::kit::*;
use swirl_model::event::Command;
use swirl_ports::Lease;
use swirl_redis::{Options, Redis};

use super::deaths::dying;
use super::{Rig, by_order, got, known};

async fn drained(b: &Backend, lease: &Lease) -> Vec<String> {
    let drained = b.store.drain(lease).await.unwrap();
    drained.map_or_else(Vec::new, |(inbox, _)| event_ids(&inbox))
}

/// An instance that begins now and waits for the event's values.
async fn begin(b: &Backend, id: &str) -> Vec<String> {
    let wait = Command::Subscribe(subscription(1, vec![by_order("t")]));
    b.create(new(id)).await;
    b.act(&root(id), change(vec![known("1"), wait])).await;
    got(b, id).await
}

/// The event came before the instance.
#[tokio::test]
async fn a_claim_belongs_to_its_claimant() {
    two_reindex(&Rig::new(), "after", false).await;
}

/// The instance was there when the event came, so it needn't be the only one that gets the event.
#[tokio::test]
async fn an_event_that_an_older_instance_gets_is_not_for_later_ones() {
    two_reindex(&Rig::new(), "before", true).await;
}

async fn two_reindex(rig: &Rig, name: &str, was_there: bool) {
    let event = event("1", "t", &[("order", "1")]);
    let mut polls = 0;
    let mut went_on = 0;
    loop {
        polls += 1;
        let namespace = format!("{name}{polls}");
        let (one, two) = (rig.backend(&namespace).await, rig.backend(&namespace).await);
        if was_there {
            one.create(new("a")).await;
        }
        two.ingest(&event, &[by_order("t")]).await;
        if !was_there {
            one.create(new("a")).await;
        }
        let mut held = one.hold(&root("a")).await;
        let lease = held.lease.clone();
        let wait = Command::Subscribe(subscription(1, vec![by_order("t")]));
        let commit = one.try_commit(&mut held, change(vec![known("1"), wait]));
        let mut commit = dying(polls, commit);
        let done = std::future::poll_fn(|context| Pin::new(&mut commit).poll(context)).await;
        // The process stands still. Another one does all that is left to do.
        two.store.runnable(10).await.unwrap();
        let mut mine = drained(&two, &lease).await;
        if !mine.is_empty() {
            went_on += 1;
            let next = begin(&two, "b").await;
            assert!(next.is_empty(), "after {polls} polls");
        }
        if done.is_none() {
            commit.resume();
            std::future::poll_fn(|context| Pin::new(&mut commit).poll(context)).await;
        }
        mine.extend(drained(&two, &lease).await);
        assert_eq!(mine, ["1"], "after {polls} polls");
        let later = begin(&two, "c").await;
        assert!(later.is_empty(), "after {polls} polls");
        if done.is_some() {
            assert!(went_on > 5, "the other process never went on");
            return;
        }
    }
}

/// A delivery to a waiting instance stands still at any point, also before the consumption is recorded.
#[tokio::test]
async fn an_event_that_is_being_delivered_is_not_for_later_instances() {
    let rig = Rig::new();
    let event = event("1", "t", &[("order", "1")]);
    let kept = [by_order("t")];
    let mut polls = 0;
    let mut went_on = 0;
    loop {
        polls += 1;
        let namespace = format!("fresh{polls}");
        let (one, two) = (rig.backend(&namespace).await, rig.backend(&namespace).await);
        assert!(begin(&one, "a").await.is_empty());
        let mut ingest = dying(polls, one.ingest(&event, &kept));
        let done = std::future::poll_fn(|context| Pin::new(&mut ingest).poll(context)).await;
        if got(&two, "a").await == ["1"] {
            went_on += 1;
            let next = begin(&two, "b").await;
            assert!(next.is_empty(), "after {polls} polls");
        }
        if done.is_some() {
            assert!(went_on > 2, "the other process never went on");
            return;
        }
        ingest.resume();
        std::future::poll_fn(|context| Pin::new(&mut ingest).poll(context)).await;
        assert_eq!(got(&two, "a").await, ["1"], "after {polls} polls");
    }
}

/// No sweep comes.
#[tokio::test]
async fn an_event_is_kept_no_longer_than_its_time() {
    let rig = Rig::new();
    let options = Options {
        retain_ms: 300,
        ..Options::single(rig.server.url())
    };
    let b = Backend::of(Arc::new(Redis::connect(options).await.unwrap()), ());
    let kept = [by_order("t")];
    b.create(new("there")).await;
    b.ingest(&event("1", "t", &[("order", "1")]), &kept).await;
    // Time has to pass: until the event is too old.
    tokio::time::sleep(Duration::from_millis(400)).await;
    b.ingest(&event("2", "t", &[("order", "1")]), &kept).await;
    let wait = Command::Subscribe(subscription(1, vec![by_order("t"), by_order("t")]));
    b.act(&root("there"), change(vec![known("1"), wait])).await;
    assert_eq!(got(&b, "there").await, ["2"]);
}
