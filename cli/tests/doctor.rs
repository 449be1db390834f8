//! `swirl doctor` as a process, with healthy and unhealthy servers.

use std::collections::BTreeMap;
use std::process::{Command, Output};

use serde_json::Value;
use swirl_servers::{NatsOptions, NatsServer, RedisCluster, RedisOptions, RedisServer, free_port};

fn doctor(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_swirl"));
    command.arg("doctor").args(arguments);
    for variable in [
        "SWIRL_CONFIG",
        "SWIRL_SERVER",
        "SWIRL_TOKEN",
        "SWIRL_TOKEN_FILE",
    ] {
        command.env_remove(variable);
    }
    command.output().unwrap()
}

/// The worst status of each check, and the exit code.
fn checks(arguments: &[&str]) -> (BTreeMap<String, String>, Option<i32>) {
    let done = doctor(&[arguments, &["--output", "json"]].concat());
    let report: Value = serde_json::from_slice(&done.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&done.stderr)));
    let mut checks = BTreeMap::new();
    for check in report["checks"].as_array().unwrap() {
        let text = |name: &str| check[name].as_str().unwrap().to_owned();
        let (name, status) = (text("check"), text("status"));
        assert!(status == "ok" || check["hint"].is_string(), "{check}");
        let worst: &mut String = checks.entry(name).or_default();
        if status == "error" || worst != "error" && status == "warning" || worst.is_empty() {
            *worst = status;
        }
    }
    assert_eq!(report["healthy"], done.status.success());
    (checks, done.status.code())
}

fn flags<'f>(redis: &'f str, nats: &'f str) -> Vec<&'f str> {
    vec![
        "--auth-mode",
        "off",
        "--redis-url",
        redis,
        "--nats-url",
        nats,
        // Small enough for any machine's disk.
        "--nats-events-bytes-max",
        "16MiB",
        "--nats-tasks-bytes-max",
        "16MiB",
    ]
}

#[test]
fn healthy_servers_are_not_changed() {
    let redis = RedisServer::start_with(RedisOptions {
        appendonly: true,
        args: ["--maxmemory", "1gb"].map(str::to_owned).to_vec(),
        ..RedisOptions::default()
    });
    let (redis, nats) = (redis.unwrap(), NatsServer::start().unwrap());
    let (redis_url, nats_url) = (redis.url(), nats.url());
    // An old server doesn't sync its files, and is warned of.
    let flags = [
        &flags(&redis_url, &nats_url)[..],
        &["--nats-storage", "memory"],
    ]
    .concat();
    let (checks, code) = checks(&flags);
    assert_eq!(code, Some(0), "{checks:?}");
    let names: Vec<&str> = checks.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "configuration",
            "nats",
            "nats-stream",
            "redis",
            "redis-clock",
            "redis-namespace"
        ]
    );
    assert!(checks.values().all(|status| status == "ok"), "{checks:?}");
    assert_eq!(redis.cli(&["DBSIZE"]).unwrap(), "0", "nothing is written");

    let text = doctor(&flags).stdout;
    let text = String::from_utf8_lossy(&text);
    assert!(
        text.contains("will create the streams SWIRL_default_TASKS"),
        "{text}"
    );
    assert!(text.ends_with("0 errors, 0 warnings\n"), "{text}");
}

#[test]
fn problems_are_reported_with_hints() {
    let redis = RedisServer::start_with(RedisOptions {
        args: ["--maxmemory-policy", "allkeys-lru"]
            .map(str::to_owned)
            .to_vec(),
        ..RedisOptions::default()
    });
    let redis = redis.unwrap();
    let nats = NatsServer::start_with(NatsOptions {
        without_jetstream: true,
        ..NatsOptions::default()
    });
    let nats = nats.unwrap();
    redis.cli(&["HSET", "default:meta", "shards", "7"]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (redis_url, nats_url) = (redis.url(), nats.url());
    let secrets = folder.path().join("none.json").display().to_string();
    let more = [
        "--secrets-files",
        &secrets,
        "--coordinator-listen",
        "0.0.0.0:0",
    ];
    let (checks, code) = checks(&[&flags(&redis_url, &nats_url)[..], &more].concat());
    assert_eq!(code, Some(1));
    for (name, status) in [
        ("redis", "ok"),
        ("redis-eviction", "error"),
        ("redis-persistence", "error"),
        ("redis-maxmemory", "warning"),
        ("redis-namespace", "error"),
        ("nats", "ok"),
        ("nats-jetstream", "error"),
        ("secrets.files", "error"),
        ("auth.mode", "warning"),
    ] {
        assert_eq!(
            checks.get(name).map(String::as_str),
            Some(status),
            "{name}: {checks:?}"
        );
    }
}

#[test]
fn unreachable_servers_are_reported() {
    let at = |scheme: &str| format!("{scheme}://127.0.0.1:{}", free_port().unwrap());
    let (redis, nats, api) = (at("redis"), at("nats"), at("http"));
    let all = [&flags(&redis, &nats)[..], &["--server", &api]].concat();
    let (checks, code) = checks(&all);
    assert_eq!(code, Some(1));
    for name in ["redis", "nats", "api"] {
        assert_eq!(checks[name], "error", "{checks:?}");
    }
}

/// The other checks still run.
#[test]
fn an_invalid_configuration_is_reported() {
    let redis = RedisServer::start().unwrap();
    let nats = NatsServer::start_with(NatsOptions {
        config:
            "accounts { A { jetstream { max_streams: 2 }, users: [{user: a, password: b}] } }\n\
                 no_auth_user: a"
                .to_owned(),
        ..NatsOptions::default()
    });
    let nats = nats.unwrap();
    let (redis_url, nats_url) = (redis.url(), nats.url());
    let endpoint = format!("http://127.0.0.1:{}", free_port().unwrap());
    let (checks, code) = checks(&[
        "--redis-url",
        &redis_url,
        "--nats-url",
        &nats_url,
        "--redis-shards",
        "none",
        "--telemetry-otlp-endpoint",
        &endpoint,
    ]);
    assert_eq!(code, Some(1));
    for (name, status) in [
        // No client could get access. The number of shards is checked as well.
        ("configuration", "error"),
        ("redis", "ok"),
        ("redis-persistence", "error"),
        ("nats", "ok"),
        ("nats-limits", "error"),
        ("collector", "error"),
    ] {
        let found = checks.get(name).map(String::as_str);
        assert_eq!(found, Some(status), "{name}: {checks:?}");
    }
}

#[test]
fn every_node_of_a_cluster_is_checked() {
    let redis = RedisCluster::start(3).unwrap();
    let nats = NatsServer::start().unwrap();
    let urls = redis.urls();
    let nats_url = nats.url();
    // A node that isn't in the settings.
    let done = doctor(&[
        "--auth-mode",
        "off",
        "--redis-cluster",
        "--redis-url",
        &urls[0],
        "--nats-url",
        &nats_url,
    ]);
    let text = String::from_utf8_lossy(&done.stdout);
    for url in &urls {
        let address = url.trim_start_matches("redis://");
        assert!(text.contains(&format!("at {address}")), "{address}: {text}");
    }
}
