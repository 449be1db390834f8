//! Redis and NATS.

use crate::kind::{DAY_MS, SECOND_MS, ValueKind, count, duration};
use crate::setting::Setting;

const REDIS_URL: ValueKind =
    ValueKind::Url(&["redis", "rediss", "redis-sentinel", "rediss-sentinel"]);
const NATS_URL: ValueKind = ValueKind::Url(&["nats", "tls"]);
const TIMEOUT: ValueKind = duration(100, 300 * SECOND_MS);
const KEEP: ValueKind = duration(SECOND_MS, 3650 * DAY_MS);
const MANY: ValueKind = count(1, 1_000_000_000);

pub const SETTINGS: &[Setting] = &[
    Setting::new(
        "namespace",
        ValueKind::Name,
        "The name of this installation. Installations with different names share Redis and NATS \
         without seeing each other.",
    )
    .default("default"),
    Setting::new(
        "redis.url",
        ValueKind::List(&REDIS_URL),
        "The address of Redis; `rediss` for TLS. Several for a cluster (any of its nodes) or for sentinels \
         (`redis-sentinel://HOST:26379`).",
    )
    .default("redis://127.0.0.1:6379"),
    Setting::new(
        "redis.cluster",
        ValueKind::Flag,
        "Whether this is a Redis Cluster.",
    )
    .default("false"),
    Setting::new(
        "redis.sentinel_master",
        ValueKind::Text,
        "The name under which the sentinels know the master.",
    )
    .default("mymaster"),
    Setting::new(
        "redis.username",
        ValueKind::Text,
        "The user in Redis' access control lists. Takes precedence over the URL's.",
    ),
    Setting::new(
        "redis.password",
        ValueKind::Text,
        "The password. Takes precedence over the URL's.",
    )
    .secret(),
    Setting::new(
        "redis.password_file",
        ValueKind::Path,
        "A file with the password.",
    ),
    Setting::new(
        "redis.tls_ca",
        ValueKind::Path,
        "Certificates in PEM that sign the servers', in place of those that the machine trusts.",
    ),
    Setting::new(
        "redis.tls_cert",
        ValueKind::Path,
        "The client certificate for Redis, in PEM.",
    ),
    Setting::new("redis.tls_key", ValueKind::Path, "Its key, in PEM."),
    Setting::new(
        "redis.connections",
        count(1, 256),
        "Connections to each server. Requests share them in batches: one is fastest until it keeps a core \
         busy.",
    )
    .default("1"),
    Setting::new(
        "redis.connect_timeout",
        TIMEOUT,
        "The time limit for establishing a connection.",
    )
    .default("5s"),
    Setting::new(
        "redis.response_timeout",
        TIMEOUT,
        "How long a request may take.",
    )
    .default("5s"),
    Setting::new(
        "redis.shards",
        count(1, 4096),
        "Parts that the records are divided into. Fixed when the namespace is used for the first time: \
         another value is refused afterwards.",
    )
    .default("64"),
    Setting::new(
        "redis.history_max",
        MANY,
        "History entries of an instance; older ones are dropped.",
    )
    .default("100000"),
    Setting::new(
        "redis.inbox_max",
        MANY,
        "Inputs that wait for one scope; more are refused.",
    )
    .default("10000"),
    Setting::new(
        "redis.retain",
        KEEP,
        "How long an event is kept for an instance that waits for it later.",
    )
    .default("1d"),
    Setting::new(
        "redis.retain_max",
        MANY,
        "How many events are kept for later instances; older ones are dropped.",
    )
    .default("100000"),
    Setting::new(
        "redis.retain_bytes",
        ValueKind::Bytes,
        "How many bytes of such events are kept; older ones are dropped. A coordinator logs how many.",
    )
    .default("256MiB"),
    Setting::new(
        "redis.retain_workflow_bytes",
        ValueKind::Bytes,
        "The same for the events that a workflow consumes.",
    )
    .default("128MiB"),
    Setting::new(
        "redis.retain_type_bytes",
        ValueKind::Bytes,
        "The same for events with the same `type`.",
    )
    .default("64MiB"),
    Setting::new(
        "redis.dedup",
        KEEP,
        "How long the id of an event is remembered, so that a duplicate is recognised.",
    )
    .default("1d"),
    Setting::new(
        "redis.dedup_max",
        MANY,
        "How many ids of events are remembered; older ones are forgotten.",
    )
    .default("250000"),
    Setting::new(
        "redis.sets_max",
        MANY,
        "How many incomplete sets of start events are kept; older ones are dropped.",
    )
    .default("100000"),
    Setting::new(
        "redis.sets_bytes",
        ValueKind::Bytes,
        "How many bytes of such sets are kept; older ones are dropped. A coordinator logs how many.",
    )
    .default("256MiB"),
    Setting::new(
        "redis.sets_workflow_bytes",
        ValueKind::Bytes,
        "The same for the sets of a workflow.",
    )
    .default("128MiB"),
    Setting::new(
        "redis.keep_ended",
        KEEP,
        "How long ended instances are kept, except for faulted ones, unless their definition says otherwise.",
    )
    .default("7d"),
    Setting::new(
        "redis.keep_ended_max",
        MANY,
        "How many ended instances are kept; older ones are dropped. Faulted ones don't count.",
    )
    .default("100000"),
    Setting::new(
        "redis.keep_faulted",
        KEEP,
        "How long faulted instances are kept, however many instances there are, unless their definition \
         says otherwise.",
    )
    .default("30d"),
    Setting::new(
        "nats.url",
        ValueKind::List(&NATS_URL),
        "The address of NATS; several for a cluster; `tls` requires TLS.",
    )
    .default("nats://127.0.0.1:4222"),
    Setting::new("nats.user", ValueKind::Text, "The user; with a password."),
    Setting::new("nats.password", ValueKind::Text, "The user's password.").secret(),
    Setting::new(
        "nats.password_file",
        ValueKind::Path,
        "A file with the user's password.",
    ),
    Setting::new("nats.token", ValueKind::Text, "A token, in place of a user.").secret(),
    Setting::new("nats.token_file", ValueKind::Path, "A file with the token."),
    Setting::new("nats.nkey_file", ValueKind::Path, "A file with an NKey seed."),
    Setting::new(
        "nats.credentials_file",
        ValueKind::Path,
        "A file with a JWT and its key (`.creds`).",
    ),
    Setting::new(
        "nats.tls_ca",
        ValueKind::Path,
        "Certificates in PEM that sign the servers', in place of those that the machine trusts.",
    ),
    Setting::new(
        "nats.tls_cert",
        ValueKind::Path,
        "The client certificate for NATS, in PEM.",
    ),
    Setting::new("nats.tls_key", ValueKind::Path, "Its key, in PEM."),
    Setting::new(
        "nats.connect_timeout",
        TIMEOUT,
        "The time limit for making a connection.",
    )
    .default("5s"),
    Setting::new(
        "nats.request_timeout",
        TIMEOUT,
        "How long a request to JetStream may take.",
    )
    .default("10s"),
    Setting::new(
        "nats.replicas",
        count(1, 5),
        "Copies of each stream and consumer: 3 in a cluster, 1 on a single server.",
    )
    .default("1"),
    Setting::new(
        "nats.storage",
        ValueKind::Word(&["file", "memory"]),
        "Where the streams of events and dead letters are kept. Tasks are in memory anyway.",
    )
    .default("file"),
    Setting::new(
        "nats.duplicate_window",
        duration(SECOND_MS, DAY_MS),
        "How long JetStream remembers a message and drops its duplicates.",
    )
    .default("2m"),
    Setting::new(
        "nats.tasks_bytes_max",
        ValueKind::Bytes,
        "The largest size of the stream of tasks, which is in memory; at most 256 MiB. Tasks that don't fit are recovered by the \
         reconciler.",
    )
    .default("256MiB"),
    Setting::new(
        "nats.events_bytes_max",
        ValueKind::Bytes,
        "The largest stream of events; older ones are dropped.",
    )
    .default("10GiB"),
    Setting::new(
        "nats.events_messages_max",
        MANY,
        "How many events the stream holds; older ones are dropped.",
    )
    .default("10000000"),
    Setting::new(
        "nats.events_age_max",
        KEEP,
        "How long events stay in the stream.",
    )
    .default("7d"),
    Setting::new(
        "nats.ack_wait",
        duration(SECOND_MS, 3600 * SECOND_MS),
        "How long JetStream waits for an acknowledgement or a progress report before it redelivers a message.",
    )
    .default("30s"),
    Setting::new(
        "nats.ack_pending_max",
        count(1, 1_000_000),
        "How many messages of a consumer may be unacknowledged, in all processes together.",
    )
    .default("20000"),
    Setting::new(
        "events.subjects",
        ValueKind::List(&ValueKind::Subject),
        "The subjects from which CloudEvents are received. `*` matches one part, `>` all that follow, and \
         `{namespace}` is the namespace. In another namespace than `default` the default is \
         `swirl.NAMESPACE.events.>`.",
    )
    .default("swirl.events.>"),
    Setting::new(
        "events.produced_subject",
        ValueKind::Template,
        "The subject to which produced CloudEvents are published. `{type}` is its type, `{namespace}` the namespace. \
         In another namespace than `default` the default is `swirl.NAMESPACE.events.{type}`.",
    )
    .default("swirl.events.{type}"),
    Setting::new(
        "events.instance_attribute",
        ValueKind::Text,
        "An extension attribute of CloudEvents that addresses an instance, in addition to `swirlinstanceid`: \
         the attribute that services written for another runtime send, such as `kogitoprocrefid`.",
    ),
];
