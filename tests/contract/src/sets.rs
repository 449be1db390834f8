//! The limits on sets of events that wait for others to start an instance.

use swirl_ports::{KeptDropped, KeptGroup, Listening, Trigger};

use crate::Backend;
use crate::kit::*;

/// Sets of an event of each type with the same `order`, for a workflow of its own.
fn pairs(workflow: &str, kinds: [&str; 2]) -> Trigger {
    let by_order = kinds.map(|kind| filter(kind, &[("order", None)]));
    let mut pairs = trigger(by_order.to_vec(), false);
    pairs.definition.workflow = workflow.into();
    pairs
}

/// Whether an event completes a set with an earlier large one.
async fn completes(b: &Backend, triggers: &[Trigger], id: u32, kind: &str) -> bool {
    let order = id.to_string();
    let last = event(&format!("last{id}"), kind, &[("order", &order)]);
    let listening = Listening::new(triggers, &[]);
    let ingested = b.events.ingest(&last, listening, at(2_000)).await.unwrap();
    !ingested.starts.is_empty()
}

pub async fn incomplete_sets_have_limited_sizes(b: Backend) {
    let triggers = [pairs("one", ["t", "u"]), pairs("two", ["v", "w"])];
    let begin = async |ids: std::ops::Range<u32>, kind: &str| {
        for id in ids {
            let listening = Listening::new(&triggers, &[]);
            let event = large(id, kind);
            let ingested = b.events.ingest(&event, listening, at(i64::from(id))).await;
            assert!(ingested.unwrap().starts.is_empty());
            b.events
                .acknowledge(&event, at(i64::from(id)))
                .await
                .unwrap();
        }
        b.events.expire(at(1_000)).await.unwrap()
    };
    let is_of = |dropped: Vec<KeptDropped>, group: Option<KeptGroup>| {
        let events: u64 = dropped.iter().map(|one| one.events).sum();
        let as_wanted = |one: &KeptDropped| one.group == group && one.in_sets;
        assert!(dropped.iter().all(as_wanted), "{dropped:?}");
        assert!(events <= 4, "{dropped:?}");
    };
    // Ten sets of a workflow, of which six fit.
    is_of(
        begin(1..11, "t").await,
        Some(KeptGroup::Workflow("one".into())),
    );
    // Five of another. Eight fit together.
    is_of(begin(11..16, "v").await, None);
    assert_eq!(b.events.expire(at(1_000)).await.unwrap(), []);
    for (id, kind, is_complete) in [
        (10, "u", true),
        (8, "u", true),
        (15, "w", true),
        (11, "w", true),
        (7, "u", false),
        (4, "u", false),
        (1, "u", false),
    ] {
        let done = completes(&b, &triggers, id, kind).await;
        assert_eq!(done, is_complete, "{id}");
    }
}

pub async fn incomplete_sets_go_with_their_definition(b: Backend) {
    let triggers = [pairs("one", ["t", "u"]), pairs("two", ["v", "w"])];
    for (id, kind) in [(1, "t"), (2, "t"), (3, "v")] {
        let listening = Listening::new(&triggers, &[]);
        let event = large(id, kind);
        b.events.ingest(&event, listening, at(0)).await.unwrap();
    }
    let forget = async |workflow, triggers| {
        let listening = Listening::new(triggers, &[]);
        let forgotten = b.events.forget_unconsumed(workflow, listening).await;
        forgotten.unwrap()
    };
    assert_eq!(forget("other", &[]).await, 0);
    assert_eq!(forget("one", &triggers[..]).await, 0);
    assert_eq!(forget("one", &triggers[1..]).await, 2);
    assert_eq!(forget("one", &[]).await, 0);
    assert!(!completes(&b, &triggers, 1, "u").await);
    assert!(completes(&b, &triggers, 3, "w").await);
}
