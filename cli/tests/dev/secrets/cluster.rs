//! A worker and a coordinator with their servers.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use reqwest::Method;
use serde_json::json;
use swirl_servers::{NatsServer, RedisServer, eventually, free_port};

use super::one_process::connectors;
use super::{ACCESS, CANARY, KEY, TOKEN, cases, files, needles::assert_none, service};
use crate::dev::http::{Http, JSON};

const SECRETS: [&str; 3] = [KEY, TOKEN, ACCESS];

/// Killed at the end of the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(word: &str, arguments: &[String], log: &Path) -> Process {
    let mut command = Command::new(env!("CARGO_BIN_EXE_swirl"));
    command.arg(word).args(arguments).env("SWIRL_LOG", "trace");
    if word == "worker" {
        command
            .env("SWIRL_SECRET_KEY", KEY)
            .env("SWIRL_SECRET_TOKEN", TOKEN);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(std::fs::File::create(log).unwrap());
    Process(command.spawn().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_reveals_no_secrets() {
    let (redis, nats) = (RedisServer::start().unwrap(), NatsServer::start().unwrap());
    let address = service::serve().await;
    let folder = tempfile::tempdir().unwrap();
    let (worker_log, coordinator_log) = (
        folder.path().join("worker.log"),
        folder.path().join("coordinator.log"),
    );
    let servers = [
        "--redis-url".to_owned(),
        redis.url(),
        "--nats-url".to_owned(),
        nats.url(),
        "--nats-events-bytes-max".to_owned(),
        "256MiB".to_owned(),
        "--nats-tasks-bytes-max".to_owned(),
        "64MiB".to_owned(),
    ];
    let (api, health) = (free_port().unwrap(), free_port().unwrap());
    let base = format!("http://127.0.0.1:{api}");
    let own = [
        vec![
            "--coordinator-listen".to_owned(),
            format!("127.0.0.1:{api}"),
            "--auth-mode".to_owned(),
            "off".to_owned(),
            // Its documents come from this machine.
            "--http-allow-hosts".to_owned(),
            "127.0.0.1".to_owned(),
        ],
        vec!["--worker-listen".to_owned(), format!("127.0.0.1:{health}")],
    ];
    let file = folder.path().join("swirl.toml");
    let lines = connectors(address).map(|connector| {
        let (name, value) = connector.split_once('=').unwrap();
        format!("{name} = {value:?}\n")
    });
    std::fs::write(&file, format!("[functions.connectors]\n{}", lines.concat())).unwrap();
    let config = ["--config".to_owned(), file.to_str().unwrap().to_owned()];
    let coordinator = start(
        "coordinator",
        &[&servers[..], &own[0], &config].concat(),
        &coordinator_log,
    );
    let worker = start(
        "worker",
        &[&servers[..], &own[1], &config].concat(),
        &worker_log,
    );

    let http = Http::new();
    let what = std::fmt::from_fn(|f| {
        let log = std::fs::read_to_string(&coordinator_log).unwrap_or_default();
        write!(f, "readiness: {log}")
    });
    eventually(what, async || {
        let answer = http.send(Method::GET, &base, "/readyz", &[], "").await;
        answer.ok().filter(|answer| answer.status == 200)
    })
    .await;
    let wanted = [
        "refuse",
        "break-basic",
        "succeed",
        "succeed-oauth2",
        "auth-bad-token",
        "custom-exact",
        "custom-given",
        "graphql",
        "handled",
    ];
    for case in cases::all(address)
        .iter()
        .filter(|case| wanted.contains(&case.id.as_str()))
    {
        let path = "/api/v1/definitions";
        let deployed = http.send(
            Method::POST,
            &base,
            path,
            &[JSON],
            case.document.to_string(),
        );
        deployed.await.unwrap().is(201);
        let path = format!("/api/v1/workflows/{}/instances?wait=PT15S", case.id);
        let input = json!({"canary": CANARY}).to_string();
        let answer = http
            .send(Method::POST, &base, &path, &[JSON], input)
            .await
            .unwrap();
        assert_none(&format!("{}: the answer", case.id), &answer.text, &SECRETS);
        // Something was removed from errors. Results are stored unchanged, and these cases use none.
        let echoes = !case.completes || case.id == "handled";
        assert_eq!(
            answer.text.contains("***"),
            echoes,
            "{}: {}",
            case.id,
            answer.text
        );
        let instance = answer.is(200);
        let expected = if case.completes {
            "completed"
        } else {
            "faulted"
        };
        assert_eq!(instance["status"], expected, "{}: {instance:#}", case.id);
        let id = instance["id"].as_str().unwrap();
        let path = format!("/api/v1/instances/{id}/history");
        let history = http.send(Method::GET, &base, &path, &[], "").await.unwrap();
        assert_none(
            &format!("{}: the history", case.id),
            &history.text,
            &SECRETS,
        );
    }
    drop((worker, coordinator));
    for log in [worker_log, coordinator_log] {
        let text = std::fs::read_to_string(&log).unwrap();
        assert!(text.contains("DEBUG"), "{}: {text}", log.display());
        assert_none(&log.display().to_string(), &text, &SECRETS);
    }
    // Uncompressed, so that texts appear in it unchanged.
    redis
        .cli(&["CONFIG", "SET", "rdbcompression", "no"])
        .unwrap();
    redis.cli(&["SAVE"]).unwrap();
    let kept = files(redis.folder());
    assert!(
        kept.contains(CANARY),
        "what Redis keeps can be read as it is"
    );
    assert_none("Redis", &kept, &SECRETS);
    assert_none("NATS", &files(&nats.store()), &SECRETS);
}
