//! A server of the API, in memory.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use swirl_coordinator::access::{Access, Oidc, Token, TokenEntry, Tokens, hash};
use swirl_coordinator::api::{Api, Reader, Source};
use swirl_coordinator::server::{Server, Tls};
use swirl_coordinator::{Deployment, Service};
use swirl_embedded::{Embedded, MemoryQueue, SystemClock};
use swirl_model::ids::DefinitionId;
use swirl_runtime::{Registry, StartLimits};
use swirl_spec::resource::{ResourceError, Resources};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Finds every document wrong: who may deploy is told so.
struct Refuses;

impl Reader for Refuses {
    fn read(&self, _: &Source) -> Result<Deployment, Vec<Value>> {
        Err(vec![json!({"severity": "error", "message": "no"})])
    }

    fn prepare(&self, _: &DefinitionId, _: &Deployment) -> Result<(), Vec<Value>> {
        Ok(())
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

/// Deploys documents that refer to nothing.
pub struct Reads;

impl Reader for Reads {
    fn read(&self, source: &Source) -> Result<Deployment, Vec<Value>> {
        let (document, options) = (source.document.as_bytes(), swirl_spec::Options::default());
        let reading = swirl_spec::read(document, &NoFiles, &options);
        Ok(Deployment {
            name: source.name.clone(),
            document: source.document.clone(),
            resources: Vec::new(),
            workflow: reading.workflow.unwrap(),
        })
    }

    fn prepare(&self, _: &DefinitionId, _: &Deployment) -> Result<(), Vec<Value>> {
        Ok(())
    }
}

/// Takes its time to find a document wrong.
pub struct Slow(pub Duration);

impl Reader for Slow {
    fn read(&self, source: &Source) -> Result<Deployment, Vec<Value>> {
        std::thread::sleep(self.0);
        Refuses.read(source)
    }

    fn prepare(&self, _: &DefinitionId, _: &Deployment) -> Result<(), Vec<Value>> {
        Ok(())
    }
}

pub struct Running {
    pub address: SocketAddr,
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
    pub health: Option<TcpListener>,
    pub starts: StartLimits,
}

impl Setup {
    pub fn new(access: Access) -> Setup {
        Setup {
            access,
            reader: Arc::new(Refuses),
            tls: None,
            drain: Duration::ZERO,
            stop_max: Duration::from_secs(3),
            write_max: Duration::from_secs(30),
            first_byte_max: Duration::from_secs(10),
            address_max: 1_000,
            health: None,
            starts: StartLimits::default(),
        }
    }

    pub async fn start(self) -> Running {
        let store = Arc::new(Embedded::memory());
        let lower: swirl_runtime::Lower = Box::new(|_| Err("nothing is deployed".to_owned()));
        let service = Service {
            store: store.clone(),
            events: store.clone(),
            queue: Arc::new(MemoryQueue::default()),
            clock: Arc::new(SystemClock),
            registry: Arc::new(Registry::new(store, lower).starting(self.starts)),
            installation: "".into(),
            carries_out: false,
            observer: None,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let server = Server::new(Api::new(service, self.reader, self.access))
            .tls(self.tls)
            .drain(self.drain)
            .stop_max(self.stop_max)
            .write_max(self.write_max)
            .first_byte_max(self.first_byte_max)
            .address_max(self.address_max)
            .health(self.health);
        let served = tokio::spawn(server.serve(listener, async {
            let _ = stopped.await;
        }));
        Running {
            address,
            stop: Some(stop),
            served,
        }
    }
}

impl Running {
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Tells it to stop; the task ends when it has.
    pub fn stop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
    }

    pub async fn ended(self) -> std::io::Result<()> {
        self.served.await.unwrap()
    }
}

/// Tokens of this name and role; the token is the name with `-token` behind it.
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

/// Whoever asks may be wrong as often as it takes.
pub fn guarded(oidc: Option<Oidc>) -> Access {
    let roles = ["viewer", "operator", "deployer", "admin"];
    Access::guarded("shop", tokens(&roles.map(|role| (role, role))), oidc).refused_max(0)
}

pub fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}
