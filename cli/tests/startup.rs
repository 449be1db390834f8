//! Processes whose servers are missing, refuse them, or permit only part of their work; and that have too much of it.

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use swirl_servers::{
    NatsOptions, NatsServer, PATIENCE, RedisOptions, RedisSentinels, RedisServer, free_port, until,
};

struct Process {
    child: Child,
    log: PathBuf,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Process {
    fn start(role: &str, redis: u16, nats: u16) -> Process {
        Process::on(
            role,
            &["--redis-url", &format!("redis://127.0.0.1:{redis}")],
            nats,
        )
    }

    fn on(role: &str, redis: &[&str], nats: u16) -> Process {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let port = free_port().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_swirl"));
        command
            .arg(role)
            .args(redis)
            .args(["--nats-url", &format!("nats://127.0.0.1:{nats}")])
            .args(["--redis-shards", "4", "--nats-events-bytes-max", "16MiB"])
            .args(["--nats-tasks-bytes-max", "16MiB"])
            .args([format!("--{role}-listen"), format!("127.0.0.1:{port}")]);
        if role == "coordinator" {
            command.args(["--auth-mode", "off"]);
        }
        let child = command
            .env_remove("SWIRL_CONFIG")
            .env("SWIRL_LOG", "info")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        Process {
            child,
            log,
            port,
            _folder: folder,
        }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    fn until(&self, what: &str, done: impl Fn() -> bool) {
        let what = std::fmt::from_fn(|f| write!(f, "{what}: {}", self.log()));
        until(what, || done().then_some(()));
    }

    fn says(&self, text: &str) {
        self.until(text, || self.log().contains(text));
    }

    fn terminate(&self) {
        let pid = Pid::from_raw(self.child.id() as i32).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
    }

    fn end(&mut self) -> ExitStatus {
        let log = self.log.clone();
        let what = std::fmt::from_fn(|f| {
            write!(
                f,
                "its end: {}",
                std::fs::read_to_string(&log).unwrap_or_default()
            )
        });
        until(what, || self.child.try_wait().unwrap())
    }

    /// Status line and body of `/readyz`, or `None` if nothing listens.
    fn ready(&self) -> Option<String> {
        self.get("/readyz")
    }

    fn get(&self, path: &str) -> Option<String> {
        self.ask("GET", path, "")
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    }

    /// Deploys a definition, and starts an instance of it. Returns the path of the instance.
    fn runs(&self, definition: &Value) -> String {
        let deployed = self.ask("POST", "/api/v1/definitions", &definition.to_string());
        let deployed = deployed.unwrap();
        assert!(deployed.starts_with("HTTP/1.1 20"), "{deployed}");
        let (_, body) = deployed.split_once("\r\n\r\n").unwrap();
        let body: Value = serde_json::from_str(body).unwrap();
        let id = body["id"].as_str().unwrap();
        let path = format!("/api/v1/workflows/{id}/instances");
        let started = self.ask("POST", &path, "{}").unwrap();
        assert!(started.starts_with("HTTP/1.1 201"), "{started}");
        let location = started
            .lines()
            .find_map(|line| line.strip_prefix("location: "));
        location.unwrap().to_owned()
    }

    fn is_ready(&self) -> bool {
        self.ready()
            .is_some_and(|answer| answer.starts_with("HTTP/1.1 200"))
    }

    fn becomes(&self, text: &str) {
        self.until(text, || {
            self.ready().is_some_and(|answer| answer.contains(text))
        });
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn processes_wait_for_late_servers() {
    let (redis, nats) = (free_port().unwrap(), free_port().unwrap());
    let processes = ["worker", "coordinator"].map(|role| Process::start(role, redis, nats));
    for process in &processes {
        process.says("Redis is not reachable yet");
        process.says(&format!("Redis at 127.0.0.1:{redis}: "));
    }
    let _redis = RedisServer::start_with(RedisOptions {
        port: Some(redis),
        ..RedisOptions::default()
    });
    for process in &processes {
        process.says("NATS is not reachable yet");
        // So that nobody kills it, and nobody sends requests.
        let (alive, ready) = (process.get("/healthz").unwrap(), process.ready().unwrap());
        assert!(alive.starts_with("HTTP/1.1 200"), "{alive}");
        assert!(ready.starts_with("HTTP/1.1 503"), "{ready}");
    }
    let _nats = NatsServer::start_with(NatsOptions {
        port: Some(nats),
        ..NatsOptions::default()
    });
    for process in &processes {
        process.until("readiness", || process.is_ready());
    }
}

/// The first server may disappear while the process waits for the second one.
#[test]
fn servers_may_disappear_during_a_start() {
    let (redis, nats) = (free_port().unwrap(), free_port().unwrap());
    let start_redis = || {
        RedisServer::start_with(RedisOptions {
            port: Some(redis),
            ..RedisOptions::default()
        })
    };
    let first = start_redis();
    let processes = ["worker", "coordinator"].map(|role| Process::start(role, redis, nats));
    for process in &processes {
        process.says("NATS is not reachable yet");
    }
    drop(first);
    let _nats = NatsServer::start_with(NatsOptions {
        port: Some(nats),
        ..NatsOptions::default()
    });
    for process in &processes {
        process.says("Redis is no longer reachable");
    }
    let _redis = start_redis();
    for process in &processes {
        process.until("readiness", || process.is_ready());
    }
}

#[test]
fn a_process_that_waits_for_a_server_can_be_stopped() {
    for role in ["worker", "coordinator"] {
        let mut process = Process::start(role, free_port().unwrap(), free_port().unwrap());
        process.says("Redis is not reachable yet");
        process.terminate();
        assert_eq!(process.end().code(), Some(0), "{}", process.log());
    }
}

/// So that systemd restarts it, which it doesn't after exit code 2.
#[test]
fn a_refused_process_has_another_exit_code_than_a_misconfigured_one() {
    let redis = RedisServer::start().unwrap();
    let nats = NatsServer::start_with(NatsOptions {
        config: "authorization { token: secret }".to_owned(),
        ..NatsOptions::default()
    });
    let nats = nats.unwrap();
    for role in ["worker", "coordinator"] {
        let mut process = Process::start(role, redis.port(), nats.port());
        assert_eq!(process.end().code(), Some(69), "{}", process.log());
    }
    let units = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/systemd");
    for unit in ["swirl-coordinator.service", "swirl-worker@.service"] {
        let text = std::fs::read_to_string(format!("{units}/{unit}")).unwrap();
        assert!(text.contains("\nRestartPreventExitStatus=2\n"), "{unit}");
        assert!(text.contains("\nRestart=always\n"), "{unit}");
    }
}

#[test]
fn missing_permissions_are_reported() {
    let args = ["--maxmemory", "64mb", "--maxmemory-policy", "noeviction"];
    let redis = RedisServer::start_with(RedisOptions {
        args: args.map(str::to_owned).to_vec(),
        ..RedisOptions::default()
    });
    let (redis, mut nats) = (redis.unwrap(), NatsServer::start().unwrap());
    let [worker, coordinator] =
        ["worker", "coordinator"].map(|role| Process::start(role, redis.port(), nats.port()));
    worker.until("readiness", || worker.is_ready());
    coordinator.until("readiness", || coordinator.is_ready());
    assert!(!coordinator.ready().unwrap().contains("limited"));

    redis.cli(&["CONFIG", "SET", "maxmemory", "1mb"]).unwrap();
    worker.becomes("ready\nlimited: Redis is out of memory");
    coordinator.becomes("Redis is out of memory");
    assert!(
        coordinator.is_ready(),
        "what is to be cancelled is cancelled here"
    );
    redis.cli(&["CONFIG", "SET", "maxmemory", "64mb"]).unwrap();
    worker.until("memory", || !worker.ready().unwrap().contains("limited"));

    nats.kill().unwrap();
    worker.becomes("HTTP/1.1 503");
    coordinator.becomes("instances that need a worker and events over NATS wait");
    assert!(coordinator.is_ready(), "starts are kept");
    let _without = NatsServer::start_with(NatsOptions {
        port: Some(nats.port()),
        without_jetstream: true,
        ..NatsOptions::default()
    });
    worker.becomes("JetStream");
    assert!(!worker.is_ready());
}

/// Calls a service, so only a worker can run it.
fn calls(port: u16) -> Value {
    json!({
        "document": {"dsl": "1.0.0", "namespace": "test", "name": "calls", "version": "1.0.0"},
        "do": [{"ask": {"call": "http", "with": {
            "method": "get", "endpoint": format!("http://127.0.0.1:{port}/"),
        }}}],
    })
}

#[test]
fn a_backlog_that_does_not_shrink_is_reported() {
    let (redis, nats) = (RedisServer::start().unwrap(), NatsServer::start().unwrap());
    let coordinator = Process::start("coordinator", redis.port(), nats.port());
    coordinator.until("readiness", || coordinator.is_ready());
    // No worker takes the task.
    let instance = coordinator.runs(&calls(free_port().unwrap()));
    let begun = Instant::now();
    coordinator.becomes("tasks are waiting in NATS, and their number hasn't fallen for");
    assert!(begun.elapsed() >= Duration::from_secs(30));
    assert!(coordinator.is_ready(), "no other coordinator could do more");
    let _worker = Process::start("worker", redis.port(), nats.port());
    coordinator.until("the end of the backlog", || {
        !coordinator.ready().unwrap().contains("limited")
    });
    coordinator.until("the end of the instance", || {
        let instance = coordinator.get(&instance).unwrap();
        !instance.contains("\"status\":\"running\"")
    });
}

/// The address of the master isn't in the settings: the sentinels tell it.
#[test]
fn the_master_of_sentinels_is_called_by_no_function() {
    let redis = RedisSentinels::start(0, 1).unwrap();
    let nats = NatsServer::start().unwrap();
    let urls = redis
        .urls()
        .remove(0)
        .replace("redis://", "redis-sentinel://");
    let on = [
        "--redis-url",
        &urls,
        "--redis-sentinel-master",
        RedisSentinels::NAME,
    ];
    let [coordinator, worker] =
        ["coordinator", "worker"].map(|role| Process::on(role, &on, nats.port()));
    worker.until("readiness", || worker.is_ready());
    coordinator.until("readiness", || coordinator.is_ready());
    let instance = coordinator.runs(&calls(redis.master_port().unwrap()));
    coordinator.until("the end of the instance", || {
        let instance = coordinator.get(&instance).unwrap();
        assert!(!instance.contains("\"status\":\"completed\""), "{instance}");
        instance.contains("\"status\":\"faulted\"")
    });
    let instance = coordinator.get(&instance).unwrap();
    assert!(
        instance.contains("is a server of this installation"),
        "{instance}"
    );
}

/// More of them than there are threads, and each turn of one is long.
#[test]
fn health_is_answered_while_instances_go_in_circles() {
    const ANSWER_MAX: Duration = Duration::from_secs(2);
    let (redis, nats) = (RedisServer::start().unwrap(), NatsServer::start().unwrap());
    let processes =
        ["coordinator", "worker"].map(|role| Process::start(role, redis.port(), nats.port()));
    let [coordinator, worker] = &processes;
    worker.until("readiness", || worker.is_ready());
    coordinator.until("readiness", || coordinator.is_ready());
    let switch = |name: &str, next: &str| {
        json!({
            "name": name, "type": "switch", "defaultCondition": {"end": true},
            "dataConditions": [{"condition": "${ true }", "transition": next}],
        })
    };
    let circle = json!({
        "id": "circle", "version": "1", "specVersion": "0.8", "start": "A",
        "states": [switch("A", "B"), switch("B", "A")],
    });
    let path = coordinator.runs(&circle);
    for _ in 1..20 {
        coordinator.runs(&circle);
    }
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(10) {
        for process in &processes {
            for path in ["/healthz", "/readyz"] {
                let asked = Instant::now();
                let answer = process.get(path).unwrap();
                let took = asked.elapsed();
                assert!(took < ANSWER_MAX, "{path}: {took:?}");
                assert!(
                    path != "/healthz" || answer.starts_with("HTTP/1.1 200"),
                    "{answer}"
                );
            }
        }
    }
    let instance = coordinator.get(&path).unwrap();
    assert!(instance.contains("\"status\":\"running\""), "{instance}");
}
