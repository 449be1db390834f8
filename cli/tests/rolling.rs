//! All processes of a cluster are replaced, one after another, and no client sees an error.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use swirl_chaos::Cluster;

const BINARY: &str = env!("CARGO_BIN_EXE_swirl");
/// Half of them wait for the end of what they start; the others ask and ask.
const CLIENTS: usize = 6;
const STOP_MAX: Duration = Duration::from_secs(40);
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

/// What clients were told.
#[derive(Default)]
struct Told {
    ids: Mutex<Vec<String>>,
    errors: Mutex<Vec<String>>,
    starts: Mutex<usize>,
    requests: Mutex<usize>,
}

struct Clients<'a> {
    servers: String,
    told: &'a Told,
}

impl Clients<'_> {
    /// What a command prints as JSON; an exit code other than 0 is an error that a client sees.
    fn swirl(&self, arguments: &[&str]) -> Option<Value> {
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
        *self.told.requests.lock().unwrap() += 1;
        let parsed = serde_json::from_slice(&done.stdout).ok();
        if done.status.success() && parsed.is_some() {
            return parsed;
        }
        let text = String::from_utf8_lossy(&done.stderr);
        let mut errors = self.told.errors.lock().unwrap();
        errors.push(format!("{arguments:?}: {text}"));
        None
    }

    /// Starts one and waits for its end; or starts one, looks at it and at the list.
    fn round(&self, waits: bool) {
        *self.told.starts.lock().unwrap() += 1;
        if waits {
            if let Some(ended) = self.swirl(&["start", "nap", "--wait"]) {
                assert_eq!(ended["output"], serde_json::json!({"rested": true}));
            }
            return;
        }
        if let Some(started) = self.swirl(&["start", "nap"]) {
            let id = started["id"].as_str().unwrap().to_owned();
            self.swirl(&["get", &id]);
            self.told.ids.lock().unwrap().push(id);
        }
        self.swirl(&["list", "--limit", "3"]);
    }

    /// How many instances there are.
    fn count(&self) -> usize {
        let mut count = 0;
        let mut after: Option<String> = None;
        loop {
            let mut arguments = vec!["list", "--limit", "1000"];
            if let Some(after) = &after {
                arguments.extend(["--after", after]);
            }
            let page = self.swirl(&arguments).unwrap();
            count += page["instances"].as_array().unwrap().len();
            after = page["next"].as_str().map(str::to_owned);
            if after.is_none() {
                return count;
            }
        }
    }
}

#[test]
fn no_client_sees_that_processes_are_replaced() {
    let mut cluster =
        Cluster::start(Path::new(BINARY), 2, 2, Duration::from_secs(3), false).unwrap();
    let told = Told::default();
    let clients = Clients {
        servers: cluster.apis().join(","),
        told: &told,
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
                std::thread::sleep(Duration::from_millis(500));
                let process = &mut cluster.processes[index];
                process.stop(STOP_MAX).unwrap();
                process.start().unwrap();
                process.wait().unwrap();
            }
            std::thread::sleep(Duration::from_millis(500));
        }));
        over.store(true, Ordering::Relaxed);
        replaced.unwrap();
    });

    let requests = *told.requests.lock().unwrap();
    let errors = told.errors.lock().unwrap().join("\n");
    assert!(errors.is_empty(), "{requests} requests:\n{errors}");
    assert!(requests > 100, "{requests}");
    for id in told.ids.lock().unwrap().iter() {
        let mut view = clients.swirl(&["get", id]).unwrap();
        for _ in 0..100 {
            if view["status"] != "running" {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
            view = clients.swirl(&["get", id]).unwrap();
        }
        assert_eq!(view["status"], "completed", "{view:#}");
    }
    // None was started twice, and none is missing.
    assert_eq!(clients.count(), *told.starts.lock().unwrap());
}
