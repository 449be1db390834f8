//! The task queue.
//!
//! A message is `["instance","scope"]`, with further scopes of the instance if they run together. It is published
//! without waiting for JetStream's response. If a task is lost, its scope is late until the reconciler's next sweep.
//!
//! A header counts the failures that are the task's own fault, since JetStream's count of deliveries also grows when
//! the store is unavailable or a worker dies. So a failed task is acknowledged and published again with the next
//! number; its receiver then postpones it once, for the time in its header.
//!
//! Tasks of workflows that have used up their share of a worker go to a [lane](crate::lanes), which is an extra queue.
//! So the main queue never fills up with tasks that wait for others of the same workflow.

use async_nats::jetstream::{AckKind, Message};
use async_nats::{Client, HeaderMap};
use async_trait::async_trait;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::TryStreamExt;
use futures::future::join_all;
use swirl_model::ids::{InstanceId, ScopeId, ScopeRef};
use swirl_ports::{LateScope, Queue, Receipt, Task, Tasks};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::Error;
use crate::counts::MessageKind;
use crate::dead::DeadLetters;
use crate::lanes::{LANES, LaneCounts, key_of};
use crate::pulling::Pulling;
use crate::streams::{Streams, TaskQueueKind};

/// A task that fails this often becomes a dead letter.
const FAILURES_MAX: u64 = 20;
const FAILURES: &str = "Swirl-Failures";
/// How long a republished task is postponed.
const AFTER_MS: &str = "Swirl-After-Ms";
const AGAIN_MS_MAX: u64 = 30_000;
/// The header of a task for a scope that should have been running.
const LATE: &str = "Swirl-Late";

/// The number of tasks of a lane that are requested ahead. Progress isn't reported for them, and the lane may be
/// blocked.
const LANE_AHEAD: usize = 1;
/// The maximum number of scopes in a message.
const TOGETHER_MAX: usize = 32;
/// A queue with this many waiting tasks has a backlog.
const BEHIND: usize = 5_000;
/// The time limit for counting the tasks of the lanes. A task waits for it.
const LANE_COUNTS_MAX: Duration = Duration::from_secs(1);
/// Each of so many tasks waits for JetStream's answer. From version 2.11 on a server drops what it can't store soon
/// enough (`max_buffered_msgs`, 10,000), so a burst must not be faster than it.
const CONFIRMED: u64 = 256;

/// The sending side of the queue.
#[derive(Clone)]
pub struct TaskQueue {
    client: Client,
    subject: String,
    joins: String,
    streams: Streams,
    /// The number of tasks that were published.
    published: Arc<AtomicU64>,
}

impl TaskQueue {
    pub fn new(client: Client, streams: &Streams) -> TaskQueue {
        TaskQueue {
            client,
            subject: streams.task_subject(),
            joins: streams.join_subject(),
            streams: streams.clone(),
            published: Arc::default(),
        }
    }
}

#[async_trait]
impl Queue for TaskQueue {
    async fn push(&self, tasks: Vec<ScopeRef>) {
        self.publish(&self.subject, tasks, false).await;
    }

    async fn push_together(&self, tasks: Vec<ScopeRef>) {
        for tasks in tasks.chunk_by(|one, next| one.instance == next.instance) {
            for some in tasks.chunks(TOGETHER_MAX) {
                self.publish_task(&self.subject, some, false).await;
            }
        }
    }

    async fn push_late(&self, tasks: Vec<ScopeRef>) {
        self.publish(&self.subject, tasks, true).await;
    }

    async fn push_late_of(&self, tasks: Vec<LateScope>) {
        for LateScope { scope, workflow } in tasks {
            let subject = match workflow {
                Some(workflow) => self.streams.lane_for(&workflow).await,
                None => self.subject.clone(),
            };
            self.publish_task(&subject, &[scope], true).await;
        }
    }

    async fn push_joins(&self, scopes: Vec<ScopeRef>) {
        self.publish(&self.joins, scopes, false).await;
    }

    async fn room(&self) -> usize {
        match self.streams.tasks_pending().await {
            Ok(pending) => BEHIND.saturating_sub(pending),
            // A missing stream has no tasks.
            Err(_) => BEHIND,
        }
    }
}

impl TaskQueue {
    async fn publish(&self, subject: &str, tasks: Vec<ScopeRef>, is_late: bool) {
        for task in tasks {
            self.publish_task(subject, &[task], is_late).await;
        }
    }

    /// Publishes a task and waits until JetStream has stored it, and with it all tasks before.
    async fn confirmed(
        &self,
        subject: String,
        headers: HeaderMap,
        payload: Bytes,
    ) -> Result<(), String> {
        let context = &self.streams.context;
        let sent = context
            .publish_with_headers(subject, headers, payload)
            .await;
        let sent = sent.map_err(|error| error.to_string())?;
        sent.await.map(drop).map_err(|error| error.to_string())
    }

    /// Publishes one task for scopes of one instance.
    async fn publish_task(&self, subject: &str, scopes: &[ScopeRef], is_late: bool) {
        let payload = write_task(scopes);
        let subject = subject.to_owned();
        let mut headers = HeaderMap::new();
        if is_late {
            headers.insert(LATE, "1");
        }
        let count = self.published.fetch_add(1, Ordering::Relaxed) + 1;
        let published = if count.is_multiple_of(CONFIRMED) {
            self.confirmed(subject, headers, payload).await
        } else {
            let client = &self.client;
            let published = match headers.is_empty() {
                true => client.publish(subject, payload).await,
                false => client.publish_with_headers(subject, headers, payload).await,
            };
            published.map_err(|error| error.to_string())
        };
        if let (Err(error), Some(ScopeRef { instance, scope })) = (published, scopes.first()) {
            tracing::warn!(%instance, %scope, %error, "a task could not be published; the reconciler recovers it");
        }
    }
}

/// The receiving side of the queue, for a worker.
pub struct TaskSource {
    queue: Mutex<Pulling>,
    lanes: Vec<Mutex<Pulling>>,
    streams: Streams,
    dead: DeadLetters,
}

impl TaskSource {
    /// `ahead`: the number of tasks that are requested ahead.
    pub fn new(streams: Streams, ahead: usize) -> TaskSource {
        TaskSource {
            dead: DeadLetters::new(streams.clone()),
            queue: Mutex::new(Pulling::new(streams.clone(), TaskQueueKind::Main, ahead)),
            lanes: (0..LANES)
                .map(|lane| {
                    Pulling::new(
                        streams.clone(),
                        TaskQueueKind::Lane(lane),
                        ahead.min(LANE_AHEAD),
                    )
                })
                .map(Mutex::new)
                .collect(),
            streams,
        }
    }

    async fn next(&self, pulling: &Mutex<Pulling>) -> Task {
        let again = self.streams.task_subject();
        next_task(pulling, &self.streams, &self.dead, again).await
    }
}

/// `again`: the subject to which a failed task is published again.
async fn next_task(
    pulling: &Mutex<Pulling>,
    streams: &Streams,
    dead: &DeadLetters,
    again: String,
) -> Task {
    let mut pulling = pulling.lock().await;
    loop {
        let message = pulling.next().await;
        if let Some((scope, beside)) = read_task(&message.payload) {
            let receipt = TaskReceipt {
                message,
                streams: streams.clone(),
                dead: dead.clone(),
                again: again.clone(),
            };
            if receipt.delivered() == 1
                && let Some(after_ms) = number(&receipt.message, AFTER_MS)
            {
                receipt.redeliver_after(after_ms.min(AGAIN_MS_MAX)).await;
                continue;
            }
            return Task {
                scope,
                beside,
                is_late: receipt.is_late(),
                receipt: Some(Box::new(receipt)),
            };
        }
        let reason =
            "this is not a task; it must be [\"instance\",\"scope\"], and may have more scopes";
        dead.bury_delivered(&message, MessageKind::Tasks, reason)
            .await;
    }
}

/// The receiving side of join messages, for a coordinator.
pub struct JoinSource {
    pulling: Mutex<Pulling>,
    streams: Streams,
    dead: DeadLetters,
}

impl JoinSource {
    /// `ahead`: the number of messages that are requested ahead.
    pub fn new(streams: Streams, ahead: usize) -> JoinSource {
        JoinSource {
            dead: DeadLetters::new(streams.clone()),
            pulling: Mutex::new(Pulling::new(streams.clone(), TaskQueueKind::Joins, ahead)),
            streams,
        }
    }
}

#[async_trait]
impl Tasks for JoinSource {
    async fn pull(&self) -> Task {
        let again = self.streams.join_subject();
        next_task(&self.pulling, &self.streams, &self.dead, again).await
    }

    async fn close(&self) {
        self.pulling.lock().await.close().await;
    }
}

#[async_trait]
impl Tasks for TaskSource {
    async fn pull(&self) -> Task {
        self.next(&self.queue).await
    }

    fn lanes(&self) -> usize {
        self.lanes.len()
    }

    async fn pull_lane(&self, lane: usize) -> Task {
        match self.lanes.get(lane) {
            Some(pulling) => self.next(pulling).await,
            None => std::future::pending().await,
        }
    }

    async fn close(&self) {
        let all = std::iter::once(&self.queue).chain(&self.lanes);
        join_all(all.map(async |pulling| pulling.lock().await.close().await)).await;
    }
}

struct TaskReceipt {
    message: Message,
    streams: Streams,
    dead: DeadLetters,
    /// The subject to which the task is published again after a failure.
    again: String,
}

impl TaskReceipt {
    /// Whether a process may have begun the task without finishing it.
    fn is_late(&self) -> bool {
        self.delivered() > 1 || number(&self.message, LATE).is_some()
    }

    fn delivered(&self) -> i64 {
        self.message.info().map_or(1, |info| info.delivered)
    }

    async fn redeliver_after(&self, after_ms: u64) {
        let after = Duration::from_millis(after_ms);
        self.acknowledge(AckKind::Nak(Some(after))).await;
    }

    /// Publishes the same task again, with its number of failures. Returns false if that failed.
    async fn republish(&self, failures: u64, after_ms: u64) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(FAILURES, failures.to_string());
        headers.insert(AFTER_MS, after_ms.to_string());
        self.publish_to(self.again.clone(), headers).await
    }

    async fn publish_to(&self, subject: String, headers: HeaderMap) -> bool {
        let (context, payload) = (&self.streams.context, self.message.payload.clone());
        let sent = context.publish_with_headers(subject, headers, payload);
        let stored = match sent.await {
            Ok(sent) => sent.await.map(|_| ()),
            Err(error) => Err(error),
        };
        if let Err(error) = &stored {
            tracing::debug!(%error, "a task could not be published again and stays in its queue");
        }
        stored.is_ok()
    }

    async fn acknowledge(&self, kind: AckKind) {
        if let Err(error) = self.message.ack_with(kind).await {
            tracing::debug!(%error, "a task will be delivered again");
        }
    }
}

#[async_trait]
impl Receipt for TaskReceipt {
    async fn progress(&self) {
        self.acknowledge(AckKind::Progress).await;
    }

    async fn done(&self) {
        self.acknowledge(AckKind::Ack).await;
    }

    async fn put_into_lane(&self, workflow: &str) -> bool {
        let mut headers = HeaderMap::new();
        if self.is_late() {
            headers.insert(LATE, "1");
        }
        if let Some(failures) = number(&self.message, FAILURES) {
            headers.insert(FAILURES, failures.to_string());
        }
        let subject = self.streams.lane_for(workflow).await;
        self.publish_to(subject, headers).await
    }

    async fn postpone(&self, after_ms: u64) {
        let times = u64::try_from(self.delivered()).unwrap_or(0);
        self.redeliver_after(longer_ms(after_ms, times)).await;
    }

    async fn give_up(&self, reason: &str) {
        self.dead
            .bury_delivered(&self.message, MessageKind::Tasks, reason)
            .await;
    }

    async fn failed(&self, after_ms: u64, reason: &str) -> bool {
        let failures = number(&self.message, FAILURES).unwrap_or(0) + 1;
        if failures >= FAILURES_MAX {
            self.dead
                .bury_delivered(&self.message, MessageKind::Tasks, reason)
                .await;
            return true;
        }
        let after_ms = longer_ms(after_ms, failures);
        if self.republish(failures, after_ms).await {
            self.done().await;
        } else {
            self.redeliver_after(after_ms).await;
        }
        false
    }
}

impl Streams {
    /// The subject for one more task of a workflow that has its share of the workers.
    pub(crate) async fn lane_for(&self, workflow: &str) -> String {
        if self.lane_choice.needs_counts() {
            let counts = timeout(LANE_COUNTS_MAX, self.lane_counts()).await;
            let counts = counts.unwrap_or_else(|_| Err(Error::JetStream("no answer".to_owned())));
            // Old counts would say for ever that lanes are full.
            self.lane_choice.counted(counts.unwrap_or_else(|error| {
                tracing::debug!(%error, "lanes are chosen without counts");
                LaneCounts::default()
            }));
        }
        let key = key_of(workflow);
        let lane = self.lane_choice.add(&key);
        self.lane_subject(lane, &key)
    }

    async fn lane_counts(&self) -> Result<LaneCounts, Error> {
        let lanes = self.lanes();
        let error = |reason: String| Error::JetStream(format!("{lanes}: {reason}"));
        let stream = self.context.get_stream_no_info(&lanes).await;
        let stream = stream.map_err(|found| error(found.to_string()))?;
        let mut counts = LaneCounts::default();
        let subjects = stream.info_with_subjects(">").await;
        let mut subjects = subjects.map_err(|found| error(found.to_string()))?;
        while let Some((subject, count)) = subjects
            .try_next()
            .await
            .map_err(|found| error(found.to_string()))?
        {
            let mut parts = subject.rsplitn(3, '.');
            let (key, lane) = (parts.next(), parts.next());
            let lane = lane.and_then(|lane| lane.parse::<usize>().ok());
            let of_lane = lane.and_then(|lane| counts.get_mut(lane));
            if let (Some(key), Some(of_lane)) = (key, of_lane) {
                of_lane.insert(key.to_owned(), count);
            }
        }
        Ok(counts)
    }
}

/// The time multiplied by a growing factor, up to a maximum.
fn longer_ms(after_ms: u64, times: u64) -> u64 {
    let factor = 1u64 << times.min(10);
    after_ms.saturating_mul(factor).min(AGAIN_MS_MAX)
}

/// The value of one of Swirl's headers; `None` if it is missing or not a number.
fn number(message: &Message, name: &str) -> Option<u64> {
    let value = message.headers.as_ref()?.get(name)?;
    value.as_str().parse::<u32>().ok().map(u64::from)
}

/// The payload of a task for scopes of one instance.
pub fn write_task(scopes: &[ScopeRef]) -> Bytes {
    let instance = scopes.first().map(|scope| scope.instance.as_str());
    let names = scopes.iter().map(|scope| scope.scope.as_str());
    let words: Vec<&str> = instance.into_iter().chain(names).collect();
    serde_json::to_vec(&words).unwrap_or_default().into()
}

/// Parses the payload of a task: a scope, and others of the same instance. `None` if it isn't one.
pub fn read_task(payload: &[u8]) -> Option<(ScopeRef, Vec<ScopeRef>)> {
    let words: Vec<String> = serde_json::from_slice(payload).ok()?;
    let mut words = words.into_iter();
    let instance = InstanceId::new(words.next()?);
    let mut scopes = words.map(|scope| ScopeRef {
        instance: instance.clone(),
        scope: ScopeId::new(scope),
    });
    let first = scopes.next()?;
    let beside: Vec<ScopeRef> = scopes.collect();
    (beside.len() < TOGETHER_MAX).then_some((first, beside))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_as_messages() {
        let task = ScopeRef {
            instance: InstanceId::new("a \"b\""),
            scope: ScopeId::new("r.3.1"),
        };
        let other = ScopeRef {
            scope: ScopeId::new("r.3.2"),
            ..task.clone()
        };
        let both = [task.clone(), other.clone()];
        assert_eq!(
            read_task(&write_task(&both)),
            Some((task.clone(), vec![other]))
        );
        let alone = std::slice::from_ref(&task);
        assert_eq!(read_task(&write_task(alone)), Some((task, Vec::new())));
        let many = serde_json::to_string(&vec!["a"; TOGETHER_MAX + 2]).unwrap();
        for bad in ["", "[]", "[\"a\"]", "[1,2]", "{}", "[\"a\",1]", &many] {
            assert_eq!(read_task(bad.as_bytes()), None, "{bad}");
        }
    }
}
