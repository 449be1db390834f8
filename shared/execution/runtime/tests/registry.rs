//! Processes see each other's deployments.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use async_trait::async_trait;
use futures::executor::block_on;
use swirl_model::Data;
use swirl_model::ids::DefinitionId;
use swirl_model::time::Timestamp;
use swirl_model::workflow::{End, Flow, Next, State, StateId, StateKind, Version, Workflow};
use swirl_ports::{Changes, DefinitionRecord, Definitions, Error, Interests, Result};
use swirl_runtime::Registry;

/// A store that several processes share.
#[derive(Default)]
struct Shared {
    records: Mutex<Vec<DefinitionRecord>>,
    /// The number of queries for changes.
    questions: AtomicUsize,
    /// The numbers of heads and of whole documents that were read.
    heads: AtomicUsize,
    documents: AtomicUsize,
    away: Mutex<bool>,
}

#[async_trait]
impl Definitions for Shared {
    async fn put(&self, record: DefinitionRecord) -> Result<Option<DefinitionRecord>> {
        self.records.lock().unwrap().push(record);
        Ok(None)
    }
    async fn replace(&self, record: DefinitionRecord) -> Result<()> {
        self.put(record).await.map(|_| ())
    }
    async fn replace_if(&self, _: &DefinitionRecord, new: DefinitionRecord) -> Result<bool> {
        self.put(new).await.map(|_| true)
    }

    async fn get(&self, id: &DefinitionId) -> Result<Option<DefinitionRecord>> {
        self.documents.fetch_add(1, Ordering::SeqCst);
        let records = self.records.lock().unwrap();
        Ok(records.iter().find(|record| record.id == *id).cloned())
    }
    async fn changes(&self, since: u64) -> Result<Changes> {
        self.questions.fetch_add(1, Ordering::SeqCst);
        // The answer takes a while, and other calls arrive meanwhile.
        let mut polled = false;
        std::future::poll_fn(|context| {
            if std::mem::replace(&mut polled, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        if *self.away.lock().unwrap() {
            return Err(Error::Unavailable("away".to_owned()));
        }
        let records = self.records.lock().unwrap();
        let news = &records[since as usize..];
        self.heads.fetch_add(news.len(), Ordering::SeqCst);
        Ok(Changes {
            revision: records.len() as u64,
            heads: news.iter().map(DefinitionRecord::head).collect(),
        })
    }
    async fn mark(&self, _name: &str) -> Result<Option<Timestamp>> {
        Ok(None)
    }
    async fn set_mark(&self, _name: &str, _at: Timestamp) -> Result<()> {
        Ok(())
    }
    async fn advance_mark(&self, _name: &str, _at: Timestamp) -> Result<()> {
        Ok(())
    }
}

fn record(version: &str) -> DefinitionRecord {
    DefinitionRecord {
        deleted: None,
        activated: None,
        interests: Interests::default(),
        id: DefinitionId {
            workflow: "w".into(),
            version: version.into(),
        },
        digest: version.to_owned(),
        name: String::new(),
        document: String::new(),
        resources: Vec::new(),
        deployed_at: Timestamp(0),
    }
}

fn registry(store: &Arc<Shared>) -> Registry {
    let lower = |record: &DefinitionRecord| {
        let state = State {
            name: "S".into(),
            kind: StateKind::Inject(Data::object()),
            next: Some(Next::End(End::default())),
            ..State::default()
        };
        Ok(Workflow {
            id: record.id.workflow.to_string(),
            version: Version::Literal(record.id.version.to_string()),
            flows: vec![Flow {
                start: StateId(0),
                states: vec![StateId(0)],
                ..Flow::default()
            }],
            states: vec![state],
            ..Workflow::default()
        })
    };
    Registry::new(store.clone(), Box::new(lower))
}

async fn latest(registry: &Registry) -> String {
    let found = registry.resolve("w", None).await.unwrap().unwrap();
    found.id.version.to_string()
}

/// This holds however soon after the deployment a process asks.
#[test]
fn a_deployment_of_another_process_takes_effect_at_once() {
    let store = Arc::new(Shared::default());
    let registry = registry(&store);
    for version in ["1.0.0", "1.1.0", "2.0.0"] {
        block_on(store.put(record(version))).unwrap();
        assert_eq!(block_on(latest(&registry)), version);
        let catalog = block_on(registry.catalog()).unwrap();
        assert_eq!(&*catalog.latest[0].id().version, version);
    }
}

/// An operator's choice of an older version holds until another one is deployed, whatever the numbers of the others.
#[test]
fn an_activated_version_is_current_until_the_next_deployment() {
    let store = Arc::new(Shared::default());
    let registry = registry(&store);
    let deployed = |version: &str, at: i64| DefinitionRecord {
        deployed_at: Timestamp(at),
        ..record(version)
    };
    for (version, at) in [("1.0.0", 1), ("2.0.0", 2)] {
        block_on(store.put(deployed(version, at))).unwrap();
    }
    assert_eq!(block_on(latest(&registry)), "2.0.0");
    let activated = DefinitionRecord {
        activated: Some(Timestamp(3)),
        ..deployed("1.0.0", 1)
    };
    block_on(store.replace(activated)).unwrap();
    assert_eq!(block_on(latest(&registry)), "1.0.0");
    block_on(store.put(deployed("1.5.0", 4))).unwrap();
    assert_eq!(block_on(latest(&registry)), "1.5.0");
    // Forward again.
    let activated = DefinitionRecord {
        activated: Some(Timestamp(5)),
        ..deployed("2.0.0", 2)
    };
    block_on(store.replace(activated)).unwrap();
    assert_eq!(block_on(latest(&registry)), "2.0.0");
}

#[test]
fn one_query_answers_all_callers_before_it() {
    let store = Arc::new(Shared::default());
    let registry = registry(&store);
    block_on(store.put(record("1.0.0"))).unwrap();
    let all = (0..100).map(|_| latest(&registry));
    let found = block_on(futures::future::join_all(all));
    assert!(found.iter().all(|version| version == "1.0.0"));
    // The first caller queries alone.
    assert_eq!(store.questions.load(Ordering::SeqCst), 2);
}

#[test]
fn a_failed_query_is_an_error_and_is_repeated() {
    let store = Arc::new(Shared::default());
    let registry = registry(&store);
    block_on(store.put(record("1.0.0"))).unwrap();
    assert_eq!(block_on(latest(&registry)), "1.0.0");
    *store.away.lock().unwrap() = true;
    assert!(block_on(registry.resolve("w", None)).is_err());
    assert!(block_on(registry.catalog()).is_err());
    *store.away.lock().unwrap() = false;
    assert_eq!(block_on(latest(&registry)), "1.0.0");
}

/// This checks numbers, not times; docs/dev/benchmarks.md has the times.
#[test]
fn a_process_reads_only_changes_and_compiles_only_used_definitions() {
    let store = Arc::new(Shared::default());
    for n in 0..1000 {
        let mut record = record("1.0.0");
        record.id.workflow = format!("w{n}").into();
        block_on(store.put(record)).unwrap();
    }
    let read = || {
        let heads = store.heads.swap(0, Ordering::SeqCst);
        (heads, store.documents.swap(0, Ordering::SeqCst))
    };
    let registry = registry(&store);
    assert_eq!(block_on(registry.catalog()).unwrap().open().count(), 1000);
    assert_eq!(read(), (1000, 0), "a start-up reads heads");
    block_on(store.put(record("1.0.0"))).unwrap();
    assert_eq!(block_on(registry.catalog()).unwrap().open().count(), 1001);
    assert_eq!(read(), (1, 0), "one more deployment");
    for _ in 0..3 {
        assert_eq!(block_on(latest(&registry)), "1.0.0");
    }
    assert_eq!(read(), (0, 1), "a definition is read once it runs");
}

/// A replaced definition moves behind the others.
#[test]
fn a_replaced_definition_is_compiled_again() {
    let store = Arc::new(Shared::default());
    let registry = registry(&store);
    block_on(store.put(record("1.0.0"))).unwrap();
    let before = block_on(registry.resolve("w", None)).unwrap().unwrap();
    let same = block_on(registry.resolve("w", None)).unwrap().unwrap();
    assert!(Arc::ptr_eq(&before, &same));
    let mut other = record("1.0.0");
    other.digest = "other".to_owned();
    block_on(store.put(other)).unwrap();
    let after = block_on(registry.resolve("w", None)).unwrap().unwrap();
    assert!(!Arc::ptr_eq(&before, &after));
    assert_eq!(block_on(registry.catalog()).unwrap().open().count(), 1);
}
