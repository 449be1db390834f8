//! The processes that serve the console: `swirl dev`, and a small cluster that requires tokens.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use reqwest::Client;
use swirl_login::{AUDIENCE, CLIENT, Login};
use swirl_servers::{NatsServer, RedisServer};
use tempfile::TempDir;

use crate::api::Api;

/// The time limit for starting a process.
const START_MAX: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(20);

/// Settings in a developer's environment that processes must not inherit.
const VARIABLES: [&str; 7] = [
    "SWIRL_CA_FILE",
    "SWIRL_CONFIG",
    "SWIRL_LOG",
    "SWIRL_NAMESPACE",
    "SWIRL_SERVER",
    "SWIRL_TOKEN",
    "SWIRL_TOKEN_FILE",
];

fn command(swirl: &Path) -> Command {
    let mut command = Command::new(swirl);
    for variable in VARIABLES {
        command.env_remove(variable);
    }
    command.stdin(Stdio::null());
    command
}

/// A process that has printed the awaited text. Dropping it kills it.
struct Process {
    child: Child,
    log: Arc<Mutex<String>>,
}

impl Process {
    /// Returns the text after `words` in its log, as soon as it is there.
    fn start(mut command: Command, words: &str) -> Result<(Process, String)> {
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut child = child.with_context(|| format!("{command:?} cannot be run"))?;
        let lines = child.stderr.take().map(BufReader::new);
        let mut process = Process {
            child,
            log: Arc::default(),
        };
        let kept = process.log.clone();
        // Read to the end, because otherwise the process blocks once the pipe is full.
        std::thread::spawn(move || {
            let lines = lines.into_iter().flat_map(BufRead::lines);
            for line in lines.map_while(Result::ok) {
                let mut log = kept.lock().unwrap_or_else(PoisonError::into_inner);
                log.push_str(&line);
                log.push('\n');
            }
        });
        let begun = Instant::now();
        loop {
            let log = process.said();
            if let Some((_, rest)) = log.split_once(words)
                && let Some((rest, _)) = rest.split_once('\n')
            {
                let rest = rest.to_owned();
                return Ok((process, rest));
            }
            if let Some(status) = process.child.try_wait()? {
                bail!("{command:?} ended ({status}):\n{}", process.said());
            }
            ensure!(
                begun.elapsed() < START_MAX,
                "{command:?} doesn't start:\n{log}"
            );
            std::thread::sleep(PAUSE);
        }
    }

    fn said(&self) -> String {
        let log = self.log.lock();
        log.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Otherwise it has ended by itself.
        if self.child.kill().is_ok() {
            let _ = self.child.wait();
        }
    }
}

/// The server's URL, derived from that of its OpenAPI document.
fn url(rest: &str) -> String {
    let (url, _) = rest.split_once("/api/v1/").unwrap_or((rest, ""));
    url.to_owned()
}

/// `swirl dev` without definitions, in memory.
pub struct Dev {
    pub api: Api,
    _process: Process,
    _folder: TempDir,
}

impl Dev {
    pub async fn start(swirl: PathBuf, client: Client) -> Result<Dev> {
        let started = tokio::task::spawn_blocking(move || {
            let folder = tempfile::tempdir()?;
            let mut command = command(&swirl);
            command
                .args(["dev", "--memory", "--listen", "127.0.0.1:0"])
                .args(["--color", "never"])
                .arg(folder.path());
            let (process, rest) = Process::start(command, "the API is at ")?;
            anyhow::Ok((folder, process, url(&rest)))
        });
        let (folder, process, url) = started.await??;
        Ok(Dev {
            api: Api {
                url,
                client,
                token: None,
            },
            _process: process,
            _folder: folder,
        })
    }
}

/// A coordinator, a worker, and their servers.
pub struct Cluster {
    /// A client with an administrator's rights.
    pub api: Api,
    pub viewer: String,
    /// The provider at which visitors of the console can sign in.
    pub login: Login,
    pub nats: String,
    _processes: [Process; 2],
    _servers: (RedisServer, NatsServer),
    folder: TempDir,
}

impl Cluster {
    /// The folder with the files of its processes.
    pub fn folder(&self) -> String {
        self.folder.path().display().to_string()
    }

    pub async fn start(swirl: PathBuf, client: Client) -> Result<Cluster> {
        let login = Login::start().await?;
        tokio::task::spawn_blocking(move || Cluster::start_here(&swirl, client, login)).await?
    }

    fn start_here(swirl: &Path, client: Client, login: Login) -> Result<Cluster> {
        let (redis, nats) = (RedisServer::start()?, NatsServer::start()?);
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("tokens.toml");
        let mut entries = String::new();
        let mut token = |role: &str| {
            let path = folder.path().join(role);
            let made = command(swirl)
                .args(["token", "create", "--name", role, "--role", role])
                .arg("--write")
                .arg(&path)
                .output()?;
            let said = String::from_utf8_lossy(&made.stderr);
            ensure!(made.status.success(), "no token: {said}");
            entries.push_str(&String::from_utf8_lossy(&made.stdout));
            let token = std::fs::read_to_string(path)?;
            Ok(token.trim().to_owned())
        };
        let (admin, viewer) = (token("admin")?, token("viewer")?);
        std::fs::write(&file, entries)?;
        let of = |word: &str| {
            let mut command = command(swirl);
            command
                .arg(word)
                .args(["--redis-url", &redis.url(), "--redis-shards", "4"])
                .args(["--nats-url", &nats.url()])
                .args(["--nats-events-bytes-max", "16MiB"])
                .args(["--nats-tasks-bytes-max", "16MiB"])
                .args(["--http-allow-hosts", "127.0.0.1"]);
            command
        };
        let mut coordinator = of("coordinator");
        coordinator
            .args(["--coordinator-listen", "127.0.0.1:0"])
            .args(["--auth-oidc-issuer", &login.issuer])
            .args(["--auth-oidc-audience", AUDIENCE])
            .args(["--auth-oidc-client-id", CLIENT])
            .arg("--auth-tokens-file")
            .arg(&file);
        let (coordinator, rest) = Process::start(coordinator, "the API is at ")?;
        let mut worker = of("worker");
        worker.args(["--worker-listen", "127.0.0.1:0"]);
        let (worker, _) = Process::start(worker, "working")?;
        Ok(Cluster {
            api: Api {
                url: url(&rest),
                client,
                token: Some(admin),
            },
            viewer,
            login,
            nats: nats.url(),
            _processes: [coordinator, worker],
            _servers: (redis, nats),
            folder,
        })
    }
}

/// Serves the shop of the examples, and returns its address.
pub async fn shop() -> Result<String> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    tokio::spawn(swirl_demo_service::serve(listener));
    Ok(address)
}
