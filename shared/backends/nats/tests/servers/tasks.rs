//! The queue of tasks, and its lanes.

use super::*;

/// Waits until this many messages have arrived at clients.
async fn all_delivered(rig: &Rig, stream: &str, consumer: &str, count: usize) {
    let context = async_nats::jetstream::new(rig.client.clone());
    let stream = format!("SWIRL_default_{stream}");
    eventually("their delivery", async || {
        let found = context.get_consumer_from_stream(consumer, &stream).await;
        let mut found: PullConsumer = found.ok()?;
        let info = found.info().await.ok()?;
        (info.num_ack_pending == count).then_some(())
    })
    .await;
    rig.client.flush().await.unwrap();
}

async fn pull(source: &TaskSource) -> swirl_ports::Task {
    timeout(SOON, source.pull()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_delivered_until_they_are_done() {
    let rig = rig().await;
    let queue = TaskQueue::new(rig.client.clone(), &rig.streams);
    let source = TaskSource::new(rig.streams.clone(), 16);
    queue.push(vec![task("a"), task("b")]).await;
    let (a, b) = (pull(&source).await, pull(&source).await);
    assert_eq!((a.scope, b.scope), (task("a"), task("b")));
    a.receipt.unwrap().done().await;
    b.receipt.unwrap().failed(1, "not now").await;
    let again = pull(&source).await;
    assert_eq!(again.scope, task("b"));
    again.receipt.unwrap().done().await;
    assert!(
        timeout(Duration::from_millis(300), source.pull())
            .await
            .is_err()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_of_a_workflow_at_its_share_wait_in_a_lane() {
    let rig = rig().await;
    let queue = TaskQueue::new(rig.client.clone(), &rig.streams);
    let source = TaskSource::new(rig.streams.clone(), 16);
    queue.push_late(vec![task("a")]).await;
    let receipt = pull(&source).await.receipt.unwrap();
    receipt.failed(1, "not now").await;
    let failed = pull(&source).await;
    assert_eq!(failed.scope, task("a"));
    let receipt = failed.receipt.unwrap();
    assert!(receipt.put_into_lane("order").await);
    receipt.done().await;
    let context = async_nats::jetstream::new(rig.client.clone());
    let stream = context.get_stream("SWIRL_default_LANES").await.unwrap();
    let put = stream.get_raw_message(1).await.unwrap();
    let failures = put.headers.get("Swirl-Failures").map(|n| n.as_str());
    assert_eq!(failures, Some("1"), "counting continues");
    let (tasks, _) = rig.streams.backlog(None).await.unwrap();
    assert_eq!((tasks.pending, tasks.unacknowledged), (1, 0));
    assert!(tasks.oldest > Duration::ZERO);
    // A workflow always has the same lane.
    queue.push(vec![task("b")]).await;
    let receipt = pull(&source).await.receipt.unwrap();
    assert!(receipt.put_into_lane("order").await);
    receipt.done().await;
    let lanes = (0..source.lanes()).map(|lane| {
        let next = source.pull_lane(lane);
        Box::pin(async move { (lane, next.await) })
    });
    let first = futures::future::select_all(lanes);
    let ((lane, task_of_lane), ..) = timeout(SOON, first).await.unwrap();
    assert_eq!(task_of_lane.scope, task("a"));
    assert!(task_of_lane.is_late, "as it was in the queue");
    let second = timeout(SOON, source.pull_lane(lane)).await.unwrap();
    assert_eq!((&second.scope, second.is_late), (&task("b"), false));
    let receipt = task_of_lane.receipt.unwrap();
    // The task goes to the end of its lane.
    assert!(receipt.put_into_lane("order").await);
    receipt.done().await;
    second.receipt.unwrap().done().await;
    let again = timeout(SOON, source.pull_lane(lane)).await.unwrap();
    assert_eq!(again.scope, task("a"));
    again.receipt.unwrap().done().await;
    let (tasks, _) = rig.streams.backlog(None).await.unwrap();
    assert_eq!((tasks.pending, tasks.unacknowledged), (0, 0));
}

/// While there is a backlog, late scopes wait in the lanes of their workflows and not in the queue.
#[tokio::test(flavor = "multi_thread")]
async fn late_scopes_go_to_the_lanes_of_their_workflows() {
    let rig = rig().await;
    let queue = TaskQueue::new(rig.client.clone(), &rig.streams);
    let source = TaskSource::new(rig.streams.clone(), 16);
    let known = LateScope {
        scope: task("a"),
        workflow: Some("order".into()),
    };
    queue
        .push_late_of(vec![known, LateScope::from(task("b"))])
        .await;
    let of_queue = pull(&source).await;
    assert_eq!((&of_queue.scope, of_queue.is_late), (&task("b"), true));
    of_queue.receipt.unwrap().done().await;
    let lanes = (0..source.lanes()).map(|lane| Box::pin(source.pull_lane(lane)));
    let (of_lane, ..) = timeout(SOON, futures::future::select_all(lanes))
        .await
        .unwrap();
    assert_eq!((&of_lane.scope, of_lane.is_late), (&task("a"), true));
    of_lane.receipt.unwrap().done().await;
}

/// Joins are separate from tasks, are delivered again after a failure, and are counted.
#[tokio::test(flavor = "multi_thread")]
async fn joins_are_delivered_to_coordinators() {
    let rig = rig().await;
    let queue = TaskQueue::new(rig.client.clone(), &rig.streams);
    let joins = JoinSource::new(rig.streams.clone(), 4);
    let tasks = TaskSource::new(rig.streams.clone(), 16);
    queue.push_joins(vec![task("a")]).await;
    queue.push(vec![task("b")]).await;
    rig.client.flush().await.unwrap();
    let backlog = async || rig.streams.joins_backlog().await.unwrap();
    eventually("its count", async || {
        (backlog().await.pending == 1).then_some(())
    })
    .await;
    let join = timeout(SOON, joins.pull()).await.unwrap();
    assert_eq!((join.scope, join.is_late), (task("a"), false));
    assert_eq!(pull(&tasks).await.scope, task("b"));
    assert!(!join.receipt.unwrap().failed(1, "not now").await);
    let again = timeout(SOON, joins.pull()).await.unwrap();
    assert_eq!((again.scope, again.is_late), (task("a"), true));
    again.receipt.unwrap().done().await;
    eventually("nothing left", async || {
        let left = backlog().await;
        (left.pending + left.unacknowledged == 0).then_some(())
    })
    .await;
    // Messages fetched ahead are returned for other coordinators.
    queue.push_joins(vec![task("c")]).await;
    joins.close().await;
    let other = JoinSource::new(rig.streams.clone(), 4);
    let join = timeout(SOON, other.pull()).await.unwrap();
    assert_eq!(join.scope, task("c"));
    join.receipt.unwrap().done().await;
    let garbage = rig.client.publish("swirl-joins.default", "hello".into());
    garbage.await.unwrap();
    assert!(
        timeout(Duration::from_millis(500), other.pull())
            .await
            .is_err()
    );
    let letters = DeadLetters::new(rig.streams.clone());
    assert_eq!(
        letters
            .list(0, 10, |letter| letter)
            .await
            .unwrap()
            .letters
            .len(),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_task_becomes_a_dead_letter() {
    let rig = rig().await;
    let source = TaskSource::new(rig.streams.clone(), 16);
    rig.client
        .publish("swirl-tasks.default", "hello".into())
        .await
        .unwrap();
    TaskQueue::new(rig.client.clone(), &rig.streams)
        .push(vec![task("a")])
        .await;
    assert_eq!(pull(&source).await.scope, task("a"));
    let letters = DeadLetters::new(rig.streams.clone())
        .list(0, 10, |letter| letter)
        .await
        .unwrap()
        .letters;
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].payload[..], *b"hello");
    assert_eq!(
        (letters[0].kind.as_str(), letters[0].subject.as_str()),
        ("task", "swirl-tasks.default")
    );
    assert!(letters[0].reason.contains("not a task"));
}

/// Postpones a task so often that the deliveries alone would exceed the limit, and then lets it fail.
#[tokio::test(flavor = "multi_thread")]
async fn only_its_own_failures_make_a_task_a_dead_letter() {
    let rig = rig().await;
    let source = TaskSource::new(rig.streams.clone(), 16);
    TaskQueue::new(rig.client.clone(), &rig.streams)
        .push(vec![task("a")])
        .await;
    for _ in 0..25 {
        pull(&source).await.receipt.unwrap().postpone(0).await;
    }
    // Failures are counted regardless of postponements between them.
    for _ in 0..19 {
        let receipt = pull(&source).await.receipt.unwrap();
        assert!(!receipt.failed(0, "its own fault").await);
        pull(&source).await.receipt.unwrap().postpone(0).await;
    }
    let letters = DeadLetters::new(rig.streams.clone());
    assert_eq!(
        letters.list(0, 10, |letter| letter).await.unwrap().letters,
        []
    );
    let last = pull(&source).await;
    assert_eq!(last.scope, task("a"));
    assert!(last.receipt.unwrap().failed(0, "its own fault").await);
    let letters = letters.list(0, 10, |letter| letter).await.unwrap().letters;
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].reason, "its own fault");
    assert_eq!(letters[0].payload[..], *br#"["a","r"]"#);
    let none = timeout(Duration::from_millis(300), source.pull()).await;
    assert!(none.is_err(), "no message is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_task_is_postponed() {
    let rig = rig().await;
    let source = TaskSource::new(rig.streams.clone(), 16);
    TaskQueue::new(rig.client.clone(), &rig.streams)
        .push(vec![task("a")])
        .await;
    let begun = std::time::Instant::now();
    pull(&source).await.receipt.unwrap().failed(300, "no").await;
    pull(&source).await.receipt.unwrap().done().await;
    let elapsed = begun.elapsed();
    assert!(elapsed >= Duration::from_millis(600), "{elapsed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_worker_returns_the_tasks_that_it_fetched_ahead() {
    let rig = rig().await;
    let all: Vec<ScopeRef> = (0..20).map(|n| task(&n.to_string())).collect();
    let stopping = TaskSource::new(rig.streams.clone(), 64);
    TaskQueue::new(rig.client.clone(), &rig.streams)
        .push(all)
        .await;
    let first = pull(&stopping).await;
    all_delivered(&rig, "TASKS", "workers", 20).await;
    stopping.close().await;
    first.receipt.unwrap().postpone(0).await;
    let other = TaskSource::new(rig.streams.clone(), 64);
    let mut got = HashSet::new();
    while got.len() < 20 {
        let task = pull(&other).await;
        task.receipt.unwrap().done().await;
        got.insert(task.scope);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_share_the_tasks() {
    let rig = rig().await;
    let queue = TaskQueue::new(rig.client.clone(), &rig.streams);
    let all: Vec<ScopeRef> = (0..200).map(|n| task(&n.to_string())).collect();
    queue.push(all).await;
    // Each worker gets its first task before either continues, since one alone could take all of them.
    let (both, count) = (Barrier::new(2), AtomicUsize::new(0));
    let take = async |source: TaskSource| {
        let mut got = Vec::new();
        while count.load(Ordering::Relaxed) < 200 {
            let next = timeout(Duration::from_millis(100), source.pull());
            let Ok(task) = next.await else { continue };
            if got.is_empty() {
                timeout(SOON, both.wait()).await.unwrap();
            }
            task.receipt.unwrap().done().await;
            got.push(task.scope);
            count.fetch_add(1, Ordering::Relaxed);
        }
        got
    };
    let both_take = futures::future::join(
        take(TaskSource::new(rig.streams.clone(), 10)),
        take(TaskSource::new(rig.streams.clone(), 10)),
    );
    let (one, two) = timeout(SOON, both_take).await.unwrap();
    assert!(!one.is_empty() && !two.is_empty());
    let all: HashSet<_> = one.iter().chain(&two).collect();
    assert_eq!((all.len(), one.len() + two.len()), (200, 200));
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_delivered_again_after_the_server_is_wiped() {
    let mut rig = rig().await;
    let queue = TaskQueue::new(rig.client.clone(), &rig.streams);
    let source = std::sync::Arc::new(TaskSource::new(rig.streams.clone(), 16));
    queue.push(vec![task("a")]).await;
    pull(&source).await.receipt.unwrap().done().await;
    rig.server.wipe().unwrap();
    // Tasks that are published while there is no stream may be lost, so they are published again.
    let puller = source.clone();
    let pulled = tokio::spawn(async move { pull(&puller).await.scope });
    eventually("a task", async || {
        queue.push(vec![task("b")]).await;
        pulled.is_finished().then_some(())
    })
    .await;
    assert_eq!(pulled.await.unwrap(), task("b"));
}
