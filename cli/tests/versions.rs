//! Builds of several versions on one installation. Builds with the same record format work side by side, and an older
//! one makes way for a newer one. Each process has the format that the test sets, as if another build had made it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use swirl_chaos::{Cluster, Process, Role};
use swirl_servers::until;

const BINARY: &str = env!("CARGO_BIN_EXE_swirl");
const LEASE: Duration = Duration::from_secs(3);
const DEFINITION: &str = "\
id: ask
version: '1'
specVersion: '0.8'
functions: [{name: join, type: expression, operation: '{said: .answer.text}'}]
events:
  - {name: answer, source: /test, type: test.answer, correlation: [{contextAttributeName: number, contextAttributeValue: '${ .number }'}]}
start: begin
states:
  - {name: begin, type: inject, data: {}, transition: wait}
  - name: wait
    type: event
    onEvents: [{eventRefs: [answer], eventDataFilter: {toStateData: .answer}}]
    transition: rest
  - {name: rest, type: sleep, duration: PT0.1S, transition: tell}
  - name: tell
    type: operation
    actions: [{functionRef: join}]
    stateDataFilter: {output: '{said}'}
    end: true
";

/// One worker and one coordinator of a build.
struct Build(Vec<Process>);

impl Build {
    /// Starts them. They may have to wait until others have gone.
    fn start(cluster: &Cluster, folder: &Path, format: u32) -> Build {
        let (redis, nats) = (cluster.redis.address(), cluster.nats.address());
        let roles = [Role::Coordinator, Role::Worker].into_iter().enumerate();
        let processes = roles.map(|(number, role)| {
            let name = format as usize * 10 + number;
            let servers = (redis.as_str(), nats.as_str());
            let binary = Path::new(BINARY);
            let mut process = Process::new(role, name, binary, folder, servers, LEASE).unwrap();
            let format = format.to_string();
            // A newer build waits as long as older ones may take to stop.
            let variables = [
                ("TEST_SWIRL_FORMAT", format.as_str()),
                ("SWIRL_WORKER_SHUTDOWN_DEADLINE", "5s"),
                ("SWIRL_COORDINATOR_SHUTDOWN_DEADLINE", "4s"),
            ];
            let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
            process.variables = variables.to_vec();
            process.start().unwrap();
            process
        });
        Build(processes.collect())
    }

    fn wait(&mut self) {
        self.0.iter_mut().for_each(|one| one.wait().unwrap());
    }

    fn coordinator(&self) -> String {
        format!("http://{}", self.0[0].address)
    }

    /// Waits until both have ended by themselves, and returns their outputs.
    fn ended(&mut self) -> Vec<String> {
        let all = self.0.iter_mut();
        all.map(|one| until("its end", || one.ended())).collect()
    }
}

/// Runs a command against a coordinator and returns its output.
fn swirl(server: &str, arguments: &[&str]) -> Value {
    let mut command = Command::new(BINARY);
    for variable in ["SWIRL_CONFIG", "SWIRL_TOKEN", "SWIRL_TOKEN_FILE"] {
        command.env_remove(variable);
    }
    let done = command
        .args(arguments)
        .args(["--output", "json", "--server", server])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{arguments:?}: {text}");
    serde_json::from_slice(&done.stdout).unwrap()
}

fn started(server: &str, number: u32) -> String {
    let input = json!({"number": number.to_string()}).to_string();
    let started = swirl(server, &["start", "ask", "--input", &input]);
    started["id"].as_str().unwrap().to_owned()
}

/// Sends the event that the instance waits for, and waits for the end.
fn finish(server: &str, folder: &Path, id: &str, number: u32) {
    let event = json!({
        "specversion": "1.0", "id": number.to_string(), "source": "/test", "type": "test.answer",
        "number": number.to_string(), "data": {"text": format!("hello {number}")},
    });
    let file = folder.join("event.json");
    std::fs::write(&file, event.to_string()).unwrap();
    swirl(server, &["send-event", file.to_str().unwrap()]);
    let ended = until("its end", || {
        let view = swirl(server, &["get", id]);
        (view["status"] != "running").then_some(view)
    });
    let output = json!({"said": format!("hello {number}")});
    assert_eq!(
        (&ended["status"], &ended["output"]),
        (&json!("completed"), &output),
        "{ended:#}"
    );
}

#[test]
fn an_older_build_makes_way_for_a_newer_one() {
    let cluster = Cluster::start(Path::new(BINARY), 0, 0, LEASE, false).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ask.sw.yaml");
    std::fs::write(&file, DEFINITION).unwrap();
    let of = |name: &str| {
        let folder = folder.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        folder
    };

    // Two builds with the same format, side by side. Each continues instances that the other one starts.
    let mut first = Build::start(&cluster, &of("first"), 7);
    first.wait();
    let mut second = Build::start(&cluster, &of("second"), 7);
    second.wait();
    swirl(&first.coordinator(), &["deploy", file.to_str().unwrap()]);
    for number in 0..4 {
        let (one, other) = match number % 2 {
            0 => (&first, &second),
            _ => (&second, &first),
        };
        let id = started(&one.coordinator(), number);
        finish(&other.coordinator(), folder.path(), &id, number);
    }
    for one in first.0.iter_mut().chain(&mut second.0) {
        assert_eq!(one.ended(), None);
    }
    let waiting: Vec<(u32, String)> = (4..8)
        .map(|number| (number, started(&first.coordinator(), number)))
        .collect();

    // A build with a newer format: the others end by themselves, and nothing is lost.
    let mut newer = Build::start(&cluster, &of("newer"), 8);
    for log in first.ended().into_iter().chain(second.ended()) {
        assert!(log.contains("ended (exit status: 0)"), "{log}");
        assert!(log.contains("a newer build writes records"), "{log}");
    }
    newer.wait();
    for (number, id) in &waiting {
        finish(&newer.coordinator(), folder.path(), id, *number);
    }

    // An older build that starts later is refused and says why. The newer ones aren't affected.
    let mut older = Build::start(&cluster, &of("older"), 7);
    for log in older.ended() {
        assert!(!log.contains("exit status: 0"), "{log}");
        assert!(log.contains("records of format 8"), "{log}");
        assert!(log.contains("formats up to 7"), "{log}");
    }
    let id = started(&newer.coordinator(), 8);
    finish(&newer.coordinator(), folder.path(), &id, 8);
    for one in &mut newer.0 {
        assert_eq!(one.ended(), None);
    }
}
