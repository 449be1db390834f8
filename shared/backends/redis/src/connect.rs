//! Connections to one server, to a cluster, or to the master that sentinels name.
//!
//! Most commands share a few connections and are pipelined there; large ones have a connection of their own. A lost
//! connection is renewed in the background, and so is one that is to blame for an error (`line.rs`). Commands in flight on
//! it fail, and may or may not have been carried out. Only commands that a server refused before it did anything are
//! retried here.

use std::fmt::Display;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::sentinel::{SentinelClient, SentinelNodeConnectionInfo, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, RedisError,
    RedisResult, ServerErrorKind, TlsCertificates, TlsMode, Value,
};
use swirl_ports::Error;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use crate::Redis;
use crate::client::{address, certificates, is_tls, open, url_error, with_keepalive};
use crate::cluster::Cluster;
use crate::line::{BACKOFF_MAX, BACKOFF_MIN, Limits, Line, On};
use crate::options::{ConnectError, Options, Tls, Topology};
use crate::slots::{slot, slot_of};
use crate::watched::Watched;

pub(crate) struct Link {
    servers: Servers,
    limits: Limits,
    pub(crate) watched: Watched,
}

enum Servers {
    Single(Arc<Line>),
    Cluster(Arc<Cluster>),
    Sentinel {
        client: Box<Mutex<SentinelClient>>,
        master: RwLock<Arc<Line>>,
        sentinels: Vec<ConnectionInfo>,
        connections: usize,
    },
}

/// How many names are tried for each master of a cluster.
const PROBES_PER_MASTER: usize = 64;

impl Link {
    /// Connects. The error names the servers, without their passwords.
    pub async fn open(options: &Options) -> Result<Link, ConnectError> {
        Link::opened(options).await.map_err(|error| match error {
            ConnectError::Store(Error::Unavailable(text)) => {
                let infos = options.urls.iter().map(|url| address(url, options));
                let places = infos.flatten().map(|info| info.addr().to_string());
                let places = places.collect::<Vec<_>>().join(", ");
                let text = match text.strip_prefix("Redis: ") {
                    Some(reason) => format!("Redis at {places}: {reason}"),
                    None => text,
                };
                ConnectError::Store(Error::Unavailable(text))
            }
            other => other,
        })
    }

    async fn opened(options: &Options) -> Result<Link, ConnectError> {
        // Another provider may already be set, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let limits = Limits {
            connect: Duration::from_millis(options.connect_timeout_ms),
            response: Duration::from_millis(options.response_timeout_ms),
            retry: Duration::from_millis(options.retry_ms),
            replaceable: options.topology != Topology::Single,
            attempts: 6,
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
                let line = Line::new(client, limits, count).map_err(unusable)?;
                answers(&line).await?;
                Servers::Single(Arc::new(line))
            }
            Topology::Cluster => {
                // A command whose node is gone asks the others at once which one serves its slot now.
                let limits = Limits {
                    attempts: 0,
                    ..limits
                };
                for info in &infos {
                    open(info.clone(), tls.clone()).map_err(unusable)?;
                }
                let cluster = Cluster::open(infos, tls, limits, count);
                Servers::Cluster(Arc::new(cluster.await.map_err(error)?))
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
                let sentinels = infos.clone();
                let mut client =
                    SentinelClient::build(infos, master, Some(servers), kind).map_err(unusable)?;
                let found = client.async_get_client().await.map_err(error)?;
                let line = Line::new(with_keepalive(&found).map_err(error)?, limits, count);
                let line = line.map_err(error)?;
                answers(&line).await?;
                Servers::Sentinel {
                    client: Box::new(Mutex::new(client)),
                    master: RwLock::new(Arc::new(line)),
                    sentinels,
                    connections: count,
                }
            }
        };
        Ok(Link {
            servers,
            limits,
            watched: Watched::default(),
        })
    }

    async fn try_send(&self, cmd: &Cmd, on: On) -> RedisResult<Value> {
        match &self.servers {
            Servers::Single(line) => line.send_on(cmd, on).await,
            Servers::Cluster(cluster) => cluster.send(cmd, on).await,
            Servers::Sentinel { master, .. } => {
                let result = line_of(master).send_on(cmd, on).await;
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
        let Servers::Sentinel {
            client,
            master,
            connections,
            ..
        } = &self.servers
        else {
            return;
        };
        // One task asks. The others continue with the known master, and succeed or fail with it.
        let Ok(mut client) = client.try_lock() else {
            return;
        };
        let look = async {
            let found = client.async_get_client().await?;
            if found.get_connection_info().addr().to_string() != line_of(master).address() {
                let line = Line::new(with_keepalive(&found)?, self.limits, *connections)?;
                *master.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(line);
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

    /// Finds out which servers are in use now.
    pub(crate) async fn look_again(&self) {
        match &self.servers {
            Servers::Single(_) => {}
            Servers::Cluster(cluster) => cluster.refresh().await,
            Servers::Sentinel { .. } => self.follow_master().await,
        }
    }

    /// The connections to each server that accepts writes, and a command that writes there and changes nothing. A
    /// replica refuses it, and a server without memory doesn't.
    pub(crate) fn probes(&self, namespace: &str) -> Vec<(Arc<Line>, Cmd)> {
        let probe = |number: usize| format!("{namespace}:probe:{number}");
        let delete = |key: String| {
            let mut cmd = redis::cmd("DEL");
            cmd.arg(key);
            cmd
        };
        match &self.servers {
            Servers::Single(line) => vec![(line.clone(), delete(probe(0)))],
            Servers::Sentinel { master, .. } => vec![(line_of(master), delete(probe(0)))],
            Servers::Cluster(cluster) => {
                let masters = cluster.masters();
                let mut probes: Vec<(Arc<Line>, Cmd)> = Vec::new();
                // Names are tried until each master has one.
                for key in (0..masters.len() * PROBES_PER_MASTER).map(probe) {
                    if probes.len() == masters.len() {
                        break;
                    }
                    if let Some(owner) = cluster.owner(slot(key.as_bytes()))
                        && !probes.iter().any(|(line, _)| Arc::ptr_eq(line, &owner))
                    {
                        probes.push((owner, delete(key)));
                    }
                }
                probes
            }
        }
    }

    /// Hosts and ports of all servers that this process has been told of or has found.
    pub(crate) fn places(&self) -> Vec<(String, u16)> {
        let servers = self.servers();
        let infos = servers.iter().map(Client::get_connection_info);
        let configured = match &self.servers {
            Servers::Single(_) => &[][..],
            Servers::Cluster(cluster) => &cluster.seeds,
            Servers::Sentinel { sentinels, .. } => sentinels,
        };
        let places = infos
            .chain(configured)
            .filter_map(|info| match info.addr() {
                ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                    Some((host.clone(), *port))
                }
                _ => None,
            });
        places.collect()
    }

    /// Sends a command. Temporary refusals of a server are retried for a while.
    pub fn send(&self, cmd: &Cmd) -> impl Future<Output = RedisResult<Value>> {
        self.send_on(cmd, On::Shared)
    }

    pub async fn send_on(&self, cmd: &Cmd, on: On) -> RedisResult<Value> {
        let until = Instant::now() + self.limits.retry;
        let mut wait = BACKOFF_MIN;
        loop {
            match self.try_send(cmd, on).await {
                Err(error) if not_carried_out(&error) && Instant::now() + wait < until => {
                    sleep(wait).await;
                    wait = (wait * 2).min(BACKOFF_MAX);
                }
                other => return other,
            }
        }
    }

    /// Sends a command without a key to the server that serves the keys of another command.
    pub async fn send_beside(&self, cmd: &Cmd, other: &Cmd) -> RedisResult<Value> {
        match &self.servers {
            Servers::Cluster(cluster) => {
                let owner = slot_of(other).and_then(|slot| cluster.owner(slot));
                match owner {
                    Some(line) => line.send(cmd).await,
                    None => self.send(cmd).await,
                }
            }
            _ => self.send(cmd).await,
        }
    }

    /// Sends a command to each server that accepts writes, and returns the result of each.
    pub async fn send_to_masters(&self, cmd: &Cmd) -> Vec<RedisResult<Value>> {
        match &self.servers {
            Servers::Cluster(cluster) => {
                let masters = cluster.masters();
                let sent = masters.iter().map(|line| line.send(cmd));
                futures::future::join_all(sent).await
            }
            _ => vec![self.send(cmd).await],
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
        let (line, followed);
        match &self.servers {
            Servers::Single(only) => line = only,
            Servers::Sentinel { master, .. } => {
                followed = line_of(master);
                line = &followed;
            }
            // Each command may be for another server. Only the last one may fail alone.
            Servers::Cluster(_) => {
                let mut answers = Vec::with_capacity(cmds.len());
                for (place, cmd) in cmds.iter().enumerate() {
                    match self.send(cmd).await {
                        Err(error) if place + 1 < cmds.len() => return Err(error),
                        answer => answers.push(answer),
                    }
                }
                return Ok(answers);
            }
        }
        let mut all = redis::Pipeline::with_capacity(cmds.len());
        for cmd in cmds {
            all.add_command(cmd.clone());
        }
        let sent = line.send_all(&all, 0).await;
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
        let (line, followed);
        match &self.servers {
            Servers::Single(only) => line = only,
            Servers::Sentinel { master, .. } => {
                followed = line_of(master);
                line = &followed;
            }
            // Each command goes to another server.
            Servers::Cluster(_) => return None,
        }
        let mut all = redis::Pipeline::with_capacity(cmds.len());
        for cmd in cmds {
            all.add_command(cmd.clone());
        }
        let values = line.send_all(&all, 0).await.ok()?;
        let is_error = |value: &Value| matches!(value, Value::ServerError(_));
        (values.len() == cmds.len() && !values.iter().any(is_error)).then_some(values)
    }

    /// Returns a server to subscribe to.
    pub async fn subscriber(&self, attempt: usize) -> RedisResult<Client> {
        self.follow_master().await;
        let servers = self.servers();
        Ok(servers[attempt % servers.len()].clone())
    }

    /// The server, all known nodes of the cluster, or the master that the sentinels name.
    pub fn servers(&self) -> Vec<Client> {
        match &self.servers {
            Servers::Single(line) => vec![line.client().clone()],
            Servers::Cluster(cluster) => {
                let nodes = cluster.nodes();
                nodes.iter().map(|line| line.client().clone()).collect()
            }
            Servers::Sentinel { master, .. } => vec![line_of(master).client().clone()],
        }
    }

    /// The certificates for connections to cluster nodes; `None` without a cluster.
    pub(crate) fn cluster_tls(&self) -> Option<&TlsCertificates> {
        match &self.servers {
            Servers::Cluster(cluster) => Some(&cluster.tls),
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

impl Redis {
    pub(crate) fn send_on(&self, cmd: &Cmd, on: On) -> impl Future<Output = RedisResult<Value>> {
        self.inner.link.send_on(cmd, on)
    }
}

/// A server that refuses has answered, too.
async fn answers(line: &Line) -> Result<(), ConnectError> {
    match line.send(&redis::cmd("PING")).await {
        Err(failed) if !matches!(failed.kind(), ErrorKind::Server(_)) => Err(error(failed).into()),
        _ => Ok(()),
    }
}

fn line_of(master: &RwLock<Arc<Line>>) -> Arc<Line> {
    master
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}

fn is(error: &RedisError, kind: ServerErrorKind) -> bool {
    error.kind() == ErrorKind::Server(kind)
}

/// Whether the server did nothing and may succeed in a moment.
fn not_carried_out(error: &RedisError) -> bool {
    use ServerErrorKind::{Ask, BusyLoading, ClusterDown, MasterDown, Moved, ReadOnly, TryAgain};
    [
        Ask,
        BusyLoading,
        ClusterDown,
        MasterDown,
        Moved,
        ReadOnly,
        TryAgain,
    ]
    .into_iter()
    .any(|kind| is(error, kind))
        || error.is_connection_refusal()
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
