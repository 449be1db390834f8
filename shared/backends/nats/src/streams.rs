//! The streams and consumers of a namespace: created if they are missing, checked if they exist.
//!
//! Users may create them beforehand, with other limits, replicas or placement; only settings that affect correctness
//! are checked. Streams may disappear at runtime, for example when JetStream is wiped. Code that notices this calls
//! [`Streams::ensure`] again.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_nats::Client;
use async_nats::datetime::DateTime;
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::context::{Context, ContextBuilder};
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType, Stream};
use swirl_ports::StreamPlace;

use crate::Error;
use crate::counts::{Backlog, Counts};
use crate::hints::{check, is_hints, lacks_room};
use crate::lanes::{LANES, Lanes};
use crate::place::name_of;
use crate::together::{Together, has_batches};

/// The consumer of tasks.
const WORKERS: &str = "workers";
/// The consumer of join messages.
const JOINERS: &str = "joiners";

/// The largest size of a stream of tasks. It is in memory, and a task has about a hundred bytes.
const HINTS_BYTES_MAX: i64 = 256 << 20;

/// An upper limit on the subjects of a message, which count towards the size of a request.
const ADDRESS_MAX: usize = 4 << 10;

fn lane_name(lane: usize) -> String {
    format!("lane-{lane}")
}

/// A queue of tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskQueueKind {
    Main,
    Lane(usize),
    /// Messages for coordinators about forks to join.
    Joins,
}

/// The age by this machine's clock; never negative.
fn age(of: DateTime) -> Duration {
    let at = u64::try_from(of.unix_timestamp_nanos()).unwrap_or(0);
    let at = UNIX_EPOCH + Duration::from_nanos(at);
    SystemTime::now().duration_since(at).unwrap_or_default()
}

/// Settings of the streams that are created here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamOptions {
    pub replicas: usize,
    /// Uses memory instead of files for events and dead letters. Events that no coordinator has processed yet are lost
    /// if the server stops. Tasks are in memory anyway, since the store is the source of truth.
    pub memory: bool,
    /// How long events are kept in their stream, whether processed or not.
    pub events_age_max: Duration,
    pub events_bytes_max: i64,
    pub events_messages_max: i64,
    /// How long JetStream remembers the `Nats-Msg-Id` of an event.
    pub duplicate_window: Duration,
    pub dead_age_max: Duration,
    pub dead_bytes_max: i64,
    pub tasks_bytes_max: i64,
    /// How long a message may go unacknowledged before it is delivered to another process.
    pub ack_wait: Duration,
    /// How many messages of a consumer may be unacknowledged in all processes together. More cost the server time
    /// (nats-server 2.9 gets slower with thousands of them); with fewer, long calls could block all others.
    pub ack_pending_max: i64,
    /// The time limit for responses of JetStream.
    pub request_timeout: Duration,
    /// How many bytes are requested ahead of a stream. A server closes a connection on which more waits than it holds
    /// (`max_pending`, 64 MiB).
    pub fetch_bytes: usize,
}

impl Default for StreamOptions {
    fn default() -> StreamOptions {
        let day = Duration::from_secs(24 * 60 * 60);
        StreamOptions {
            replicas: 1,
            memory: false,
            events_age_max: 7 * day,
            events_bytes_max: 10 << 30,
            events_messages_max: 10_000_000,
            duplicate_window: Duration::from_secs(120),
            dead_age_max: 30 * day,
            dead_bytes_max: 1 << 30,
            tasks_bytes_max: 1 << 28,
            ack_wait: Duration::from_secs(30),
            ack_pending_max: 20_000,
            request_timeout: Duration::from_secs(10),
            fetch_bytes: 4 << 20,
        }
    }
}

/// The names of a namespace's streams, and their configuration.
#[derive(Clone)]
pub struct Streams {
    pub(crate) context: Context,
    namespace: String,
    /// The subjects of the events stream, to which users publish events.
    subjects: Vec<String>,
    options: StreamOptions,
    /// A name that no other installation has.
    installation: Arc<str>,
    counts: Arc<Counts>,
    /// Events for their stream.
    pub(crate) together: Arc<Together>,
    pub(crate) lane_choice: Arc<Lanes>,
}

impl Streams {
    /// `subjects` are the subjects of the events stream; if empty, the default ones are used.
    pub fn new(
        client: Client,
        namespace: &str,
        subjects: Vec<String>,
        options: StreamOptions,
    ) -> Streams {
        let context = ContextBuilder::new()
            .timeout(options.request_timeout)
            .ack_timeout(options.request_timeout)
            .max_ack_inflight(4096)
            .backpressure_on_inflight(true)
            .build(client);
        let subjects = if subjects.is_empty() {
            vec![format!("{}.>", Streams::default_events(namespace))]
        } else {
            subjects
        };
        Streams {
            context,
            namespace: namespace.to_owned(),
            subjects,
            options,
            installation: "".into(),
            counts: Arc::default(),
            together: Arc::default(),
            lane_choice: Arc::default(),
        }
    }

    /// Whether an event with this subject is for the stream of events.
    pub(crate) fn takes(&self, subject: &str) -> bool {
        let is_within = |pattern: &String| match pattern.strip_suffix('>') {
            Some(start) => subject.starts_with(start) && !start.contains('*'),
            None => pattern == subject,
        };
        self.subjects.iter().any(is_within)
    }

    /// The number of atomic batches of events that this process has published.
    pub fn batches_sent(&self) -> u64 {
        self.together.sent()
    }

    /// Marks produced events, so that this installation and namespace recognises its own events.
    #[must_use]
    pub fn marked_by(mut self, installation: &str) -> Streams {
        self.installation = installation.into();
        self
    }

    /// The mark of a produced event, derived from its [`message_id`](crate::message::message_id). It is valid for one
    /// event only, so copying the headers to another event has no effect.
    pub(crate) fn mark(&self, message_id: &str) -> String {
        let parts = [&*self.installation, &self.namespace, message_id];
        blake3::hash(parts.join("\n").as_bytes()).to_hex()[..32].to_owned()
    }

    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// How long a message may go unacknowledged before it is delivered to another process.
    pub fn ack_wait(&self) -> Duration {
        self.options.ack_wait
    }

    /// How many bytes are requested at a time. A request that is smaller than the next message would never be answered.
    pub(crate) fn fetch_bytes(&self) -> usize {
        let message = self.context.client().server_info().max_payload;
        self.options
            .fetch_bytes
            .max(message.saturating_add(ADDRESS_MAX))
    }

    /// How often the connection was made. Messages may have been lost on their way if it was made again.
    pub(crate) fn connects(&self) -> u64 {
        let statistics = self.context.client().statistics();
        statistics.connects.load(Ordering::Relaxed)
    }

    pub(crate) fn ack_pending_max(&self) -> i64 {
        self.options.ack_pending_max
    }

    /// The message counts of this process. Clones share them.
    pub fn counts(&self) -> &Arc<Counts> {
        &self.counts
    }

    /// The number of waiting messages, for all processes together: tasks, and events after the position up to which
    /// they are done.
    ///
    /// # Errors
    /// JetStream doesn't respond, or a stream or consumer is gone.
    pub async fn backlog(&self, events: Option<&StreamPlace>) -> Result<(Backlog, Backlog), Error> {
        let tasks = self.tasks_backlog();
        let events = self.events_backlog(events);
        futures::future::try_join(tasks, events).await
    }

    async fn events_backlog(&self, place: Option<&StreamPlace>) -> Result<Backlog, Error> {
        let stream = self.events_stream().await?;
        let state = &stream.cached_info().state;
        let place = place.filter(|place| place.stream == name_of(stream.cached_info()));
        let (done, read) = place.map_or((0, 0), |place| (place.done, place.read));
        // Messages that were removed unread don't count.
        let gone = state.first_sequence.saturating_sub(1);
        let (done, read) = (done.max(gone), read.max(gone));
        let pending = state.last_sequence.saturating_sub(read);
        let oldest = match pending {
            0 => None,
            // It may have been removed meanwhile.
            _ => stream
                .get_first_raw_message_by_subject(">", read + 1)
                .await
                .ok(),
        };
        Ok(Backlog {
            pending,
            unacknowledged: read.saturating_sub(done),
            oldest: oldest.map_or(Duration::ZERO, |message| age(message.time)),
        })
    }

    /// The number of tasks that no worker has taken.
    pub(crate) async fn tasks_pending(&self) -> Result<usize, Error> {
        let backlog = self.tasks_backlog().await?;
        Ok(usize::try_from(backlog.pending).unwrap_or(usize::MAX))
    }

    /// The backlog of the queue and all lanes.
    async fn tasks_backlog(&self) -> Result<Backlog, Error> {
        let mut all = self.backlog_of(&self.tasks(), WORKERS, ">").await?;
        let lanes = self.lanes();
        let stream = self.context.get_stream(&lanes).await;
        let stream = stream.map_err(|error| Error::JetStream(format!("{lanes}: {error}")))?;
        if stream.cached_info().state.messages == 0 {
            return Ok(all);
        }
        for lane in 0..LANES {
            let (name, subject) = (lane_name(lane), self.lane_subjects(lane));
            let of_lane = self.backlog_of(&lanes, &name, &subject).await?;
            all.pending += of_lane.pending;
            all.unacknowledged += of_lane.unacknowledged;
            all.oldest = all.oldest.max(of_lane.oldest);
        }
        Ok(all)
    }

    /// The forks that no coordinator has joined yet.
    ///
    /// # Errors
    /// As for [`Streams::backlog`].
    pub async fn joins_backlog(&self) -> Result<Backlog, Error> {
        self.backlog_of(&self.joins(), JOINERS, ">").await
    }

    async fn backlog_of(
        &self,
        stream: &str,
        consumer: &str,
        subject: &str,
    ) -> Result<Backlog, Error> {
        let error = |reason: String| Error::JetStream(format!("{stream}: {reason}"));
        let found = self.context.get_stream_no_info(stream).await;
        let found = found.map_err(|found| error(found.to_string()))?;
        let info = found.consumer_info(consumer).await;
        let info = info.map_err(|found| error(found.to_string()))?;
        let next = info.delivered.stream_sequence + 1;
        let oldest = match info.num_pending {
            0 => None,
            // It may have been taken meanwhile.
            _ => found
                .get_first_raw_message_by_subject(subject, next)
                .await
                .ok(),
        };
        Ok(Backlog {
            pending: info.num_pending,
            unacknowledged: info.num_ack_pending as u64,
            oldest: oldest.map_or(Duration::ZERO, |message| age(message.time)),
        })
    }

    /// The prefix of event subjects unless another one is configured. The default namespace has the short prefix.
    pub fn default_events(namespace: &str) -> String {
        match namespace {
            "default" => "swirl.events".to_owned(),
            other => format!("swirl.{other}.events"),
        }
    }

    pub fn tasks(&self) -> String {
        format!("SWIRL_{}_TASKS", self.namespace)
    }

    /// The stream of tasks whose workflows have used up their share of a worker.
    pub fn lanes(&self) -> String {
        format!("SWIRL_{}_LANES", self.namespace)
    }

    /// The stream of forks for coordinators to join.
    pub fn joins(&self) -> String {
        format!("SWIRL_{}_JOINS", self.namespace)
    }

    pub fn events(&self) -> String {
        format!("SWIRL_{}_EVENTS", self.namespace)
    }

    pub fn dead(&self) -> String {
        format!("SWIRL_{}_DEAD", self.namespace)
    }

    pub fn lifecycle(&self) -> String {
        format!("SWIRL_{}_LIFECYCLE", self.namespace)
    }

    /// The stream that is created and removed to check for room.
    pub(crate) fn probe(&self) -> String {
        format!("SWIRL_{}_DOCTOR", self.namespace)
    }

    pub(crate) fn task_subject(&self) -> String {
        format!("swirl-tasks.{}", self.namespace)
    }

    /// The subjects of a lane's tasks, which end with their workflows.
    fn lane_subjects(&self, lane: usize) -> String {
        self.lane_subject(lane, "*")
    }

    pub(crate) fn lane_subject(&self, lane: usize, workflow: &str) -> String {
        format!("swirl-lanes.{}.{lane}.{workflow}", self.namespace)
    }

    pub(crate) fn join_subject(&self) -> String {
        format!("swirl-joins.{}", self.namespace)
    }

    pub(crate) fn dead_subject(&self, of: &str) -> String {
        format!("swirl-dead.{}.{of}", self.namespace)
    }

    pub(crate) fn lifecycle_subject(&self, of: &str) -> String {
        format!("swirl-lifecycle.{}.{of}", self.namespace)
    }

    /// Creates missing streams, and checks existing ones.
    pub async fn ensure(&self) -> Result<(), Error> {
        for wanted in self.wanted() {
            self.ensure_stream(wanted).await?;
        }
        self.task_consumer(TaskQueueKind::Main).await?;
        for lane in 0..LANES {
            self.task_consumer(TaskQueueKind::Lane(lane)).await?;
        }
        self.task_consumer(TaskQueueKind::Joins).await?;
        Ok(())
    }

    /// Returns the consumer of a queue of tasks. Creates it and its stream if they are missing.
    pub(crate) async fn ensure_tasks(&self, queue: TaskQueueKind) -> Result<PullConsumer, Error> {
        let [tasks, lanes, joins, ..] = self.wanted();
        let wanted = match queue {
            TaskQueueKind::Main => tasks,
            TaskQueueKind::Lane(_) => lanes,
            TaskQueueKind::Joins => joins,
        };
        self.ensure_stream(wanted).await?;
        self.task_consumer(queue).await
    }

    pub(crate) async fn ensure_stream(&self, wanted: Config) -> Result<(), Error> {
        let name = wanted.name.clone();
        let mut stream = self.context.get_or_create_stream(wanted.clone()).await;
        if let Err(error) = &stream
            && is_hints(&wanted)
            && lacks_room(error)
        {
            tracing::debug!(%error, "{name}: there is no room in memory, so it is kept in files");
            let storage = StorageType::File;
            let in_files = Config {
                storage,
                ..wanted.clone()
            };
            stream = self.context.get_or_create_stream(in_files).await;
        }
        let stream = stream.map_err(|error| Error::JetStream(format!("{name}: {error}")))?;
        if let Some(reason) = check(&wanted, &stream.cached_info().config) {
            return Err(Error::Stream {
                stream: name,
                reason,
            });
        }
        Ok(())
    }

    /// Whether events are in the files of one server only.
    pub(crate) fn is_unsynced(&self) -> bool {
        !self.options.memory && self.options.replicas < 3
    }

    pub(crate) fn duplicate_window(&self) -> Duration {
        self.options.duplicate_window
    }

    /// The settings that all streams have in common.
    pub(crate) fn common(&self) -> Config {
        let storage = if self.options.memory {
            StorageType::Memory
        } else {
            StorageType::File
        };
        Config {
            num_replicas: self.options.replicas,
            storage,
            ..Config::default()
        }
    }

    /// Whether streams of events take atomic batches. Older servers don't know the setting.
    pub(crate) fn takes_batches(&self) -> bool {
        has_batches(&self.context.client())
    }

    /// The configurations of the five streams.
    pub fn wanted(&self) -> [Config; 5] {
        let options = &self.options;
        let common = self.common();
        // Losing them costs time only, so they needn't wait for a disk.
        let hints = Config {
            storage: StorageType::Memory,
            retention: RetentionPolicy::WorkQueue,
            // A full stream refuses new tasks, and the reconciler sends them later.
            discard: DiscardPolicy::New,
            ..common.clone()
        };
        let hints_bytes_max = options.tasks_bytes_max.min(HINTS_BYTES_MAX);
        [
            Config {
                name: self.tasks(),
                description: Some("Swirl: scopes to look at; losing it costs time only".to_owned()),
                subjects: vec![self.task_subject()],
                max_bytes: hints_bytes_max,
                ..hints.clone()
            },
            Config {
                name: self.lanes(),
                description: Some(
                    "Swirl: tasks of workflows that have their share of the workers".to_owned(),
                ),
                subjects: vec![format!("swirl-lanes.{}.*.*", self.namespace)],
                max_bytes: hints_bytes_max / 4,
                ..hints.clone()
            },
            Config {
                name: self.joins(),
                description: Some(
                    "Swirl: forks for coordinators to join; losing it costs time only".to_owned(),
                ),
                subjects: vec![self.join_subject()],
                max_bytes: hints_bytes_max / 16,
                ..hints
            },
            Config {
                name: self.events(),
                description: Some("Swirl: CloudEvents, of users and of workflows".to_owned()),
                subjects: self.subjects.clone(),
                retention: RetentionPolicy::Limits,
                discard: DiscardPolicy::Old,
                max_age: options.events_age_max,
                max_bytes: options.events_bytes_max,
                max_messages: options.events_messages_max,
                duplicate_window: options.duplicate_window,
                allow_atomic_publish: self.takes_batches(),
                ..common.clone()
            },
            Config {
                name: self.dead(),
                description: Some(
                    "Swirl: messages that could not be processed, with the reason".to_owned(),
                ),
                subjects: vec![self.dead_subject(">")],
                retention: RetentionPolicy::Limits,
                discard: DiscardPolicy::Old,
                max_age: options.dead_age_max,
                max_bytes: options.dead_bytes_max,
                ..common
            },
        ]
    }

    pub(crate) async fn task_consumer(&self, queue: TaskQueueKind) -> Result<PullConsumer, Error> {
        match queue {
            TaskQueueKind::Lane(lane) => {
                let subject = self.lane_subjects(lane);
                self.consumer(self.lanes(), &lane_name(lane), subject).await
            }
            TaskQueueKind::Main => self.consumer(self.tasks(), WORKERS, String::new()).await,
            TaskQueueKind::Joins => self.consumer(self.joins(), JOINERS, String::new()).await,
        }
    }

    /// Returns the stream of events, with its current information.
    pub(crate) async fn events_stream(&self) -> Result<Stream, Error> {
        let name = self.events();
        let stream = self.context.get_stream(&name).await;
        stream.map_err(|error| Error::JetStream(format!("{name}: {error}")))
    }

    async fn consumer(
        &self,
        stream: String,
        name: &str,
        filter_subject: String,
    ) -> Result<PullConsumer, Error> {
        let error = |reason: String| Error::JetStream(format!("{stream}: {reason}"));
        let found = self.context.get_stream_no_info(&stream).await;
        let found = found.map_err(|found| error(found.to_string()))?;
        let config = pull::Config {
            durable_name: Some(name.to_owned()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: self.options.ack_wait,
            max_ack_pending: self.options.ack_pending_max,
            max_deliver: -1,
            filter_subject,
            ..pull::Config::default()
        };
        let consumer = found.get_or_create_consumer(name, config).await;
        let consumer = consumer.map_err(|found| error(found.to_string()))?;
        if consumer.cached_info().config.ack_policy != AckPolicy::Explicit {
            let reason = format!("its consumer {name} must have explicit acknowledgements");
            return Err(Error::Stream { stream, reason });
        }
        Ok(consumer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_have_separate_event_subjects() {
        assert_eq!(Streams::default_events("default"), "swirl.events");
        assert_eq!(Streams::default_events("team-a"), "swirl.team-a.events");
    }
}
