//! Checks whether a server and a namespace's streams are suitable, and reports findings. Creates and changes nothing
//! that stays.

use async_nats::Client;
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::stream::{Config, Info, StorageType};
use serde_json::Value;
use swirl_ports::{Finding, Severity};

use crate::Streams;
use crate::hints::{check, is_hints, lacks_room};

/// The result of an inspection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspected {
    /// The server's version.
    pub version: String,
    pub findings: Vec<Finding>,
    /// The existing streams, with their numbers of messages.
    pub streams: Vec<(String, u64)>,
    /// The streams that the first process will create.
    pub missing: Vec<String>,
}

const OLDEST: (i64, i64) = (2, 9);
/// The first version that can sync each message before it acknowledges it.
const SYNCS: (i64, i64) = (2, 10);
/// A stream counts as nearly full from this percentage on.
const FULL: u64 = 80;

impl Streams {
    /// Inspects the server behind `client` and this namespace's streams.
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
        let account = match self.account().await {
            Ok(account) => account,
            Err(reason) => {
                inspected.findings.push(Finding {
                    severity: Severity::Error,
                    code: "jetstream",
                    message: format!("JetStream cannot be used: {reason}"),
                    hint: "start nats-server with -js or a section 'jetstream', and let this user use it",
                });
                return inspected;
            }
        };
        if !client.is_server_compatible(SYNCS.0, SYNCS.1, 0) && self.is_unsynced() {
            inspected.findings.push(Finding {
                severity: Severity::Warning,
                code: "sync",
                message: format!(
                    "NATS {} syncs to disk every two minutes: if its machine loses power, events that it has acknowledged \
                     in that time and no coordinator has processed are lost",
                    inspected.version
                ),
                hint: "use nats-server 2.10 or newer with 'sync_interval: always' (deploy/nats/sync-2.10.conf), or three \
                       servers that don't lose power at the same time (nats.replicas)",
            });
        }
        inspected.findings.extend(room(&account));
        let wanted = self.wanted();
        for wanted in &wanted {
            self.look(wanted, &mut inspected).await;
        }
        let missing = wanted.iter();
        let missing: Vec<&Config> = missing
            .filter(|wanted| inspected.missing.contains(&wanted.name))
            .collect();
        let limits = limits(&account, &missing, self.ack_pending_max());
        inspected.findings.extend(limits);
        // The probe would also hit the limits of the account.
        let is_clean = |finding: &Finding| finding.severity != Severity::Error;
        if inspected.findings.iter().all(is_clean) {
            inspected.findings.extend(self.no_room(&missing).await);
        }
        inspected
    }

    /// Checks whether the server has room for the missing streams. It reveals its limits (max_file_store,
    /// max_memory_store) only to administrators, so this creates a stream of their total size and removes it at once.
    async fn no_room(&self, missing: &[&Config]) -> Option<Finding> {
        // Tasks are kept in files if there is no room in memory, and need little.
        let missing = missing.iter().filter(|stream| !is_hints(stream));
        let missing: Vec<&Config> = missing.copied().collect();
        let largest = missing.iter().max_by_key(|stream| stream.num_replicas)?;
        let name = self.probe();
        let probe = Config {
            subjects: vec![format!("swirl-doctor.{name}")],
            name: name.clone(),
            max_bytes: missing.iter().map(|stream| stream.max_bytes.max(0)).sum(),
            ..(*largest).clone()
        };
        // A killed inspection may have left it behind.
        let _ = self.context.delete_stream(&name).await;
        let made = self.context.create_stream(probe.clone()).await;
        let _ = self.context.delete_stream(&name).await;
        let error = made.err()?;
        lacks_room(&error).then(|| Finding {
            severity: Severity::Error,
            code: "room",
            message: format!(
                "JetStream has no room for the {} bytes that the streams may take: {error}",
                probe.max_bytes
            ),
            hint: "raise max_file_store of nats-server (max_memory_store with nats.memory), give its disk more room, or lower \
                   nats.events_bytes_max and nats.tasks_bytes_max",
        })
    }

    /// Checks that JetStream responds.
    ///
    /// # Errors
    /// Returns the reason if it doesn't.
    pub async fn answers(&self) -> Result<(), String> {
        self.account().await.map(|_| ())
    }

    /// JetStream's information about this account. It is read as JSON, because the type of async-nats requires members
    /// that a server of version 2.9 doesn't send.
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
                message: format!("the stream {name} cannot be inspected: {error}"),
                hint: "this user must be allowed to use $JS.API.> for the namespace's streams",
            }),
        }
    }
}

fn room(account: &Value) -> Option<Finding> {
    // -1 means no limit.
    let limit = account["limits"]["max_storage"].as_u64();
    let limit = limit.filter(|limit| *limit > 0)?;
    let percent = account["storage"].as_u64()?.saturating_mul(100) / limit;
    (percent >= FULL).then(|| Finding {
        severity: Severity::Warning,
        code: "storage",
        message: format!("JetStream uses {percent} % of the storage of this account"),
        hint: "raise the limit, or reduce the size of the streams: nats.events_bytes_max, nats.events_age_max",
    })
}

/// Reports limits of the account that don't allow the missing streams.
fn limits(account: &Value, missing: &[&Config], ack_pending: i64) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut find = |message: String, hint| {
        findings.push(Finding {
            severity: Severity::Error,
            code: "limits",
            message: format!("JetStream's limits for this account: {message}"),
            hint,
        });
    };
    // -1 means no limit. For counts 0 means no limit too, but not for storage.
    let limit = |name: &str| account["limits"][name].as_i64().unwrap_or(-1);
    let used = |name: &str| account[name].as_i64().unwrap_or(0);
    let streams = limit("max_streams");
    let count = i64::try_from(missing.len()).unwrap_or(i64::MAX);
    if streams > 0 && used("streams") + count > streams {
        let used = used("streams");
        find(
            format!("{used} of {streams} streams exist, and {count} more are needed"),
            "raise max_streams of the account",
        );
    }
    for (memory, total, reserved, each) in [
        (
            false,
            "max_storage",
            ["reserved_storage", "storage"],
            "storage_max_stream_bytes",
        ),
        (
            true,
            "max_memory",
            ["reserved_memory", "memory"],
            "memory_max_stream_bytes",
        ),
    ] {
        let of_kind = missing.iter().filter(|stream| {
            // Tasks are kept in files if there is no room in memory.
            (stream.storage == StorageType::Memory) == memory && !(memory && is_hints(stream))
        });
        let sizes: Vec<i64> = of_kind
            .map(|stream| {
                let copies = i64::try_from(stream.num_replicas.max(1)).unwrap_or(1);
                stream.max_bytes.max(0).saturating_mul(copies)
            })
            .collect();
        let (wanted, room) = (sizes.iter().sum::<i64>(), limit(total));
        let taken = reserved.iter().map(|name| used(name)).max().unwrap_or(0);
        if !sizes.is_empty() && room >= 0 && taken.saturating_add(wanted) > room {
            find(
                format!(
                    "{total} is {room} bytes, of which {taken} are reserved; the streams may take {wanted}"
                ),
                "raise it, or lower nats.events_bytes_max and nats.tasks_bytes_max",
            );
        }
        let largest = sizes.iter().max().copied().unwrap_or(0);
        let one = limit(each);
        if one > 0 && largest > one {
            find(
                format!("{each} is {one}, and a stream may take {largest}"),
                "raise it, or lower nats.events_bytes_max and nats.tasks_bytes_max",
            );
        }
    }
    let pending = limit("max_ack_pending");
    if pending > 0 && pending < ack_pending {
        find(
            format!("max_ack_pending is {pending}, and nats.ack_pending_max is {ack_pending}"),
            "raise it, or lower nats.ack_pending_max",
        );
    }
    findings
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
        let hint = "remove it, so that it is created again, or give it these settings; see docs/cluster.md";
        find(
            Severity::Error,
            "stream",
            format!("has unsuitable settings: {reason}"),
            hint,
        );
    }
    let other = differences(wanted, found);
    if !other.is_empty() {
        let message = format!("differs from the configuration: {}", other.join(", "));
        let hint = "'nats.*' applies to streams that Swirl creates: change the stream or the configuration";
        find(Severity::Warning, "stream-settings", message, hint);
    }
    if info
        .cluster
        .as_ref()
        .is_some_and(|cluster| cluster.leader.is_none())
    {
        let message = "has no leader".to_owned();
        let hint = "check 'nats server report jetstream': too few servers are running";
        find(Severity::Error, "stream-leader", message, hint);
    }
    let limit = u64::try_from(found.max_bytes).unwrap_or(0);
    if limit > 0 && info.state.bytes.saturating_mul(100) / limit >= FULL {
        let percent = info.state.bytes.saturating_mul(100) / limit;
        let message = format!("is {percent} % full");
        let hint = "when it is full, its oldest messages are dropped or new ones are refused: raise max_bytes";
        find(Severity::Warning, "stream-full", message, hint);
    }
    findings
}

/// The settings that differ, among those that don't affect correctness.
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
    // A server without room in memory has them in files.
    if !(is_hints(wanted) && found.storage == StorageType::File) {
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
    }
    compare(
        "allow_atomic",
        wanted.allow_atomic_publish.to_string(),
        found.allow_atomic_publish.to_string(),
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
    fn nearly_full_accounts_are_reported() {
        let room = |used: u64, max: i64| {
            let account = serde_json::json!({"storage": used, "limits": {"max_storage": max}});
            super::room(&account).map(|finding| finding.code)
        };
        assert_eq!((room(80, 100), room(79, 100)), (Some("storage"), None));
        assert_eq!((room(80, -1), room(80, 0)), (None, None));
        assert_eq!(super::room(&Value::Null), None);
    }

    #[test]
    fn limits_are_reported_before_they_are_reached() {
        let stream = |max_bytes: i64, storage| Config {
            max_bytes,
            storage,
            num_replicas: 3,
            ..Config::default()
        };
        let (file, memory) = (
            stream(100, StorageType::File),
            stream(10, StorageType::Memory),
        );
        let messages = |limits: Value, missing: &[&Config]| {
            let account =
                serde_json::json!({"streams": 2, "reserved_storage": 50, "limits": limits});
            limits_of(&account, missing)
        };
        fn limits_of(account: &Value, missing: &[&Config]) -> Vec<String> {
            let found = super::limits(account, missing, 20);
            found.into_iter().map(|finding| finding.message).collect()
        }
        let none = serde_json::json!({"max_streams": -1, "max_storage": -1, "max_memory": -1});
        assert!(messages(none, &[&file, &memory]).is_empty());
        let few = serde_json::json!({"max_streams": 3, "max_storage": 350, "max_memory": 0});
        assert!(messages(few.clone(), &[&file]).is_empty());
        let found = messages(few.clone(), &[&file, &memory]);
        assert!(found[0].contains("2 of 3 streams"), "{found:?}");
        assert!(found[1].contains("max_memory is 0"), "{found:?}");
        assert!(messages(few, &[&file, &file])[1].contains("may take 600"));
        let tight = serde_json::json!({"storage_max_stream_bytes": 200, "max_ack_pending": 5});
        let found = messages(tight, &[&file]);
        assert!(found[0].contains("storage_max_stream_bytes"), "{found:?}");
        assert!(found[1].contains("max_ack_pending is 5"), "{found:?}");
    }

    #[test]
    fn differences_are_reported() {
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
