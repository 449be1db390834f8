//! The outside world: services that are called, and readers of produced events. It survives every process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use swirl_model::event::Command;
use swirl_model::ids::InstanceId;
use swirl_model::time::Timestamp;
use swirl_model::{CloudEvent, Data, WorkflowError};
use swirl_ports::{CallRequest, Clock, FunctionCaller, Secrets};
use swirl_runtime::Effects;
use swirl_service::Service;
use swirl_virtual_time::VirtualClock;

use super::faults::Mutant;
use crate::functions::{Answer, answered, asked};
use crate::store::give_way;

/// A call from the service's point of view.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Called {
    pub instance: String,
    pub scope: String,
    pub function: String,
    pub arguments: String,
    pub key: String,
}

#[derive(Default)]
pub struct Seen {
    pub calls: Vec<Called>,
    /// By id: the content, and how often the event was received.
    pub produced: BTreeMap<String, (String, usize)>,
    /// The events themselves, without duplicates.
    pub published: Vec<CloudEvent>,
    pub violations: Vec<String>,
    /// The time of a call's first request, and its attempt among equal calls.
    attempts: BTreeMap<String, (Timestamp, usize)>,
    likes: BTreeMap<(String, String, String, String), usize>,
    drawn: usize,
}

pub struct Outside {
    clock: Arc<VirtualClock>,
    mutant: Mutant,
    seen: Mutex<Seen>,
}

impl Outside {
    pub fn new(clock: Arc<VirtualClock>, mutant: Mutant) -> Outside {
        Outside {
            clock,
            mutant,
            seen: Mutex::default(),
        }
    }

    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a call. Returns the time of its first request, and its attempt among equal calls.
    fn note(&self, request: &CallRequest) -> (Timestamp, usize) {
        let now = self.clock.now();
        let mut seen = self.seen();
        let mut key = request.key.clone();
        if self.mutant == Mutant::DrawnKeys {
            seen.drawn += 1;
            key = format!("{key}/{}", seen.drawn);
        }
        let (function, arguments) = asked(request);
        let called = Called {
            instance: request.scope.instance.to_string(),
            scope: request.scope.scope.to_string(),
            function,
            arguments,
            key: key.clone(),
        };
        // After a rollback an instance may begin again, with another start time, which is the end of its keys.
        let started = request.key.rsplit('-').next().unwrap_or_default();
        let like = (
            format!("{} {started}", called.instance),
            called.scope.clone(),
            called.function.clone(),
            called.arguments.clone(),
        );
        seen.calls.push(called);
        if let Some(known) = seen.attempts.get(&key) {
            return *known;
        }
        let count = seen.likes.entry(like).or_default();
        *count += 1;
        let known = (now, *count);
        seen.attempts.insert(key, known);
        known
    }
}

/// A service that remembers keys: a repeated call is answered at the time of the first one.
#[async_trait]
impl FunctionCaller for Outside {
    async fn call(&self, request: CallRequest) -> Result<Data, WorkflowError> {
        let (began, attempt) = self.note(&request);
        let elapsed_ms = began.0 - crate::rig::START;
        let Answer { after_ms, result } = answered(&request, attempt, elapsed_ms);
        let until = began.plus_ms(after_ms);
        if until > self.clock.now() {
            self.clock.sleep_until(until).await;
        }
        give_way().await;
        result
    }
}

pub struct NoSecrets;

#[async_trait]
impl Secrets for NoSecrets {
    async fn get(&self, _names: &[String]) -> Data {
        Data::object()
    }
}

/// Carries out effects, and records published events.
pub struct Watch {
    pub service: Service,
    pub outside: Arc<Outside>,
}

#[async_trait]
impl Effects for Watch {
    async fn carry_out(
        &self,
        instance: &InstanceId,
        command: &Command,
    ) -> Result<(), swirl_runtime::Error> {
        let Command::Publish(event) = command else {
            return self.service.carry_out(instance, command).await;
        };
        let mut event = event.clone();
        {
            let mut seen = self.outside.seen();
            if self.outside.mutant == Mutant::DrawnEvents {
                seen.drawn += 1;
                event.id = format!("{}/{}", event.id, seen.drawn);
            }
            let mut bare = event.clone();
            bare.attributes.remove("time");
            let text = format!("{instance} {} {:?}", event.kind, bare.data);
            let seen = &mut *seen;
            let (known, times) = seen
                .produced
                .entry(event.id.clone())
                .or_insert_with(|| (text.clone(), 0));
            *times += 1;
            if *times == 1 {
                seen.published.push(event.clone());
            }
            if *known != text {
                let found = format!("one id for two events: {text} and {known}");
                seen.violations.push(found);
            }
        }
        give_way().await;
        let command = Command::Publish(event);
        self.service.carry_out(instance, &command).await
    }
}
