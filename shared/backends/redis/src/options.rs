//! Options, and the errors of connecting.

use swirl_ports::{JoinLimits, KeptBytes, SetsBytes};

/// The format that this build writes. It reads this format and all older ones.
pub const FORMAT: u32 = 1;

/// The topology of the servers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Topology {
    #[default]
    Single,
    /// Redis Cluster. The URLs are those of some of its nodes.
    Cluster,
    /// The URLs are those of the sentinels. User and password in them apply to the servers too.
    Sentinel {
        /// The sentinels' name for the master.
        master: String,
    },
}

/// Certificates in PEM, for when the system's are not enough.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// The trusted CA certificates, instead of the machine's.
    pub ca: Option<Vec<u8>>,
    /// The client's certificate chain and key.
    pub client: Option<(Vec<u8>, Vec<u8>)>,
}

/// Addresses of the servers, and limits. Anything beyond a limit is refused or, where documented, dropped, oldest
/// first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// `redis://[user:password@]host[:port][/database]`, or `rediss://` with TLS; also `redis-sentinel://` and
    /// `rediss-sentinel://`.
    pub urls: Vec<String>,
    /// Overrides the user in the URLs.
    pub username: Option<String>,
    /// Overrides the password in the URLs.
    pub password: Option<String>,
    pub topology: Topology,
    pub tls: Tls,
    /// The prefix of all keys, so that several systems can share a server.
    pub namespace: String,
    /// The number of shards of the instances. It is fixed when the namespace is first used.
    pub shards: u16,
    /// The number of connections for commands. More than one helps only if one core cannot send fast enough.
    pub connections: usize,
    pub connect_timeout_ms: u64,
    /// The time limit for each command.
    pub response_timeout_ms: u64,
    /// How long commands that a server refused temporarily (because it is loading, or a replica is taking over) are
    /// retried.
    pub retry_ms: u64,
    /// How often the store is polled for changes whose message was lost.
    pub poll_ms: u64,
    /// Scopes that became ready, or effects that were committed, less than this time ago are left to the processes that
    /// work on them.
    pub grace_ms: u64,
    /// The time before the reconciler gets the same finding again.
    pub repeat_ms: u64,
    /// The maximum number of history entries of an instance. Older ones are dropped.
    pub history_max: u64,
    /// Whether small functions write the most frequent commits. Only a test turns them off, to compare.
    pub small_functions: bool,
    /// The maximum number of inputs waiting in a scope's inbox.
    pub inbox_max: usize,
    /// The maximum total size of an instance's scopes, forks and results; 0 means no limit.
    pub instance_bytes: usize,
    /// The maximum size in bytes of one record: a scope, an input, a fork, an effect.
    pub record_max: usize,
    /// How long events are kept for later waits.
    pub retain_ms: u64,
    /// The maximum number of such events. Older ones are dropped.
    pub retain_max: usize,
    /// The maximum total sizes of such events. Older ones are dropped.
    pub retain_bytes: KeptBytes,
    /// How long an event is remembered, so that it isn't accepted twice.
    pub dedup_ms: u64,
    /// The maximum number of such events. Older ones are dropped.
    pub dedup_max: usize,
    /// The maximum number of incomplete sets of events. Older ones are dropped.
    pub sets_max: usize,
    /// The maximum total sizes of such sets. Older ones are dropped.
    pub sets_bytes: SetsBytes,
    /// How long ended instances are kept, except faulted ones.
    pub keep_ended_ms: u64,
    /// The maximum number of such instances. Older ones are dropped.
    pub keep_ended_max: usize,
    /// How long faulted instances are kept, regardless of their number.
    pub keep_faulted_ms: u64,
    /// Forks beyond these limits are left to coordinators: a commit that completes one reports that, and the reader of
    /// the parent doesn't get the results.
    pub join_limits: JoinLimits,
    /// The format of the records that this build writes ([`FORMAT`]). Only tests use another one.
    pub format: u32,
    /// How long a build with a newer format waits for processes of older builds to stop.
    pub takeover_ms: u64,
}

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

impl Default for Options {
    fn default() -> Options {
        Options {
            urls: vec!["redis://127.0.0.1:6379".to_owned()],
            username: None,
            password: None,
            topology: Topology::Single,
            tls: Tls::default(),
            namespace: "swirl".to_owned(),
            shards: 64,
            connections: 1,
            connect_timeout_ms: 5_000,
            response_timeout_ms: 5_000,
            retry_ms: 5_000,
            poll_ms: 2_000,
            grace_ms: 3_000,
            repeat_ms: 10_000,
            history_max: 100_000,
            small_functions: true,
            inbox_max: 10_000,
            instance_bytes: 64 << 20,
            record_max: 20 << 20,
            retain_ms: DAY_MS,
            retain_max: 100_000,
            retain_bytes: KeptBytes::default(),
            dedup_ms: DAY_MS,
            dedup_max: 250_000,
            sets_max: 100_000,
            sets_bytes: SetsBytes::default(),
            keep_ended_ms: 7 * DAY_MS,
            keep_ended_max: 100_000,
            keep_faulted_ms: 30 * DAY_MS,
            join_limits: JoinLimits {
                results: 64,
                bytes: 256 << 10,
            },
            format: FORMAT,
            takeover_ms: 25_000,
        }
    }
}

impl Options {
    pub fn single(url: impl Into<String>) -> Options {
        Options {
            urls: vec![url.into()],
            ..Options::default()
        }
    }

    pub fn cluster(urls: Vec<String>) -> Options {
        Options {
            urls,
            topology: Topology::Cluster,
            ..Options::default()
        }
    }

    pub fn sentinel(urls: Vec<String>, master: impl Into<String>) -> Options {
        Options {
            urls,
            topology: Topology::Sentinel {
                master: master.into(),
            },
            ..Options::default()
        }
    }
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("the address '{url}' cannot be used: {reason}")]
    Url { url: String, reason: String },
    #[error("the option '{name}' cannot be used: {reason}")]
    Option { name: &'static str, reason: String },
    #[error(
        "the namespace '{namespace}' is divided into {found} shards, not {wanted}: set 'shards' to {found}, or use another namespace"
    )]
    Shards {
        namespace: String,
        found: String,
        wanted: u16,
    },
    #[error(
        "the namespace '{namespace}' was written by a build with another layout: use another namespace, or remove its keys ('{namespace}:*' and '{{{namespace}:*')"
    )]
    Layout { namespace: String },
    #[error(
        "the namespace '{namespace}' holds records of format {found}, written by a newer build, and this one reads formats up \
         to {own}: run a build that is at least as new as the others of this installation"
    )]
    Newer {
        namespace: String,
        found: u32,
        own: u32,
    },
    /// Whether retrying can help.
    #[error(transparent)]
    Store(#[from] swirl_ports::Error),
}
