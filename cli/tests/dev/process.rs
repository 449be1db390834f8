//! `swirl dev` as a separate process, and the service that its workflows call.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use reqwest::Method;
use serde_json::Value;
use swirl_servers::{PATIENCE, eventually};

use crate::dev::http::{Answer, Http};

pub struct Dev {
    process: Child,
    pub url: String,
    pub http: Arc<Http>,
    /// Its output on standard error.
    pub log: Arc<Mutex<String>>,
}

/// The command for a folder of definitions. Its store is inside the folder.
pub fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_swirl"));
    command
        .args(["dev", "--listen", "127.0.0.1:0", "--color", "never"])
        .args(["--api-host", "Named.test"])
        .arg(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .env_remove("SWIRL_LOG");
    command
}

impl Dev {
    pub async fn start(folder: &Path) -> Dev {
        Dev::of(command(folder)).await
    }

    /// Returns when the process has printed the address of its API.
    pub async fn of(mut command: Command) -> Dev {
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let log = Arc::new(Mutex::new(String::new()));
        let (there, url) = tokio::sync::oneshot::channel();
        let mut there = Some(there);
        let kept = log.clone();
        // Reads to the end, because otherwise the process blocks once the pipe is full.
        std::thread::spawn(move || {
            while let Some(Ok(line)) = lines.next() {
                if let Some((_, url)) = line.split_once("the API is at ")
                    && let Some(there) = there.take()
                {
                    let url = url.trim_end_matches(['"', '}', ',']);
                    let _ = there.send(url.trim_end_matches("/api/v1/openapi.json").to_owned());
                }
                let mut log = kept.lock().unwrap();
                log.push_str(&line);
                log.push('\n');
            }
        });
        let url = match tokio::time::timeout(PATIENCE, url).await {
            Ok(Ok(url)) => url,
            _ => panic!("it didn't start: {}", log.lock().unwrap()),
        };
        Dev {
            process,
            url,
            http: Arc::new(Http::new()),
            log,
        }
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// SIGKILL.
    pub fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// The exit code and the log, once it has ended.
    pub async fn ended(mut self) -> (Option<i32>, String) {
        let status = eventually("its end", async || self.process.try_wait().unwrap()).await;
        (status.code(), self.log.lock().unwrap().clone())
    }

    /// Waits until the log contains these words.
    pub async fn said(&self, words: &str) {
        let log = || self.log.lock().unwrap().clone();
        let what = std::fmt::from_fn(|f| write!(f, "{words}:\n{}", log()));
        eventually(what, async || log().contains(words).then_some(())).await;
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], "").await
    }

    pub async fn post(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<reqwest::Body>,
    ) -> Answer {
        self.send(Method::POST, path, headers, body).await
    }

    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<reqwest::Body>,
    ) -> Answer {
        let sent = self.http.send(method, &self.url, path, headers, body);
        sent.await.unwrap()
    }

    /// Repeats the request until the answer satisfies the condition.
    pub async fn until(&self, path: &str, what: &str, there: impl Fn(&Value) -> bool) -> Value {
        let last = Mutex::new(Value::Null);
        let what = std::fmt::from_fn(|f| write!(f, "{what}: {:#}", last.lock().unwrap()));
        eventually(what, async || {
            let body = self.get(path).await.is(200);
            *last.lock().unwrap() = body.clone();
            there(&body).then_some(body)
        })
        .await
    }

    /// Runs a command against this server, and returns exit code, stdout and stderr.
    pub fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_swirl"))
            .args(arguments)
            .args(["--server", &self.url, "--color", "never"])
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    }

    /// The JSON output of a command that is run against this server.
    pub fn swirl(&self, arguments: &[&str]) -> Value {
        let output = Command::new(env!("CARGO_BIN_EXE_swirl"))
            .args(arguments)
            .args(["--output", "json", "--server", &self.url])
            .output()
            .unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Serves the shop of the examples, and returns its address.
pub async fn demo() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(swirl_demo_service::serve(listener));
    address
}
