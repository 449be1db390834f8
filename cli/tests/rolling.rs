//! Processes of a cluster are replaced: clients see no errors, and nothing waits for a process that is gone.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::HeaderMap;
use axum::routing::post;
use serde_json::{Value, json};
use swirl_chaos::{Cluster, Role};
use swirl_servers::{PATIENCE, until};

const BINARY: &str = env!("CARGO_BIN_EXE_swirl");
/// Half of them wait for the end of the instances that they start, the others poll.
const CLIENTS: usize = 6;
const STOP_MAX: Duration = PATIENCE;
const DEFINITION: &str = "\
id: nap
version: '1'
specVersion: '0.8'
name: nap
start: rest
states:
  - {name: rest, type: sleep, duration: PT0.2S, transition: tell}
  - {name: tell, type: inject, data: {rested: true}, end: true}
";

/// The answers that clients received.
#[derive(Default)]
struct Observed {
    ids: Mutex<Vec<String>>,
    errors: Mutex<Vec<String>>,
    starts: Mutex<usize>,
    requests: Mutex<usize>,
}

struct Clients<'a> {
    servers: String,
    observed: &'a Observed,
}

impl Clients<'_> {
    /// A command's JSON output. Any exit code other than 0 is an error that a client sees; it includes the command's
    /// stderr.
    fn ask(&self, arguments: &[&str]) -> Result<Value, String> {
        let mut command = Command::new(BINARY);
        for variable in ["SWIRL_CONFIG", "SWIRL_TOKEN", "SWIRL_TOKEN_FILE"] {
            command.env_remove(variable);
        }
        let done = command
            .args(arguments)
            .args(["--output", "json"])
            .env("SWIRL_SERVER", &self.servers)
            .output()
            .unwrap();
        *self.observed.requests.lock().unwrap() += 1;
        let parsed = serde_json::from_slice(&done.stdout).ok();
        parsed.filter(|_| done.status.success()).ok_or_else(|| {
            let text = String::from_utf8_lossy(&done.stderr);
            format!("{arguments:?}: {}: {text}", done.status)
        })
    }

    /// As [`Clients::ask`]; errors are recorded.
    fn swirl(&self, arguments: &[&str]) -> Option<Value> {
        let answer = self.ask(arguments);
        let mut errors = self.observed.errors.lock().unwrap();
        answer.map_err(|error| errors.push(error)).ok()
    }

    /// Starts an instance and waits for its end, or starts one and reads it and the list.
    fn round(&self, waits: bool) {
        *self.observed.starts.lock().unwrap() += 1;
        if waits {
            if let Some(ended) = self.swirl(&["start", "nap", "--wait"]) {
                assert_eq!(ended["output"], json!({"rested": true}));
            }
            return;
        }
        if let Some(started) = self.swirl(&["start", "nap"]) {
            let id = started["id"].as_str().unwrap().to_owned();
            self.swirl(&["get", &id]);
            self.observed.ids.lock().unwrap().push(id);
        }
        self.swirl(&["list", "--limit", "3"]);
    }

    /// Lets all clients send some more requests.
    fn send_some_more(&self) {
        let requests = || *self.observed.requests.lock().unwrap();
        let enough = requests() + 5 * CLIENTS;
        until("so many answers", || (requests() >= enough).then_some(()));
    }

    /// Returns the instance, which completes soon.
    fn ended(&self, id: &str) -> Value {
        let view = until("its end", || {
            let view = self.ask(&["get", id]).unwrap();
            (view["status"] != "running").then_some(view)
        });
        assert_eq!(view["status"], "completed", "{view:#}");
        view
    }

    /// The number of instances.
    fn count(&self) -> usize {
        let mut count = 0;
        let mut after: Option<String> = None;
        loop {
            let mut arguments = vec!["list", "--limit", "1000"];
            if let Some(after) = &after {
                arguments.extend(["--after", after]);
            }
            let page = self.ask(&arguments).unwrap();
            count += page["instances"].as_array().unwrap().len();
            after = page["next"].as_str().map(str::to_owned);
            if after.is_none() {
                return count;
            }
        }
    }
}

#[test]
fn clients_do_not_notice_replaced_processes() {
    let mut cluster =
        Cluster::start(Path::new(BINARY), 2, 2, Duration::from_secs(3), false).unwrap();
    let observed = Observed::default();
    let clients = Clients {
        servers: cluster.apis().join(","),
        observed: &observed,
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nap.sw.yaml");
    std::fs::write(&file, DEFINITION).unwrap();
    assert!(clients.swirl(&["deploy", file.to_str().unwrap()]).is_some());

    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (over, clients) = (&over, &clients);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    clients.round(client % 2 == 0);
                }
            });
        }
        let replaced = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for index in 0..cluster.processes.len() {
                clients.send_some_more();
                let process = &mut cluster.processes[index];
                process.stop(STOP_MAX).unwrap();
                process.start().unwrap();
                process.wait().unwrap();
            }
            clients.send_some_more();
        }));
        over.store(true, Ordering::Relaxed);
        replaced.unwrap();
    });

    let requests = *observed.requests.lock().unwrap();
    let errors = observed.errors.lock().unwrap().join("\n");
    assert!(errors.is_empty(), "{requests} requests:\n{errors}");
    for id in observed.ids.lock().unwrap().iter() {
        clients.ended(id);
    }
    // No instance was started twice, and none is missing.
    assert_eq!(clients.count(), *observed.starts.lock().unwrap());
}

/// Whether `/readyz` reports that the process can do all its work.
fn is_ready(address: SocketAddr) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream
            .write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}

/// No client waits for a process that doesn't come back.
#[test]
fn processes_stop_without_their_servers() {
    let mut cluster =
        Cluster::start(Path::new(BINARY), 1, 1, Duration::from_secs(3), false).unwrap();
    cluster.nats.kill().unwrap();
    cluster.redis.kill().unwrap();
    for process in &cluster.processes {
        until("its notice", || (!is_ready(process.address)).then_some(()));
    }
    for process in &mut cluster.processes {
        process.stop(STOP_MAX).unwrap();
    }
}

/// Longer than anyone would wait.
const LEASE: Duration = Duration::from_secs(3_600);
const CALLS: &str = "\
id: call
version: '1'
specVersion: '0.8'
name: call
start: ask
functions:
  - {name: work, operation: service.json#work}
states:
  - name: ask
    type: operation
    end: true
    actions:
      - functionRef: {refName: work}
        actionDataFilter: {toStateData: .answer}
";

/// A service that doesn't answer the first call: its description, and the keys of the calls.
fn service() -> (Value, Receiver<String>) {
    let (called, calls) = channel();
    let called = Arc::new(Mutex::new(called));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    let first = Arc::new(AtomicBool::new(true));
    let answer = async move |headers: HeaderMap| {
        let key = headers["idempotency-key"].to_str().unwrap().to_owned();
        called.lock().unwrap().send(key).unwrap();
        if first.swap(false, Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        axum::Json(json!({"done": true}))
    };
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let router = Router::new().route("/work", post(answer));
            axum::serve(listener, router).await.unwrap();
        });
    });
    let operation = json!({"operationId": "work", "responses": {"200": {"description": "done"}}});
    let document = json!({
        "openapi": "3.0.3",
        "info": {"title": "work", "version": "1"},
        "servers": [{"url": format!("http://{address}")}],
        "paths": {"/work": {"post": operation}},
    });
    (document, calls)
}

#[test]
fn another_worker_repeats_a_call_of_a_stopping_worker() {
    let mut cluster = Cluster::start(Path::new(BINARY), 2, 1, LEASE, false).unwrap();
    let observed = Observed::default();
    let clients = Clients {
        servers: cluster.apis().join(","),
        observed: &observed,
    };
    let (document, calls) = service();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("call.sw.yaml");
    std::fs::write(&file, CALLS).unwrap();
    std::fs::write(folder.path().join("service.json"), document.to_string()).unwrap();
    assert!(clients.swirl(&["deploy", file.to_str().unwrap()]).is_some());

    // One worker has the call under way. Then a second worker is started.
    let workers = cluster.of(Role::Worker);
    for index in &workers {
        let worker = &mut cluster.processes[*index];
        worker.stop(STOP_MAX).unwrap();
        let deadline = ["--worker-shutdown-deadline", "500ms"];
        worker.flags = deadline.map(str::to_owned).to_vec();
    }
    cluster.processes[workers[0]].start().unwrap();
    cluster.processes[workers[0]].wait().unwrap();
    let started = clients.ask(&["start", "call"]).unwrap();
    let key = calls.recv_timeout(STOP_MAX).unwrap();
    cluster.processes[workers[1]].start().unwrap();
    cluster.processes[workers[1]].wait().unwrap();

    let stopped = cluster.processes[workers[0]].stop(STOP_MAX).unwrap();
    assert!(stopped < LEASE, "{stopped:?}");
    let again = calls.recv_timeout(PATIENCE).unwrap();
    assert_eq!(again, key, "it is the same call");
    let id = started["id"].as_str().unwrap();
    assert_eq!(
        clients.ended(id)["output"],
        json!({"answer": {"done": true}})
    );
    assert!(observed.errors.lock().unwrap().is_empty());
}
