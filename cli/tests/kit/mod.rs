//! The conformance kit of DSL 1.0 over real HTTP, on `swirl dev` and on a cluster: `SWIRL_CTK` names the folder of its
//! features, which aren't part of this repository. A service of this test stands in for the hosts that the kit calls, by
//! `functions.servers`.

mod pets;

use std::path::Path;
use std::time::Duration;

use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use swirl_chaos::{Cluster, Role};
use swirl_kit::{Case, Seen, examine_all, folder, yaml};
use swirl_servers::Process;
use tokio::runtime::Runtime;

const BINARY: &str = env!("CARGO_BIN_EXE_swirl");

/// The kit's hosts, at the address of a service of this test.
fn hosts(pets: &str) -> [String; 2] {
    ["petstore.swagger.io", "httpbin.org"].map(|host| format!("https://{host}={pets}"))
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

fn examine_on(url: &str, folder: &Path) {
    let mut api = Api::new(url);
    examine_all(folder, |case| api.examine(case));
}

#[test]
fn the_kit_passes_on_swirl_dev() {
    let Some(folder) = folder() else { return };
    let (definitions, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let log = own.path().join("log");
    let mut arguments = ["dev", "--listen", "127.0.0.1:0"]
        .map(str::to_owned)
        .to_vec();
    for host in hosts(&pets::serve()) {
        arguments.extend(["--function-server".to_owned(), host]);
    }
    arguments.push(definitions.path().display().to_string());
    let mut dev = Process::start(BINARY, "", &arguments, &log).unwrap();
    let url = || {
        let text = std::fs::read_to_string(&log).unwrap();
        let (_, url) = text.split_once("the API is at ")?;
        url.split_once("/api/").map(|(url, _)| url.to_owned())
    };
    dev.wait_until("API", || url().is_some()).unwrap();
    examine_on(&url().unwrap(), Path::new(&folder));
}

#[test]
fn the_kit_passes_on_a_cluster() {
    let Some(folder) = folder() else { return };
    let servers = format!("--functions-servers={}", hosts(&pets::serve()).join(","));
    let lease = Duration::from_secs(10);
    let cluster = Cluster::start_with(Path::new(BINARY), 2, 1, lease, false, &[servers]).unwrap();
    let mut processes = cluster.processes.iter();
    let coordinator = processes.find(|process| process.role == Role::Coordinator);
    let url = format!("http://{}", coordinator.unwrap().address);
    examine_on(&url, Path::new(&folder));
}
