//! The conformance kit of DSL 1.0 over real HTTP, on `swirl dev` and on a cluster: `SWIRL_CTK` names the folder of its
//! features, which aren't part of this repository. A service of this test stands in for the hosts that the kit calls, by
//! `functions.servers`.
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "../../../shared/scenario/src/kit/features.rs"]
mod features;
mod pets;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use features::{Case, Seen, examine_all, folder, yaml};
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use swirl_servers::{NatsServer, PATIENCE, RedisServer};
use tokio::runtime::Runtime;

/// Killed when dropped.
struct Process {
    child: Child,
    /// The line that says that it is ready.
    line: String,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    /// Returns when the process has written a line with these words. Its requests to the kit's hosts go to `pets`.
    fn start(pets: &str, arguments: &[&str], ready: &str) -> Process {
        let mut command = Command::new(env!("CARGO_BIN_EXE_swirl"));
        command.args(arguments);
        let hosts = ["petstore.swagger.io", "httpbin.org"];
        let servers = hosts.map(|host| format!("https://{host}={pets}"));
        if arguments[0] == "dev" {
            let servers = servers.iter().map(String::as_str);
            command.args(servers.flat_map(|entry| ["--function-server", entry]));
        } else {
            command.env("SWIRL_FUNCTIONS_SERVERS", servers.join(","));
            command.args(["--log-format", "text"]);
        }
        command
            .env("SWIRL_LOG", "info")
            .env_remove("SWIRL_CONFIG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (found, line) = std::sync::mpsc::channel();
        let words = ready.to_owned();
        // Reads to the end, because otherwise the process blocks once the pipe is full.
        std::thread::spawn(move || {
            let mut all = String::new();
            for line in lines.map_while(Result::ok) {
                if line.contains(&words) {
                    let _ = found.send(Ok(line.clone()));
                }
                all.push_str(&line);
                all.push('\n');
            }
            let _ = found.send(Err(all));
        });
        let mut process = Process {
            child,
            line: String::new(),
        };
        process.line = match line.recv_timeout(PATIENCE) {
            Ok(Ok(line)) => line,
            Ok(Err(log)) => panic!("{arguments:?} ended: {log}"),
            Err(_) => panic!("{arguments:?} doesn't get ready"),
        };
        process
    }

    /// `http://HOST:PORT`
    fn api(&self) -> &str {
        let (_, url) = self.line.split_once("the API is at ").unwrap();
        url.split("/api/").next().unwrap()
    }
}

/// The API of a server.
struct Api<'a> {
    runtime: Runtime,
    http: Client,
    url: &'a str,
    deployed: usize,
}

impl Api<'_> {
    fn new(url: &str) -> Api<'_> {
        let client = Client::builder()
            .tls_backend_preconfigured(swirl_functions::http::tls().unwrap())
            .timeout(Duration::from_secs(120))
            .no_proxy()
            .build();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        Api {
            runtime: runtime.unwrap(),
            http: client.unwrap(),
            url,
            deployed: 0,
        }
    }

    fn send(&self, request: RequestBuilder) -> Result<Value, String> {
        self.runtime.block_on(async {
            let response = request.send().await.unwrap();
            let status = response.status();
            let text = response.text().await.unwrap();
            match status.is_success() {
                true => Ok(serde_json::from_str(&text).unwrap()),
                false => Err(format!("{status}: {text}")),
            }
        })
    }

    fn post(&self, path: &str, media: &str, body: String) -> Result<Value, String> {
        let request = self.http.post(format!("{}/api/v1/{path}", self.url));
        self.send(request.header("content-type", media).body(body))
    }

    fn get(&self, path: &str) -> Result<Value, String> {
        self.send(self.http.get(format!("{}/api/v1/{path}", self.url)))
    }

    fn examine(&mut self, case: &Case) -> Result<(), String> {
        // Some documents of the kit have the same name and version, and only one can be deployed.
        self.deployed += 1;
        let version = format!("version: '1.0.{}'", self.deployed);
        let document = case.definition().replacen("version: '1.0.0'", &version, 1);
        // Documents of services come with the deployment: only requests follow the mapping of hosts.
        let pets = pets::document().to_string();
        let resources = json!({"https://petstore.swagger.io/v2/swagger.json": pets});
        let body = json!({"document": document, "resources": resources});
        let media = "application/vnd.swirl.deployment+json";
        let deployed = self.post("definitions", media, body.to_string())?;
        let (id, version) = (&deployed["id"], &deployed["version"]);
        let (id, version) = (id.as_str().unwrap(), version.as_str().unwrap());
        let path = format!("workflows/{id}/instances?version={version}");
        let input = yaml(&case.input()).to_string();
        let started = self.post(&path, "application/json", input)?;
        let path = format!("instances/{}", started["id"].as_str().unwrap());
        let instance = self.get(&format!("{path}?wait=PT60S"))?;
        let history = self.get(&format!("{path}/history"))?;
        let entries = history["entries"].as_array().unwrap().iter();
        let names = entries.filter(|entry| entry["event"] == "state_entered");
        let names = names.map(|entry| entry["name"].as_str().unwrap().to_owned());
        let error = instance["error"].as_object();
        let members = ["type", "status", "title", "detail", "instance"];
        let error = error.map(|error| {
            let members = error
                .iter()
                .filter(|(name, value)| members.contains(&name.as_str()) && !value.is_null());
            Value::Object(
                members
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect(),
            )
        });
        case.check(&Seen {
            status: instance["status"].as_str().unwrap().to_owned(),
            output: yaml(&instance["output"].to_string()),
            error: yaml(&error.unwrap_or_default().to_string()),
            tasks: names.collect(),
        })
    }
}

fn examine_on(process: &Process, folder: &Path) {
    let mut api = Api::new(process.api());
    examine_all(folder, |case| api.examine(case));
}

#[test]
fn the_kit_passes_on_swirl_dev() {
    let Some(folder) = folder() else { return };
    let (pets, empty) = (pets::serve(), tempfile::tempdir().unwrap());
    let arguments = [
        "dev",
        "--listen",
        "127.0.0.1:0",
        empty.path().to_str().unwrap(),
    ];
    let dev = Process::start(&pets, &arguments, "the API is at ");
    examine_on(&dev, Path::new(&folder));
}

#[test]
fn the_kit_passes_on_a_cluster() {
    let Some(folder) = folder() else { return };
    let pets = pets::serve();
    let (redis, nats) = (RedisServer::start().unwrap(), NatsServer::start().unwrap());
    let (redis, nats) = (redis.url(), nats.url());
    let start = |role: &str, own: &[&str], ready: &str| {
        let common = [role, "--redis-url", &redis, "--nats-url", &nats];
        let limits = [
            "--nats-events-bytes-max",
            "16MiB",
            "--nats-tasks-bytes-max",
            "16MiB",
        ];
        Process::start(&pets, &[&common[..], &limits, own].concat(), ready)
    };
    let listens = ["--coordinator-listen", "127.0.0.1:0", "--auth-mode", "off"];
    let coordinator = start("coordinator", &listens, "the API is at ");
    let _workers = [(); 2].map(|()| {
        let listens = ["--worker-listen", "127.0.0.1:0"];
        start("worker", &listens, "working")
    });
    examine_on(&coordinator, Path::new(&folder));
}
