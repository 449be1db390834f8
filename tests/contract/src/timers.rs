//! Timers.

use futures::future::{Either, select};
use swirl_model::event::{Command, Input};
use swirl_model::instance::EndStatus;
use swirl_model::scope::{Cursor, Timer, Work};

use crate::Backend;
use crate::kit::*;

async fn due(b: &Backend, now: i64) -> Vec<(String, u32)> {
    let due = b.store.due_timers(at(now), 100).await.unwrap();
    due.into_iter()
        .map(|due| (due.scope.instance.to_string(), due.timer.seq))
        .collect()
}

async fn arm(b: &Backend, id: &str, timers: Vec<Timer>) {
    b.create(new(id)).await;
    let commands = timers.iter().map(|timer| Command::Arm(*timer)).collect();
    b.act(
        &root(id),
        change(commands).timers(timers).at(blocked(Work::Sleep)),
    )
    .await;
}

pub async fn due_in_order_until_disarmed(b: Backend) {
    assert_eq!(b.store.next_timer().await.unwrap(), None);
    arm(&b, "z", vec![timer(1, 20), timer(2, 10)]).await;
    arm(&b, "a", vec![timer(1, 10), timer(2, 30)]).await;
    assert_eq!(b.store.next_timer().await.unwrap(), Some(at(10)));
    assert!(due(&b, 9).await.is_empty());
    let expected = [("z", 2), ("a", 1), ("z", 1)].map(|(id, seq)| (id.to_owned(), seq));
    assert_eq!(due(&b, 20).await, expected);
    assert_eq!(due(&b, 20).await, expected, "a look changes nothing");
    assert_eq!(b.store.due_timers(at(20), 1).await.unwrap().len(), 1);
    b.act(
        &root("z"),
        change(vec![Command::Disarm(2)]).timers(vec![timer(1, 20)]),
    )
    .await;
    assert_eq!(due(&b, 20).await, expected[1..]);
}

pub async fn a_fired_timer_waits_in_the_inbox(b: Backend) {
    arm(&b, "a", vec![timer(1, 10)]).await;
    assert!(
        !b.add(&root("a"), Input::Timer { seq: 2 }).await,
        "it was never armed"
    );
    assert!(b.add(&root("a"), Input::Timer { seq: 1 }).await);
    assert!(!b.add(&root("a"), Input::Timer { seq: 1 }).await);
    assert!(due(&b, 10).await.is_empty(), "it has fired already");
    assert_eq!(b.store.next_timer().await.unwrap(), None);
    // Refused by the engine and still armed, so it fires again.
    b.act(&root("a"), change(vec![]).consumed(&["timer-1"]))
        .await;
    assert_eq!(due(&b, 10).await.len(), 1);
    assert!(b.add(&root("a"), Input::Timer { seq: 1 }).await);
    let disarm = change(vec![Command::Disarm(1)])
        .timers(vec![])
        .consumed(&["timer-1"]);
    b.act(&root("a"), disarm).await;
    assert!(due(&b, 10).await.is_empty());
    assert!(!b.add(&root("a"), Input::Timer { seq: 1 }).await);
}

pub async fn an_earlier_timer_is_noticed(b: Backend) {
    arm(&b, "a", vec![timer(1, 100)]).await;
    let changed = b.store.timers_changed();
    // Between the call and the wait, where it must not be missed.
    arm(&b, "b", vec![timer(1, 50)]).await;
    changed.await;
    let changed = b.store.timers_changed();
    let later = async {
        arm(&b, "c", vec![timer(1, 10)]).await;
        std::future::pending::<()>().await;
    };
    assert!(matches!(
        select(changed, Box::pin(later)).await,
        Either::Left(_)
    ));
}

pub async fn ended_scopes_have_no_timers(b: Backend) {
    arm(&b, "a", vec![timer(1, 10)]).await;
    let end = Command::End {
        status: EndStatus::Completed,
        output: None,
        error: None,
    };
    b.act(&root("a"), change(vec![end]).at(Cursor::Ended)).await;
    assert!(due(&b, 10).await.is_empty());
    assert_eq!(b.store.next_timer().await.unwrap(), None);
}
