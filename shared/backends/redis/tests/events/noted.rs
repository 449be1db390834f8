//! The events that an instance has had: how long they are noted, and what a note is for.

use redis::{Commands, Connection};
use swirl_contract::Backend;
use swirl_contract::kit::*;
use swirl_model::CloudEvent;
use swirl_model::event::{Command, EventMatch};
use swirl_model::ids::ScopeRef;
use swirl_model::scope::Work;
use swirl_ports::Listening;

use super::Rig;
use super::deaths::dying;

/// A wait that looks at events, and takes those that it consumes out of what it was offered.
fn looking() -> EventMatch {
    EventMatch {
        apart: true,
        offers: true,
        ..filter("t", &[("order", Some("1"))])
    }
}

fn of_order(id: &str) -> CloudEvent {
    event(id, "t", &[("order", "1")])
}

async fn look(b: &Backend, scope: &ScopeRef) {
    let wait = Command::Subscribe(subscription(1, vec![looking()]));
    let waiting = change(vec![wait]).at(blocked(Work::Events));
    b.act(scope, waiting).await;
}

async fn take_all(b: &Backend, scope: &ScopeRef) -> usize {
    let items = b.inbox(scope).await;
    let taken = event_ids(&items).into_iter().map(|id| Command::Take {
        wait: 1,
        key: of_order(&id).key(),
    });
    let taken = change(taken.collect());
    let ids: Vec<&str> = items.iter().map(|item| &*item.id).collect();
    let taken = taken.consumed(&ids).at(blocked(Work::Events));
    b.act(scope, taken).await;
    items.len()
}

/// The events that instance "a" has had, and a connection to ask for more.
fn notes(rig: &Rig, namespace: &str) -> (String, Connection) {
    let client = redis::Client::open(rig.server.url()).unwrap();
    let mut link = client.get_connection().unwrap();
    let keys: Vec<String> = link.keys(format!("*{namespace}*:got:a")).unwrap();
    assert_eq!(keys.len(), 1, "{keys:?}");
    (keys[0].clone(), link)
}

/// The scope took what it was offered, and has had so much since that it doesn't remember the input's id.
#[tokio::test]
async fn a_repeated_delivery_offers_nothing_again_after_many_others() {
    let rig = Rig::new();
    let branches = ["r.1.0", "r.1.1"].map(|branch| scope("a", branch));
    let first = of_order("first");
    let kept = [looking()];
    let listening = Listening::new(&[], &kept);
    for polls in 1.. {
        let namespace = format!("again{polls}");
        let (one, two) = (rig.backend(&namespace).await, rig.backend(&namespace).await);
        one.create(new("a")).await;
        let forking = change(vec![fork("r", 1, 2, 2, 2)]).at(forked(1, 2));
        one.act(&root("a"), forking).await;
        for branch in &branches {
            look(&one, branch).await;
        }
        let done = dying(polls, one.events.ingest(&first, listening, at(0))).await;
        assert!(done.is_none(), "it never died between the two offers");
        if take_all(&two, &branches[0]).await == 0 {
            continue;
        }
        // It remembers the newest ids of 4 KiB.
        for other in 0..400 {
            two.ingest(&of_order(&other.to_string()), &[]).await;
            assert_eq!(take_all(&two, &branches[0]).await, 1);
        }
        two.events.ingest(&first, listening, at(0)).await.unwrap();
        assert_eq!(take_all(&two, &branches[0]).await, 0);
        let second = event_ids(&two.inbox(&branches[1]).await);
        assert_eq!(second.iter().filter(|id| *id == "first").count(), 1);
        return;
    }
}

/// An instance may look at events for years.
#[tokio::test]
async fn notes_of_offers_are_bounded() {
    let rig = Rig::new();
    let b = rig.backend("bounded").await;
    b.create(new("a")).await;
    look(&b, &root("a")).await;
    for round in 0..30 {
        for number in 0..50 {
            b.ingest(&of_order(&format!("{round}-{number}")), &[]).await;
        }
        assert_eq!(take_all(&b, &root("a")).await, 50);
    }
    let (key, mut link) = notes(&rig, "bounded");
    let noted: usize = link.zcount(&key, "-inf", "(0").unwrap();
    // A tenth of the deliveries removes those that are too many.
    assert!((1_000..1_250).contains(&noted), "{noted} of 1500");
}

/// By then no event of that time is known or kept, so it can't be delivered again.
#[tokio::test]
async fn notes_of_consumed_events_go_with_their_time() {
    let rig = Rig::new();
    let b = rig.backend("old").await;
    let wait = vec![filter("t", &[]); 100];
    b.waiting("a", wait).await;
    b.ingest(&of_order("first"), &[]).await;
    let (key, mut link) = notes(&rig, "old");
    let noted: Vec<(String, f64)> = link.zrange_withscores(&key, 0, -1).unwrap();
    let [(recent, now)] = &noted[..] else {
        panic!("{noted:?}");
    };
    let day = 24.0 * 60.0 * 60.0 * 1e6;
    let _: usize = link.zadd(&key, "old", now - 30.0 * day).unwrap();
    for number in 0..99 {
        b.ingest(&of_order(&number.to_string()), &[]).await;
    }
    let old: Option<f64> = link.zscore(&key, "old").unwrap();
    let recent: Option<f64> = link.zscore(&key, recent).unwrap();
    assert_eq!((old, recent), (None, Some(*now)));
}
