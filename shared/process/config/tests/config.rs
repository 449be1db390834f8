//! The configuration, from all its sources.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use swirl_config::{Loaded, NatsAuth, Process, Redis, RedisTopology, Sources, find, load};

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
    pairs.iter().map(owned).collect()
}

/// With a tokens file for the coordinator, which would be refused without.
fn with(variables: &[(&str, &str)]) -> Result<Loaded, String> {
    let mut sources = Sources {
        variables: pairs(variables),
        ..Sources::default()
    };
    let tokens = (
        "SWIRL_AUTH_TOKENS_FILE".to_owned(),
        "tokens.toml".to_owned(),
    );
    sources.variables.push(tokens);
    load(Process::ALL, &sources).map_err(|problems| problems.to_string())
}

fn refused(variables: &[(&str, &str)]) -> String {
    with(variables).unwrap_err()
}

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn defaults_make_a_configuration() {
    let loaded = with(&[]).unwrap();
    let config = loaded.config;
    assert_eq!(config.namespace, "default");
    assert_eq!(config.redis.urls[0].to_string(), "redis://127.0.0.1:6379");
    assert_eq!(config.redis.topology, RedisTopology::Single);
    assert_eq!(
        config.redis.limits.keep_ended,
        Duration::from_secs(7 * 86_400)
    );
    assert_eq!(config.worker.lease, Duration::from_secs(30));
    assert_eq!(config.events.subjects, ["swirl.events.>"]);
    assert_eq!(config.nats.auth, NatsAuth::None);
    assert_eq!(config.coordinator.listen.port(), 8080);
    assert!(config.secrets.environment && loaded.warnings.is_empty());
}

#[test]
fn flags_win_over_variables_over_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(
        folder.path(),
        "swirl.toml",
        "namespace = \"file\"\n[worker]\nlease = \"1m\"\nconcurrency = 7\n[auth]\nmode = \"off\"\n",
    );
    let flag = find("worker.lease").unwrap();
    let sources = Sources {
        file: None,
        variables: pairs(&[
            ("SWIRL_CONFIG", file.to_str().unwrap()),
            ("SWIRL_NAMESPACE", "variable"),
            ("SWIRL_WORKER_LEASE", "2m"),
            ("SWIRL_WORKER_CONCURRENCY", ""),
        ]),
        flags: vec![(flag, swirl_config::Raw::Text("3m".to_owned()))],
    };
    let loaded = load(Process::ALL, &sources).unwrap();
    assert_eq!(loaded.config.namespace, "variable");
    assert_eq!(loaded.config.worker.lease, Duration::from_secs(180));
    assert_eq!(loaded.config.worker.concurrency, 7);
    let shown = swirl_config::json(&loaded);
    let from = |key: &str| shown["settings"][key]["from"].as_str().unwrap().to_owned();
    assert_eq!(from("namespace"), "variable SWIRL_NAMESPACE");
    assert_eq!(from("worker.lease"), "flag --worker-lease");
    assert_eq!(
        from("worker.concurrency"),
        format!("{}:4:15", file.display())
    );
    assert_eq!(from("redis.url"), "default");
}

#[test]
fn all_that_is_wrong_is_told_at_once_with_its_places() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(
        folder.path(),
        "swirl.yaml",
        "namespace: Not Good\nredis:\n  shards: 0\n  ulr: x\n",
    );
    let sources = Sources {
        file: Some(file.clone()),
        variables: pairs(&[("SWIRL_WORKER_LEASE", "soon"), ("SWIRL_NATS_PASSWORD", "")]),
        flags: Vec::new(),
    };
    let problems = load(Process::ALL, &sources).unwrap_err().to_string();
    let place = file.display();
    for expected in [
        format!("{place}:1:12: namespace must be 1 to 63 lower-case letters"),
        format!("{place}:3:11: redis.shards must be a whole number from 1 to 4096, but is '0'"),
        format!(
            "{place}:4:3: there is no setting 'redis.ulr'\n  = hint: did you mean 'redis.url'?"
        ),
        "variable SWIRL_WORKER_LEASE: worker.lease must be a duration such as".to_owned(),
    ] {
        assert!(problems.contains(&expected), "{expected}\n{problems}");
    }
}

#[test]
fn what_does_not_fit_together_is_refused() {
    for (variables, expected) in [
        (
            &[("SWIRL_REDIS_URL", "redis://a,redis://b")][..],
            "variable SWIRL_REDIS_URL: redis.url contains several URLs, but this is not a cluster",
        ),
        (
            &[
                ("SWIRL_REDIS_URL", "redis://a,rediss://b"),
                ("SWIRL_REDIS_CLUSTER", "true"),
            ],
            "redis.url contains URLs with different schemes",
        ),
        (
            &[
                ("SWIRL_REDIS_URL", "redis-sentinel://a"),
                ("SWIRL_REDIS_CLUSTER", "true"),
            ],
            "redis.cluster is true, but redis.url names sentinels",
        ),
        (
            &[("SWIRL_REDIS_TLS_CERT", "a.pem")],
            "variable SWIRL_REDIS_TLS_CERT: redis.tls_cert is set without redis.tls_key",
        ),
        (
            &[("SWIRL_COORDINATOR_TLS_KEY", "a.pem")],
            "coordinator.tls_key is set without coordinator.tls_cert",
        ),
        (
            &[("SWIRL_NATS_USER", "u")],
            "nats.user is set without nats.password",
        ),
        (
            &[("SWIRL_NATS_PASSWORD", "p")],
            "nats.password is set without nats.user",
        ),
        (
            &[("SWIRL_NATS_TOKEN", "t"), ("SWIRL_NATS_NKEY_FILE", "n")],
            "nats.nkey_file is set together with nats.token: choose one",
        ),
        (
            &[("SWIRL_REDIS_PASSWORD_FILE", "/nowhere/at/all")],
            "redis.password_file names /nowhere/at/all, which cannot be read",
        ),
        (
            &[("SWIRL_AUTH_OIDC_AUDIENCE", "a")],
            "auth.oidc.audience is set without auth.oidc.issuer",
        ),
        (
            &[("SWIRL_AUTH_OIDC_ISSUER", "https://id.example.org")],
            "auth.oidc.issuer needs auth.oidc.audience",
        ),
        (
            &[
                ("SWIRL_AUTH_OIDC_ISSUER", "https://id.example.org"),
                ("SWIRL_AUTH_OIDC_AUDIENCE", "swirl"),
                ("SWIRL_AUTH_OIDC_ROLES", "sre=root"),
            ],
            "auth.oidc.roles cannot be used: there is no role 'root'",
        ),
        (
            &[
                ("SWIRL_AUTH_OIDC_ISSUER", "https://id.example.org"),
                ("SWIRL_AUTH_OIDC_AUDIENCE", "swirl"),
                ("SWIRL_AUTH_OIDC_CLIENT_SECRET", "s"),
            ],
            "auth.oidc.client_secret is set without auth.oidc.client_id",
        ),
        (
            &[
                ("SWIRL_AUTH_OIDC_ISSUER", "https://id.example.org"),
                ("SWIRL_AUTH_OIDC_AUDIENCE", "swirl"),
                ("SWIRL_AUTH_OIDC_CLIENT_ID", "console"),
                ("SWIRL_AUTH_OIDC_SCOPES", "profile"),
            ],
            "auth.oidc.scopes must contain 'openid'",
        ),
        (
            &[
                ("SWIRL_AUTH_OIDC_ISSUER", "https://id.example.org"),
                ("SWIRL_AUTH_OIDC_AUDIENCE", "swirl"),
                ("SWIRL_AUTH_OIDC_CLIENT_ID", "console"),
                ("SWIRL_AUTH_OIDC_SCOPES", "openid profile"),
            ],
            "auth.oidc.scopes holds 'openid profile', which has a space",
        ),
        (
            &[
                ("SWIRL_AUTH_OIDC_ISSUER", "https://id.example.org"),
                ("SWIRL_AUTH_OIDC_AUDIENCE", "swirl"),
                ("SWIRL_AUTH_OIDC_CLIENT_ID", "console"),
                (
                    "SWIRL_AUTH_OIDC_REDIRECT_URL",
                    "https://swirl.example.org/callback",
                ),
            ],
            "auth.oidc.redirect_url must be the address of the console with the path /console/sign-in/callback",
        ),
        (
            &[("SWIRL_HTTP_ALLOW_HOSTS", "a/b")],
            "http.allow_hosts `a/b` is not a valid host",
        ),
    ] {
        let found = refused(variables);
        assert!(found.contains(expected), "{expected}\n{found}");
    }
    let nobody = load(&[Process::Coordinator], &Sources::default()).unwrap_err();
    assert!(
        nobody
            .to_string()
            .contains("auth.mode is on, but nobody can log in")
    );
    assert!(load(&[Process::Worker], &Sources::default()).is_ok());
}

#[test]
fn topologies() {
    let redis = |variables: &[(&str, &str)]| -> Redis { with(variables).unwrap().config.redis };
    let sentinels = redis(&[
        (
            "SWIRL_REDIS_URL",
            "rediss-sentinel://:pw@a:26379,rediss-sentinel://b:26379",
        ),
        ("SWIRL_REDIS_SENTINEL_MASTER", "swirl"),
    ]);
    let master = "swirl".to_owned();
    assert_eq!(sentinels.topology, RedisTopology::Sentinel { master });
    assert_eq!(sentinels.urls[0].expose().as_str(), "rediss://:pw@a:26379");
    let cluster = redis(&[
        ("SWIRL_REDIS_URL", "redis://a,redis://b"),
        ("SWIRL_REDIS_CLUSTER", "true"),
    ]);
    assert_eq!(
        (cluster.topology, cluster.urls.len()),
        (RedisTopology::Cluster, 2)
    );
}

#[test]
fn events_know_the_namespace() {
    let loaded = with(&[
        ("SWIRL_NAMESPACE", "team-7"),
        ("SWIRL_EVENTS_SUBJECTS", "{namespace}.in.>, shop.orders"),
        ("SWIRL_EVENTS_PRODUCED_SUBJECT", "{namespace}.out.{type}"),
    ]);
    let events = loaded.unwrap().config.events;
    assert_eq!(events.subjects, ["team-7.in.>", "shop.orders"]);
    assert_eq!(events.produced_subject, "team-7.out.{type}");
}

#[test]
fn secrets_are_read_from_files_and_never_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "password", "s3cret\n");
    let hash = "5ec4e7".repeat(11)[..64].to_owned();
    let tokens = format!(r#"[{{"name": "ci", "hash": "blake3:{hash}", "roles": ["viewer"]}}]"#);
    let loaded = with(&[
        ("SWIRL_REDIS_URL", "redis://u:s3cret@h"),
        ("SWIRL_REDIS_PASSWORD_FILE", file.to_str().unwrap()),
        ("SWIRL_NATS_TOKEN", "s3cret"),
        ("SWIRL_TELEMETRY_HEADERS", "x-key=s3cret"),
        ("SWIRL_AUTH_TOKENS", &tokens),
    ])
    .unwrap();
    assert_eq!(
        loaded.config.redis.password.as_ref().unwrap().expose(),
        "s3cret"
    );
    let (text, json) = (swirl_config::text(&loaded), swirl_config::json(&loaded));
    assert!(
        !text.contains("s3cret") && !json.to_string().contains("s3cret"),
        "{text}"
    );
    assert!(!text.contains(&hash[..8]) && !json.to_string().contains(&hash[..8]));
    assert!(
        text.contains("nats.token = \"***\"") && text.contains("x-key = \"***\""),
        "{text}"
    );
    let debug = format!(
        "{:?}",
        (
            &loaded.config.redis,
            &loaded.config.nats,
            &loaded.config.telemetry
        )
    );
    assert!(!debug.contains("s3cret"), "{debug}");
    let error = refused(&[("SWIRL_TELEMETRY_HEADERS", "s3cret")]);
    assert!(
        error.contains("telemetry.headers must be") && !error.contains("s3cret"),
        "{error}"
    );
}

#[test]
fn a_variable_that_is_no_setting_is_a_warning() {
    let loaded = with(&[
        ("SWIRL_REDIS_ULR", "x"),
        ("SWIRL_SECRET_REDIS_ULR", "x"),
        ("SWIRL_PORT_8080_TCP_ADDR", "x"),
        ("SWIRL_LOG", "x"),
        ("HOME", "x"),
    ])
    .unwrap();
    let warnings: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "variable SWIRL_REDIS_ULR: is not a setting, and has no effect\n  = hint: did you mean \
          'SWIRL_REDIS_URL'?"
        ]
    );
}
