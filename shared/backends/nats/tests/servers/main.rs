//! Tests with their own NATS servers.
#![allow(clippy::unwrap_used, reason = "a test")]

mod tasks;
mod together;

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::stream::StorageType;
use futures::TryStreamExt as _;
use swirl_model::CloudEvent;
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_nats::{
    Bus, DeadLetters, Error, Incoming, Inspected, Intake, JoinSource, Options, StreamOptions,
    Streams, TaskQueue, TaskSource, Template, connect,
};
use swirl_ports::{EventBus, LateScope, Queue, Severity, StreamPlace, Tasks};
use swirl_servers::{NatsOptions, NatsServer, eventually};
use tokio::sync::Barrier;
use tokio::time::timeout;

const SOON: Duration = swirl_servers::PATIENCE;

struct Rig {
    server: NatsServer,
    client: async_nats::Client,
    streams: Streams,
}

async fn rig() -> Rig {
    let server = NatsServer::start().unwrap();
    let options = Options::new(vec![server.url()], "test");
    let client = connect(&options).await.unwrap();
    let streams = streams(&client, "default");
    streams.ensure().await.unwrap();
    Rig {
        server,
        client,
        streams,
    }
}

fn streams(client: &async_nats::Client, namespace: &str) -> Streams {
    let options = StreamOptions {
        tasks_bytes_max: 16 << 20,
        events_bytes_max: 64 << 20,
        dead_bytes_max: 16 << 20,
        // A redelivery that isn't requested comes too late for any test.
        ack_wait: 2 * SOON,
        ..StreamOptions::default()
    };
    Streams::new(client.clone(), namespace, Vec::new(), options)
}

fn task(name: &str) -> ScopeRef {
    ScopeRef::root(InstanceId::new(name))
}

fn event(id: &str) -> CloudEvent {
    let text = serde_json::json!({
        "specversion": "1.0", "id": id, "source": "/shop", "type": "org.example.paid",
    });
    serde_json::from_value(text).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_users_arrive_and_produced_ones_are_marked() {
    let rig = rig().await;
    let template = Template::parse("swirl.events.{type}").unwrap();
    let bus = Bus::new(rig.client.clone(), rig.streams.clone(), template);
    let mut watcher = rig
        .client
        .subscribe("swirl.events.org.example.paid")
        .await
        .unwrap();
    bus.publish(&event("1")).await.unwrap();
    bus.publish(&event("1")).await.unwrap();
    let seen = timeout(SOON, futures::StreamExt::next(&mut watcher))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        serde_json::from_slice::<CloudEvent>(&seen.payload).unwrap(),
        event("1")
    );
    let stream = rig.client.clone();
    let context = async_nats::jetstream::new(stream);
    let info = context.get_stream("SWIRL_default_EVENTS").await.unwrap();
    assert_eq!(info.cached_info().state.messages, 1, "a repeat is dropped");

    rig.client
        .publish("swirl.events.mine", "{}".into())
        .await
        .unwrap();
    let mut intake = Intake::open(rig.streams.clone(), None, 16).await.unwrap();
    let incoming = next(&mut intake).await;
    assert!(incoming.is_correlated() && incoming.sequence() == 1);
    let incoming = next(&mut intake).await;
    assert_eq!(
        (incoming.subject(), incoming.payload()),
        ("swirl.events.mine", &b"{}"[..])
    );
    assert!(!incoming.is_correlated());
    assert!(incoming.dead("it has no type").await);
    assert!(
        timeout(Duration::from_millis(500), intake.next())
            .await
            .is_err()
    );
    let dead = DeadLetters::new(rig.streams.clone());
    let mut letters = dead.list(0, 10, |letter| letter).await.unwrap().letters;
    let mut letter = letters.remove(0);
    assert_eq!(letter.reason, "it has no type");

    // Two operators send it again at once, and a third one corrects it.
    let messages = async || {
        let stream = context.get_stream("SWIRL_default_EVENTS").await.unwrap();
        stream.cached_info().state.messages
    };
    let before = messages().await;
    let both = futures::future::try_join(dead.send_again(&letter), dead.send_again(&letter));
    both.await.unwrap();
    assert_eq!(messages().await, before + 1);
    letter.payload = "{\"type\":\"mine\"}".into();
    dead.send_again(&letter).await.unwrap();
    assert_eq!(messages().await, before + 2);
}

/// The mark says that this installation has processed this one event.
#[tokio::test(flavor = "multi_thread")]
async fn a_mark_is_valid_for_one_event_of_one_installation() {
    let rig = rig().await;
    let ours = rig.streams.clone().marked_by("ours");
    let bus = |streams: &Streams| {
        let template = Template::parse("swirl.events.{type}").unwrap();
        Bus::new(rig.client.clone(), streams.clone(), template)
    };
    let subject = "swirl.events.org.example.paid";
    let mut watcher = rig.client.subscribe(subject).await.unwrap();
    bus(&ours).publish(&event("1")).await.unwrap();
    let seen = timeout(SOON, futures::StreamExt::next(&mut watcher));
    let seen = seen.await.unwrap().unwrap();
    // Another service publishes another event with the same headers.
    let mut copied = async_nats::HeaderMap::new();
    for (name, values) in seen.headers.as_ref().unwrap().iter() {
        if name.to_string() != "Nats-Msg-Id" {
            copied.insert(name.clone(), values[0].clone());
        }
    }
    let answer = serde_json::to_vec(&event("2")).unwrap();
    let sent = rig
        .client
        .publish_with_headers(subject, copied, answer.into());
    sent.await.unwrap();
    // An installation that knows the old mark, and another one on the same servers.
    let mut old = async_nats::HeaderMap::new();
    old.insert("Swirl-Correlated", "1");
    let third = serde_json::to_vec(&event("3")).unwrap();
    let sent = rig.client.publish_with_headers(subject, old, third.into());
    sent.await.unwrap();
    let theirs = rig.streams.clone().marked_by("theirs");
    bus(&theirs).publish(&event("4")).await.unwrap();
    let mut intake = Intake::open(ours, None, 16).await.unwrap();
    for id in ["1", "2", "3", "4"] {
        let incoming = next(&mut intake).await;
        let found: CloudEvent = serde_json::from_slice(incoming.payload()).unwrap();
        assert_eq!((found, incoming.is_correlated()), (event(id), id == "1"));
    }
}

async fn next(intake: &mut Intake) -> Incoming {
    timeout(SOON, intake.next()).await.unwrap().unwrap()
}

async fn publish(rig: &Rig, count: usize) {
    let context = async_nats::jetstream::new(rig.client.clone());
    for _ in 0..count {
        let sent = context.publish("swirl.events.mine", "{}".into()).await;
        sent.unwrap().await.unwrap();
    }
}

/// The position of a reader that has processed all events up to this one.
fn place_after(intake: &Intake, incoming: &Incoming) -> StreamPlace {
    StreamPlace {
        stream: intake.stream().to_owned(),
        done: incoming.sequence(),
        at_ms: incoming.at_ms(),
        read: incoming.sequence() + 2,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn any_number_of_readers_read_events_from_their_positions() {
    let rig = rig().await;
    publish(&rig, 20).await;
    let open = async |place| Intake::open(rig.streams.clone(), place, 4).await.unwrap();
    let mut first = open(None).await;
    assert_eq!(first.after(), Some((0, 0)));
    let mut incoming = next(&mut first).await;
    while incoming.sequence() < 7 {
        incoming = next(&mut first).await;
    }
    let place = place_after(&first, &incoming);
    let mut second = open(Some(place.clone())).await;
    for sequence in 8..=20 {
        assert_eq!(next(&mut second).await.sequence(), sequence);
    }
    // Reading is independent of the other reader.
    assert_eq!(next(&mut first).await.sequence(), 8);
    assert_eq!(rig.streams.counts().redelivered().events, 2);
    let (_, events) = rig.streams.backlog(Some(&place)).await.unwrap();
    assert_eq!((events.pending, events.unacknowledged), (11, 2));
    assert!(events.oldest > Duration::ZERO);
    first.close().await;
    second.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_continues_after_the_consumer_is_lost() {
    let rig = rig().await;
    publish(&rig, 3).await;
    let mut intake = Intake::open(rig.streams.clone(), None, 4).await.unwrap();
    assert_eq!(next(&mut intake).await.sequence(), 1);
    let context = async_nats::jetstream::new(rig.client.clone());
    let stream = context.get_stream("SWIRL_default_EVENTS").await.unwrap();
    let names: Vec<String> = stream.consumer_names().try_collect().await.unwrap();
    for name in names {
        stream.delete_consumer(&name).await.unwrap();
    }
    publish(&rig, 3).await;
    for sequence in 2..=6 {
        assert_eq!(next(&mut intake).await.sequence(), sequence);
    }
}

/// A server that holds 3 MB for a connection, and cuts it if more waits.
async fn tight_rig() -> Rig {
    let options = NatsOptions {
        config: "max_payload: 500KB\nmax_pending: 3MB\n".to_owned(),
        ..NatsOptions::default()
    };
    let server = NatsServer::start_with(options).unwrap();
    let options = Options::new(vec![server.url()], "test");
    let client = connect(&options).await.unwrap();
    let options = StreamOptions {
        tasks_bytes_max: 16 << 20,
        events_bytes_max: 128 << 20,
        dead_bytes_max: 64 << 20,
        fetch_bytes: 1 << 20,
        ..StreamOptions::default()
    };
    let streams = Streams::new(client.clone(), "default", Vec::new(), options);
    streams.ensure().await.unwrap();
    Rig {
        server,
        client,
        streams,
    }
}

async fn publish_large(rig: &Rig, subject: &'static str, count: usize) {
    let context = async_nats::jetstream::new(rig.client.clone());
    let payload = bytes::Bytes::from(vec![b'x'; 450_000]);
    for _ in 0..count {
        let sent = context.publish(subject, payload.clone()).await;
        sent.unwrap().await.unwrap();
    }
}

fn connects(rig: &Rig) -> u64 {
    let statistics = rig.client.statistics();
    statistics.connects.load(Ordering::Relaxed)
}

#[tokio::test(flavor = "multi_thread")]
async fn large_events_that_wait_are_fetched_a_few_at_a_time() {
    let rig = tight_rig().await;
    publish_large(&rig, "swirl.events.large", 60).await;
    let mut intake = Intake::open(rig.streams.clone(), None, 256).await.unwrap();
    for sequence in 1..=60 {
        let incoming = next(&mut intake).await;
        assert_eq!(incoming.sequence(), sequence);
        assert!(incoming.bytes() > 450_000);
        // Time has to pass: the reader is slower than the server.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(connects(&rig), 1, "the server has not cut the connection");
}

#[tokio::test(flavor = "multi_thread")]
async fn large_dead_letters_are_listed_in_pages_and_without_consumers() {
    let rig = tight_rig().await;
    publish_large(&rig, "swirl-dead.default.event", 25).await;
    let letters = DeadLetters::new(rig.streams.clone());
    let listings = (0..8).map(|_| letters.list(0, 500, |letter| letter));
    for page in futures::future::join_all(listings).await {
        let page = page.unwrap();
        // The first that reaches 4 MiB is the last one.
        assert_eq!((page.letters.len(), page.has_more), (10, true));
    }
    let last = letters.list(21, 500, |letter| letter).await.unwrap();
    assert_eq!((last.letters.len(), last.has_more), (5, false));
    assert_eq!(
        letters
            .list(26, 500, |letter| letter)
            .await
            .unwrap()
            .letters,
        []
    );
    assert_eq!(
        letters.list(3, 2, |letter| letter).await.unwrap().letters[1].sequence,
        4
    );
    assert_eq!(connects(&rig), 1, "the server has not cut the connection");
    let context = async_nats::jetstream::new(rig.client.clone());
    let stream = context.get_stream("SWIRL_default_DEAD").await.unwrap();
    assert_eq!(stream.cached_info().state.consumer_count, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_count_toward_a_page_of_dead_letters() {
    let rig = tight_rig().await;
    let context = async_nats::jetstream::new(rig.client.clone());
    let mut headers = async_nats::HeaderMap::new();
    headers.insert("Large", "x".repeat(60_000));
    for _ in 0..75 {
        let sent =
            context.publish_with_headers("swirl-dead.default.event", headers.clone(), "{}".into());
        sent.await.unwrap().await.unwrap();
    }
    let letters = DeadLetters::new(rig.streams.clone());
    let page = letters.list(0, 500, |letter| letter.sequence).await;
    let page = page.unwrap();
    assert_eq!((page.letters.len(), page.has_more), (70, true));
}

/// Events that were on their way when the connection broke are lost, and no further one shows the gap.
#[tokio::test(flavor = "multi_thread")]
async fn events_that_are_lost_on_their_way_are_noticed_without_a_further_one() {
    let rig = rig().await;
    publish(&rig, 3).await;
    let mut intake = Intake::open(rig.streams.clone(), None, 1).await.unwrap();
    assert_eq!(next(&mut intake).await.sequence(), 1);
    // Somebody else takes the rest, so the reader never sees it.
    let context = async_nats::jetstream::new(rig.client.clone());
    let stream = context.get_stream("SWIRL_default_EVENTS").await.unwrap();
    let names: Vec<String> = stream.consumer_names().try_collect().await.unwrap();
    let consumer: PullConsumer = stream.get_consumer(&names[0]).await.unwrap();
    publish(&rig, 5).await;
    let taken = consumer.fetch().max_messages(20).messages().await.unwrap();
    let taken: Vec<_> = taken.try_collect().await.unwrap();
    assert!(!taken.is_empty());
    for sequence in 2..=8 {
        assert_eq!(next(&mut intake).await.sequence(), sequence);
    }
}

/// For a position in another stream, only its time counts.
#[tokio::test(flavor = "multi_thread")]
async fn a_recreated_stream_is_read_from_the_time_of_the_position() {
    let rig = rig().await;
    publish(&rig, 5).await;
    let mut intake = Intake::open(rig.streams.clone(), None, 16).await.unwrap();
    let mut incoming = next(&mut intake).await;
    while incoming.sequence() < 5 {
        incoming = next(&mut intake).await;
    }
    let place = place_after(&intake, &incoming);
    let context = async_nats::jetstream::new(rig.client.clone());
    context.delete_stream("SWIRL_default_EVENTS").await.unwrap();
    rig.streams.ensure().await.unwrap();
    publish(&rig, 2).await;
    assert!(
        timeout(SOON, intake.next()).await.unwrap().is_none(),
        "it has to be opened again"
    );
    let mut again = Intake::open(rig.streams.clone(), Some(place), 16)
        .await
        .unwrap();
    assert_eq!(again.after(), None);
    assert_eq!(next(&mut again).await.sequence(), 1);
    assert_eq!(next(&mut again).await.sequence(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn namespaces_are_separate_and_unsuitable_streams_are_refused() {
    let rig = rig().await;
    streams(&rig.client, "team-a").ensure().await.unwrap();
    let context = async_nats::jetstream::new(rig.client.clone());
    let config = async_nats::jetstream::stream::Config {
        name: "SWIRL_other_TASKS".to_owned(),
        subjects: vec!["swirl-tasks.other".to_owned()],
        ..Default::default()
    };
    context.create_stream(config).await.unwrap();
    let refused = streams(&rig.client, "other").ensure().await;
    assert!(matches!(refused, Err(Error::Stream { reason, .. }) if reason.contains("retention")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_error_names_the_server() {
    let port = swirl_servers::free_port().unwrap();
    let options = Options::new(vec![format!("nats://u:secret@127.0.0.1:{port}")], "test");
    let error = connect(&options).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Unreachable { .. }), "{text}");
    assert!(
        text.contains(&port.to_string()) && !text.contains("secret"),
        "{text}"
    );
}

/// What an inspection found, except the warning that a server of version 2.9 gets.
fn found(client: &async_nats::Client, seen: &Inspected) -> Vec<(Severity, &'static str)> {
    let all = seen
        .findings
        .iter()
        .map(|finding| (finding.severity, finding.code));
    let mut all: Vec<_> = all.collect();
    let sync = (Severity::Warning, "sync");
    let is_old = !client.is_server_compatible(2, 10, 0);
    assert_eq!(all.contains(&sync), is_old, "{all:?}");
    all.retain(|found| *found != sync);
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_of_tasks_is_not_faster_than_the_server() {
    let rig = rig().await;
    let queue = TaskQueue::new(rig.client.clone(), &rig.streams);
    let tasks: Vec<ScopeRef> = (0..2_000).map(|n| task(&format!("i{n}"))).collect();
    queue.push(tasks).await;
    // All up to the last confirmed one are stored: 7 × 256.
    let (stored, _) = rig.streams.backlog(None).await.unwrap();
    assert!(stored.pending >= 1_792, "{stored:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn inspecting_streams_changes_nothing() {
    let rig = rig().await;
    let seen = rig.streams.inspect(&rig.client).await;
    assert_eq!(
        (found(&rig.client, &seen), seen.missing),
        (Vec::new(), Vec::new())
    );
    let names: Vec<&str> = seen.streams.iter().map(|(name, _)| name.as_str()).collect();
    let made =
        ["TASKS", "LANES", "JOINS", "EVENTS", "DEAD"].map(|name| format!("SWIRL_default_{name}"));
    assert_eq!(names, made);

    let other = streams(&rig.client, "other").inspect(&rig.client).await;
    assert_eq!((other.streams.len(), other.missing.len()), (0, 5));
    let again = streams(&rig.client, "other").inspect(&rig.client).await;
    assert_eq!(again.missing.len(), 5, "nothing was created");

    // Other settings are reported as differences; unsuitable ones are errors.
    let codes = async |options: StreamOptions, subjects: &[&str]| {
        let subjects = subjects.iter().map(ToString::to_string).collect();
        let streams = Streams::new(rig.client.clone(), "default", subjects, options);
        let seen = streams.inspect(&rig.client).await;
        let mut codes = found(&rig.client, &seen);
        codes.dedup();
        codes
    };
    let settings = (Severity::Warning, "stream-settings");
    assert_eq!(codes(StreamOptions::default(), &[]).await, [settings]);
    let subjects = ["elsewhere.>"];
    let found = codes(StreamOptions::default(), &subjects).await;
    assert!(found.contains(&(Severity::Error, "stream")), "{found:?}");
    assert!(found.len() > 1, "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_backlog_has_the_age_of_the_oldest_message() {
    let rig = rig().await;
    let (tasks, _) = rig.streams.backlog(None).await.unwrap();
    assert_eq!((tasks.pending, tasks.oldest), (0, Duration::ZERO));
    let queue = TaskQueue::new(rig.client.clone(), &rig.streams);
    queue.push(vec![task("a"), task("b")]).await;
    // Time has to pass: it is measured.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let before_the_third = Instant::now();
    queue.push(vec![task("c")]).await;
    let tasks = eventually("all three in the stream", async || {
        let (tasks, _) = rig.streams.backlog(None).await.unwrap();
        (tasks.pending == 3).then_some(tasks)
    })
    .await;
    assert!(tasks.oldest >= Duration::from_millis(290), "{tasks:?}");
    // The first two are taken, and the third has just arrived. A source would request more ahead.
    let context = async_nats::jetstream::new(rig.client.clone());
    let consumer: PullConsumer = context
        .get_consumer_from_stream("workers", "SWIRL_default_TASKS")
        .await
        .unwrap();
    let fetched = consumer.fetch().max_messages(2).messages().await.unwrap();
    let taken: Vec<_> = fetched.try_collect().await.unwrap();
    assert_eq!(taken.len(), 2);
    let (after, _) = rig.streams.backlog(None).await.unwrap();
    assert_eq!(after.pending, 1);
    // The ages are measured with the wall clock, in milliseconds.
    let third_at_most = before_the_third.elapsed() + Duration::from_millis(100);
    assert!(after.oldest > Duration::ZERO && after.oldest < third_at_most);
}

/// JetStream doesn't reveal the storage limit of the server itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_room_is_detected_before_streams_are_created() {
    let folder = tempfile::tempdir().unwrap();
    let server = |most: &str, memory: &str| {
        let store = folder.path().join(most);
        let config = format!(
            "jetstream {{ store_dir: {store:?}, max_file_store: {most}, max_memory_store: {memory} }}"
        );
        let options = NatsOptions {
            config,
            without_jetstream: true,
            ..NatsOptions::default()
        };
        NatsServer::start_with(options).unwrap()
    };
    // Without room in memory, tasks are kept in files.
    for (most, memory, has_room) in [
        ("70MB", "1GB", false),
        ("90MB", "1GB", true),
        ("120MB", "1MB", true),
    ] {
        let server = server(most, memory);
        let client = connect(&Options::new(vec![server.url()], "test"))
            .await
            .unwrap();
        // The streams of events and dead letters need 80 MiB.
        let streams = streams(&client, "default");
        let seen = streams.inspect(&client).await;
        let wanted: &[_] = if has_room {
            &[]
        } else {
            &[(Severity::Error, "room")]
        };
        assert_eq!(found(&client, &seen), wanted, "{:?}", seen.findings);
        assert_eq!(seen.missing.len(), 5);
        assert_eq!(streams.ensure().await.is_ok(), has_room);
        // The probe is removed, and existing streams need no more room.
        let seen = streams.inspect(&client).await;
        assert_eq!(
            found(&client, &seen).is_empty(),
            has_room,
            "{:?}",
            seen.findings
        );
        let context = async_nats::jetstream::new(client.clone());
        if has_room {
            let tasks = context.get_stream("SWIRL_default_TASKS").await.unwrap();
            let in_memory = tasks.cached_info().config.storage == StorageType::Memory;
            assert_eq!(in_memory, memory == "1GB");
        }
        assert!(context.get_stream("SWIRL_default_DOCTOR").await.is_err());
    }
}
