//! Processes that die halfway.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use swirl_contract::kit::*;
use swirl_model::CloudEvent;
use swirl_model::event::{Command, EventMatch};
use swirl_model::scope::Work;
use swirl_ports::execution::Record;
use swirl_ports::matching::Listeners;
use swirl_ports::{Acquired, Listening};

use super::{Rig, by_order, got, known};

/// A process that dies: its future is dropped after this many polls.
pub struct Dying<'a, T> {
    future: Pin<Box<dyn Future<Output = T> + 'a>>,
    polls: usize,
}

pub fn dying<'a, T>(polls: usize, future: impl Future<Output = T> + 'a) -> Dying<'a, T> {
    Dying {
        future: Box::pin(future),
        polls,
    }
}

impl<T> Dying<'_, T> {
    /// It only stood still.
    pub fn resume(&mut self) {
        self.polls = usize::MAX;
    }
}

impl<T> Future for Dying<'_, T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        if self.polls == 0 {
            return Poll::Ready(None);
        }
        self.polls -= 1;
        self.future.as_mut().poll(context).map(Some)
    }
}

/// An ingestion that dies at any point, and is repeated by another process.
#[tokio::test]
async fn an_ingestion_may_die_at_any_point() {
    let rig = Rig::new();
    offers_die(&rig, "offer", None).await;
    // Now the waiting instance is guessed.
    let listeners = [by_order("t"), by_order("u"), filter("t", &[])];
    let listeners = Listeners::new(listeners.into_iter());
    offers_die(&rig, "guess", Some(&listeners)).await;
}

async fn offers_die(rig: &Rig, name: &str, listeners: Option<&Listeners>) {
    let mut polls = 0;
    loop {
        polls += 1;
        let namespace = format!("{name}{polls}");
        let (one, two) = (rig.backend(&namespace).await, rig.backend(&namespace).await);
        one.waiting("unknown", vec![by_order("t"), by_order("t")])
            .await;
        one.waiting("kind", vec![filter("t", &[]), filter("t", &[])])
            .await;
        one.create(new("value")).await;
        one.create(new("late")).await;
        let wait = Command::Subscribe(subscription(1, vec![by_order("t"), by_order("t")]));
        one.act(&root("value"), change(vec![known("1"), wait]))
            .await;
        let event = event("1", "t", &[("order", "1")]);
        let mut only = trigger(vec![by_order("t")], true);
        only.definition = definition("other");
        let mut pair = trigger(vec![by_order("t"), by_order("u")], false);
        pair.definition = definition("pair");
        let triggers = [only, pair];
        let kept = [by_order("t")];
        let listening = Listening {
            listeners,
            ..Listening::new(&triggers, &kept)
        };
        let ingest = one.events.ingest(&event, listening, at(0));
        let done = dying(polls, ingest).await;
        let again = two.events.ingest(&event, listening, at(0)).await.unwrap();
        assert_eq!(start_ids(&again), [["1"]], "after {polls} polls");
        for id in ["unknown", "kind", "value"] {
            assert_eq!(got(&two, id).await, ["1"], "{id} after {polls} polls");
        }
        let rest = two
            .events
            .ingest(&other_event(), Listening::new(&triggers, &[]), at(0))
            .await
            .unwrap();
        assert_eq!(start_ids(&rest), [["1", "2"]], "after {polls} polls");
        // An instance that existed, and waits later, gets the kept event. An instance that begins later doesn't.
        let wait = Command::Subscribe(subscription(1, kept.to_vec()));
        two.act(&root("late"), change(vec![known("1"), wait])).await;
        assert_eq!(got(&two, "late").await, ["1"], "after {polls} polls");
        two.waiting("later", kept.to_vec()).await;
        let order = change(vec![known("1")]);
        two.act(&root("later"), order).await;
        let later = got(&two, "later").await;
        assert!(later.is_empty(), "others have consumed it: {polls} polls");
        if done.is_some() {
            assert!(polls > 5, "it never died");
            return;
        }
    }
}

/// Between two offers to an instance the first one may have been taken already.
#[tokio::test]
async fn offers_to_an_instance_may_die_at_any_point() {
    let rig = Rig::new();
    let mut polls = 0;
    loop {
        polls += 1;
        let namespace = format!("two{polls}");
        let (one, two) = (rig.backend(&namespace).await, rig.backend(&namespace).await);
        one.create(new("a")).await;
        let forking = change(vec![fork("r", 1, 2, 2, 2)]).at(forked(1, 2));
        one.act(&root("a"), forking).await;
        let kept = [EventMatch {
            apart: true,
            offers: true,
            ..filter("t", &[("order", Some("1"))])
        }];
        let branches = ["r.1.0", "r.1.1"].map(|branch| scope("a", branch));
        for branch in &branches {
            let wait = Command::Subscribe(subscription(1, kept.to_vec()));
            let waiting = change(vec![wait]).at(blocked(Work::Events));
            one.act(branch, waiting).await;
        }
        let event = event("1", "t", &[("order", "1")]);
        let listening = Listening::new(&[], &kept);
        let ingest = one.events.ingest(&event, listening, at(0));
        let done = dying(polls, ingest).await;
        let first = two.inbox(&branches[0]).await;
        if let Some(item) = first.first() {
            let take = Command::Take {
                wait: 1,
                key: event.key(),
            };
            let taken = change(vec![take]).consumed(&[&item.id]);
            two.act(&branches[0], taken.at(blocked(Work::Events))).await;
        }
        two.events.ingest(&event, listening, at(0)).await.unwrap();
        let left = two.inbox(&branches[0]).await;
        assert_eq!(left.is_empty(), !first.is_empty(), "after {polls} polls");
        let second = event_ids(&two.inbox(&branches[1]).await);
        assert_eq!(second, ["1"], "after {polls} polls");
        if done.is_some() {
            return;
        }
    }
}

/// The only delivery of an event, after which the instance waits for nothing: it acknowledges the event, and leaves the
/// index of waits to the next commit.
#[tokio::test]
async fn a_last_delivery_may_die_at_any_point() {
    let rig = Rig::new();
    let listeners = Listeners::new([by_order("t")].into_iter());
    let mut polls = 0;
    loop {
        polls += 1;
        let namespace = format!("last{polls}");
        let (one, two) = (rig.backend(&namespace).await, rig.backend(&namespace).await);
        one.create(new("value")).await;
        let wait = Command::Subscribe(subscription(1, vec![by_order("t")]));
        one.act(&root("value"), change(vec![known("1"), wait]))
            .await;
        let event = event("1", "t", &[("order", "1")]);
        let kept = [by_order("t")];
        let listening = Listening {
            listeners: Some(&listeners),
            ..Listening::new(&[], &kept)
        };
        let ingest = one.events.ingest(&event, listening, at(0));
        let done = dying(polls, ingest).await;
        let again = two.events.ingest(&event, listening, at(0)).await.unwrap();
        if let Some(first) = &done {
            assert!(first.as_ref().unwrap().acknowledged && again.duplicate);
        }
        if !again.acknowledged && !again.duplicate {
            two.events.acknowledge(&event, at(0)).await.unwrap();
        }
        let third = two.events.ingest(&event, listening, at(0)).await.unwrap();
        assert!(third.duplicate, "after {polls} polls");
        let awaited = async || two.events.awaited(&[&event], &listeners).await.unwrap();
        if done.is_some() {
            assert_eq!(awaited().await, [true], "the index is left to the commit");
        }
        let items = two.inbox(&root("value")).await;
        assert_eq!(event_ids(&items), ["1"], "after {polls} polls");
        let used = change(vec![]).consumed(&[&items[0].id]);
        two.act(&root("value"), used).await;
        assert_eq!(awaited().await, [false], "after {polls} polls");
        two.waiting("later", kept.to_vec()).await;
        two.act(&root("later"), change(vec![known("1")])).await;
        let later = got(&two, "later").await;
        assert!(later.is_empty(), "another has consumed it: {polls} polls");
        if done.is_some() {
            assert!(polls > 3, "it never died");
            return;
        }
    }
}

/// No commit follows the delivery. The reconciler updates the index.
#[tokio::test]
async fn a_delivery_without_a_commit_is_indexed() {
    let rig = Rig::new();
    let listeners = Listeners::new([by_order("t")].into_iter());
    let b = rig.backend("alone").await;
    b.create(new("a")).await;
    let wait = Command::Subscribe(subscription(1, vec![by_order("t")]));
    b.act(&root("a"), change(vec![known("1"), wait])).await;
    let event = event("1", "t", &[("order", "1")]);
    b.ingest(&event, &[by_order("t")]).await;
    let awaited = async || b.events.awaited(&[&event], &listeners).await.unwrap();
    assert_eq!(awaited().await, [true]);
    b.store.runnable(10).await.unwrap();
    assert_eq!(awaited().await, [false]);
    assert_eq!(got(&b, "a").await, ["1"]);
}

fn other_event() -> CloudEvent {
    event("2", "u", &[("order", "1")])
}

/// A commit that subscribes and dies at any point. The reconciler continues.
#[tokio::test]
async fn a_subscribing_commit_may_die_at_any_point() {
    let rig = Rig::new();
    let mut polls = 0;
    let mut reached = 0;
    loop {
        polls += 1;
        let namespace = format!("wait{polls}");
        let (one, two) = (rig.backend(&namespace).await, rig.backend(&namespace).await);
        let kept = [by_order("t")];
        for (id, order) in [("1", "1"), ("2", "2"), ("3", "1")] {
            one.ingest(&event(id, "t", &[("order", order)]), &kept)
                .await;
        }
        one.create(new("a")).await;
        let Acquired::Held(mut held) = one.store.acquire(&root("a"), 20).await.unwrap() else {
            panic!("no other process holds it");
        };
        // The instance learns its value from the first event, and so matches the third.
        let wait = Command::Subscribe(subscription(1, vec![by_order("t"), by_order("t")]));
        let commit = one.try_commit(&mut held, change(vec![wait]));
        let done = dying(polls, commit).await.is_some();
        // Time has to pass: until the lease expires.
        tokio::time::sleep(Duration::from_millis(30)).await;
        two.store.runnable(10).await.unwrap();
        let Acquired::Held(held) = two.store.acquire(&root("a"), 20).await.unwrap() else {
            panic!("the lease has run out");
        };
        let committed = matches!(&held.record, Record::Scope(scope) if scope.rev > 0);
        if committed {
            reached += 1;
            assert_eq!(event_ids(&held.inbox), ["1", "3"], "after {polls} polls");
            two.waiting("b", kept.to_vec()).await;
            assert_eq!(got(&two, "b").await, ["2"], "after {polls} polls");
        }
        if done {
            assert!(reached > 5, "it never died");
            return;
        }
    }
}
