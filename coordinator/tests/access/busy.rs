//! Requests that cost much: those that occupy all threads of the process don't delay the answers to its supervisor, and
//! listings don't read the data of their instances.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde_json::Value;
use swirl_coordinator::access::Access;
use swirl_embedded::Embedded;
use swirl_model::event::HistoryEntry;
use swirl_model::ids::InstanceId;
use swirl_model::instance::Instance;
use swirl_model::scope::Scope;
use swirl_model::time::Timestamp;
use swirl_ports::{
    Counts, Error, ExecutionStore, Filter, InstanceQueries, InstanceRecords, Keep, Page, Result,
    Trend, VersionCounts,
};
use swirl_servers::PATIENCE;
use tokio::net::TcpListener;

use crate::batches::instance;
use crate::running::{Reads, Setup, client};
use crate::viewers::DOCUMENT;

const THREADS: usize = 2;
/// A supervisor waits this long.
const ANSWER_MAX: Duration = Duration::from_secs(1);
/// A failed test ends sooner.
const OCCUPIED_MAX: Duration = Duration::from_secs(30);

/// Has no data of instances. Listings of more than one row occupy their threads until they may go on.
struct Occupying {
    store: Arc<Embedded>,
    occupied: AtomicUsize,
    goes_on: AtomicBool,
}

#[async_trait]
impl InstanceRecords for Occupying {
    async fn instance(&self, id: &InstanceId) -> Result<Option<Instance>> {
        self.store.instance(id).await
    }

    async fn scopes(&self, _: &InstanceId) -> Result<Vec<Scope>> {
        Err(Error::Unavailable("a test without data".to_owned()))
    }
}

#[async_trait]
impl InstanceQueries for Occupying {
    async fn page(&self, filter: &Filter, keep: Keep<'_>) -> Result<Page> {
        if filter.limit > 1 {
            self.occupied.fetch_add(1, Ordering::SeqCst);
            let begun = Instant::now();
            while !self.goes_on.load(Ordering::SeqCst) && begun.elapsed() < OCCUPIED_MAX {
                // Time has to pass: the thread is occupied.
                sleep(Duration::from_millis(10));
            }
        }
        self.store.page(filter, keep).await
    }

    async fn counts(&self, workflows: &[Arc<str>]) -> Result<(Counts, Vec<Counts>)> {
        self.store.counts(workflows).await
    }

    async fn counts_by_version(&self, workflow: &str) -> Result<VersionCounts> {
        self.store.counts_by_version(workflow).await
    }

    async fn trend(&self, now: Timestamp) -> Result<Trend> {
        self.store.trend(now).await
    }

    async fn history(&self, id: &InstanceId) -> Result<Vec<HistoryEntry>> {
        self.store.history(id).await
    }

    async fn root_outline(&self, id: &InstanceId) -> Result<Option<Scope>> {
        self.store.root_outline(id).await
    }
}

fn send(at: SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(at).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// The status line of the answer, if it comes soon enough.
fn answered(at: SocketAddr, path: &str, limit: Duration) -> Option<String> {
    let mut stream = send(at, path);
    stream.set_read_timeout(Some(limit)).unwrap();
    let mut answer = [0; 1024];
    let read = stream.read(&mut answer).ok()?;
    let answer = String::from_utf8_lossy(&answer[..read]);
    answer.lines().next().map(str::to_owned)
}

#[test]
fn health_is_answered_while_all_threads_are_occupied() {
    let threads = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build()
        .unwrap();
    let (running, health, occupying) = threads.block_on(async {
        let setup = Setup::new(Access::open("shop"));
        let occupying = Arc::new(Occupying {
            store: setup.store.clone(),
            occupied: AtomicUsize::new(0),
            goes_on: AtomicBool::new(false),
        });
        let health = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = health.local_addr().unwrap();
        let setup = Setup {
            queries: Some(occupying.clone()),
            health: Some(health),
            ..setup
        };
        (setup.start().await, at, occupying)
    });
    let paths = ["/healthz", "/readyz", "/metrics"];
    for path in paths {
        let status = answered(running.address, path, PATIENCE).unwrap();
        assert_eq!(status, "HTTP/1.1 200 OK", "{path}");
    }
    // Further ones wait for a thread.
    let listings: Vec<TcpStream> = (0..2 * THREADS)
        .map(|_| send(running.address, "/api/v1/instances"))
        .collect();
    let begun = Instant::now();
    while occupying.occupied.load(Ordering::SeqCst) < THREADS {
        assert!(begun.elapsed() < PATIENCE);
        // Time has to pass: what occupies the threads is counted, and nothing else shows it.
        sleep(Duration::from_millis(10));
    }
    for at in [running.address, health] {
        for path in paths {
            let status = answered(at, path, ANSWER_MAX);
            assert_eq!(status.as_deref(), Some("HTTP/1.1 200 OK"), "{at} {path}");
        }
    }
    occupying.goes_on.store(true, Ordering::SeqCst);
    for mut listing in listings {
        let mut answer = String::new();
        listing.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    }
}

/// Many rows would be much data.
#[tokio::test(flavor = "multi_thread")]
async fn listings_read_no_data() {
    let setup = Setup {
        reader: Arc::new(Reads),
        ..Setup::new(Access::open("shop"))
    };
    let store = setup.store.clone();
    let queries = Occupying {
        store: store.clone(),
        occupied: AtomicUsize::new(0),
        goes_on: AtomicBool::new(true),
    };
    let setup = Setup {
        queries: Some(Arc::new(queries)),
        ..setup
    };
    let running = setup.start().await;
    let deploy = client().post(running.url("/api/v1/definitions"));
    let answer = deploy.body(DOCUMENT).send().await.unwrap();
    assert_eq!(answer.status(), 201);
    store.create(instance("i")).await.unwrap();
    for path in [
        "instances",
        "instances?query=status%20%3D%20waiting",
        "overview",
        "definitions/flow/1/states",
    ] {
        let answer = client().get(running.url(&format!("/api/v1/{path}")));
        let answer = answer.send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert_eq!(status, 200, "{path}: {text}");
    }
    // The page of one instance shows it.
    let one = client().get(running.url("/api/v1/instances/i")).send();
    assert_eq!(one.await.unwrap().status(), 503);
}

/// However many rows a client asks for.
#[tokio::test(flavor = "multi_thread")]
async fn pages_of_instances_have_limited_sizes() {
    const COUNT: usize = 350;
    let setup = Setup::new(Access::open("shop"));
    let store = setup.store.clone();
    let running = setup.start().await;
    for number in 0..COUNT {
        let mut records = instance(&format!("i{number}"));
        records.header.instance_key = Some("x".repeat(20_000));
        store.create(records).await.unwrap();
    }
    let (mut rows, mut after, mut pages) = (0, String::new(), 0);
    loop {
        let path = format!("/api/v1/instances?limit=1000{after}");
        let answer = client().get(running.url(&path)).send().await.unwrap();
        let text = answer.text().await.unwrap();
        assert!(text.len() < 7 << 20, "{} bytes", text.len());
        let page: Value = serde_json::from_str(&text).unwrap();
        rows += page["instances"].as_array().unwrap().len();
        pages += 1;
        let Some(next) = page["next"].as_str() else {
            break;
        };
        after = format!("&after={next}");
    }
    assert_eq!((rows, pages), (COUNT, 2));
}
