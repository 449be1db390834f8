//! Tells which events instances wait for, since other events need no order.

use std::sync::Arc;

use swirl_contract::Backend;
use swirl_contract::kit::*;
use swirl_model::CloudEvent;
use swirl_model::event::Command;
use swirl_ports::Listening;
use swirl_ports::matching::Listeners;
use swirl_redis::{Options, Redis};
use swirl_servers::RedisServer;

#[tokio::test]
async fn an_event_is_awaited_while_a_wait_exists() {
    let server = RedisServer::start().unwrap();
    let store = Redis::connect(Options::single(server.url())).await.unwrap();
    let b = Backend::of(Arc::new(store), ());
    let by_order = filter("v", &[("order", None)]);
    let listeners = [filter("t", &[]), filter("u", &[]), by_order.clone()];
    let listeners = Listeners::new(listeners.into_iter());
    let events = [
        event("1", "t", &[]),
        event("2", "u", &[]),
        event("3", "t", &[]),
        event("4", "v", &[("order", "1")]),
        event("5", "w", &[]),
        event("6", "w", &[("swirlinstanceid", "a")]),
    ];
    let all: Vec<&CloudEvent> = events.iter().collect();
    let awaited = async || b.events.awaited(&all, &listeners).await.unwrap();
    assert_eq!(awaited().await, [false, false, false, false, false, true]);
    b.waiting("a", vec![filter("t", &[])]).await;
    assert_eq!(awaited().await, [true, false, true, false, false, true]);
    b.create(new("b")).await;
    let known = Command::Correlate(vec![("order".into(), "1".to_owned())]);
    let wait = Command::Subscribe(subscription(1, vec![by_order]));
    b.act(&root("b"), change(vec![known, wait])).await;
    assert_eq!(awaited().await, [true, false, true, true, false, true]);
    b.ingest(&events[0], &[]).await;
    let items = b.inbox(&root("a")).await;
    b.act(&root("a"), change(vec![]).consumed(&[&items[0].id]))
        .await;
    assert_eq!(awaited().await, [false, false, false, true, false, true]);
    // The event is in no bucket then, and starts its instances.
    let only = [trigger(vec![filter("u", &[])], true)];
    let listening = Listening {
        listeners: Some(&listeners),
        is_unawaited: true,
        ..Listening::new(&only, &[])
    };
    let ingested = b.events.ingest(&events[1], listening, at(0)).await.unwrap();
    assert_eq!(start_ids(&ingested), [["2"]]);
}
