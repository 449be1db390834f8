//! Messages over Kafka.
//!
//! A message counts as delivered when all in-sync replicas have it. Messages with the same key go to the partition that
//! Kafka's own client would choose. A wait belongs to no consumer group and commits no offset: it gets the first
//! message that arrives in any partition of the topic after the wait began.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rskafka::BackoffConfig;
use rskafka::chrono::DateTime;
use rskafka::client::error::{Error, ProtocolError};
use rskafka::client::partition::{Compression, OffsetAt, PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder, Credentials, SaslConfig};
use rskafka::record::Record;

use super::came::{Came, Took};
use super::compile::Sending;
use super::gated::Gated;
use super::incoming::Incoming;
use super::kept::Kept;
use super::mqtt::basic;
use super::outgoing::Outgoing;
use crate::auth::{Auth, Secret};
use crate::egress::Gate;
use crate::http::tls;
use crate::{CallError, CallErrorKind};

/// The time during which the client retries by itself.
const TRY: Duration = Duration::from_secs(5);

/// How long the partitions of a topic are cached.
const PARTITIONS_KNOWN: Duration = Duration::from_secs(60);

/// The maximum number of cached topics per cluster.
const TOPICS_MAX: usize = 1024;

/// The time in milliseconds that one round over the partitions of a topic waits for a message.
const ROUND_MS: usize = 500;

/// A batch contains keys, headers and compressed data in addition to the payload.
const BATCH_BYTES_BESIDE: usize = 1024 * 1024;

/// A wait whose broker doesn't answer pauses this long before it asks again.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Kafka {
    kept: Kept<Key, Arc<Cluster>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    server: String,
    tls: bool,
    login: Option<(String, Secret)>,
}

struct Cluster {
    client: Client,
    gated: Gated,
    topics: Mutex<HashMap<String, Topic>>,
}

#[derive(Clone)]
struct Topic {
    partitions: Vec<Arc<PartitionClient>>,
    since: Instant,
}

impl Kafka {
    async fn cluster(
        &self,
        sending: &Sending,
        auth: Option<&Auth>,
        tls: bool,
        gate: &Gate,
        what: &str,
    ) -> Result<Arc<Cluster>, CallError> {
        let key = Key {
            server: format!("{}:{}", sending.server.host(), sending.server.port()),
            tls,
            login: basic(auth, "Kafka", what)?,
        };
        // The client reconnects by itself, and its way to the network detects silence.
        let is_alive = |_| async { true };
        self.kept
            .get(&key, is_alive, connect(&key, gate, what))
            .await
    }

    pub(super) async fn send(
        &self,
        sending: &Sending,
        outgoing: &Outgoing<'_>,
        auth: Option<&Auth>,
        tls: bool,
        gate: &Gate,
    ) -> Result<(), CallError> {
        let what = &outgoing.what;
        let cluster = self.cluster(sending, auth, tls, gate, what).await?;
        let name = sending.bindings.topic.as_ref();
        let topic = cluster
            .topic(name.unwrap_or(&outgoing.address), what)
            .await?;
        let mut headers: BTreeMap<String, Vec<u8>> = outgoing
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.clone().into_bytes()))
            .collect();
        let own = [
            ("Content-Type", outgoing.content_type.as_str()),
            ("Idempotency-Key", outgoing.key),
        ];
        for (name, value) in own {
            headers.insert(name.to_owned(), value.as_bytes().to_vec());
        }
        // Repeats go to the same partition as the first message.
        let by = outgoing.partition_key.as_deref().unwrap_or(outgoing.key);
        let at = partition(by.as_bytes(), topic.partitions.len());
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_ms = now.map_or(0, |since| since.as_millis() as i64);
        let record = Record {
            key: outgoing
                .partition_key
                .as_ref()
                .map(|key| key.clone().into_bytes()),
            value: Some(outgoing.payload.clone()),
            headers,
            timestamp: DateTime::from_timestamp_millis(now_ms).unwrap_or_default(),
        };
        let sent = topic.partitions[at].produce(vec![record], Compression::NoCompression);
        sent.await
            .map(|_| ())
            .map_err(|error| cluster.failed(what, &error))
    }

    pub(super) async fn receive(
        &self,
        sending: &Sending,
        incoming: &Incoming<'_>,
        auth: Option<&Auth>,
        tls: bool,
        gate: &Gate,
    ) -> Result<(), CallError> {
        let what = &incoming.what;
        let cluster = self.cluster(sending, auth, tls, gate, what).await?;
        let name = sending.bindings.topic.as_ref();
        let topic = cluster
            .topic(name.unwrap_or(&incoming.address), what)
            .await?;
        let mut offsets = Vec::new();
        for partition in &topic.partitions {
            let offset = partition.get_offset(OffsetAt::Latest).await;
            offsets.push(offset.map_err(|error| cluster.failed(what, &error))?);
        }
        incoming.is_waiting();
        let bytes = incoming.bytes_max.saturating_add(BATCH_BYTES_BESIDE);
        let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
        let wait_ms = (ROUND_MS / topic.partitions.len()).max(10) as i32;
        loop {
            for (partition, offset) in topic.partitions.iter().zip(&mut offsets) {
                let fetched = partition.fetch_records(*offset, 1..bytes, wait_ms);
                let Some(fetched) = incoming.next(fetched).await else {
                    return Ok(());
                };
                match fetched {
                    Ok((records, _)) => {
                        for found in records {
                            if found.offset < *offset {
                                continue;
                            }
                            *offset = found.offset + 1;
                            if incoming.take(read_record(found.record))? == Took::Last {
                                return Ok(());
                            }
                        }
                    }
                    Err(error) => {
                        let error = cluster.failed(what, &error);
                        if error.kind != CallErrorKind::Connection {
                            return Err(error);
                        }
                        // The broker keeps messages that arrive meanwhile, and the offset stays.
                        tokio::time::sleep(PAUSE).await;
                    }
                }
            }
        }
    }
}

fn read_record(record: Record) -> Came {
    let headers = record.headers.into_iter();
    let text = |value: Vec<u8>| String::from_utf8_lossy(&value).into_owned();
    Came {
        payload: record.value.unwrap_or_default(),
        headers: headers.map(|(name, value)| (name, text(value))).collect(),
        correlation: None,
    }
}

async fn connect(key: &Key, gate: &Gate, what: &str) -> Result<Arc<Cluster>, CallError> {
    let broken = |reason: &dyn std::fmt::Display| {
        CallError::new(CallErrorKind::Connection, format!("{what}: {reason}"))
    };
    let gated = Gated::open(gate.clone()).await;
    let gated = gated.map_err(|error| broken(&error))?;
    let mut builder = ClientBuilder::new(vec![key.server.clone()])
        .client_id("swirl")
        .socks5_proxy(gated.address().to_string())
        .backoff_config(BackoffConfig {
            max_backoff: Duration::from_secs(1),
            deadline: Some(TRY),
            ..BackoffConfig::default()
        });
    if key.tls {
        builder = builder.tls_config(Arc::new(tls().map_err(|error| broken(&error))?));
    }
    if let Some((user, password)) = &key.login {
        let credentials = Credentials::new(user.clone(), password.expose().to_owned());
        builder = builder.sasl_config(SaslConfig::Plain(credentials));
    }
    let client = builder.build().await;
    let client = client.map_err(|error| failed(what, &error, gated.failed()))?;
    Ok(Arc::new(Cluster {
        client,
        gated,
        topics: Mutex::default(),
    }))
}

impl Cluster {
    async fn topic(&self, name: &str, what: &str) -> Result<Topic, CallError> {
        let known = || self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known().get(name).cloned();
        if let Some(topic) = found.filter(|topic| topic.since.elapsed() < PARTITIONS_KNOWN) {
            return Ok(topic);
        }
        let all = self.client.list_topics().await;
        let all = all.map_err(|error| self.failed(what, &error))?;
        let ids = all.into_iter().find(|topic| topic.name == name);
        let ids = ids.map(|topic| topic.partitions).unwrap_or_default();
        if ids.is_empty() {
            let message = format!("{what}: the cluster has no topic `{name}`");
            return Err(CallError::new(CallErrorKind::Failed, message));
        }
        let mut partitions = Vec::new();
        for id in ids {
            let handling = UnknownTopicHandling::Error;
            let partition = self.client.partition_client(name, id, handling).await;
            partitions.push(Arc::new(
                partition.map_err(|error| self.failed(what, &error))?,
            ));
        }
        let topic = Topic {
            partitions,
            since: Instant::now(),
        };
        let mut topics = known();
        if topics.len() >= TOPICS_MAX {
            topics.clear();
        }
        topics.insert(name.to_owned(), topic.clone());
        Ok(topic)
    }

    fn failed(&self, what: &str, error: &Error) -> CallError {
        failed(what, error, self.gated.failed())
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cluster behind {:?}", self.gated)
    }
}

/// `refused`: the forbidden address that the client tried to connect to.
fn failed(what: &str, error: &Error, refused: Option<String>) -> CallError {
    let text = error.to_string();
    let kind = match error {
        Error::ServerError { protocol_error, .. } => match protocol_error {
            ProtocolError::MessageTooLarge | ProtocolError::RecordListTooLarge => {
                CallErrorKind::Limit
            }
            ProtocolError::TopicAuthorizationFailed
            | ProtocolError::ClusterAuthorizationFailed
            | ProtocolError::SaslAuthenticationFailed => CallErrorKind::Auth,
            _ => CallErrorKind::Failed,
        },
        // Errors of the handshake have no public type.
        _ if text.contains("Sasl handshake failed: Request error") => CallErrorKind::Connection,
        _ if text.contains("Sasl handshake failed") => CallErrorKind::Auth,
        Error::InvalidResponse(_) => CallErrorKind::Response,
        _ => CallErrorKind::Connection,
    };
    if let Some(refused) = refused.filter(|_| kind == CallErrorKind::Connection) {
        return CallError::arguments(format!("{what}: {refused}"));
    }
    CallError::new(kind, format!("{what}: {text}"))
}

/// The partition for a key, as Kafka's own client chooses it: murmur2 without its sign.
fn partition(key: &[u8], partitions: usize) -> usize {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ key.len() as u32;
    let mut chunks = key.chunks_exact(4);
    for chunk in &mut chunks {
        let mut k = u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
        k = k.wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    let rest = chunks.remainder();
    if !rest.is_empty() {
        for (index, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * index);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^= hash >> 15;
    (hash & 0x7fff_ffff) as usize % partitions.max(1)
}

#[cfg(test)]
mod tests {
    use super::partition;

    #[test]
    fn a_key_gets_the_same_partition_as_in_kafkas_client() {
        // From the tests of Kafka's own Utils.murmur2, without the sign, for 1000 partitions.
        for (key, hash) in [
            ("21", -973932308_i32),
            ("foobar", -790332482),
            ("a-little-bit-long-string", -985981536),
            ("a-little-bit-longer-string", -1486304829),
            (
                "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8",
                -58897971,
            ),
            ("abc", 479470107),
        ] {
            let expected = (hash as u32 & 0x7fff_ffff) as usize % 1000;
            assert_eq!(partition(key.as_bytes(), 1000), expected, "{key}");
        }
    }
}
