//! Every setting in the table has an effect: with another value, a library gets another option. Settings that are used
//! directly have tests of their own.

use std::collections::BTreeMap;
use std::path::Path;

use swirl_config::{Config, Process, Sources, find, load, settings};
use swirl_coordinator::process::batch_limits;
use swirl_functions::egress::DiscoveredServers;
use swirl_worker::process as worker;

/// A setting, a value, and the settings that must be set first, such as those that it requires.
type Case = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

const NONE: &[(&str, &str)] = &[];

const CASES: &[Case] = &[
    ("namespace", "team-a", NONE),
    ("redis.url", "redis://elsewhere:6379", NONE),
    ("redis.cluster", "true", NONE),
    (
        "redis.sentinel_master",
        "other",
        &[("redis.url", "redis-sentinel://a:26379")],
    ),
    ("redis.username", "swirl", NONE),
    ("redis.password", "open", NONE),
    ("redis.password_file", "FILE", NONE),
    ("redis.tls_ca", "FILE", NONE),
    (
        "redis.tls_cert",
        "FILE",
        &[("redis.tls_cert", "OTHER"), ("redis.tls_key", "OTHER")],
    ),
    (
        "redis.tls_key",
        "FILE",
        &[("redis.tls_cert", "OTHER"), ("redis.tls_key", "OTHER")],
    ),
    ("redis.connections", "2", NONE),
    ("redis.connect_timeout", "1s", NONE),
    ("redis.response_timeout", "1s", NONE),
    ("redis.shards", "8", NONE),
    ("redis.history_max", "7", NONE),
    ("redis.inbox_max", "7", NONE),
    ("redis.retain", "1h", NONE),
    ("redis.retain_max", "7", NONE),
    ("redis.retain_bytes", "7MiB", NONE),
    ("redis.retain_workflow_bytes", "7MiB", NONE),
    ("redis.retain_type_bytes", "7MiB", NONE),
    ("redis.dedup", "1h", NONE),
    ("redis.dedup_max", "7", NONE),
    ("redis.sets_max", "7", NONE),
    ("redis.sets_bytes", "7MiB", NONE),
    ("redis.sets_workflow_bytes", "7MiB", NONE),
    ("redis.keep_ended", "1h", NONE),
    ("redis.keep_ended_max", "7", NONE),
    ("redis.keep_faulted", "1h", NONE),
    ("nats.url", "nats://elsewhere:4222", NONE),
    (
        "nats.user",
        "swirl",
        &[("nats.user", "other"), ("nats.password", "closed")],
    ),
    (
        "nats.password",
        "open",
        &[("nats.user", "other"), ("nats.password", "closed")],
    ),
    (
        "nats.password_file",
        "FILE",
        &[("nats.user", "other"), ("nats.password_file", "OTHER")],
    ),
    ("nats.token", "open", NONE),
    ("nats.token_file", "FILE", NONE),
    ("nats.nkey_file", "FILE", NONE),
    ("nats.credentials_file", "FILE", NONE),
    ("nats.tls_ca", "FILE", NONE),
    (
        "nats.tls_cert",
        "FILE",
        &[("nats.tls_cert", "OTHER"), ("nats.tls_key", "OTHER")],
    ),
    (
        "nats.tls_key",
        "FILE",
        &[("nats.tls_cert", "OTHER"), ("nats.tls_key", "OTHER")],
    ),
    ("nats.connect_timeout", "1s", NONE),
    ("nats.request_timeout", "1s", NONE),
    ("nats.replicas", "3", NONE),
    ("nats.storage", "memory", NONE),
    ("nats.duplicate_window", "1m", NONE),
    ("nats.tasks_bytes_max", "1MiB", NONE),
    ("nats.events_bytes_max", "1MiB", NONE),
    ("nats.events_messages_max", "7", NONE),
    ("nats.events_age_max", "1h", NONE),
    ("nats.ack_wait", "1m", NONE),
    ("nats.ack_pending_max", "7", NONE),
    ("events.subjects", "shop.>", NONE),
    ("events.instance_attribute", "kogitoprocrefid", NONE),
    ("events.produced_subject", "out.{type}", NONE),
    ("worker.concurrency", "7", NONE),
    ("worker.local_scopes", "7", NONE),
    ("worker.local_branches", "7", NONE),
    ("worker.join_results_max", "7", NONE),
    ("worker.join_bytes_max", "1KiB", NONE),
    ("history.data", "all", NONE),
    ("history.recent_calls", "7", NONE),
    ("history.data_bytes", "1KiB", NONE),
    ("history.keep_data", "1h", NONE),
    ("coordinator.batch_instances", "7", NONE),
    ("coordinator.batch_examined", "1000000", NONE),
    ("coordinator.batches_active", "7", NONE),
    ("coordinator.keep_batches", "1h", NONE),
    ("coordinator.keep_batches_max", "7", NONE),
    ("coordinator.keep_audit_max", "7", NONE),
    ("coordinator.log_unreceived", "true", NONE),
    ("coordinator.rehearsals", "false", NONE),
    ("lifecycle.bytes_max", "1MiB", NONE),
    ("lifecycle.age_max", "1h", NONE),
    ("worker.lease", "5s", NONE),
    ("worker.shutdown_deadline", "5s", NONE),
    ("limits.data_bytes", "1MiB", NONE),
    ("limits.fork_bytes", "1MiB", NONE),
    ("limits.instance_bytes", "1MiB", NONE),
    ("limits.chain", "7", NONE),
    ("limits.starts", "7", NONE),
    ("limits.chained_starts", "7", NONE),
    ("limits.runaway_starts", "7", NONE),
    ("limits.all_starts", "7", NONE),
    ("limits.pending_starts", "7", NONE),
    ("limits.all_pending_starts", "7", NONE),
    ("limits.schedule_interval", "7s", NONE),
    ("telemetry.otlp_endpoint", "http://collector:4317", NONE),
    ("telemetry.protocol", "http", NONE),
    ("telemetry.headers", "key=k", NONE),
    ("telemetry.sampling_ratio", "0.5", NONE),
    ("telemetry.resource_attributes", "a=b", NONE),
    ("http.allow_hosts", "example.org", NONE),
    ("http.refuse_networks", "private", NONE),
    ("http.allow_networks", "10.0.0.0/8", NONE),
    ("http.connect_timeout", "1s", NONE),
    ("http.timeout", "1s", NONE),
    ("http.request_bytes_max", "1KiB", NONE),
    ("http.response_bytes_max", "1KiB", NONE),
    ("http.idle_per_host_max", "7", NONE),
    ("http.breaker_failures", "7", NONE),
    ("http.breaker_window", "1s", NONE),
    ("http.breaker_pause", "2s", NONE),
    ("http.breaker_pause_max", "2s", NONE),
    ("functions.connectors", "mine=http://connector/call", NONE),
    ("functions.connector_environment", "SHOP_KEY", NONE),
    (
        "functions.rpc_servers",
        "shop.Users=grpc://shop:50051",
        NONE,
    ),
    ("functions.servers", "quote=http://quotes:8080", NONE),
    ("functions.given", "FILE", NONE),
    ("functions.catalog", "FILE", NONE),
    ("functions.processes", "shell", NONE),
    ("functions.process_timeout", "7m", NONE),
    ("functions.javascript", "deno run", NONE),
    ("functions.python", "pypy3", NONE),
    ("functions.containers", "podman", NONE),
    ("secrets.files", "FILE", NONE),
    ("secrets.folders", "FILE", NONE),
    ("secrets.environment", "false", NONE),
];

/// A setting, and the test that starts processes with it.
const ELSEWHERE: &[(&str, &str)] = &[
    ("worker.listen", "cli/tests/observe/processes.rs"),
    ("coordinator.listen", "cli/tests/observe/processes.rs"),
    ("log.format", "cli/tests/observe/processes.rs"),
    ("log.filter", "cli/tests/observe/processes.rs"),
    ("coordinator.runs_inline", "cli/tests/observe/pure.rs"),
    ("lifecycle.events", "cli/tests/lifecycle.rs"),
];

/// The options that the libraries receive.
fn effective(config: &Config) -> String {
    let redis = swirl_connections::redis_options(config).unwrap();
    let nats = swirl_connections::nats_options(config, "worker");
    let auth = &config.nats.auth;
    let auth = match auth {
        swirl_config::NatsAuth::User { user, password } => format!("{user} {}", password.expose()),
        swirl_config::NatsAuth::Token(token) => token.expose().to_owned(),
        other => format!("{other:?}"),
    };
    let telemetry = swirl_connections::telemetry_settings(config, "worker", "1");
    format!(
        "{redis:?} {nats:?} {auth} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        swirl_connections::stream_options(config),
        swirl_connections::lifecycle_options(&config.coordinator.lifecycle),
        swirl_connections::subjects(config),
        (
            batch_limits(&config.coordinator),
            config.coordinator.keep_audit_max,
            config.coordinator.log_unreceived,
            config.coordinator.rehearsals,
        ),
        worker::driving(&config.worker),
        worker::pooling(&config.worker, config.nats.ack_wait),
        swirl_connections::http(config, &DiscoveredServers::default()),
        (
            &config.http.allow_hosts,
            &config.functions,
            &config.secrets,
            &config.limits,
            swirl_connections::addressing(config),
            &config.given_functions,
        ),
        (
            telemetry.endpoint,
            telemetry.protocol,
            telemetry.headers,
            telemetry.sampling_ratio,
            telemetry.resource_attributes,
        ),
    )
}

fn with(given: &[(&str, &str)], folder: &Path) -> Config {
    let mut variables = BTreeMap::from([("SWIRL_AUTH_MODE".to_owned(), "off".to_owned())]);
    for (key, value) in given {
        let value = match *value {
            "FILE" | "OTHER" => folder.join(value).display().to_string(),
            plain => plain.to_owned(),
        };
        variables.insert(find(key).unwrap().variable(), value);
    }
    let sources = Sources {
        variables: variables.into_iter().collect(),
        ..Sources::default()
    };
    load(Process::ALL, &sources)
        .unwrap_or_else(|problems| panic!("{given:?}: {problems}"))
        .config
}

/// Settings of the API have tests of their own.
const OF_THE_API: &[&str] = &[
    "api.",
    "auth.",
    "coordinator.tls_",
    "coordinator.allowed_hosts",
    "coordinator.cors_origins",
    "coordinator.webhook_origins",
    "coordinator.health_listen",
    "coordinator.connections_per_address",
    "coordinator.incomplete_bodies",
    "coordinator.drain_delay",
    "coordinator.shutdown_deadline",
];

#[test]
fn settings_reach_their_libraries() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["FILE", "OTHER"] {
        std::fs::write(folder.path().join(name), name).unwrap();
    }
    for (key, value, others) in CASES {
        let before = with(others, folder.path());
        let given: Vec<_> = others.iter().copied().chain([(*key, *value)]).collect();
        let after = with(&given, folder.path());
        assert_ne!(
            effective(&before),
            effective(&after),
            "{key} changes nothing"
        );
    }
}

#[test]
fn every_setting_is_in_one_of_the_lists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for setting in settings() {
        let key = setting.key;
        let is_of_the_api = OF_THE_API.iter().any(|begin| key.starts_with(begin));
        if is_of_the_api || CASES.iter().any(|(known, ..)| *known == key) {
            continue;
        }
        let test = ELSEWHERE.iter().find(|(known, _)| *known == key);
        let Some((_, file)) = test else {
            panic!("{key}: nothing shows that it is acted on");
        };
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        let names = [key.to_owned(), setting.flag(), setting.variable()];
        assert!(
            names.iter().any(|name| text.contains(name)),
            "{file} has no {key}"
        );
    }
}

/// The defaults of the table are the defaults of the libraries.
#[test]
fn defaults_equal_the_libraries_defaults() {
    let config = with(NONE, Path::new("."));
    let own = swirl_redis::Options {
        namespace: "default".to_owned(),
        ..swirl_redis::Options::default()
    };
    assert_eq!(swirl_connections::redis_options(&config).unwrap(), own);
    assert_eq!(
        swirl_connections::stream_options(&config),
        swirl_nats::StreamOptions::default()
    );
    let nats = swirl_connections::nats_options(&config, "worker");
    let own = swirl_nats::Options::new(nats.servers.clone(), nats.name.clone());
    assert_eq!(format!("{nats:?}"), format!("{own:?}"));
    let http = swirl_connections::http(&config, &DiscoveredServers::default());
    let own = swirl_functions::http::HttpConfig::default();
    assert_eq!(
        swirl_functions::http::HttpConfig {
            breaker: None,
            egress: swirl_functions::egress::Egress::default(),
            ..http
        },
        own
    );
    let pooling = worker::pooling(&config.worker, config.nats.ack_wait);
    let own = swirl_worker::pool::Settings::default();
    assert_eq!(format!("{pooling:?}"), format!("{own:?}"));
}
