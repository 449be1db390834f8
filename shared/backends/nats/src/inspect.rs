//! Whether a server and a namespace's streams are fit for us: findings, for whoever looks. Nothing
//! is made or changed.

use async_nats::Client;
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::stream::{Config, Info};
use serde_json::Value;
use swirl_ports::{Finding, Severity};

use crate::Streams;
use crate::streams::check;

/// What was found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspected {
    /// The server's version.
    pub version: String,
    pub findings: Vec<Finding>,
    /// The streams that are there, with the number of their messages.
    pub streams: Vec<(String, u64)>,
    /// Those that the first process will make.
    pub missing: Vec<String>,
}

const OLDEST: (i64, i64) = (2, 9);
/// From here on a stream counts as nearly full, in percent.
const FULL: u64 = 80;

impl Streams {
    /// Looks at the server behind `client` and at this namespace's streams.
    pub async fn inspect(&self, client: &Client) -> Inspected {
        let mut inspected = Inspected {
            version: client.server_info().version,
            findings: Vec::new(),
            streams: Vec::new(),
            missing: Vec::new(),
        };
        if !client.is_server_compatible(OLDEST.0, OLDEST.1, 0) {
            inspected.findings.push(Finding {
                severity: Severity::Error,
                code: "version",
                message: format!("NATS has version {}", inspected.version),
                hint: "use nats-server 2.9 or newer",
            });
        }
        match self.account().await {
            Ok(account) => inspected.findings.extend(room(&account)),
            Err(reason) => {
                inspected.findings.push(Finding {
                    severity: Severity::Error,
                    code: "jetstream",
                    message: format!("JetStream cannot be used: {reason}"),
                    hint: "start nats-server with -js or a section 'jetstream', and let this user use it",
                });
                return inspected;
            }
        }
        for wanted in self.wanted() {
            self.look(&wanted, &mut inspected).await;
        }
        inspected
    }

    /// What JetStream says of our account. As JSON: async-nats' own type wants members that a server
    /// of version 2.9 doesn't send.
    async fn account(&self) -> Result<Value, String> {
        let answer = self.context.request("INFO", b"").await;
        let answer: Value = answer.map_err(|error| error.to_string())?;
        match answer.get("error") {
            Some(error) => Err(error["description"]
                .as_str()
                .unwrap_or("refused")
                .to_owned()),
            None => Ok(answer),
        }
    }

    async fn look(&self, wanted: &Config, inspected: &mut Inspected) {
        let name = &wanted.name;
        let error = match self.context.get_stream(name).await {
            Ok(stream) => {
                let info = stream.cached_info();
                inspected.findings.extend(judge(wanted, info));
                let messages = info.state.messages;
                inspected.streams.push((name.clone(), messages));
                return;
            }
            Err(error) => error,
        };
        match error.kind() {
            GetStreamErrorKind::JetStream(reason)
                if reason.error_code() == ErrorCode::STREAM_NOT_FOUND =>
            {
                inspected.missing.push(name.clone());
            }
            _ => inspected.findings.push(Finding {
                severity: Severity::Error,
                code: "stream",
                message: format!("the stream {name} cannot be looked at: {error}"),
                hint: "this user must be allowed to use $JS.API.> for the namespace's streams",
            }),
        }
    }
}

fn room(account: &Value) -> Option<Finding> {
    // -1: no limit.
    let limit = account["limits"]["max_storage"].as_u64();
    let limit = limit.filter(|limit| *limit > 0)?;
    let percent = account["storage"].as_u64()?.saturating_mul(100) / limit;
    (percent >= FULL).then(|| Finding {
        severity: Severity::Warning,
        code: "storage",
        message: format!("JetStream uses {percent} % of the storage of this account"),
        hint: "raise the limit, or let streams keep less: nats.events_bytes_max, nats.events_age_max",
    })
}

fn judge(wanted: &Config, info: &Info) -> Vec<Finding> {
    let (name, found) = (&wanted.name, &info.config);
    let mut findings = Vec::new();
    let mut find = |severity, code, message: String, hint| {
        findings.push(Finding {
            severity,
            code,
            message: format!("the stream {name} {message}"),
            hint,
        });
    };
    if let Some(reason) = check(wanted, found) {
        let hint = "remove it, and it is made anew; or give it these settings, see docs/cluster.md";
        find(
            Severity::Error,
            "stream",
            format!("isn't as it must be: {reason}"),
            hint,
        );
    }
    let other = differences(wanted, found);
    if !other.is_empty() {
        let message = format!("is set otherwise than configured: {}", other.join(", "));
        let hint =
            "'nats.*' is for streams that Swirl makes: change the stream, or the configuration";
        find(Severity::Warning, "stream-settings", message, hint);
    }
    if info
        .cluster
        .as_ref()
        .is_some_and(|cluster| cluster.leader.is_none())
    {
        let message = "has no leader".to_owned();
        let hint = "look at 'nats server report jetstream': too few servers are there";
        find(Severity::Error, "stream-leader", message, hint);
    }
    let limit = u64::try_from(found.max_bytes).unwrap_or(0);
    if limit > 0 && info.state.bytes.saturating_mul(100) / limit >= FULL {
        let percent = info.state.bytes.saturating_mul(100) / limit;
        let message = format!("is {percent} % full");
        let hint =
            "its oldest messages go, or new ones are refused, when it is full: raise max_bytes";
        find(Severity::Warning, "stream-full", message, hint);
    }
    findings
}

/// What is set otherwise, as long as correctness doesn't hang on it.
fn differences(wanted: &Config, found: &Config) -> Vec<String> {
    let mut other = Vec::new();
    let mut compare = |name: &str, wanted: String, found: String| {
        if wanted != found {
            other.push(format!("{name} is {found}, not {wanted}"));
        }
    };
    compare(
        "num_replicas",
        wanted.num_replicas.to_string(),
        found.num_replicas.to_string(),
    );
    compare(
        "storage",
        format!("{:?}", wanted.storage),
        format!("{:?}", found.storage),
    );
    compare(
        "max_bytes",
        wanted.max_bytes.to_string(),
        found.max_bytes.to_string(),
    );
    compare(
        "max_age",
        format!("{:?}", wanted.max_age),
        format!("{:?}", found.max_age),
    );
    other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_told_where_it_has_a_limit() {
        let room = |used: u64, max: i64| {
            let account = serde_json::json!({"storage": used, "limits": {"max_storage": max}});
            super::room(&account).map(|finding| finding.code)
        };
        assert_eq!((room(80, 100), room(79, 100)), (Some("storage"), None));
        assert_eq!((room(80, -1), room(80, 0)), (None, None));
        assert_eq!(super::room(&Value::Null), None);
    }

    #[test]
    fn differences_are_named() {
        let wanted = Config {
            num_replicas: 1,
            max_bytes: 100,
            ..Config::default()
        };
        assert!(differences(&wanted, &wanted).is_empty());
        let found = Config {
            num_replicas: 3,
            max_bytes: 50,
            ..wanted.clone()
        };
        assert_eq!(
            differences(&wanted, &found),
            ["num_replicas is 3, not 1", "max_bytes is 50, not 100"]
        );
    }
}
