//! The task queue.
//!
//! A message is `["instance","scope"]`. It is published without waiting for JetStream's answer:
//! a task that is lost is a scope that is late, until the reconciler's next sweep.

use async_nats::Client;
use async_nats::jetstream::{AckKind, Message};
use async_trait::async_trait;
use bytes::Bytes;
use std::time::Duration;

use swirl_model::ids::{InstanceId, ScopeId, ScopeRef};
use swirl_ports::{Queue, Receipt, Task, Tasks};
use tokio::sync::Mutex;

use crate::counts::Which;
use crate::dead::DeadLetters;
use crate::pulling::Pulling;
use crate::streams::Streams;

/// A task that fails so often is a dead letter.
const DELIVERIES_MAX: i64 = 20;
const AGAIN_MS_MAX: u64 = 30_000;

/// Where tasks are put.
#[derive(Clone)]
pub struct TaskQueue {
    client: Client,
    subject: String,
}

impl TaskQueue {
    pub fn new(client: Client, streams: &Streams) -> TaskQueue {
        TaskQueue {
            client,
            subject: streams.task_subject(),
        }
    }
}

#[async_trait]
impl Queue for TaskQueue {
    async fn push(&self, tasks: Vec<ScopeRef>) {
        for task in tasks {
            let payload = write_task(&task);
            if let Err(error) = self.client.publish(self.subject.clone(), payload).await {
                let ScopeRef { instance, scope } = &task;
                tracing::warn!(%instance, %scope, %error, "a task is left to the reconciler");
            }
        }
    }
}

/// Where a worker takes tasks from.
pub struct TaskSource {
    pulling: Mutex<Pulling>,
    dead: DeadLetters,
}

impl TaskSource {
    /// Asks for so many tasks ahead.
    pub fn new(streams: Streams, ahead: usize) -> TaskSource {
        TaskSource {
            dead: DeadLetters::new(streams.clone()),
            pulling: Mutex::new(Pulling::new(streams, Which::Tasks, ahead)),
        }
    }
}

#[async_trait]
impl Tasks for TaskSource {
    async fn pull(&self) -> Task {
        let mut pulling = self.pulling.lock().await;
        loop {
            let message = pulling.next().await;
            if let Some(scope) = read_task(&message.payload) {
                let receipt = TaskReceipt {
                    message,
                    dead: self.dead.clone(),
                };
                return Task {
                    scope,
                    receipt: Some(Box::new(receipt)),
                };
            }
            let reason = "this is no task: it must be [\"instance\",\"scope\"]";
            self.dead.bury(&message, Which::Tasks, reason).await;
        }
    }
}

struct TaskReceipt {
    message: Message,
    dead: DeadLetters,
}

impl TaskReceipt {
    fn delivered(&self) -> i64 {
        self.message.info().map_or(1, |info| info.delivered)
    }

    /// Longer each time.
    fn wait_ms(&self, after_ms: u64) -> u64 {
        let factor = 1u64 << self.delivered().clamp(0, 10);
        after_ms.saturating_mul(factor).min(AGAIN_MS_MAX)
    }

    async fn say(&self, kind: AckKind) {
        if let Err(error) = self.message.ack_with(kind).await {
            tracing::debug!(%error, "a task will be delivered again");
        }
    }
}

#[async_trait]
impl Receipt for TaskReceipt {
    async fn progress(&self) {
        self.say(AckKind::Progress).await;
    }

    async fn done(&self) {
        self.say(AckKind::Ack).await;
    }

    async fn later(&self, after_ms: u64) {
        let wait_ms = self.wait_ms(after_ms);
        self.say(AckKind::Nak(Some(Duration::from_millis(wait_ms))))
            .await;
    }

    async fn again(&self, after_ms: u64, reason: &str) -> bool {
        if self.delivered() >= DELIVERIES_MAX {
            self.dead.bury(&self.message, Which::Tasks, reason).await;
            return true;
        }
        self.later(after_ms).await;
        false
    }
}

/// A task as a message: `["instance","scope"]`.
pub fn write_task(task: &ScopeRef) -> Bytes {
    let pair = [task.instance.as_str(), task.scope.as_str()];
    serde_json::to_vec(&pair).unwrap_or_default().into()
}

/// The task of a message; none if it is something else.
pub fn read_task(payload: &[u8]) -> Option<ScopeRef> {
    let [instance, scope]: [String; 2] = serde_json::from_slice(payload).ok()?;
    Some(ScopeRef {
        instance: InstanceId::new(instance),
        scope: ScopeId::new(scope),
    })
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
        assert_eq!(read_task(&write_task(&task)), Some(task));
        for bad in ["", "[]", "[\"a\"]", "[1,2]", "{}", "[\"a\",\"r\",\"x\"]"] {
            assert_eq!(read_task(bad.as_bytes()), None, "{bad}");
        }
    }
}
