//! An API server for tests, in memory.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use swirl_api::Finding;
use swirl_assembly::System;
use swirl_console::VIEWERS_MAX;
use swirl_coordinator::access::{Access, Oidc, Token, TokenEntry, Tokens, hash};
use swirl_coordinator::api::{Api, ReadDocument, Reader, Source};
use swirl_coordinator::server::{Server, Tls};
use swirl_embedded::{Embedded, MemoryQueue, SystemClock};
use swirl_model::workflow::Workflow;
use swirl_ports::{AuditLog, DefinitionRecord, InstanceQueries};
use swirl_runtime::{Registry, StartLimits};
use swirl_servers::PATIENCE;
use swirl_service::{AUDIT_KEPT, Auditing, BatchLimits, Batching, Deployment};
use swirl_spec::resource::{ResourceError, Resources};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Finds every document invalid, and reports that to callers who may deploy.
struct Refuses;

impl Reader for Refuses {
    fn read(&self, _: &Source) -> Result<ReadDocument, Vec<Finding>> {
        Err(vec![Finding::error("no", "no")])
    }
}

struct NoFiles;

impl Resources for NoFiles {
    fn fetch(&self, uri: &str, _: Option<&str>) -> Result<Vec<u8>, ResourceError> {
        Err(ResourceError::Failed {
            uri: uri.to_owned(),
            reason: "there are no files here".to_owned(),
        })
    }
}

fn lower(record: &DefinitionRecord) -> Result<Workflow, String> {
    let (document, options) = (record.document.as_bytes(), swirl_spec::Options::default());
    let reading = swirl_spec::read(document, &NoFiles, &options);
    reading.workflow.ok_or_else(|| "it is not valid".to_owned())
}

/// Deploys documents that refer to nothing.
pub struct Reads;

impl Reader for Reads {
    fn read(&self, source: &Source) -> Result<ReadDocument, Vec<Finding>> {
        let (document, options) = (source.document.as_bytes(), swirl_spec::Options::default());
        let reading = swirl_spec::read(document, &NoFiles, &options);
        Ok(Deployment {
            name: source.name.clone(),
            document: source.document.clone(),
            resources: Vec::new(),
            workflow: reading.workflow.unwrap(),
        }
        .into())
    }
}

/// Finds a document invalid, once the test lets it continue.
pub struct Held {
    begun: mpsc::UnboundedSender<()>,
    goes_on: Mutex<std::sync::mpsc::Receiver<()>>,
}

impl Held {
    /// Also returns a receiver that reports when reading begins, and a sender that lets it continue. Dropping the
    /// sender does so too.
    pub fn new() -> (
        Held,
        mpsc::UnboundedReceiver<()>,
        std::sync::mpsc::Sender<()>,
    ) {
        let (begun, has_begun) = mpsc::unbounded_channel();
        let (go_on, goes_on) = std::sync::mpsc::channel();
        let goes_on = Mutex::new(goes_on);
        (Held { begun, goes_on }, has_begun, go_on)
    }
}

impl Reader for Held {
    fn read(&self, source: &Source) -> Result<ReadDocument, Vec<Finding>> {
        self.begun.send(()).unwrap();
        let _ = self.goes_on.lock().unwrap().recv_timeout(PATIENCE);
        Refuses.read(source)
    }
}

pub struct Running {
    pub address: SocketAddr,
    pub batching: Batching,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<std::io::Result<()>>,
}

pub struct Setup {
    pub access: Access,
    pub reader: Arc<dyn Reader>,
    pub tls: Option<Tls>,
    pub drain: Duration,
    pub stop_max: Duration,
    pub write_max: Duration,
    pub first_byte_max: Duration,
    pub address_max: usize,
    pub incomplete_bodies: usize,
    pub health: Option<TcpListener>,
    pub starts: StartLimits,
    pub origins: Vec<String>,
    pub base_path: &'static str,
    pub store: Arc<Embedded>,
    /// The queries for requests that only read; `None` uses the store.
    pub queries: Option<Arc<dyn InstanceQueries>>,
    pub limits: BatchLimits,
    /// The audit log; `None`: the store's.
    pub audit: Option<Arc<dyn AuditLog>>,
    pub keep_audit_max: usize,
    pub viewers_max: usize,
}

impl Setup {
    pub fn new(access: Access) -> Setup {
        Setup {
            access,
            reader: Arc::new(Refuses),
            tls: None,
            drain: Duration::ZERO,
            stop_max: Duration::from_secs(3),
            write_max: PATIENCE,
            first_byte_max: Duration::from_secs(10),
            address_max: 1_000,
            incomplete_bodies: 64 << 20,
            health: None,
            starts: StartLimits::default(),
            origins: Vec::new(),
            base_path: "",
            store: Arc::new(Embedded::memory()),
            queries: None,
            limits: BatchLimits::default(),
            audit: None,
            keep_audit_max: AUDIT_KEPT,
            viewers_max: VIEWERS_MAX,
        }
    }

    pub async fn start(self) -> Running {
        let store = self.store.clone();
        let lower: swirl_runtime::Lower = Box::new(lower);
        let registry = Registry::new(store.clone(), lower).starting(self.starts);
        let queue = Arc::new(MemoryQueue::default());
        let clock = Arc::new(SystemClock);
        let system = System::new(
            store.clone(),
            store.clone(),
            queue,
            clock,
            Arc::new(registry),
        );
        let service = system.running_inline(false).service();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let batching = Batching {
            service: service.clone(),
            store: store.clone(),
            limits: self.limits,
        };
        let queries = self.queries.unwrap_or(store);
        let api = Api::new(service, queries, self.reader, self.access).with_origins(&self.origins);
        let api = api.with_base_path(self.base_path);
        let api = api.with_batches(&batching).with_views(self.store.clone());
        let api = api.with_viewers_max(self.viewers_max);
        let api = api.with_auditing(Auditing {
            store: self.audit.unwrap_or(self.store),
            keep_max: self.keep_audit_max,
        });
        let server = Server::new(api)
            .tls(self.tls.map(std::sync::Arc::new))
            .drain(self.drain)
            .stop_max(self.stop_max)
            .write_max(self.write_max)
            .first_byte_max(self.first_byte_max)
            .address_max(self.address_max)
            .incomplete_bodies(self.incomplete_bodies)
            .health(self.health);
        let served = tokio::spawn(server.serve(listener, async {
            let _ = stopped.await;
        }));
        Running {
            address,
            batching,
            stop: Some(stop),
            served,
        }
    }
}

impl Running {
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Stops the server; the task ends when it has stopped.
    pub fn stop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
    }

    pub async fn ended(self) -> std::io::Result<()> {
        self.served.await.unwrap()
    }
}

/// Tokens with these names and roles. The text of a token is its name with `-token` appended.
pub fn tokens(named: &[(&str, &str)]) -> Tokens {
    let entries: Vec<TokenEntry> = named
        .iter()
        .map(|(name, role)| TokenEntry {
            name: (*name).to_owned(),
            hash: hash(&format!("{name}-token")),
            roles: vec![(*role).to_owned()],
            namespaces: Vec::new(),
            expires: None,
        })
        .collect();
    Tokens::new(Token::all(&entries).unwrap(), None).unwrap()
}

/// Access that allows any number of wrong tokens.
pub fn guarded(oidc: Option<Oidc>) -> Access {
    let roles = ["viewer", "operator", "deployer", "admin"];
    Access::guarded("shop", tokens(&roles.map(|role| (role, role))), oidc).refused_max(0)
}

pub fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}
