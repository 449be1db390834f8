//! Connections to one server, to a cluster, or to the master that sentinels name.
//!
//! All commands share a few connections and are pipelined there. A lost connection is renewed in the background.
//! Commands in flight on it fail, and may or may not have been carried out. Only commands that a server refused before
//! it did anything are retried here.

use std::fmt::Display;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt;
use redis::aio::{
    ConnectionLike, ConnectionManager, ConnectionManagerConfig, MultiplexedConnection,
};
use redis::cluster::{ClusterClient, ClusterClientBuilder};
use redis::cluster_async::ClusterConnection;
use redis::sentinel::{SentinelClient, SentinelNodeConnectionInfo, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind,
    IntoConnectionInfo, RedisError, RedisResult, ServerErrorKind, TlsCertificates, TlsMode, Value,
};
use swirl_ports::Error;
use tokio::sync::{Mutex, RwLock};
use tokio::time::{Instant, sleep};

use crate::Redis;
use crate::options::{ConnectError, Options, Tls, Topology};

pub(crate) struct Link {
    servers: Servers,
    limits: Limits,
}

enum Servers {
    Single {
        client: Client,
        managers: Vec<ConnectionManager>,
        next: AtomicUsize,
    },
    Cluster {
        // Knows the configured nodes, for messages.
        seeds: Vec<ConnectionInfo>,
        tls: TlsCertificates,
        connections: Vec<ClusterConnection>,
        next: AtomicUsize,
    },
    Sentinel {
        client: Box<Mutex<SentinelClient>>,
        master: RwLock<(Client, ConnectionManager)>,
    },
}

#[derive(Clone, Copy)]
struct Limits {
    connect: Duration,
    response: Duration,
    retry: Duration,
}

const BACKOFF_MIN: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(2);

impl Link {
    pub async fn open(options: &Options) -> Result<Link, ConnectError> {
        // Another provider may already be set, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let limits = Limits {
            connect: Duration::from_millis(options.connect_timeout_ms),
            response: Duration::from_millis(options.response_timeout_ms),
            retry: Duration::from_millis(options.retry_ms),
        };
        let infos = options.urls.iter().map(|url| address(url, options));
        let infos = infos.collect::<Result<Vec<_>, _>>()?;
        let first = infos.first().cloned().ok_or(ConnectError::Option {
            name: "urls",
            reason: "none is given".to_owned(),
        })?;
        let tls = certificates(&options.tls);
        let count = options.connections.max(1);
        let unusable = |error: RedisError| url_error(&options.urls.join(" "), &error);
        let servers = match &options.topology {
            Topology::Single => {
                let client = open(first, tls).map_err(unusable)?;
                let managers = (0..count).map(|_| limits.manager(&client));
                Servers::Single {
                    managers: futures::future::try_join_all(managers)
                        .await
                        .map_err(error)?,
                    client,
                    next: AtomicUsize::new(0),
                }
            }
            Topology::Cluster => {
                let client = limits.cluster(&infos, &tls).map_err(unusable)?;
                let connections = (0..count).map(|_| client.get_async_connection());
                Servers::Cluster {
                    connections: futures::future::try_join_all(connections)
                        .await
                        .map_err(error)?,
                    seeds: infos,
                    tls,
                    next: AtomicUsize::new(0),
                }
            }
            Topology::Sentinel { master } => {
                if options.tls != Tls::default() {
                    return Err(ConnectError::Option {
                        name: "tls",
                        reason: "connections to sentinels support only the system's certificates"
                            .to_owned(),
                    });
                }
                let mut servers = SentinelNodeConnectionInfo::default()
                    .set_redis_connection_info(first.redis_settings().clone());
                if is_tls(&first) {
                    servers = servers.set_tls_mode(TlsMode::Secure);
                }
                let kind = SentinelServerType::Master;
                let mut client =
                    SentinelClient::build(infos, master, Some(servers), kind).map_err(unusable)?;
                let found = client.async_get_client().await.map_err(error)?;
                let manager = limits.manager(&found).await.map_err(error)?;
                Servers::Sentinel {
                    client: Box::new(Mutex::new(client)),
                    master: RwLock::new((found, manager)),
                }
            }
        };
        Ok(Link { servers, limits })
    }

    async fn try_send(&self, cmd: &Cmd) -> RedisResult<Value> {
        match &self.servers {
            Servers::Single { managers, next, .. } => {
                let turn = next.fetch_add(1, Ordering::Relaxed) % managers.len();
                managers[turn].clone().send_packed_command(cmd).await
            }
            Servers::Cluster {
                connections, next, ..
            } => {
                let turn = next.fetch_add(1, Ordering::Relaxed) % connections.len();
                connections[turn].clone().req_packed_command(cmd).await
            }
            Servers::Sentinel { master, .. } => {
                let mut manager = master.read().await.1.clone();
                let result = manager.send_packed_command(cmd).await;
                let result = result.and_then(Value::extract_error);
                if let Err(error) = &result
                    && (error.is_io_error() || is(error, ServerErrorKind::ReadOnly))
                {
                    self.follow_master().await;
                }
                result
            }
        }
    }

    /// Asks the sentinels for the current master.
    async fn follow_master(&self) {
        let Servers::Sentinel { client, master } = &self.servers else {
            return;
        };
        // One task asks. The others continue with the known master, and succeed or fail with it.
        let Ok(mut client) = client.try_lock() else {
            return;
        };
        let look = async {
            let found = client.async_get_client().await?;
            let before = master
                .read()
                .await
                .0
                .get_connection_info()
                .addr()
                .to_string();
            if found.get_connection_info().addr().to_string() != before {
                let manager = self.limits.manager(&found).await?;
                *master.write().await = (found, manager);
                tracing::info!("the Redis master has changed");
            }
            Ok::<(), RedisError>(())
        };
        match tokio::time::timeout(self.limits.response, look).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the sentinels name no master"),
            Err(_) => tracing::warn!("the sentinels don't respond"),
        }
    }

    /// Sends a command. Temporary refusals of a server are retried for a while.
    pub async fn send(&self, cmd: &Cmd) -> RedisResult<Value> {
        let until = Instant::now() + self.limits.retry;
        let mut wait = BACKOFF_MIN;
        loop {
            let sent = self.try_send(cmd).await;
            // An error of the server arrives as a value.
            match sent.and_then(Value::extract_error) {
                Err(error) if not_carried_out(&error) && Instant::now() + wait < until => {
                    sleep(wait).await;
                    wait = (wait * 2).min(BACKOFF_MAX);
                }
                other => return other,
            }
        }
    }

    /// Sends commands that only read: to a single server as one message, and if that fails, one by one.
    pub async fn send_reads(&self, cmds: &[Cmd]) -> RedisResult<Vec<Value>> {
        if let Some(values) = self.try_send_together(cmds).await {
            return Ok(values);
        }
        futures::future::try_join_all(cmds.iter().map(|cmd| self.send(cmd))).await
    }

    /// Sends writes and then reads, and returns the responses to the reads. A single server gets them as one message,
    /// which keeps their order. The writes must be idempotent.
    pub async fn send_writes_and_reads(
        &self,
        writes: &[Cmd],
        reads: &[Cmd],
    ) -> RedisResult<Vec<Value>> {
        if writes.is_empty() {
            return self.send_reads(reads).await;
        }
        let all: Vec<Cmd> = writes.iter().chain(reads).cloned().collect();
        if let Some(mut values) = self.try_send_together(&all).await {
            values.drain(..writes.len());
            return Ok(values);
        }
        futures::future::try_join_all(writes.iter().map(|cmd| self.send(cmd))).await?;
        self.send_reads(reads).await
    }

    /// Sends commands that are carried out in order, and returns the response to each. A single server gets them as one
    /// message. Only commands that a server refused are repeated; an error of the connection applies to all.
    pub async fn send_in_order(&self, cmds: &[Cmd]) -> RedisResult<Vec<RedisResult<Value>>> {
        let mut manager = match &self.servers {
            Servers::Single { managers, next, .. } => {
                managers[next.fetch_add(1, Ordering::Relaxed) % managers.len()].clone()
            }
            Servers::Sentinel { master, .. } => master.read().await.1.clone(),
            // Each command may be for another server. Only the last one may fail alone.
            Servers::Cluster { .. } => {
                let mut answers = Vec::with_capacity(cmds.len());
                for (place, cmd) in cmds.iter().enumerate() {
                    match self.send(cmd).await {
                        Err(error) if place + 1 < cmds.len() => return Err(error),
                        answer => answers.push(answer),
                    }
                }
                return Ok(answers);
            }
        };
        let mut all = redis::Pipeline::with_capacity(cmds.len());
        for cmd in cmds {
            all.add_command(cmd.clone());
        }
        let sent = manager.send_packed_commands(&all, 0, cmds.len()).await;
        if sent.as_ref().is_err_and(RedisError::is_io_error) {
            self.follow_master().await;
        }
        let mut answers = Vec::with_capacity(cmds.len());
        for (value, cmd) in sent?.into_iter().zip(cmds) {
            answers.push(match value.extract_error() {
                Err(error) if not_carried_out(&error) => self.send(cmd).await,
                other => other,
            });
        }
        Ok(answers)
    }

    async fn try_send_together(&self, cmds: &[Cmd]) -> Option<Vec<Value>> {
        let mut manager = match &self.servers {
            Servers::Single { managers, next, .. } => {
                managers[next.fetch_add(1, Ordering::Relaxed) % managers.len()].clone()
            }
            Servers::Sentinel { master, .. } => master.read().await.1.clone(),
            // Each command goes to another server.
            Servers::Cluster { .. } => return None,
        };
        let mut all = redis::Pipeline::with_capacity(cmds.len());
        for cmd in cmds {
            all.add_command(cmd.clone());
        }
        let values = manager
            .send_packed_commands(&all, 0, cmds.len())
            .await
            .ok()?;
        let is_error = |value: &Value| matches!(value, Value::ServerError(_));
        (values.len() == cmds.len() && !values.iter().any(is_error)).then_some(values)
    }

    /// Returns a server to subscribe to.
    pub async fn subscriber(&self, attempt: usize) -> RedisResult<Client> {
        match &self.servers {
            Servers::Single { client, .. } => Ok(client.clone()),
            Servers::Cluster { seeds, tls, .. } => {
                let seed = seeds[attempt % seeds.len()].clone();
                open(seed, tls.clone())
            }
            Servers::Sentinel { master, .. } => {
                self.follow_master().await;
                Ok(master.read().await.0.clone())
            }
        }
    }

    /// The configured servers, or the master that the sentinels name.
    pub async fn servers(&self) -> Vec<Client> {
        match &self.servers {
            Servers::Single { client, .. } => vec![client.clone()],
            Servers::Cluster { seeds, tls, .. } => {
                let clients = seeds.iter().map(|seed| open(seed.clone(), tls.clone()));
                clients.flatten().collect()
            }
            Servers::Sentinel { master, .. } => vec![master.read().await.0.clone()],
        }
    }

    /// The certificates for connections to cluster nodes; `None` without a cluster.
    pub(crate) fn cluster_tls(&self) -> Option<&TlsCertificates> {
        match &self.servers {
            Servers::Cluster { tls, .. } => Some(tls),
            _ => None,
        }
    }

    /// A separate connection.
    pub async fn connect(&self, client: &Client) -> RedisResult<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.limits.connect))
            .set_response_timeout(Some(self.limits.response));
        client
            .get_multiplexed_async_connection_with_config(&config)
            .await
    }

    pub fn response_limit(&self) -> Duration {
        self.limits.response
    }
}

impl Limits {
    fn manager(
        self,
        client: &Client,
    ) -> impl Future<Output = RedisResult<ConnectionManager>> + use<> {
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(self.connect))
            .set_response_timeout(Some(self.response))
            .set_min_delay(BACKOFF_MIN)
            .set_max_delay(BACKOFF_MAX)
            .set_number_of_retries(6);
        ConnectionManager::new_with_config(client.clone(), config).boxed()
    }

    fn cluster(
        self,
        seeds: &[ConnectionInfo],
        tls: &TlsCertificates,
    ) -> RedisResult<ClusterClient> {
        let mut builder = ClusterClientBuilder::new(seeds.iter().cloned());
        if seeds.iter().any(is_tls) {
            builder = builder.certs(tls.clone());
        }
        builder
            .connection_timeout(self.connect)
            .response_timeout(self.response)
            .overall_response_timeout(Some(self.response))
            .retries(8)
            .min_retry_wait(BACKOFF_MIN.as_millis() as u64)
            .max_retry_wait(BACKOFF_MAX.as_millis() as u64)
            .build()
    }
}

impl Redis {
    pub(crate) async fn send(&self, cmd: &Cmd) -> RedisResult<Value> {
        self.inner.link.send(cmd).await
    }
}

fn certificates(tls: &Tls) -> TlsCertificates {
    let client = tls.client.as_ref().map(|(chain, key)| ClientTlsConfig {
        client_cert: chain.clone(),
        client_key: key.clone(),
    });
    TlsCertificates {
        client_tls: client,
        root_cert: tls.ca.clone(),
    }
}

fn parse(url: &str) -> Result<ConnectionInfo, ConnectError> {
    let plain = url.replacen("-sentinel://", "://", 1);
    let info = plain.as_str().into_connection_info();
    info.map_err(|error| url_error(url, &error))
}

fn address(url: &str, options: &Options) -> Result<ConnectionInfo, ConnectError> {
    let info = parse(url)?;
    let mut settings = info.redis_settings().clone();
    if let Some(username) = &options.username {
        settings = settings.set_username(username);
    }
    if let Some(password) = &options.password {
        settings = settings.set_password(password);
    }
    Ok(info.set_redis_settings(settings))
}

fn is_tls(info: &ConnectionInfo) -> bool {
    matches!(info.addr(), ConnectionAddr::TcpTls { .. })
}

pub(crate) fn open(info: ConnectionInfo, tls: TlsCertificates) -> RedisResult<Client> {
    if is_tls(&info) {
        Client::build_with_tls(info, tls)
    } else {
        Client::open(info)
    }
}

fn is(error: &RedisError, kind: ServerErrorKind) -> bool {
    error.kind() == ErrorKind::Server(kind)
}

/// Whether the server did nothing and may succeed in a moment.
fn not_carried_out(error: &RedisError) -> bool {
    use ServerErrorKind::{BusyLoading, ClusterDown, MasterDown, ReadOnly, TryAgain};
    [BusyLoading, ClusterDown, MasterDown, ReadOnly, TryAgain]
        .into_iter()
        .any(|kind| is(error, kind))
        || error.is_connection_refusal()
}

/// Shows only the part of a URL that can't contain a password.
fn url_error(url: &str, error: &RedisError) -> ConnectError {
    let shown = url
        .split_whitespace()
        .map(|url| match url.rsplit_once('@') {
            Some((_, rest)) => format!("***@{rest}"),
            None => url.to_owned(),
        });
    ConnectError::Url {
        url: shown.collect::<Vec<_>>().join(" "),
        reason: error.to_string(),
    }
}

pub(crate) fn error(error: RedisError) -> Error {
    let text = error.to_string();
    // The prelude raises this error for unreadable records.
    if let Some((_, what)) = text.split_once("DAMAGED ") {
        return Error::Damaged {
            what: "an instance in Redis".to_owned(),
            reason: what.to_owned(),
        };
    }
    match error.code() {
        Some("WRONGTYPE") => Error::Damaged {
            what: "a key in Redis".to_owned(),
            reason: text,
        },
        Some("OOM") => Error::Unavailable(format!(
            "Redis has no memory left: raise maxmemory or shorten the retention ({text})"
        )),
        Some("NOPERM") => Error::Unavailable(format!(
            "the Redis user is not allowed to do this: extend its ACL ({text})"
        )),
        _ => Error::Unavailable(format!("Redis: {text}")),
    }
}

pub(crate) fn damaged(what: impl Into<String>, reason: impl Display) -> Error {
    Error::Damaged {
        what: what.into(),
        reason: reason.to_string(),
    }
}
