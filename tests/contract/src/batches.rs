//! Batches of operators' actions, and actions that are carried out once.

use swirl_model::Data;
use swirl_model::event::{Command, Event, HistoryEntry, Input};
use swirl_model::ids::InstanceId;
use swirl_model::instance::EndStatus;
use swirl_model::scope::Work;
use swirl_ports::{
    Batch, BatchCounts, BatchCreation, BatchItem, BatchOrder, BatchOutcome, BatchState, MARKS_MAX,
    Operated,
};

use crate::Backend;
use crate::kit::*;

fn order(id: &str, created_at: i64, matched: usize) -> BatchOrder {
    BatchOrder {
        id: id.to_owned(),
        operation: "skip".to_owned(),
        result: Some(Data::NULL),
        patch: None,
        state: None,
        version: None,
        query: "status = faulted".to_owned(),
        by: Some("ann".to_owned()),
        reason: Some("the service is back".to_owned()),
        rate: 20,
        created_at: at(created_at),
        matched: matched as u32,
    }
}

fn instances(count: usize) -> Vec<InstanceId> {
    (0..count)
        .map(|n| InstanceId::new(format!("i{n}")))
        .collect()
}

async fn created(b: &Backend, id: &str, created_at: i64, count: usize) {
    let order = order(id, created_at, count);
    let instances = instances(count);
    let created = b.batches.create_batch(&order, &instances, usize::MAX);
    assert_eq!(created.await.unwrap(), BatchCreation::New);
}

async fn record(b: &Backend, from: u32, outcomes: &[BatchOutcome]) -> Batch {
    let after = b.batches.record_outcomes("b", from, outcomes, at(9)).await;
    after.unwrap().unwrap()
}

fn refused() -> BatchOutcome {
    BatchOutcome::Refused {
        code: "wrong-status".to_owned(),
        detail: "it is \"running\"".to_owned(),
    }
}

/// However many are created at the same time.
pub async fn so_many_batches_are_active(b: Backend) {
    let create = async |n: usize| {
        let order = order(&format!("b{n}"), 5, 1);
        b.batches.create_batch(&order, &instances(1), 3).await
    };
    let all = futures::future::join_all((0..8).map(create)).await;
    let new = all
        .into_iter()
        .filter(|one| *one.as_ref().unwrap() == BatchCreation::New);
    assert_eq!(new.count(), 3);
    let active = b.batches.active_batches().await.unwrap();
    assert_eq!(active.len(), 3);
    // The end of one makes room.
    let stop = BatchState::Stopped;
    b.batches
        .change_batch(&active[0].order.id, stop, at(7))
        .await
        .unwrap();
    assert_eq!(create(8).await.unwrap(), BatchCreation::New);
    assert_eq!(create(9).await.unwrap(), BatchCreation::TooMany);
}

pub async fn a_batch_keeps_its_instances(b: Backend) {
    assert_eq!(b.batches.batch("b").await.unwrap(), None);
    created(&b, "b", 5, 2_500).await;
    let found = b.batches.batch("b").await.unwrap().unwrap();
    let expected = Batch {
        order: order("b", 5, 2_500),
        state: BatchState::Running,
        counts: BatchCounts::default(),
        ended_at: None,
    };
    assert_eq!(found, expected);
    let other = order("b", 6, 1);
    let again = b.batches.create_batch(&other, &instances(1), 1).await;
    assert_eq!(again.unwrap(), BatchCreation::Known, "it is never replaced");
    assert_eq!(b.batches.batch("b").await.unwrap(), Some(expected));
    let mut all = Vec::new();
    for from in [0, 1_000, 2_000] {
        all.extend(b.batches.batch_items("b", from, 1_000).await.unwrap());
    }
    let wanted = instances(2_500).into_iter().map(|instance| BatchItem {
        instance,
        outcome: None,
    });
    assert_eq!(all, wanted.collect::<Vec<_>>());
    assert!(
        b.batches
            .batch_items("b", 2_500, 10)
            .await
            .unwrap()
            .is_empty()
    );
    assert!(b.batches.batch_items("x", 0, 10).await.unwrap().is_empty());
}

pub async fn outcomes_are_recorded_in_order_and_once(b: Backend) {
    created(&b, "b", 5, 4).await;
    let failed = BatchOutcome::Failed {
        detail: "damaged".to_owned(),
    };
    let first = record(&b, 0, &[BatchOutcome::Done, refused()]).await;
    let counts = BatchCounts {
        done: 1,
        refused: 1,
        failed: 0,
        refusals: [("wrong-status".to_owned(), 1)].into(),
    };
    assert_eq!((&first.counts, first.state), (&counts, BatchState::Running));
    // Another carrier was faster, or this one doesn't know its position.
    for (from, count) in [(0, 2), (1, 1), (3, 1), (2, 3), (2, 0)] {
        let outcomes = vec![failed.clone(); count];
        assert_eq!(record(&b, from, &outcomes).await.counts, counts);
    }
    let last = record(&b, 2, &[failed.clone(), BatchOutcome::Done]).await;
    assert_eq!(last.counts.all(), 4);
    assert_eq!(
        (last.counts.failed, last.state, last.ended_at),
        (1, BatchState::Completed, Some(at(9)))
    );
    let items = b.batches.batch_items("b", 1, 2).await.unwrap();
    let outcomes: Vec<_> = items.into_iter().map(|item| item.outcome).collect();
    assert_eq!(outcomes, [Some(refused()), Some(failed)]);
    assert!(b.batches.active_batches().await.unwrap().is_empty());
    let nobody = b.batches.record_outcomes("x", 0, &[refused()], at(9)).await;
    assert_eq!(nobody.unwrap(), None);
}

pub async fn batches_are_paused_and_stopped(b: Backend) {
    use BatchState::{Completed, Paused, Running, Stopped};
    created(&b, "b", 5, 2).await;
    let change = async |to| {
        let batch = b.batches.change_batch("b", to, at(7)).await;
        let batch = batch.unwrap().unwrap();
        (batch.state, batch.ended_at)
    };
    assert_eq!(
        change(Completed).await,
        (Running, None),
        "only by its outcomes"
    );
    assert_eq!(change(Paused).await, (Paused, None));
    assert_eq!(b.batches.active_batches().await.unwrap().len(), 1);
    // The carrier was in the middle of the batch.
    assert_eq!(record(&b, 0, &[BatchOutcome::Done]).await.state, Paused);
    assert_eq!(change(Running).await, (Running, None));
    assert_eq!(change(Stopped).await, (Stopped, Some(at(7))));
    assert!(b.batches.active_batches().await.unwrap().is_empty());
    for to in [Running, Paused, Stopped] {
        assert_eq!(change(to).await, (Stopped, Some(at(7))));
    }
    let late = record(&b, 1, &[BatchOutcome::Done]).await;
    assert_eq!((late.state, late.counts.done), (Stopped, 2));
    assert_eq!(late.ended_at, Some(at(7)));
    let nobody = b.batches.change_batch("x", Paused, at(7)).await;
    assert_eq!(nobody.unwrap(), None);
}

pub async fn batches_are_listed_and_dropped(b: Backend) {
    created(&b, "b", 5, 1).await;
    created(&b, "c", 6, 0).await;
    created(&b, "d", 7, 1_001).await;
    let listed = async || {
        let all = b.batches.batches().await.unwrap();
        all.into_iter()
            .map(|batch| batch.order.id)
            .collect::<Vec<_>>()
    };
    assert_eq!(listed().await, ["d", "c", "b"]);
    let empty = b.batches.batch("c").await.unwrap().unwrap();
    assert_eq!(
        (empty.state, empty.ended_at),
        (BatchState::Completed, Some(at(6)))
    );
    record(&b, 0, &[refused()]).await;
    b.batches.drop_batch("b").await.unwrap();
    b.batches.drop_batch("d").await.unwrap();
    b.batches.drop_batch("x").await.unwrap();
    assert_eq!(listed().await, ["c"]);
    assert!(b.batches.batch_items("b", 0, 10).await.unwrap().is_empty());
    // Its id may be used again, and nothing of the old batch is left.
    created(&b, "b", 8, 2).await;
    let items = b.batches.batch_items("b", 0, 10).await.unwrap();
    assert!(items.len() == 2 && items.iter().all(|item| item.outcome.is_none()));
}

pub async fn one_carrier_runs_a_batch(b: Backend) {
    created(&b, "b", 5, 1).await;
    let lease = async |carrier: &str, now: i64| {
        let taken = b.batches.lease_batch("b", carrier, at(now), 300).await;
        taken.unwrap()
    };
    assert!(lease("one", 0).await && lease("one", 10).await);
    assert!(!lease("two", 20).await);
    // Time has to pass: the store may use its own clock.
    std::thread::sleep(std::time::Duration::from_millis(400));
    assert!(lease("two", 420).await);
    assert!(!lease("one", 430).await);
    assert!(!b.batches.lease_batch("x", "one", at(0), 300).await.unwrap());
}

fn entry(action: &str) -> HistoryEntry {
    HistoryEntry {
        at: at(5),
        scope: root("a").scope,
        event: Event::Operated {
            action: action.into(),
            by: None,
            reason: None,
            state: None,
            from: None,
            to: None,
            batch: Some("b".to_owned()),
            with: None,
        },
        data: None,
        data_until: None,
    }
}

pub async fn a_marked_action_is_carried_out_once(b: Backend) {
    let id = InstanceId::new("a");
    let operate = async |mark: &str, input: Option<Input>| {
        let done = b.store.operate(&id, mark, entry(mark), input).await;
        done.unwrap()
    };
    assert_eq!(operate("m", Some(Input::Retry)).await, Operated::Unknown);
    assert!(!b.store.is_marked(&id, "m").await.unwrap());
    b.create(new("a")).await;
    let failed = Command::End {
        status: EndStatus::Faulted,
        output: None,
        error: Some(fault()),
    };
    b.act(&root("a"), change(vec![failed]).at(blocked(Work::Begin)))
        .await;
    assert!(b.is_busy(&root("a")).await, "it has failed");
    assert_eq!(operate("m", Some(Input::Retry)).await, Operated::New);
    assert_eq!(operate("m", Some(Input::Retry)).await, Operated::Known);
    assert!(b.store.is_marked(&id, "m").await.unwrap());
    assert!(!b.store.is_marked(&id, "mm").await.unwrap());
    let mut held = b.hold(&root("a")).await;
    assert_eq!(held.inbox.len(), 1);
    let retried = change(vec![Command::Reopen]).consumed(&["retry"]);
    b.commit(&mut held, retried).await;
    b.release(&held).await;
    // This holds even after it is processed, although no inbox remembers an operator's input.
    assert_eq!(operate("m", Some(Input::Retry)).await, Operated::Known);
    assert_eq!(operate("n", None).await, Operated::New);
    assert!(b.inbox(&root("a")).await.is_empty());
    let history = b.store.history(&id).await.unwrap();
    let noted = history
        .iter()
        .filter(|one| matches!(one.event, Event::Operated { .. }));
    let noted: Vec<HistoryEntry> = noted.cloned().collect();
    assert_eq!(noted, [entry("m"), entry("n")]);
    for n in 0..MARKS_MAX - 1 {
        assert_eq!(operate(&format!("x{n}"), None).await, Operated::New);
    }
    assert!(!b.store.is_marked(&id, "m").await.unwrap(), "the oldest");
    assert!(b.store.is_marked(&id, "n").await.unwrap());
    assert!(b.store.is_marked(&id, "x0").await.unwrap());
}
