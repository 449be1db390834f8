//! Many viewers of one instance cost the store as much as one viewer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::future::join_all;
use reqwest::{Client, Response, StatusCode};
use swirl_console::VIEWERS_MAX;
use swirl_coordinator::access::Access;
use swirl_embedded::Embedded;
use swirl_model::event::{Event, HistoryEntry};
use swirl_model::ids::{InstanceId, ScopeId};
use swirl_model::instance::Instance;
use swirl_model::scope::Scope;
use swirl_model::time::Timestamp;
use swirl_ports::{
    Counts, ExecutionStore, Filter, HistoryPage, HistoryPart, InstanceQueries, InstanceRecords,
    Keep, Page, Result, Trend, VersionCounts,
};
use swirl_servers::{PATIENCE, eventually};
use tokio::time::timeout;

use crate::batches::instance;
use crate::running::{Reads, Running, Setup, client, guarded};

const VIEWERS: usize = 1_000;

pub(crate) const DOCUMENT: &str = "id: flow
version: '1'
specVersion: '0.8'
start: A
states:
  - {name: A, type: sleep, duration: PT1H, end: true}
";

/// Counts reads of instances.
struct Counted {
    store: Arc<Embedded>,
    reads: Arc<AtomicUsize>,
}

impl Counted {
    fn one(&self) -> &Embedded {
        self.reads.fetch_add(1, Ordering::Relaxed);
        &self.store
    }
}

#[async_trait]
impl InstanceRecords for Counted {
    async fn instance(&self, id: &InstanceId) -> Result<Option<Instance>> {
        self.one().instance(id).await
    }

    async fn scopes(&self, id: &InstanceId) -> Result<Vec<Scope>> {
        self.one().scopes(id).await
    }
}

#[async_trait]
impl InstanceQueries for Counted {
    async fn page(&self, filter: &Filter, keep: Keep<'_>) -> Result<Page> {
        self.one().page(filter, keep).await
    }

    async fn counts(&self, workflows: &[Arc<str>]) -> Result<(Counts, Vec<Counts>)> {
        self.one().counts(workflows).await
    }

    async fn counts_by_version(&self, workflow: &str) -> Result<VersionCounts> {
        self.one().counts_by_version(workflow).await
    }

    async fn trend(&self, now: Timestamp) -> Result<Trend> {
        self.one().trend(now).await
    }

    async fn history(&self, id: &InstanceId) -> Result<Vec<HistoryEntry>> {
        self.one().history(id).await
    }

    async fn history_page(&self, id: &InstanceId, part: HistoryPart) -> Result<HistoryPage> {
        self.one().history_page(id, part).await
    }
}

/// A server with an instance that waits, and the counter of reads.
async fn with_instance(access: Access) -> (Running, Arc<Embedded>, Arc<AtomicUsize>) {
    with_room(access, VIEWERS_MAX).await
}

/// Like [`with_instance`], with room for few viewers.
async fn with_room(
    access: Access,
    viewers_max: usize,
) -> (Running, Arc<Embedded>, Arc<AtomicUsize>) {
    let store = Arc::new(Embedded::memory());
    let reads = Arc::new(AtomicUsize::new(0));
    let queries = Counted {
        store: store.clone(),
        reads: reads.clone(),
    };
    let setup = Setup {
        store: store.clone(),
        queries: Some(Arc::new(queries)),
        reader: Arc::new(Reads),
        address_max: 2 * VIEWERS,
        viewers_max,
        ..Setup::new(access)
    };
    let running = setup.start().await;
    let deploy = client().post(running.url("/api/v1/definitions"));
    let deploy = deploy.bearer_auth("deployer-token");
    let deploy = deploy.header("content-type", "application/yaml");
    let answer = deploy.body(DOCUMENT).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::CREATED);
    store.create(instance("i")).await.unwrap();
    change(&store, 1).await;
    (running, store, reads)
}

async fn change(store: &Embedded, at: i64) {
    let entry = HistoryEntry {
        at: Timestamp(at),
        scope: ScopeId::root(),
        event: Event::Idle,
        data: None,
        data_until: None,
    };
    assert!(store.note(&InstanceId::new("i"), entry).await.unwrap());
}

/// The next hint of a stream.
async fn hint(stream: &mut Response) -> String {
    let mut text = String::new();
    let read = async {
        while !text.contains("\n\n") {
            let chunk = stream.chunk().await.unwrap().unwrap();
            text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    };
    timeout(PATIENCE, read).await.unwrap();
    let data = text.lines().find_map(|line| line.strip_prefix("data: "));
    data.unwrap().to_owned()
}

async fn watch(running: &Running, client: &Client) -> Response {
    let stream = client.get(running.url("/console/instances/i/hints"));
    let stream = stream.send().await.unwrap();
    assert_eq!(stream.status(), StatusCode::OK);
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    stream
}

async fn load(running: &Running, client: &Client, seen: &str) -> String {
    let page = client.get(running.url("/console/instances/i"));
    let page = page.header("x-swirl-seen", seen).send().await.unwrap();
    assert_eq!(page.status(), StatusCode::OK);
    page.text().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_viewers_cost_the_store_as_much_as_one() {
    let (running, store, reads) = with_instance(Access::open("shop")).await;
    let client = client();
    // The cost of one viewer while nothing happens, and during a change.
    let polls = async |streams: &mut Vec<Response>, at: i64| {
        let before = reads.load(Ordering::Relaxed);
        // Time has to pass: the cost is measured per second.
        tokio::time::sleep(Duration::from_secs(3)).await;
        let idle = reads.load(Ordering::Relaxed) - before;
        let (before, begun) = (reads.load(Ordering::Relaxed), Instant::now());
        change(&store, at).await;
        let seen = join_all(streams.iter_mut().map(hint)).await;
        assert!(seen.iter().all(|one| *one == seen[0]), "{seen:?}");
        let pages = join_all(seen.iter().map(|seen| load(&running, &client, seen))).await;
        let line = format!("<time datetime=\"{:.3}\"", Timestamp(at));
        assert!(
            pages.iter().all(|page| page.contains(&line)),
            "{}",
            pages[0]
        );
        let busy = reads.load(Ordering::Relaxed) - before;
        (idle, busy, begun.elapsed().as_secs() as usize)
    };
    let mut streams = vec![watch(&running, &client).await];
    hint(&mut streams[0]).await;
    let (idle, busy, _) = polls(&mut streams, 2_000).await;
    assert!(idle > 0 && busy > 0, "{idle} {busy}");

    let others = (1..VIEWERS).map(|_| watch(&running, &client));
    let mut others = join_all(others).await;
    join_all(others.iter_mut().map(hint)).await;
    streams.append(&mut others);
    let (idle_of_all, busy_of_all, seconds) = polls(&mut streams, 3_000).await;
    // Allow one more poll or less, depending on the timing. Each has two reads.
    assert!(idle_of_all <= idle + 4, "{idle_of_all}, not {idle}");
    // Polling continues until all pages are loaded, and a page that loads late is read once more.
    let late = 3 * (seconds + 2);
    assert!(busy_of_all <= busy + late, "{busy_of_all}, not {busy}");

    // A viewer that leaves costs nothing.
    drop(streams);
    let silent = async || {
        let before = reads.load(Ordering::Relaxed);
        // Time has to pass: a remaining poll would occur within it.
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        (before == reads.load(Ordering::Relaxed)).then_some(())
    };
    eventually("nothing is read any more", silent).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hints_are_for_those_who_may_see_the_instance() {
    let (running, store, _) = with_instance(guarded(None)).await;
    let plain = Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let refused = plain.get(running.url("/console/instances/i/hints"));
    let refused = refused.send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::SEE_OTHER, "to the sign-in");
    let (running, _, _) = {
        drop(running);
        with_instance(Access::open("shop")).await
    };
    let missing = plain.get(running.url("/console/instances/none/hints"));
    assert_eq!(
        missing.send().await.unwrap().status(),
        StatusCode::NOT_FOUND
    );
    drop(store);
}

/// A page without hints looks for changes by itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_too_many_is_told_so_and_one_that_leaves_makes_room() {
    let (running, store, _) = with_room(Access::open("shop"), 3).await;
    let client = client();
    let mut streams = join_all((0..3).map(|_| watch(&running, &client))).await;
    join_all(streams.iter_mut().map(hint)).await;
    let ask = async || {
        let stream = client.get(running.url("/console/instances/i/hints"));
        stream.send().await.unwrap()
    };

    // A browser gives up a stream with any other status than 200, and its page then looks every few seconds.
    let refused = ask().await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    let told = refused.text().await.unwrap();
    assert!(told.starts_with("too many pages"), "{told}");
    let page = load(&running, &client, "").await;
    assert!(page.contains("data-live=\"3\""), "{page}");

    // The others still get theirs.
    change(&store, 2_000).await;
    let seen = join_all(streams.iter_mut().map(hint)).await;
    assert!(seen.iter().all(|one| *one == seen[0]), "{seen:?}");

    streams.pop();
    let joined = async || {
        let stream = ask().await;
        (stream.status() == StatusCode::OK).then_some(stream)
    };
    let mut stream = eventually("there is room again", joined).await;
    hint(&mut stream).await;
    assert_eq!(ask().await.status(), StatusCode::SERVICE_UNAVAILABLE);
}

/// A made-up hint shares no response.
#[tokio::test(flavor = "multi_thread")]
async fn a_made_up_hint_is_ignored() {
    let (running, store, reads) = with_instance(Access::open("shop")).await;
    let client = client();
    load(&running, &client, "invented").await;
    let before = reads.load(Ordering::Relaxed);
    change(&store, 5_000).await;
    let page = load(&running, &client, "invented").await;
    assert!(page.contains(&format!("{:.3}", Timestamp(5_000))), "{page}");
    assert!(reads.load(Ordering::Relaxed) > before);
}

/// A stream must not delay a server that stops.
#[tokio::test(flavor = "multi_thread")]
async fn streams_end_when_the_server_stops() {
    let (mut running, _, _) = with_instance(Access::open("shop")).await;
    let client = client();
    let mut stream = watch(&running, &client).await;
    hint(&mut stream).await;
    running.stop();
    let rest = timeout(PATIENCE, async {
        while let Ok(Some(_)) = stream.chunk().await {}
    });
    rest.await.unwrap();
    timeout(PATIENCE, running.ended()).await.unwrap().unwrap();
}
