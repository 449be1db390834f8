//! The processes and the files that they use.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use swirl_servers::{NatsServer, RedisServer, until};

const VARIABLES: [&str; 7] = [
    "SWIRL_CA_FILE",
    "SWIRL_CONFIG",
    "SWIRL_LOG",
    "SWIRL_NAMESPACE",
    "SWIRL_SERVER",
    "SWIRL_TOKEN",
    "SWIRL_TOKEN_FILE",
];

pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_swirl"));
    command.args(arguments);
    for variable in VARIABLES {
        command.env_remove(variable);
    }
    command
}

pub fn swirl(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Certificates of a private authority, and a file of tokens.
pub struct Files(tempfile::TempDir);

impl Files {
    pub fn new() -> Files {
        let files = Files(tempfile::tempdir().unwrap());
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = KeyPair::generate().unwrap();
        let authority = CertifiedIssuer::self_signed(params, authority).unwrap();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &authority).unwrap();
        std::fs::write(files.path("ca.pem"), authority.pem()).unwrap();
        std::fs::write(files.path("tls.crt"), certificate.pem()).unwrap();
        std::fs::write(files.path("tls.key"), key.serialize_pem()).unwrap();
        files
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Makes a token of this role, and puts its entry into the file.
    pub fn token(&self, role: &str) -> String {
        let file = self.text(&format!("{role}.token"));
        let made = swirl(&[
            "token", "create", "--name", role, "--role", role, "--write", &file,
        ]);
        assert!(made.status.success(), "{}", stderr(&made));
        let mut tokens = OpenOptions::new();
        let mut tokens = tokens
            .create(true)
            .append(true)
            .open(self.path("tokens.toml"))
            .unwrap();
        tokens.write_all(&made.stdout).unwrap();
        file
    }
}

pub struct Coordinator {
    process: Child,
    port: String,
    /// The coordinator's flags.
    pub settings: Vec<String>,
    pub log: Arc<Mutex<String>>,
    _servers: (RedisServer, NatsServer),
}

impl Coordinator {
    /// With TLS. `access` has the flags that control access.
    pub fn start(files: &Files, access: &[&str]) -> Coordinator {
        let (redis, nats) = (RedisServer::start().unwrap(), NatsServer::start().unwrap());
        let settings = [
            ["--namespace", "shop"],
            ["--redis-shards", "4"],
            ["--redis-url", &redis.url()],
            ["--nats-url", &nats.url()],
            ["--nats-events-bytes-max", "16MiB"],
            ["--nats-tasks-bytes-max", "16MiB"],
            ["--coordinator-listen", "127.0.0.1:0"],
            ["--coordinator-tls-cert", &files.text("tls.crt")],
            ["--coordinator-tls-key", &files.text("tls.key")],
            ["--log-filter", "debug"],
        ];
        let settings = settings.concat();
        let settings = settings.iter().chain(access).map(ToString::to_string);
        let settings: Vec<String> = settings.collect();
        let mut process = command(&["coordinator"])
            .args(&settings)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let log = Arc::new(Mutex::new(String::new()));
        let address = loop {
            let line = lines.next().expect("it didn't start").unwrap();
            log.lock().unwrap().push_str(&format!("{line}\n"));
            if let Some((_, rest)) = line.split_once("the API is at https://127.0.0.1:") {
                break rest.split('/').next().unwrap().to_owned();
            }
        };
        let kept = log.clone();
        // Keep reading, or the process blocks once the pipe is full.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                kept.lock().unwrap().push_str(&format!("{line}\n"));
            }
        });
        Coordinator {
            process,
            port: address,
            settings,
            log,
            _servers: (redis, nats),
        }
    }

    pub fn url(&self) -> String {
        format!("https://localhost:{}", self.port)
    }

    /// Stops it in the way that a supervisor would, and waits.
    pub fn stop(&mut self) -> Option<i32> {
        let pid = self.process.id().to_string();
        let signalled = Command::new("kill").args(["-TERM", &pid]).status().unwrap();
        assert!(signalled.success());
        until("its end", || self.process.try_wait().unwrap()).code()
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
