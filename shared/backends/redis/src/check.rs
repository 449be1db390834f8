//! Checks whether the servers are configured to store instances safely, and reports findings.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{Client, Cmd, FromRedisValue, RedisResult};

use swirl_model::time::Timestamp;
pub use swirl_ports::{Finding, Severity};

use crate::Redis;
use crate::connect::{Link, error};
use crate::keys::Keys;
use crate::options::{ConnectError, Options};

const OLDEST: (u32, u32) = (7, 0);

/// The result of examining the servers, which changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examined {
    pub findings: Vec<Finding>,
    /// `host:port` and version of each server that responded.
    pub servers: Vec<(String, String)>,
    /// The servers' clock, and the duration of the request.
    pub clock: Option<(Timestamp, Duration)>,
    /// The number of shards of the namespace; `None` if it isn't in use yet.
    pub shards: Option<u16>,
}

impl Redis {
    /// Examines the configured servers without changing anything. A server that doesn't respond is a finding too.
    pub async fn check(&self) -> Vec<Finding> {
        self.inner.link.examine().await.0
    }

    /// The same without a handle, so that an unused namespace stays unused.
    ///
    /// # Errors
    /// There is no connection.
    pub async fn examine(options: &Options) -> Result<Examined, ConnectError> {
        let link = Link::open(options).await?;
        let (findings, servers) = link.examine().await;
        let asked = Instant::now();
        let clock: RedisResult<(i64, i64)> = link.query(&["TIME"]).await;
        let took = asked.elapsed();
        let meta = Keys::new(options.namespace.clone(), options.shards).global("meta");
        let shards: RedisResult<Option<u16>> = link.query(&["HGET", &meta, "shards"]).await;
        Ok(Examined {
            findings,
            servers,
            clock: clock
                .ok()
                .map(|(seconds, micros)| (Timestamp(seconds * 1000 + micros / 1000), took)),
            shards: shards.map_err(error)?,
        })
    }
}

impl Link {
    /// The findings, and the servers that responded, with their versions.
    async fn examine(&self) -> (Vec<Finding>, Vec<(String, String)>) {
        let (mut findings, mut servers) = (Vec::new(), Vec::new());
        let (nodes, failed) = self.nodes().await;
        for node in failed {
            findings.push(Finding {
                severity: Severity::Error,
                code: "cluster",
                message: format!("the other nodes consider the node {node} failed"),
                hint: "start it again, or forget it (CLUSTER FORGET)",
            });
        }
        for client in nodes {
            let server = client.get_connection_info().addr().to_string();
            match self.facts(&client).await {
                Ok(facts) => {
                    findings.extend(judge(&server, &facts));
                    let version = facts.get("redis_version").cloned();
                    servers.push((server, version.unwrap_or_default()));
                }
                Err(error) => findings.push(Finding {
                    severity: Severity::Error,
                    code: "unreachable",
                    message: format!("Redis at {server} doesn't respond: {error}"),
                    hint: "check its address, its user and whether it is running",
                }),
            }
        }
        (findings, servers)
    }

    async fn query<T: FromRedisValue>(&self, words: &[&str]) -> RedisResult<T> {
        let mut cmd = Cmd::new();
        cmd.arg(words);
        Ok(T::from_redis_value(self.send(&cmd).await?)?)
    }

    async fn facts(&self, client: &Client) -> RedisResult<HashMap<String, String>> {
        let mut connection = self.connect(client).await?;
        let info: String = ask(&mut connection, &["INFO"]).await?;
        let mut facts = read_info(&info);
        // A user may lack the permission to read these.
        for name in ["appendfsync", "save"] {
            let answer: RedisResult<HashMap<String, String>> =
                ask(&mut connection, &["CONFIG", "GET", name]).await;
            facts.extend(answer.unwrap_or_default());
        }
        if facts.get("cluster_enabled").is_some_and(|on| on == "1") {
            let info: String = ask(&mut connection, &["CLUSTER", "INFO"]).await?;
            facts.extend(read_info(&info));
        }
        Ok(facts)
    }
}

pub(crate) async fn ask<T: FromRedisValue>(
    connection: &mut MultiplexedConnection,
    words: &[&str],
) -> RedisResult<T> {
    let mut cmd = Cmd::new();
    cmd.arg(words);
    cmd.query_async(connection).await
}

pub(crate) fn read_info(info: &str) -> HashMap<String, String> {
    let lines = info.lines().filter_map(|line| line.split_once(':'));
    lines
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect()
}

fn judge(server: &str, facts: &HashMap<String, String>) -> Vec<Finding> {
    let fact = |name: &str| facts.get(name).map(String::as_str);
    let mut findings = Vec::new();
    let mut find = |severity, code, message: String, hint| {
        findings.push(Finding {
            severity,
            code,
            message: format!("Redis at {server} {message}"),
            hint,
        });
    };
    let version = fact("redis_version").unwrap_or("unknown");
    if read_version(version).is_none_or(|found| found < OLDEST) {
        let message = format!("has version {version}");
        find(
            Severity::Error,
            "version",
            message,
            "use Redis 7.0 or newer",
        );
    }
    // A replica in a cluster redirects clients to its master.
    let in_cluster = fact("cluster_enabled") == Some("1");
    if fact("role") == Some("slave") && !in_cluster {
        let message = "is a replica, which accepts no writes".to_owned();
        find(
            Severity::Error,
            "replica",
            message,
            "configure the master's address",
        );
    }
    match fact("maxmemory_policy") {
        Some("noeviction") | None => {}
        Some(policy) => {
            let message =
                format!("removes data when its memory is full (maxmemory-policy {policy})");
            let hint =
                "set maxmemory-policy to noeviction: instances would be lost without a trace";
            find(Severity::Error, "eviction", message, hint);
        }
    }
    match (fact("aof_enabled"), fact("appendfsync"), fact("save")) {
        (Some("1"), Some("always") | None, _) => {}
        (Some("1"), Some(fsync), _) => {
            let message = format!("writes to disk only from time to time (appendfsync {fsync})");
            let hint = "a crash of the machine may lose the last second: set appendfsync to always, or accept that";
            find(Severity::Warning, "fsync", message, hint);
        }
        (_, _, None | Some("")) => {
            let message = "keeps nothing on disk".to_owned();
            let hint =
                "set appendonly to yes and appendfsync to always: a restart loses all instances";
            find(Severity::Error, "persistence", message, hint);
        }
        (_, _, Some(_)) => {
            let message = "keeps only snapshots on disk".to_owned();
            let hint = "set appendonly to yes and appendfsync to always: a crash loses all changes since the last snapshot";
            find(Severity::Error, "persistence", message, hint);
        }
    }
    if let Some((severity, code, message, hint)) = memory(facts) {
        find(severity, code, message, hint);
    }
    if let Some(state) = fact("cluster_state").filter(|state| *state != "ok") {
        let message = format!("belongs to an unhealthy cluster (cluster_state {state})");
        let hint = "some slots have no server: check CLUSTER NODES";
        find(Severity::Error, "cluster", message, hint);
    }
    findings
}

/// Free memory for future writes. A server without any refuses all writes, or is killed.
fn memory(
    facts: &HashMap<String, String>,
) -> Option<(Severity, &'static str, String, &'static str)> {
    let number = |name: &str| facts.get(name)?.parse::<u64>().ok();
    let (used, limit) = (number("used_memory")?, number("maxmemory")?);
    if limit == 0 {
        let message = "has no limit for its memory (maxmemory 0)".to_owned();
        let hint = "set maxmemory below the machine's memory: Redis is killed when that runs out";
        return Some((Severity::Warning, "maxmemory", message, hint));
    }
    let percent = used.saturating_mul(100) / limit;
    let message = format!("uses {percent} % of its memory (maxmemory)");
    let hint = "raise maxmemory, or lower redis.keep_ended, redis.keep_faulted, redis.retain, redis.history_max";
    match percent {
        ..80 => None,
        80..95 => Some((Severity::Warning, "memory", message, hint)),
        95.. => Some((Severity::Error, "memory", message, hint)),
    }
}

fn read_version(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(info: &str) -> Vec<&'static str> {
        let findings = judge("h:1", &read_info(info));
        findings.iter().map(|finding| finding.code).collect()
    }

    #[test]
    fn findings() {
        let good = "redis_version:7.0.15\r\nrole:master\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\nappendfsync:always\r\ncluster_state:ok\r\n";
        assert!(codes(good).is_empty());
        assert_eq!(codes(&good.replace("always", "everysec")), ["fsync"]);
        assert_eq!(codes(&good.replace("7.0.15", "6.2.1")), ["version"]);
        assert_eq!(
            codes(&good.replace("noeviction", "allkeys-lru")),
            ["eviction"]
        );
        assert_eq!(
            codes(&good.replace("aof_enabled:1", "aof_enabled:0")),
            ["persistence"]
        );
        let memory = |used: u64, max: u64| {
            codes(&format!("{good}used_memory:{used}\r\nmaxmemory:{max}\r\n"))
        };
        assert!(memory(79, 100).is_empty());
        assert_eq!(
            (memory(80, 100), memory(99, 100)),
            (vec!["memory"], vec!["memory"])
        );
        assert_eq!(memory(5, 0), ["maxmemory"]);
        assert_eq!(
            codes(&good.replace("master", "slave").replace(":ok", ":fail")),
            ["replica", "cluster"]
        );
    }
}
