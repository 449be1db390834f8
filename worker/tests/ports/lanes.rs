//! Workflows share one queue. If a workflow has more instances than a worker has places for, it doesn't block others.

use std::sync::Arc;

use swirl_embedded::Embedded;
use swirl_model::instance::Status;
use swirl_nats::{Options, StreamOptions, Streams, TaskQueue, TaskSource, connect};
use swirl_ports::InstanceRecords;
use swirl_runtime::{Places, Settings};
use swirl_servers::{NatsServer, eventually};
use swirl_system::{Calls, System};
use swirl_worker::pool;
use tokio::sync::watch;

use crate::pool::{nobody, service};
use crate::shares::{Slow, deploy_slow_and_quick, ended, start};

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
    deploy_slow_and_quick(&service).await;
    let mut slow = Vec::new();
    for request in 0..SLOW {
        slow.push(start(&service, "slow", request).await);
    }
    let quick = start(&service, "quick", 0).await;
    let (answer, answers) = watch::channel(false);
    let calls = Calls {
        caller: Arc::new(Slow(answers)),
        ..nobody()
    };
    let effects = Arc::new(service.clone());
    let mut driver = System::from(&service).driver(calls, effects, Settings::default());
    driver.places = Some(Places::new(4));
    let settings = pool::Settings {
        concurrency: 4,
        ..pool::Settings::default()
    };
    let stop = async {
        ended(&store, &quick).await;
        for id in &slow {
            let status = store.instance(id).await.unwrap().unwrap().state.status;
            assert_eq!(status, Status::Running);
        }
        answer.send_replace(true);
        for id in &slow {
            ended(&store, id).await;
        }
        eventually("no task left", async || {
            let (tasks, _) = streams.backlog(None).await.unwrap();
            (tasks.pending + tasks.unacknowledged == 0).then_some(())
        })
        .await;
    };
    let source = Arc::new(TaskSource::new(streams.clone(), 16));
    let left = pool::run(Arc::new(driver), source, settings, stop).await;
    assert_eq!(left, 0);
    for id in slow.iter().chain([&quick]) {
        let state = store.instance(id).await.unwrap().unwrap().state;
        assert_eq!(state.status, Status::Completed, "{state:?}");
    }
}
