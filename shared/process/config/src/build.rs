//! Builds [`Config`] from checked values, and checks the rules between settings. The names and types here must match
//! the table; a test reads every setting through this file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use swirl_access::Token;
use swirl_functions::Settings;
use swirl_functions::egress::Egress;
use swirl_functions::servers::Servers;
use swirl_functions::types::custom::Connectors;
use swirl_functions::types::process::Processes;
use url::Url;

mod limits;
mod oidc;

use super::entry::GivenSetting;
use super::kind::Value;
use super::problem::{Problem, Problems};
use super::secret::{Endpoint, Secret, read_secret};
use super::setting::Process;
use super::types::{
    Auth, AuthMode, Breaker, Config, Coordinator, Events, Http, Lifecycle, Log, LogFormat, Nats,
    NatsAuth, NatsStorage, OtlpProtocol, Redis, RedisLimits, RedisTopology, SecretSources,
    Telemetry, Tls, Worker,
};
use crate::origin::origin;
use swirl_ports::{JoinLimits, addressed};

/// # Errors
/// All settings that contradict each other.
pub fn build(processes: &[Process], entries: &[GivenSetting]) -> Result<Config, Problems> {
    let mut values = Values {
        entries,
        problems: Vec::new(),
    };
    let namespace = values.text("namespace");
    if namespace == "events" {
        values.wrong(
            "namespace",
            "cannot be 'events': its subjects would overlap those of the events of the namespace 'default'",
        );
    }
    let config = Config {
        redis: values.redis(),
        nats: values.nats(),
        events: values.events(&namespace),
        worker: values.worker(),
        coordinator: values.coordinator(),
        auth: values.auth(processes.contains(&Process::Coordinator)),
        telemetry: values.telemetry(),
        log: Log {
            format: match values.text("log.format").as_str() {
                "json" => LogFormat::Json,
                _ => LogFormat::Text,
            },
            filter: values.text("log.filter"),
        },
        limits: values.limits(),
        http: values.http(),
        functions: values.functions(),
        given_functions: values.path("functions.given"),
        secrets: SecretSources {
            files: values.paths("secrets.files"),
            folders: values.paths("secrets.folders"),
            environment: values.flag("secrets.environment"),
        },
        namespace,
    };
    match values.problems.is_empty() {
        true => Ok(config),
        false => Err(Problems(values.problems)),
    }
}

struct Values<'e> {
    entries: &'e [GivenSetting],
    problems: Vec<Problem>,
}

impl Values<'_> {
    fn redis(&mut self) -> Redis {
        let urls = self.endpoints("redis.url");
        let cluster = self.flag("redis.cluster");
        let sentinels = urls
            .iter()
            .filter(|url| url.scheme().ends_with("-sentinel"))
            .count();
        let mixed = urls
            .windows(2)
            .any(|pair| pair[0].scheme() != pair[1].scheme());
        if mixed {
            self.wrong("redis.url", "contains URLs with different schemes");
        } else if cluster && sentinels > 0 {
            self.wrong(
                "redis.cluster",
                "is true, but redis.url names sentinels: it is one or the other",
            );
        } else if urls.len() > 1 && !cluster && sentinels == 0 {
            self.wrong(
                "redis.url",
                "contains several URLs, but this is not a cluster: set redis.cluster, or name sentinels \
                 with redis-sentinel://",
            );
        }
        Redis {
            topology: match (cluster, sentinels) {
                (true, _) => RedisTopology::Cluster,
                (false, 0) => RedisTopology::Single,
                (false, _) => RedisTopology::Sentinel {
                    master: self.text("redis.sentinel_master"),
                },
            },
            urls: urls.into_iter().map(without_sentinel).collect(),
            username: self.maybe("redis.username"),
            password: self.secret("redis.password", "redis.password_file"),
            tls: self.tls("redis.tls_ca", "redis.tls_cert", "redis.tls_key"),
            connections: self.count("redis.connections"),
            connect_timeout: self.duration("redis.connect_timeout"),
            response_timeout: self.duration("redis.response_timeout"),
            shards: u16::try_from(self.number("redis.shards")).unwrap_or(u16::MAX),
            limits: RedisLimits {
                history_max: self.number("redis.history_max"),
                inbox_max: self.count("redis.inbox_max"),
                retain: self.duration("redis.retain"),
                retain_max: self.count("redis.retain_max"),
                retain_bytes: self.number("redis.retain_bytes"),
                retain_workflow_bytes: self.number("redis.retain_workflow_bytes"),
                retain_type_bytes: self.number("redis.retain_type_bytes"),
                dedup: self.duration("redis.dedup"),
                dedup_max: self.count("redis.dedup_max"),
                sets_max: self.count("redis.sets_max"),
                sets_bytes: self.number("redis.sets_bytes"),
                sets_workflow_bytes: self.number("redis.sets_workflow_bytes"),
                keep_ended: self.duration("redis.keep_ended"),
                keep_ended_max: self.count("redis.keep_ended_max"),
                keep_faulted: self.duration("redis.keep_faulted"),
            },
        }
    }

    fn nats(&mut self) -> Nats {
        Nats {
            urls: self.endpoints("nats.url"),
            auth: self.nats_auth(),
            tls: self.tls("nats.tls_ca", "nats.tls_cert", "nats.tls_key"),
            connect_timeout: self.duration("nats.connect_timeout"),
            request_timeout: self.duration("nats.request_timeout"),
            replicas: self.count("nats.replicas"),
            storage: match self.text("nats.storage").as_str() {
                "memory" => NatsStorage::Memory,
                _ => NatsStorage::File,
            },
            duplicate_window: self.duration("nats.duplicate_window"),
            tasks_bytes_max: self.number("nats.tasks_bytes_max"),
            events_age_max: self.duration("nats.events_age_max"),
            events_bytes_max: self.number("nats.events_bytes_max"),
            events_messages_max: self.number("nats.events_messages_max"),
            ack_wait: self.duration("nats.ack_wait"),
            ack_pending_max: self.number("nats.ack_pending_max"),
        }
    }

    fn nats_auth(&mut self) -> NatsAuth {
        let user = self.maybe("nats.user");
        let password = self.secret("nats.password", "nats.password_file");
        let token = self.secret("nats.token", "nats.token_file");
        let nkey = self.path("nats.nkey_file");
        let credentials = self.path("nats.credentials_file");
        let mut ways = Vec::new();
        match (user, password) {
            (Some(user), Some(password)) => {
                ways.push(("nats.user", NatsAuth::User { user, password }));
            }
            (Some(_), None) => self.wrong("nats.user", "is set without nats.password"),
            (None, Some(_)) => {
                let key = match self.value("nats.password") {
                    Some(_) => "nats.password",
                    None => "nats.password_file",
                };
                self.wrong(key, "is set without nats.user");
            }
            (None, None) => {}
        }
        ways.extend(token.map(|token| ("nats.token", NatsAuth::Token(token))));
        ways.extend(nkey.map(|path| ("nats.nkey_file", NatsAuth::Nkey(path))));
        ways.extend(credentials.map(|path| ("nats.credentials_file", NatsAuth::Credentials(path))));
        if let [(first, _), (second, _), ..] = ways.as_slice() {
            self.wrong(second, &format!("is set together with {first}: choose one"));
        }
        ways.pop().map_or(NatsAuth::None, |(_, way)| way)
    }

    fn events(&mut self, namespace: &str) -> Events {
        let attribute = self.maybe("events.instance_attribute");
        if let Some(Err(reason)) = attribute.as_deref().map(addressed::attribute) {
            self.wrong(
                "events.instance_attribute",
                &format!("cannot be used: {reason}"),
            );
        }
        let named = |text: String| text.replace("{namespace}", namespace);
        Events {
            subjects: self
                .list("events.subjects")
                .into_iter()
                .map(named)
                .collect(),
            produced_subject: named(self.text("events.produced_subject")),
            instance_attribute: attribute,
        }
    }

    fn worker(&mut self) -> Worker {
        Worker {
            concurrency: self.count("worker.concurrency"),
            local_scopes: self.count("worker.local_scopes"),
            local_branches: self.count("worker.local_branches"),
            join_limits: JoinLimits {
                results: self.small("worker.join_results_max"),
                bytes: self.number("worker.join_bytes_max"),
            },
            lease: self.duration("worker.lease"),
            shutdown_deadline: self.duration("worker.shutdown_deadline"),
            listen: self.address("worker.listen"),
            recording: self.text("history.data").parse().unwrap_or_default(),
            recorded_bytes_max: self.count("history.data_bytes"),
            keep_data_ms: self.millis("history.keep_data"),
            recent_calls_max: self.count("history.recent_calls"),
        }
    }

    fn base_path(&mut self) -> String {
        let key = "api.base_path";
        let given = self.maybe(key).unwrap_or_default();
        let base = given.trim_end_matches('/');
        let is_part = |part: &str| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
            !matches!(part, "" | "." | "..") && part.bytes().all(plain)
        };
        let mut parts = base.split('/');
        if !base.is_empty() && (parts.next() != Some("") || !parts.all(is_part)) {
            self.wrong(
                key,
                "must be a path such as /swirl, of letters, digits and -._~",
            );
        }
        base.to_owned()
    }

    fn coordinator(&mut self) -> Coordinator {
        let cert = self.path("coordinator.tls_cert");
        let tls = cert.zip(self.path("coordinator.tls_key"));
        self.together("coordinator.tls_cert", "coordinator.tls_key");
        let hosts = self.list("coordinator.allowed_hosts");
        let (mut origins, key) = (Vec::new(), "coordinator.cors_origins");
        for text in self.list(key) {
            origins.extend(origin(&text).map_err(|reason| self.wrong(key, &reason)));
        }
        Coordinator {
            origins,
            base_path: self.base_path(),
            webhook_origins: self.list("coordinator.webhook_origins"),
            listen: self.address("coordinator.listen"),
            hosts: (self.text("auth.mode") == "off" || !hosts.is_empty()).then_some(hosts),
            tls,
            runs_inline: self.flag("coordinator.runs_inline"),
            log_unreceived: self.flag("coordinator.log_unreceived"),
            rehearsals: self.flag("coordinator.rehearsals"),
            recording: self.text("history.data").parse().unwrap_or_default(),
            recorded_bytes_max: self.count("history.data_bytes"),
            keep_data_ms: self.millis("history.keep_data"),
            recent_calls_max: self.count("history.recent_calls"),
            batch_instances: self.count("coordinator.batch_instances"),
            batch_examined: self.count("coordinator.batch_examined"),
            batches_active: self.count("coordinator.batches_active"),
            keep_batches: self.duration("coordinator.keep_batches"),
            keep_batches_max: self.count("coordinator.keep_batches_max"),
            keep_audit_max: self.count("coordinator.keep_audit_max"),
            drain_delay: self.duration("coordinator.drain_delay"),
            health_listen: match self.value("coordinator.health_listen") {
                Some(Value::Text(address)) => address.parse().ok(),
                _ => None,
            },
            connections_per_address: self.count("coordinator.connections_per_address"),
            incomplete_bodies: self.count("coordinator.incomplete_bodies"),
            shutdown_deadline: self.duration("coordinator.shutdown_deadline"),
            lifecycle: Lifecycle {
                is_on: self.flag("lifecycle.events"),
                bytes_max: self.number("lifecycle.bytes_max"),
                age_max: self.duration("lifecycle.age_max"),
            },
        }
    }

    fn auth(&mut self, needed: bool) -> Auth {
        let auth = Auth {
            mode: match self.text("auth.mode").as_str() {
                "off" => AuthMode::Off,
                _ => AuthMode::On,
            },
            tokens: self.tokens(),
            tokens_file: self.path("auth.tokens_file"),
            refused_max: u32::try_from(self.number("auth.refused_max")).unwrap_or(u32::MAX),
            oidc: self.oidc(),
        };
        let any = !auth.tokens.is_empty() || auth.tokens_file.is_some() || auth.oidc.is_some();
        let unsound = self.problems.iter().any(|p| p.message.starts_with("auth."));
        if needed && auth.mode == AuthMode::On && !any && !unsound {
            self.wrong(
                "auth.mode",
                "is on, but nobody can log in: set auth.tokens, auth.tokens_file or auth.oidc.issuer; or set it to off, and anyone who reaches the port may do everything",
            );
        }
        auth
    }

    fn tokens(&mut self) -> Vec<Token> {
        let Some(Value::Tokens(entries)) = self.value("auth.tokens") else {
            return Vec::new();
        };
        Token::all(entries).unwrap_or_else(|error| {
            self.wrong("auth.tokens", &format!("cannot be used: {error}"));
            Vec::new()
        })
    }

    fn telemetry(&self) -> Telemetry {
        let headers = self.map("telemetry.headers").into_iter();
        Telemetry {
            otlp_endpoint: self.maybe("telemetry.otlp_endpoint").and_then(endpoint),
            protocol: match self.text("telemetry.protocol").as_str() {
                "http" => OtlpProtocol::Http,
                _ => OtlpProtocol::Grpc,
            },
            headers: headers
                .map(|(name, value)| (name, Secret::new(value)))
                .collect(),
            sampling_ratio: match self.value("telemetry.sampling_ratio") {
                Some(Value::Ratio(ratio)) => *ratio,
                _ => mismatch("telemetry.sampling_ratio"),
            },
            resource_attributes: self.map("telemetry.resource_attributes"),
        }
    }

    fn http(&mut self) -> Http {
        let allow_hosts = self.list("http.allow_hosts");
        if let Err(error) = swirl_functions::resources::Hosts::parse(&allow_hosts) {
            self.wrong("http.allow_hosts", &error.to_string());
        }
        let (refused, allowed) = (
            self.list("http.refuse_networks"),
            self.list("http.allow_networks"),
        );
        let mut networks = |key: &str, refused: &[String], allowed: &[String]| {
            Egress::parse(refused, allowed).unwrap_or_else(|error| {
                self.wrong(key, &error.to_string());
                Egress::default()
            })
        };
        networks("http.allow_networks", &[], &allowed);
        let egress = networks("http.refuse_networks", &refused, &[]);
        let egress = Egress::parse(&refused, &allowed).unwrap_or(egress);
        let breaker = Breaker {
            failures: self.count("http.breaker_failures"),
            window: self.duration("http.breaker_window"),
            pause: self.duration("http.breaker_pause"),
            pause_max: self.duration("http.breaker_pause_max"),
        };
        if breaker.pause_max < breaker.pause {
            self.wrong("http.breaker_pause_max", "is less than http.breaker_pause");
        }
        Http {
            allow_hosts,
            egress,
            connect_timeout: self.duration("http.connect_timeout"),
            timeout: self.duration("http.timeout"),
            request_bytes_max: self.count("http.request_bytes_max"),
            response_bytes_max: self.count("http.response_bytes_max"),
            idle_per_host_max: self.count("http.idle_per_host_max"),
            breaker,
        }
    }

    fn functions(&mut self) -> Settings {
        let entries = |key: &str| -> Vec<String> {
            let map = self.map(key).into_iter();
            map.map(|(name, value)| format!("{name}={value}")).collect()
        };
        let connectors = Connectors::parse(&entries("functions.connectors"));
        let servers = [
            entries("functions.servers"),
            entries("functions.rpc_servers"),
        ]
        .concat();
        let servers = Servers::parse(&servers);
        Settings {
            connectors: connectors.unwrap_or_else(|error| {
                self.wrong("functions.connectors", &format!("cannot be used: {error}"));
                Connectors::default()
            }),
            servers: servers.unwrap_or_else(|error| {
                self.wrong("functions.servers", &format!("cannot be used: {error}"));
                Servers::default()
            }),
            connector_environment: self.list("functions.connector_environment"),
            processes: self.processes(),
            catalog: self.path("functions.catalog"),
        }
    }

    fn processes(&mut self) -> Processes {
        let allowed = Processes::default().allowing(&self.list("functions.processes"));
        let mut processes = allowed.unwrap_or_else(|error| {
            self.wrong("functions.processes", &format!("cannot be used: {error}"));
            Processes::default()
        });
        processes.timeout = self.duration("functions.process_timeout");
        for (key, command) in [
            ("functions.javascript", &mut processes.javascript),
            ("functions.python", &mut processes.python),
            ("functions.containers", &mut processes.containers),
        ] {
            match self.maybe(key).map(|text| Processes::command(&text)) {
                None => {}
                Some(Ok(words)) => *command = words,
                Some(Err(error)) => self.wrong(key, &format!("cannot be used: {error}")),
            }
        }
        processes
    }

    fn tls(&mut self, ca: &str, cert: &str, key: &str) -> Tls {
        self.together(cert, key);
        Tls {
            ca: self.path(ca),
            cert: self.path(cert),
            key: self.path(key),
        }
    }

    /// Two settings that are only valid together.
    fn together(&mut self, one: &str, other: &str) {
        match (self.value(one).is_some(), self.value(other).is_some()) {
            (true, false) => self.wrong(one, &format!("is set without {other}")),
            (false, true) => self.wrong(other, &format!("is set without {one}")),
            _ => {}
        }
    }

    /// A secret that is given directly or in a file.
    fn secret(&mut self, key: &str, file_key: &str) -> Option<Secret> {
        let plain = self.maybe(key);
        let Some(path) = self.path(file_key) else {
            return plain.map(Secret::new);
        };
        if plain.is_some() {
            self.wrong(file_key, &format!("is set together with {key}: choose one"));
            return None;
        }
        match read_secret(&path) {
            Ok(secret) => Some(secret),
            Err(reason) => {
                let message = format!("names {}, which {reason}", path.display());
                self.wrong(file_key, &message);
                None
            }
        }
    }

    fn wrong(&mut self, key: &str, message: &str) {
        let place = self.entry(key).place.clone();
        let problem = Problem::new(place, format!("{key} {message}"));
        self.problems.push(problem);
    }

    fn entry(&self, key: &str) -> &GivenSetting {
        let mut entries = self.entries.iter();
        match entries.find(|entry| entry.setting.key == key) {
            Some(entry) => entry,
            None => mismatch(key),
        }
    }

    fn value(&self, key: &str) -> Option<&Value> {
        self.entry(key).value.as_ref()
    }

    fn maybe(&self, key: &str) -> Option<String> {
        match self.value(key) {
            None => None,
            Some(Value::Text(text)) => Some(text.clone()),
            Some(_) => mismatch(key),
        }
    }

    fn text(&self, key: &str) -> String {
        self.maybe(key).unwrap_or_else(|| mismatch(key))
    }

    fn flag(&self, key: &str) -> bool {
        match self.value(key) {
            Some(Value::Flag(flag)) => *flag,
            _ => mismatch(key),
        }
    }

    fn number(&self, key: &str) -> u64 {
        match self.value(key) {
            Some(Value::Number(number)) => *number,
            _ => mismatch(key),
        }
    }

    fn count(&self, key: &str) -> usize {
        usize::try_from(self.number(key)).unwrap_or(usize::MAX)
    }

    fn small(&self, key: &str) -> u32 {
        u32::try_from(self.number(key)).unwrap_or(u32::MAX)
    }

    fn duration(&self, key: &str) -> Duration {
        Duration::from_millis(self.number(key))
    }

    fn millis(&self, key: &str) -> Option<u64> {
        match self.value(key) {
            None => None,
            Some(Value::Number(ms)) => Some(*ms),
            Some(_) => mismatch(key),
        }
    }

    fn path(&self, key: &str) -> Option<PathBuf> {
        self.maybe(key).map(PathBuf::from)
    }

    fn address(&self, key: &str) -> std::net::SocketAddr {
        self.text(key).parse().unwrap_or_else(|_| mismatch(key))
    }

    fn list(&self, key: &str) -> Vec<String> {
        match self.value(key) {
            None => Vec::new(),
            Some(Value::List(items)) => items.clone(),
            Some(_) => mismatch(key),
        }
    }

    fn paths(&self, key: &str) -> Vec<PathBuf> {
        self.list(key).into_iter().map(PathBuf::from).collect()
    }

    fn map(&self, key: &str) -> BTreeMap<String, String> {
        match self.value(key) {
            None => BTreeMap::new(),
            Some(Value::Map(entries)) => entries.clone(),
            Some(_) => mismatch(key),
        }
    }

    fn endpoints(&self, key: &str) -> Vec<Endpoint> {
        self.list(key).into_iter().filter_map(endpoint).collect()
    }
}

/// The table and this file don't match. This is a bug in Swirl that would show at every start.
fn mismatch(key: &str) -> ! {
    panic!("the table of settings has no '{key}' of this type")
}

/// The text was checked before.
fn endpoint(text: String) -> Option<Endpoint> {
    Url::parse(&text).ok().map(Endpoint::new)
}

/// For example, `redis-sentinel` becomes `redis`.
fn without_sentinel(endpoint: Endpoint) -> Endpoint {
    let text = endpoint.expose().as_str();
    let plain = text.replacen("-sentinel://", "://", 1);
    Url::parse(&plain).map_or(endpoint, Endpoint::new)
}
