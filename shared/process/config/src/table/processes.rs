//! The settings of the two processes, and those that they share: telemetry, log, HTTP, secrets.

use crate::kind::{DAY_MS, SECOND_MS, ValueKind, count, duration};
use crate::setting::Setting;

const TIMEOUT: ValueKind = duration(100, 300 * SECOND_MS);
const PAUSE: ValueKind = duration(100, 3600 * SECOND_MS);
const STOP: ValueKind = duration(0, 3600 * SECOND_MS);

pub const SETTINGS: &[Setting] = &[
    Setting::new(
        "worker.concurrency",
        count(1, 100_000),
        "How many scopes of one workflow are driven at once; an eighth more is reserved for other workflows. Workflows with few scopes may exceed the total by half. A scope that waits for a function's answer counts.",
    )
    .default("1024")
    .worker(),
    Setting::new(
        "worker.local_scopes",
        count(0, 100_000),
        "How many scopes of an instance a worker may drive one after another within one task: a branch of a fork, or the continuation after the last branch. After a second, or this many scopes, the next one becomes a separate task, which any worker may take. With 0 each scope is a task.",
    )
    .default("100")
    .worker(),
    Setting::new(
        "worker.local_branches",
        count(1, 10_000),
        "How many branches that become ready together a worker keeps for itself, without messages, as far as it has \
         free places. The others become tasks of up to 32 branches, which any worker may take. Of a workflow whose steps \
         take long it keeps one, and each of the others is a task. With `worker.local_scopes = 0` it keeps none.",
    )
    .default("32")
    .worker(),
    Setting::new(
        "worker.join_results_max",
        count(0, 100_000),
        "The results of a fork that the worker of its last branch joins itself. If there are more, or if they are \
         larger than `worker.join_bytes_max`, a coordinator joins them.",
    )
    .default("64")
    .worker(),
    Setting::new(
        "worker.join_bytes_max",
        ValueKind::Bytes,
        "The size of these results together, as JSON.",
    )
    .default("256KiB")
    .worker(),
    Setting::new(
        "worker.lease",
        duration(SECOND_MS, 3600 * SECOND_MS),
        "How long a scope belongs to a worker that doesn't renew its lease. After a crash, another worker continues after this time.",
    )
    .default("30s")
    .worker(),
    Setting::new(
        "worker.shutdown_deadline",
        STOP,
        "How long running calls may take when the worker is stopping.",
    )
    .default("20s")
    .worker(),
    Setting::new(
        "worker.listen",
        ValueKind::Address,
        "The address of health and metrics. Port 0 takes any free one.",
    )
    .default("127.0.0.1:8081")
    .worker(),
    Setting::new(
        "history.data",
        ValueKind::Word(&["none", "errors", "all"]),
        "The additional data that the history keeps: nothing, the arguments of failed calls, or the arguments and results of all calls, the received and produced events, and the state data with which each state begins. Secrets are cut out. A definition may override this.",
    )
    .default("errors"),
    Setting::new(
        "history.recent_calls",
        count(0, 50),
        "With `errors`: how many of its last answered calls the main flow and each branch of an instance that has not \
         ended keep, with their arguments and results, of each up to 1 KiB. 0 keeps none.",
    )
    .default("3"),
    Setting::new(
        "history.data_bytes",
        ValueKind::Bytes,
        "The longest such value that is kept; longer ones are cut off.",
    )
    .default("16KiB"),
    Setting::new(
        "history.keep_data",
        duration(60 * SECOND_MS, 3650 * DAY_MS),
        "How long such values are kept; their entries stay. Without it, as long as the entry. It applies to what is \
         recorded from then on, and is rounded up by a sixteenth at most. A definition may say otherwise.",
    ),
    Setting::new(
        "lifecycle.events",
        ValueKind::Flag,
        "Whether the lifecycle of all instances and their states is published as CloudEvents \
         (lifecycle.md). The coordinator that starts last decides, for all processes.",
    )
    .default("false")
    .coordinator(),
    Setting::new(
        "lifecycle.bytes_max",
        ValueKind::Bytes,
        "The largest stream of lifecycle events; older ones are dropped.",
    )
    .default("10GiB")
    .coordinator(),
    Setting::new(
        "lifecycle.age_max",
        duration(60 * SECOND_MS, 3650 * DAY_MS),
        "How long lifecycle events stay in the stream.",
    )
    .default("7d")
    .coordinator(),
    Setting::new(
        "coordinator.listen",
        ValueKind::Address,
        "The address of the HTTP API, health and metrics. Port 0 takes any free one.",
    )
    .default("127.0.0.1:8080")
    .coordinator(),
    Setting::new(
        "coordinator.health_listen",
        ValueKind::Address,
        "A separate address for health and metrics, over plain HTTP: a client that uses up all connections of the API doesn't affect them. They are served at `coordinator.listen` too.",
    )
    .coordinator(),
    Setting::new(
        "coordinator.connections_per_address",
        count(1, 1_000_000),
        "How many connections an address (of IPv6, a network of 64 bits) may have; further ones are closed at once. The total limit is 10,000, or the number of files that the process may open less 256, if that is lower.",
    )
    .default("1000")
    .coordinator(),
    Setting::new(
        "coordinator.incomplete_bodies",
        ValueKind::Bytes,
        "The memory for the bodies of requests that are incomplete, all together. Beyond it, the one that has been arriving longest is dropped. A body must also arrive at 1 KiB a second at least.",
    )
    .default("64MiB")
    .coordinator(),
    Setting::new(
        "coordinator.allowed_hosts",
        ValueKind::List(&ValueKind::Text),
        "Host names by which the API is called, such as `swirl.example.org`. With `auth.mode = \"off\"` \
         requests that name neither this machine (`localhost` or an address) nor one of these are refused: \
         otherwise a web page could rebind its own name to this address and do everything. With tokens nothing is refused \
         unless some are given.",
    )
    .coordinator(),
    Setting::new(
        "coordinator.cors_origins",
        ValueKind::List(&ValueKind::Text),
        "Origins whose web pages may use the API, such as `https://app.example.org`; `*` is not allowed. \
         Pages of all others are refused. They send their own token (`auth.tokens`); with `auth.mode = \
         \"off\"` they may do everything.",
    )
    .coordinator(),
    Setting::new(
        "coordinator.webhook_origins",
        ValueKind::List(&ValueKind::Text),
        "Senders of webhooks that may deliver events to `POST /api/v1/events`, by the names that they give themselves \
         in the handshake (`WebHook-Request-Origin`), such as `eventgrid.azure.net`; `*` is any. Senders without a \
         handshake need no entry, and all of them need a token as usual.",
    )
    .coordinator(),
    Setting::new(
        "coordinator.tls_cert",
        ValueKind::Path,
        "The API's certificate chain, in PEM. It is read again when it changes.",
    )
    .coordinator(),
    Setting::new("coordinator.tls_key", ValueKind::Path, "Its key, in PEM.").coordinator(),
    Setting::new(
        "coordinator.runs_inline",
        ValueKind::Flag,
        "Turns that need nothing but data (inject, switch by data, expression functions) are taken without a worker: the \
         first turn of an instance where it is started, if it leads to the end or to a wait, and the next turn of a \
         waiting instance where its event is processed. With `false`, workers do all of that.",
    )
    .default("true")
    .coordinator(),
    Setting::new(
        "coordinator.log_unreceived",
        ValueKind::Flag,
        "Each event from outside that no instance receives, and that isn't kept for one, is logged with its type, source, \
         id and the reason. The metric `swirl_events_total` counts them in any case.",
    )
    .default("false")
    .coordinator(),
    Setting::new(
        "coordinator.rehearsals",
        ValueKind::Flag,
        "Deployers may let definitions run in virtual time (`POST /api/v1/rehearsals`, “Try it” in the console). Each such run \
         is a process of its own that may take 256 MiB of memory for ten seconds. With `false` they are refused.",
    )
    .default("true")
    .coordinator(),
    Setting::new(
        "coordinator.batch_instances",
        count(1, 1_000_000),
        "How many instances a batch may have. Their ids are found and recorded by the request that creates it; one that \
         matches more is refused.",
    )
    .default("50000")
    .coordinator(),
    Setting::new(
        "coordinator.batch_examined",
        count(1, 10_000_000),
        "How many instances are examined for a batch's query. One that needs more is refused.",
    )
    .default("200000")
    .coordinator(),
    Setting::new(
        "coordinator.batches_active",
        count(1, 30),
        "How many batches may be active at once; further ones are refused.",
    )
    .default("10")
    .coordinator(),
    Setting::new(
        "coordinator.keep_batches",
        duration(SECOND_MS, 3650 * DAY_MS),
        "How long batches are kept after their end, with the outcome for each instance.",
    )
    .default("30d")
    .coordinator(),
    Setting::new(
        "coordinator.keep_batches_max",
        count(1, 1_000),
        "How many batches are kept after their end; older ones are dropped. Together they have at most 500,000 instances, unless only one batch is kept.",
    )
    .default("100")
    .coordinator(),
    Setting::new(
        "coordinator.keep_audit_max",
        count(1, 100_000),
        "How many actions of operators the audit log keeps; older ones are dropped.",
    )
    .default("10000")
    .coordinator(),
    Setting::new(
        "coordinator.drain_delay",
        STOP,
        "How long a stopping coordinator still accepts requests while it reports that it isn't ready, so that load balancers can move to others.",
    )
    .default("1s")
    .coordinator(),
    Setting::new(
        "coordinator.shutdown_deadline",
        STOP,
        "How long requests in flight may take when the coordinator is stopping.",
    )
    .default("10s")
    .coordinator(),
];

pub const COMMON: &[Setting] = &[
    Setting::new(
        "limits.data_bytes",
        ValueKind::Bytes,
        "How large the state data of a path of execution, and the input of an instance, may become. Larger \
         data is the error `LimitExceeded`, which a workflow can handle.",
    )
    .default("4MiB"),
    Setting::new(
        "limits.fork_bytes",
        ValueKind::Bytes,
        "How large the results of all branches of a fork, or iterations of a foreach, may become together. A result that doesn't fit is the error `LimitExceeded` of its branch.",
    )
    .default("32MiB"),
    Setting::new(
        "limits.instance_bytes",
        ValueKind::Bytes,
        "How large an instance may become: the data of all its paths of execution, the input and results of its branches, and waiting inputs. Whatever would exceed this is the error `LimitExceeded`.",
    )
    .default("64MiB"),
    Setting::new(
        "limits.chain",
        count(1, 1_000_000),
        "How many instances may start each other, one after the other, by `continueAs`, by events or as sub-workflows, \
         without one of them waiting for anything (a call, an event, a sleep, branches). The next start is the error `LimitExceeded`.",
    )
    .default("1000"),
    Setting::new(
        "limits.starts",
        count(0, 1_000_000),
        "How many instances of one workflow a coordinator or worker starts in a second; ten times as many may \
         come at once. Further requests are answered with 429; starts by events, schedules and other instances are delayed. 0: no limit.",
    )
    .default("10000"),
    Setting::new(
        "limits.chained_starts",
        count(0, 1_000_000),
        "The same for instances that events and other instances start.",
    )
    .default("2000"),
    Setting::new(
        "limits.runaway_starts",
        count(0, 1_000_000),
        "The same for instances that nothing waits for and that other instances start, from the fifth of such a chain \
         on (`limits.chain`): a chain that waits for nothing usually never ends.",
    )
    .default("20"),
    Setting::new(
        "limits.all_starts",
        count(0, 1_000_000),
        "The same for instances of all workflows together.",
    )
    .default("20000"),
    Setting::new(
        "limits.pending_starts",
        count(0, 10_000_000),
        "How many starts of one workflow by other instances may wait for these rates, in all processes together. They \
         stay in Redis meanwhile. Beyond it, one that nothing waits for starts nothing, which its history says, and an \
         instance that would continue as another faults with `LimitExceeded`. Sub-workflows that an action waits for \
         count only from the fifth instance of a chain or a tree on. 0: no limit.",
    )
    .default("100000"),
    Setting::new(
        "limits.all_pending_starts",
        count(0, 10_000_000),
        "The same for instances of all workflows of the namespace together.",
    )
    .default("400000"),
    Setting::new(
        "limits.schedule_interval",
        duration(0, 3600 * SECOND_MS),
        "The minimum time between two instances of a schedule, even if its own interval is shorter.",
    )
    .default("1s"),
    Setting::new(
        "telemetry.otlp_endpoint",
        ValueKind::Url(&["http", "https"]),
        "The collector, such as `http://127.0.0.1:4317`. Nothing is sent without one.",
    ),
    Setting::new(
        "telemetry.protocol",
        ValueKind::Word(&["grpc", "http"]),
        "The protocol of the collector.",
    )
    .default("grpc"),
    Setting::new(
        "telemetry.headers",
        ValueKind::Map,
        "Headers that the collector requires, such as an API key.",
    )
    .secret(),
    Setting::new(
        "telemetry.sampling_ratio",
        ValueKind::Ratio,
        "The share of traces that is kept, unless the caller has decided.",
    )
    .default("0.1"),
    Setting::new(
        "telemetry.resource_attributes",
        ValueKind::Map,
        "Attributes of all telemetry, such as `deployment.environment.name=test`.",
    ),
    Setting::new(
        "log.format",
        ValueKind::Word(&["text", "json"]),
        "How messages are written.",
    )
    .default("text"),
    Setting::new(
        "log.filter",
        ValueKind::Text,
        "Which messages are written: a level, or levels by module such as `info,swirl_functions=debug`.",
    )
    .default("info"),
    Setting::new(
        "http.allow_hosts",
        ValueKind::List(&ValueKind::Text),
        "The hosts that a definition's documents may be fetched from: `example.org`, `example.org:8443`, \
         `*.example.org` or `*`. A coordinator's own machine isn't among them unless it is named \
         (`localhost`, `127.0.0.1`).",
    ),
    Setting::new(
        "http.refuse_networks",
        ValueKind::List(&ValueKind::Text),
        "Networks in which functions may not be called, such as `10.0.0.0/8`; `private` and `loopback` mean all \
         private and all loopback networks. Link-local addresses, metadata services of clouds, and Redis and \
         NATS of this installation are refused anyway. The address counts, not the name.",
    )
    .worker(),
    Setting::new(
        "http.allow_networks",
        ValueKind::List(&ValueKind::Text),
        "Networks in which functions may always be called.",
    )
    .worker(),
    Setting::new(
        "http.connect_timeout",
        TIMEOUT,
        "The time limit for making a connection.",
    )
    .default("5s")
    .worker(),
    Setting::new(
        "http.timeout",
        duration(100, 3600 * SECOND_MS),
        "How long a whole call may take, where the workflow doesn't set a timeout.",
    )
    .default("60s")
    .worker(),
    Setting::new(
        "http.request_bytes_max",
        ValueKind::Bytes,
        "The largest body that is sent.",
    )
    .default("8MiB")
    .worker(),
    Setting::new(
        "http.response_bytes_max",
        ValueKind::Bytes,
        "The largest answer that is read.",
    )
    .default("8MiB")
    .worker(),
    Setting::new(
        "http.idle_per_host_max",
        count(0, 10_000),
        "How many connections to a host are kept open for the next calls, for a minute and a half. If more calls of a \
         host are often under way at a time, more save time and processor.",
    )
    .default("256")
    .worker(),
    Setting::new(
        "http.breaker_failures",
        count(0, 1_000),
        "After this many failures in a row (no connection, no answer in time, or status 502, 503 or 504) a \
         host isn't called for a while: calls fail at once. 0: never.",
    )
    .default("10")
    .worker(),
    Setting::new(
        "http.breaker_window",
        PAUSE,
        "The time within which these failures must occur.",
    )
    .default("10s")
    .worker(),
    Setting::new(
        "http.breaker_pause",
        PAUSE,
        "How long the host isn't called then. Afterwards one call tries it; each time that fails, the next \
         pause is twice as long.",
    )
    .default("1s")
    .worker(),
    Setting::new(
        "http.breaker_pause_max",
        PAUSE,
        "The longest pause.",
    )
    .default("30s")
    .worker(),
    Setting::new(
        "functions.catalog",
        ValueKind::Path,
        "The folder of the default catalog of functions (`call: NAME:VERSION@default` in DSL 1.0): \
         `functions/NAME/VERSION/function.yaml`.",
    )
    .coordinator(),
    Setting::new(
        "functions.containers",
        ValueKind::Text,
        "The command line that runs containers: that of Docker or of Podman.",
    )
    .default("docker")
    .worker(),
    Setting::new(
        "functions.javascript",
        ValueKind::Text,
        "The program that runs scripts in JavaScript.",
    )
    .default("node")
    .worker(),
    Setting::new(
        "functions.process_timeout",
        duration(100, 7 * 24 * 3600 * SECOND_MS),
        "The longest time that a process may run.",
    )
    .default("1h")
    .worker(),
    Setting::new(
        "functions.processes",
        ValueKind::List(&ValueKind::Word(&["container", "mcp", "script", "shell"])),
        "The kinds of processes that tasks of DSL 1.0 may run on workers. Definitions with others are refused. Whoever \
         may deploy can then run programs with the rights of the workers.",
    ),
    Setting::new(
        "functions.python",
        ValueKind::Text,
        "The program that runs scripts in Python.",
    )
    .default("python3")
    .worker(),
    Setting::new(
        "functions.connectors",
        ValueKind::Map,
        "The connectors of custom function types, by type: `http://host/path`, `nats://host:port/subject` or \
         `exec:PROGRAM ARGUMENTS`.",
    )
    .secret(),
    Setting::new(
        "functions.connector_environment",
        ValueKind::List(&ValueKind::Text),
        "Variables that commands of connectors get, besides `PATH`, `HOME` and others of that kind. They get \
         no other variables of the process.",
    )
    .worker(),
    Setting::new(
        "functions.rpc_servers",
        ValueKind::Map,
        "The older name of `functions.servers`, for gRPC services.",
    ),
    Setting::new(
        "functions.servers",
        ValueKind::Map,
        "The addresses of services: by function, by the document that describes them, by gRPC service \
         (`grpc://host:port`, `grpcs` for TLS), or by origin (`https://host` to `http://other:port`). They take \
         precedence over a definition.",
    ),
    Setting::new(
        "functions.given",
        ValueKind::Path,
        "A file of functions for documents of the editions before 0.5, which name functions without their operations.",
    )
    .coordinator(),
    Setting::new(
        "secrets.files",
        ValueKind::List(&ValueKind::Path),
        "JSON or YAML files of names and values. A change is seen by the next call.",
    ),
    Setting::new(
        "secrets.folders",
        ValueKind::List(&ValueKind::Path),
        "Folders with one file per secret, as mounted into containers.",
    ),
    Setting::new(
        "secrets.environment",
        ValueKind::Flag,
        "Whether the variables `SWIRL_SECRET_NAME` are read, after files and folders.",
    )
    .default("true"),
];
