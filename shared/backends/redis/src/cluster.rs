//! Redis Cluster: which master serves which slot, and commands that follow it.
//!
//! The map of slots is refreshed apart from the commands: none waits for a node that is gone unless its own slot is
//! there. The views of all nodes that answer are merged by the masters' configuration epochs, so that a master that
//! has been replaced, and doesn't know it yet, isn't believed
//! (`docs/adr/0028-redis-connections.md`).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use redis::{
    Cmd, ConnectionInfo, ErrorKind, RedisError, RedisResult, ServerErrorKind, TlsCertificates,
    Value,
};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout};

use crate::client::open;
use crate::line::{Limits, Line, On};
use crate::node_list::{Node, at, nodes_in};
use crate::slots::{SLOTS, slot_of};

/// How often a command follows a redirection.
const REDIRECTS_MAX: usize = 5;
/// The map isn't refreshed more often.
const REFRESHED_MIN: Duration = Duration::from_millis(100);
/// How long a node may take to tell its view.
const VIEW_MAX: Duration = Duration::from_secs(1);
/// How long the views of further nodes are waited for.
const FURTHER_MAX: Duration = Duration::from_millis(300);

pub(crate) struct Cluster {
    pub seeds: Vec<ConnectionInfo>,
    pub tls: TlsCertificates,
    limits: Limits,
    /// The connections to each node.
    count: usize,
    map: RwLock<Arc<Map>>,
    /// When the last refresh ended.
    refreshed: Mutex<Option<Instant>>,
    next: AtomicUsize,
}

#[derive(Default)]
struct Map {
    /// The number of the master of each slot, and `NOBODY`.
    owners: Vec<u16>,
    masters: Vec<Arc<Line>>,
    /// All known nodes by their addresses, replicas included.
    nodes: BTreeMap<String, Arc<Line>>,
}

const NOBODY: u16 = u16::MAX;

impl Cluster {
    /// Connects to the nodes that the seeds name.
    pub async fn open(
        seeds: Vec<ConnectionInfo>,
        tls: TlsCertificates,
        limits: Limits,
        count: usize,
    ) -> RedisResult<Cluster> {
        let cluster = Cluster {
            seeds,
            tls,
            limits,
            count,
            map: RwLock::default(),
            refreshed: Mutex::default(),
            next: AtomicUsize::new(0),
        };
        let known = tokio::time::timeout(limits.connect, cluster.look()).await;
        known.unwrap_or_else(|_| Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()))?;
        Ok(cluster)
    }

    fn map(&self) -> Arc<Map> {
        let map = self.map.read().unwrap_or_else(PoisonError::into_inner);
        map.clone()
    }

    pub fn masters(&self) -> Vec<Arc<Line>> {
        self.map().masters.clone()
    }

    /// All known nodes.
    pub fn nodes(&self) -> Vec<Arc<Line>> {
        self.map().nodes.values().cloned().collect()
    }

    /// The master of a slot.
    pub fn owner(&self, slot: u16) -> Option<Arc<Line>> {
        let map = self.map();
        let owner = *map.owners.get(usize::from(slot))?;
        map.masters.get(usize::from(owner)).cloned()
    }

    /// Any master: the next one each time.
    fn any(&self) -> Option<Arc<Line>> {
        let map = self.map();
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        map.masters.get(turn % map.masters.len().max(1)).cloned()
    }

    /// Sends a command once, and follows redirections. After an error the map has been refreshed.
    pub async fn send(self: &Arc<Cluster>, cmd: &Cmd, on: On) -> RedisResult<Value> {
        let found = match slot_of(cmd) {
            Some(slot) => self.owner(slot),
            None => self.any(),
        };
        let Some(mut line) = found else {
            self.refresh().await;
            return Err(RedisError::from((
                ErrorKind::Server(ServerErrorKind::ClusterDown),
                "no master serves the key",
            )));
        };
        let mut is_asking = false;
        let mut redirects = 0;
        loop {
            let sent = match is_asking {
                true => ask(&line, cmd).await,
                false => line.send_on(cmd, on).await,
            };
            let Err(error) = sent else { return sent };
            let is_redirection = matches!(
                error.kind(),
                ErrorKind::Server(ServerErrorKind::Moved | ServerErrorKind::Ask)
            );
            if is_redirection && redirects < REDIRECTS_MAX {
                is_asking = error.kind() == ErrorKind::Server(ServerErrorKind::Ask);
                line = self.redirected(&line, &error)?;
                redirects += 1;
                if !is_asking {
                    let cluster = self.clone();
                    tokio::spawn(async move { cluster.refresh().await });
                }
                continue;
            }
            if is_redirection || error.is_io_error() || concerns_map(&error) {
                self.refresh().await;
            }
            return Err(error);
        }
    }

    /// The node that a redirection names.
    fn redirected(&self, from: &Line, error: &RedisError) -> RedisResult<Arc<Line>> {
        let place = error.redirect_node().map(|(place, _)| place);
        let place = place.and_then(|place| place.rsplit_once(':'));
        let Some((host, Ok(port))) = place.map(|(host, port)| (host, port.parse())) else {
            return Err(error.clone());
        };
        let info = from.client().get_connection_info();
        // A node that doesn't know its address names none: it is the host that was asked.
        let host = match host {
            "" => match info.addr() {
                redis::ConnectionAddr::Tcp(host, _)
                | redis::ConnectionAddr::TcpTls { host, .. } => host.clone(),
                _ => return Err(error.clone()),
            },
            host => host.trim_matches(['[', ']']).to_owned(),
        };
        self.line(&at(info, host, port))
    }

    /// The connections to a node, new ones if it is unknown.
    fn line(&self, info: &ConnectionInfo) -> RedisResult<Arc<Line>> {
        let address = info.addr().to_string();
        if let Some(line) = self.map().nodes.get(&address) {
            return Ok(line.clone());
        }
        let client = open(info.clone(), self.tls.clone())?;
        let line = Arc::new(Line::new(client, self.limits, self.count)?);
        let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
        let mut changed = Map {
            owners: map.owners.clone(),
            masters: map.masters.clone(),
            nodes: map.nodes.clone(),
        };
        // Another task may have been faster.
        let line = changed.nodes.entry(address).or_insert(line).clone();
        *map = Arc::new(changed);
        Ok(line)
    }

    /// Asks the nodes for their views, unless that was done after this call began or just before it.
    pub async fn refresh(&self) {
        let called = Instant::now();
        let mut refreshed = self.refreshed.lock().await;
        if let Some(at) = *refreshed {
            if at > called {
                return;
            }
            sleep(REFRESHED_MIN.saturating_sub(at.elapsed())).await;
        }
        if let Err(error) = self.look().await {
            tracing::warn!(%error, "no node of the Redis cluster tells which master serves what");
        }
        *refreshed = Some(Instant::now());
    }

    async fn look(&self) -> RedisResult<()> {
        let mut asked = self.nodes();
        let mut seeds = Vec::new();
        for seed in &self.seeds {
            let line = self.line(seed)?;
            if !asked.iter().any(|known| Arc::ptr_eq(known, &line)) {
                asked.push(line.clone());
            }
            seeds.push(line);
        }
        let views = self.views(asked).await?;
        let mut map = self.merged(&views)?;
        // Nodes may call themselves by other names than the configuration does.
        for seed in seeds {
            map.nodes.entry(seed.address()).or_insert(seed);
        }
        *self.map.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(map);
        Ok(())
    }

    /// The views of the nodes that answer soon, with the nodes that tell them.
    async fn views(&self, asked: Vec<Arc<Line>>) -> RedisResult<Vec<(Arc<Line>, Vec<Node>)>> {
        let mut cmd = Cmd::new();
        cmd.arg("CLUSTER").arg("NODES");
        let mut asking: FuturesUnordered<_> = asked
            .into_iter()
            .map(async |line| {
                let told = timeout(VIEW_MAX, line.send(&cmd)).await;
                let told = told.unwrap_or_else(|_| {
                    Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into())
                });
                let text = told.and_then(|told| Ok(redis::from_redis_value::<String>(told)?));
                text.map(|text| (line, nodes_in(&text)))
            })
            .collect();
        let (mut views, mut last, mut until) = (Vec::new(), None, None);
        loop {
            let next = asking.next();
            let next = match until {
                Some(until) => tokio::time::timeout_at(until, next).await.unwrap_or(None),
                None => next.await,
            };
            match next {
                Some(Ok(view)) => {
                    views.push(view);
                    until.get_or_insert(Instant::now() + FURTHER_MAX);
                }
                Some(Err(error)) => last = Some(error),
                None => break,
            }
        }
        match (views.is_empty(), last) {
            (true, Some(error)) => Err(error),
            _ => Ok(views),
        }
    }

    fn merged(&self, views: &[(Arc<Line>, Vec<Node>)]) -> RedisResult<Map> {
        let mut map = Map {
            owners: vec![NOBODY; SLOTS],
            ..Map::default()
        };
        let mut epochs = vec![0; SLOTS];
        let mut numbers = BTreeMap::new();
        for (teller, view) in views {
            for node in view {
                let line = match node.host.as_str() {
                    "" => teller.clone(),
                    host => {
                        let info = teller.client().get_connection_info();
                        self.line(&at(info, host.to_owned(), node.port))?
                    }
                };
                let address = line.address();
                map.nodes.insert(address.clone(), line.clone());
                if !node.is_master || node.slots.is_empty() {
                    continue;
                }
                let number = *numbers.entry(address).or_insert_with(|| {
                    map.masters.push(line);
                    map.masters.len() - 1
                });
                let number = u16::try_from(number).unwrap_or(NOBODY);
                for slot in node.slots.iter().flat_map(|range| range.clone()) {
                    let slot = usize::from(slot);
                    if slot < SLOTS && (map.owners[slot] == NOBODY || node.epoch > epochs[slot]) {
                        (map.owners[slot], epochs[slot]) = (number, node.epoch);
                    }
                }
            }
        }
        // A master without slots is one that has been replaced.
        let serving: std::collections::BTreeSet<u16> = map.owners.iter().copied().collect();
        let mut kept = Vec::new();
        let mut renumbered = BTreeMap::from([(NOBODY, NOBODY)]);
        for (number, line) in (0..).zip(map.masters) {
            if serving.contains(&number) {
                renumbered.insert(number, u16::try_from(kept.len()).unwrap_or(NOBODY));
                kept.push(line);
            }
        }
        map.masters = kept;
        for owner in &mut map.owners {
            *owner = renumbered.get(owner).copied().unwrap_or(NOBODY);
        }
        Ok(map)
    }
}

/// Sends a command to the node that is about to take over its slot.
async fn ask(line: &Line, cmd: &Cmd) -> RedisResult<Value> {
    let mut asking = Cmd::new();
    asking.arg("ASKING");
    let mut both = redis::Pipeline::with_capacity(2);
    both.add_command(asking).add_command(cmd.clone());
    let answers = line.send_all(&both, 1).await?;
    let answer = answers.into_iter().next().unwrap_or(Value::Nil);
    answer.extract_error()
}

fn concerns_map(error: &RedisError) -> bool {
    use ServerErrorKind::{ClusterDown, MasterDown, ReadOnly};
    [ClusterDown, MasterDown, ReadOnly]
        .into_iter()
        .any(|kind| error.kind() == ErrorKind::Server(kind))
}
