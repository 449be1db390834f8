//! Events that are published at the same time. With nats-server 2.12 and newer they go in atomic batches:
//! `PATH=FOLDER:$PATH cargo test` runs these tests on the server in FOLDER.

use std::ops::Range;
use std::time::Duration;

use async_nats::jetstream::consumer::pull;
use futures::future::join_all;
use futures::{StreamExt as _, TryStreamExt as _};
use swirl_nats::{Bus, LifecycleOptions, LifecycleStream, Template};
use swirl_ports::{EventBus, EventStream};

use crate::{event, rig};

#[tokio::test(flavor = "multi_thread")]
async fn events_that_come_together_are_each_stored_once() {
    let rig = rig().await;
    let template = Template::parse("swirl.events.{type}").unwrap();
    let bus = Bus::new(rig.client.clone(), rig.streams.clone(), template);
    let publish = async |ids: Range<u32>| {
        let all = ids.map(async |id| bus.publish(&event(&id.to_string())).await);
        for published in join_all(all).await {
            published.unwrap();
        }
    };
    publish(0..300).await;
    // A batch with repeats is refused as a whole.
    publish(250..350).await;
    let context = async_nats::jetstream::new(rig.client.clone());
    let stream = context.get_stream("SWIRL_default_EVENTS").await.unwrap();
    assert_eq!(stream.cached_info().state.messages, 350);
    let has_batches = rig.client.is_server_compatible(2, 12, 0);
    assert_eq!(rig.streams.batches_sent() > 0, has_batches);

    // A stream without them, as older builds made it.
    let mut config = stream.cached_info().config.clone();
    config.allow_atomic_publish = false;
    context.delete_stream(&config.name).await.unwrap();
    context.create_stream(config).await.unwrap();
    publish(0..50).await;
    let stream = context.get_stream("SWIRL_default_EVENTS").await.unwrap();
    assert_eq!(stream.cached_info().state.messages, 50);
}

#[tokio::test(flavor = "multi_thread")]
async fn lifecycle_events_keep_their_order() {
    let rig = rig().await;
    let options = LifecycleOptions {
        age_max: Duration::from_secs(3_600),
        bytes_max: 16 << 20,
    };
    let lifecycle = LifecycleStream::new(rig.streams.clone(), options);
    let events: Vec<_> = (0..250).map(|id| event(&id.to_string())).collect();
    // The stream doesn't exist yet; then parts come again, as after a crash.
    lifecycle.append("order", &events[..10]).await.unwrap();
    lifecycle.append("order", &events[..5]).await.unwrap();
    lifecycle.append("order", &events[5..]).await.unwrap();
    let context = async_nats::jetstream::new(rig.client.clone());
    let stream = context.get_stream("SWIRL_default_LIFECYCLE").await.unwrap();
    let consumer = stream.create_consumer(pull::Config::default()).await;
    let messages = consumer.unwrap().messages().await.unwrap();
    let stored: Vec<_> = messages.take(events.len()).try_collect().await.unwrap();
    for (message, event) in stored.iter().zip(&events) {
        let found: swirl_model::CloudEvent = serde_json::from_slice(&message.payload).unwrap();
        assert_eq!(found.id, event.id);
    }
    assert_eq!(stream.cached_info().state.messages, events.len() as u64);
}
