//! The configuration for the processes: all values are checked, and secrets in files have been read.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use swirl_access::{Role, Token};
use swirl_ports::JoinLimits;
use swirl_runtime::Recording;
use url::Url;

use super::secret::{Endpoint, Secret};

#[derive(Debug, Clone)]
pub struct Config {
    /// Installations with different names share servers without affecting each other.
    pub namespace: String,
    pub redis: Redis,
    pub nats: Nats,
    pub events: Events,
    pub worker: Worker,
    pub coordinator: Coordinator,
    pub auth: Auth,
    pub telemetry: Telemetry,
    pub log: Log,
    pub limits: Limits,
    pub http: Http,
    pub functions: swirl_functions::Settings,
    /// A file of functions for documents that only name them.
    pub given_functions: Option<PathBuf>,
    pub secrets: SecretSources,
}

/// The resources that a definition may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub data_bytes: usize,
    pub fork_bytes: usize,
    pub instance_bytes: usize,
    pub chain: u32,
    pub starts: swirl_runtime::StartLimits,
}

#[derive(Debug, Clone)]
pub struct Redis {
    /// Usually one URL; several for a cluster or for sentinels. The scheme is `redis` or `rediss` even for sentinels,
    /// because [`RedisTopology`] distinguishes them.
    pub urls: Vec<Endpoint>,
    pub topology: RedisTopology,
    /// Takes precedence over the URL's.
    pub username: Option<String>,
    pub password: Option<Secret>,
    pub tls: Tls,
    pub connections: usize,
    pub connect_timeout: Duration,
    pub response_timeout: Duration,
    /// Fixed when the namespace is created.
    pub shards: u16,
    pub limits: RedisLimits,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedisTopology {
    Single,
    Cluster,
    Sentinel { master: String },
}

/// The same limits as in the embedded store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisLimits {
    pub history_max: u64,
    pub inbox_max: usize,
    pub retain: Duration,
    pub retain_max: usize,
    pub retain_bytes: u64,
    pub retain_workflow_bytes: u64,
    pub retain_type_bytes: u64,
    pub dedup: Duration,
    pub dedup_max: usize,
    pub sets_max: usize,
    pub sets_bytes: u64,
    pub sets_workflow_bytes: u64,
    pub keep_ended: Duration,
    pub keep_ended_max: usize,
    pub keep_faulted: Duration,
}

/// PEM files. A certificate always has a key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tls {
    pub ca: Option<PathBuf>,
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
}

#[derive(Debug, Clone)]
pub struct Nats {
    pub urls: Vec<Endpoint>,
    pub auth: NatsAuth,
    pub tls: Tls,
    pub connect_timeout: Duration,
    pub request_timeout: Duration,
    /// The number of replicas of streams and consumers.
    pub replicas: usize,
    pub storage: NatsStorage,
    pub duplicate_window: Duration,
    pub tasks_bytes_max: u64,
    pub events_age_max: Duration,
    pub events_bytes_max: u64,
    pub events_messages_max: u64,
    /// JetStream redelivers a message after this time without a sign of life.
    pub ack_wait: Duration,
    pub ack_pending_max: u64,
}

/// The credentials of this process for NATS, in addition to those in a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NatsAuth {
    None,
    User {
        user: String,
        password: Secret,
    },
    Token(Secret),
    /// A seed file.
    Nkey(PathBuf),
    Credentials(PathBuf),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NatsStorage {
    File,
    Memory,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Events {
    /// Subjects that may contain wildcards. `{namespace}` has been replaced already.
    pub subjects: Vec<String>,
    /// May contain `{type}`. `{namespace}` has been replaced already.
    pub produced_subject: String,
    /// Addresses an instance, in addition to our own attribute.
    pub instance_attribute: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    pub concurrency: usize,
    pub local_scopes: usize,
    pub local_branches: usize,
    /// Forks beyond these limits are joined by coordinators.
    pub join_limits: JoinLimits,
    pub lease: Duration,
    pub shutdown_deadline: Duration,
    /// The address of health and metrics.
    pub listen: SocketAddr,
    pub recording: Recording,
    /// The longest value that the history keeps, in bytes.
    pub recorded_bytes_max: usize,
    /// The retention of these values; `None`: as long as their entries.
    pub keep_data_ms: Option<u64>,
    /// The number of last calls that a scope keeps.
    pub recent_calls_max: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coordinator {
    /// The address of the API, health and metrics.
    pub listen: SocketAddr,
    /// Host names for the API in addition to this machine's; `None`: any.
    pub hosts: Option<Vec<String>>,
    /// Origins whose web pages may use the API.
    pub origins: Vec<String>,
    /// Empty, or with a slash at its beginning only.
    pub base_path: String,
    /// The senders that may deliver events as webhooks.
    pub webhook_origins: Vec<String>,
    /// Certificate and key.
    pub tls: Option<(PathBuf, PathBuf)>,
    pub runs_inline: bool,
    pub log_unreceived: bool,
    /// Whether definitions can be rehearsed.
    pub rehearsals: bool,
    /// For turns that it takes itself.
    pub recording: Recording,
    pub recorded_bytes_max: usize,
    /// The retention of these values; `None`: as long as their entries.
    pub keep_data_ms: Option<u64>,
    /// The number of last calls that a scope keeps.
    pub recent_calls_max: usize,
    /// The maximum number of instances in a batch, of instances examined for it, and of active batches.
    pub batch_instances: usize,
    pub batch_examined: usize,
    pub batches_active: usize,
    /// The retention of batches after their end, as a time and as a number.
    pub keep_batches: Duration,
    pub keep_batches_max: usize,
    /// How many entries the audit log keeps.
    pub keep_audit_max: usize,
    pub drain_delay: Duration,
    pub shutdown_deadline: Duration,
    /// An address only for health and metrics.
    pub health_listen: Option<SocketAddr>,
    pub connections_per_address: usize,
    /// In bytes.
    pub incomplete_bodies: usize,
    pub lifecycle: Lifecycle,
}

/// The stream of lifecycle events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifecycle {
    pub is_on: bool,
    pub bytes_max: u64,
    pub age_max: Duration,
}

#[derive(Debug, Clone)]
pub struct Auth {
    pub mode: AuthMode,
    pub tokens: Vec<Token>,
    pub tokens_file: Option<PathBuf>,
    pub refused_max: u32,
    pub oidc: Option<Oidc>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthMode {
    On,
    /// Anyone who can reach the port may do everything.
    Off,
}

#[derive(Debug, Clone)]
pub struct Oidc {
    pub issuer: String,
    pub audience: Vec<String>,
    /// Found by discovery if neither is given.
    pub jwks_url: Option<Endpoint>,
    pub jwks_file: Option<PathBuf>,
    pub algorithms: Vec<String>,
    /// A path of member names, separated by dots.
    pub roles_claim: String,
    /// Maps values of the claim to our roles. Without a map, the names are used unchanged.
    pub roles: BTreeMap<String, Role>,
    pub namespaces_claim: Option<String>,
    pub leeway: Duration,
    /// A CA in PEM for the issuer, in addition to the machine's own.
    pub ca: Option<PathBuf>,
    /// `None`: visitors of the console sign in with tokens that they have.
    pub sign_in: Option<SignIn>,
}

/// How the console signs visitors in at the provider.
#[derive(Debug, Clone)]
pub struct SignIn {
    pub client_id: String,
    /// A public client has none.
    pub client_secret: Option<Secret>,
    pub scopes: Vec<String>,
    /// The console's callback as browsers reach it; otherwise it follows from their requests.
    pub redirect_url: Option<Url>,
}

#[derive(Debug, Clone)]
pub struct Telemetry {
    /// Nothing is sent without an endpoint.
    pub otlp_endpoint: Option<Endpoint>,
    pub protocol: OtlpProtocol,
    pub headers: BTreeMap<String, Secret>,
    pub sampling_ratio: f64,
    pub resource_attributes: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtlpProtocol {
    Grpc,
    Http,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    pub format: LogFormat,
    pub filter: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http {
    /// For documents that definitions refer to.
    pub allow_hosts: Vec<String>,
    /// The addresses at which functions may be called.
    pub egress: swirl_functions::egress::Egress,
    pub connect_timeout: Duration,
    pub timeout: Duration,
    pub request_bytes_max: usize,
    pub response_bytes_max: usize,
    pub idle_per_host_max: usize,
    pub breaker: Breaker,
}

/// The conditions under which a failing host isn't called for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breaker {
    /// With 0, there is no circuit breaker.
    pub failures: usize,
    pub window: Duration,
    pub pause: Duration,
    pub pause_max: Duration,
}

/// Queried in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretSources {
    pub files: Vec<PathBuf>,
    pub folders: Vec<PathBuf>,
    pub environment: bool,
}
