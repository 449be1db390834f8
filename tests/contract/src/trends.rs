//! Counts of starts and ends.

use std::time::{SystemTime, UNIX_EPOCH};

use swirl_model::event::{Command, Input};
use swirl_model::instance::EndStatus;
use swirl_model::scope::{Cursor, Work};
use swirl_model::time::Timestamp;
use swirl_ports::{Created, Tally};

use crate::Backend;
use crate::first_turn::{ended_as, turn};
use crate::kit::*;

/// A store may count by a clock of its own, so the time must be right.
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp(i64::try_from(since.as_millis()).unwrap())
}

fn end(status: EndStatus) -> Command {
    Command::End {
        status,
        output: None,
        error: (status == EndStatus::Faulted).then(fault),
    }
}

/// The sums over the last hour and the last day, without the durations, which depend on the clock.
async fn sums(b: &Backend) -> (Tally, Tally) {
    let trend = b.store.trend(now()).await.unwrap();
    assert_eq!((trend.hour.len(), trend.day.len()), (60, 96));
    let sum = |series: &[(Timestamp, Tally)]| {
        let mut sum = Tally::default();
        series.iter().for_each(|(_, tally)| sum.add(tally));
        sum
    };
    (sum(&trend.hour), sum(&trend.day))
}

async fn begin(b: &Backend, id: &str) {
    let mut new = new(id);
    new.header.started_at = now();
    b.create(new).await;
}

async fn finish(b: &Backend, id: &str, status: EndStatus) {
    let cursor = match status {
        EndStatus::Faulted => blocked(Work::Begin),
        _ => Cursor::Ended,
    };
    b.act(&root(id), change(vec![end(status)]).at(cursor).time(now()))
        .await;
}

pub async fn starts_and_ends_are_counted_once(b: Backend) {
    assert_eq!(sums(&b).await, (Tally::default(), Tally::default()));
    for id in ["a", "b", "c", "d", "e"] {
        begin(&b, id).await;
    }
    // It exists, so it doesn't start again.
    let again = b.store.create(new("a")).await.unwrap();
    assert!(matches!(again, Created::Exists { .. }), "{again:?}");
    for (id, status) in [
        ("a", EndStatus::Completed),
        ("b", EndStatus::Faulted),
        ("c", EndStatus::Cancelled),
        ("d", EndStatus::Terminated),
    ] {
        finish(&b, id, status).await;
    }
    // One that its first turn ends.
    for (id, status) in [("f", EndStatus::Completed), ("g", EndStatus::Faulted)] {
        let mut new = ended_as(id, 0, status);
        new.header.started_at = now();
        turn(&mut new).at = now();
        b.create(new).await;
    }
    // A failed instance continues, and completes.
    b.add(&root("b"), Input::Retry).await;
    let mut held = b.hold(&root("b")).await;
    let reopened = change(vec![Command::Reopen]).consumed(&["retry"]);
    b.commit(&mut held, reopened.time(now())).await;
    let ended = change(vec![end(EndStatus::Completed)]).at(Cursor::Ended);
    b.commit(&mut held, ended.time(now())).await;

    let (hour, day) = sums(&b).await;
    let expected = Tally {
        started: 7,
        completed: 3,
        faulted: 2,
        cancelled: 1,
        terminated: 1,
        ..hour
    };
    assert_eq!((hour, day), (expected, expected));
    assert!(hour.longest <= hour.millis && hour.millis <= 3 * hour.longest);
    assert!(hour.longest < 3_600_000, "{hour:?}");
}

pub async fn durations_of_completed_instances_are_added(b: Backend) {
    begin(&b, "a").await;
    // Time has to pass: the duration is that between two writes, by the clock of the store.
    std::thread::sleep(std::time::Duration::from_millis(30));
    finish(&b, "a", EndStatus::Completed).await;
    let mut new = ended_as("b", 0, EndStatus::Completed);
    new.header.started_at = Timestamp(now().0 - 2_000);
    turn(&mut new).at = now();
    b.create(new).await;
    let (hour, _) = sums(&b).await;
    assert_eq!((hour.started, hour.completed), (2, 2));
    assert!((2_000..60_000).contains(&hour.longest), "{hour:?}");
    assert!(hour.millis >= hour.longest + 25, "{hour:?}");
}
