//! Workflows share one queue. If a workflow has more instances than a worker has places for, it doesn't block others.

use std::sync::Arc;

use swirl_embedded::Embedded;
use swirl_nats::{Options, StreamOptions, Streams, TaskQueue, TaskSource, connect};
use swirl_servers::{NatsServer, eventually};

use crate::rig::service;
use crate::shares::quick_passes_slow;

/// Many more than the worker has places for, and than JetStream delivers at a time.
const SLOW: u32 = 120;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workflow_with_many_instances_does_not_block_others() {
    let server = NatsServer::start().unwrap();
    let client = connect(&Options::new(vec![server.url()], "test"))
        .await
        .unwrap();
    let options = StreamOptions {
        ack_pending_max: 20,
        ..StreamOptions::default()
    };
    let streams = Streams::new(client.clone(), "default", Vec::new(), options);
    streams.ensure().await.unwrap();
    let queue = Arc::new(TaskQueue::new(client, &streams));
    let store = Arc::new(Embedded::memory());
    let service = service(&store, queue);
    let drained = eventually("no task left", async || {
        let (tasks, _) = streams.backlog(None).await.unwrap();
        (tasks.pending + tasks.unacknowledged == 0).then_some(())
    });
    let source = Arc::new(TaskSource::new(streams.clone(), 16));
    let left = quick_passes_slow(&store, &service, source, SLOW, drained).await;
    assert_eq!(left, 0);
}
