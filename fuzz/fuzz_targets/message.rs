//! Any bytes as a task of the queue: they are read as a scope or refused, and an unknown scope does no harm.

#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use swirl_embedded::{Embedded, MemoryQueue};
use swirl_ports::{InstanceRecords, Queue};

fuzz_target!(|payload: &[u8]| {
    let Some((scope, beside)) = swirl_nats::read_task(payload) else {
        return;
    };
    let all: Vec<_> = std::iter::once(scope.clone())
        .chain(beside.clone())
        .collect();
    assert_eq!(
        swirl_nats::read_task(&swirl_nats::write_task(&all)),
        Some((scope.clone(), beside))
    );
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let Ok(runtime) = runtime else { return };
    runtime.block_on(async {
        let store = Arc::new(Embedded::memory());
        let found = store.instance(&scope.instance).await;
        assert!(matches!(found, Ok(None)), "nobody has started it");
        let queue = MemoryQueue::default();
        queue.push(all).await;
    });
});
