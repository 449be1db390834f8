//! The observable effects: calls and produced events, by instance.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use async_trait::async_trait;
use swirl_model::event::Command;
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_model::time::Timestamp;
use swirl_model::workflow::Function;
use swirl_model::{CloudEvent, Data};
use swirl_ports::call::CallAuth;
use swirl_runtime::{Effects, Error};

/// A function call as it began.
#[derive(Debug, Clone)]
pub struct Call {
    pub scope: ScopeRef,
    pub function: String,
    pub arguments: Data,
    pub key: String,
    pub at: Timestamp,
    /// The function, and the credentials of the call.
    pub of: Arc<Function>,
    pub auth: Option<CallAuth>,
}

#[derive(Debug, Default)]
pub struct Observed {
    pub calls: Vec<Call>,
    pub produced: Vec<(InstanceId, CloudEvent)>,
    /// Calls to functions that have no answer in the plan.
    pub unknown: Vec<Call>,
}

/// Wraps the effects for the driver, and records published events.
pub struct Recorder {
    inner: Arc<dyn Effects>,
    observed: Mutex<(Observed, HashSet<String>)>,
    work: Arc<Work>,
}

/// The limit on the work at one moment: enough for a hundred thousand branches.
const WORK_MAX: u64 = 3_000_000;

/// The work since virtual time last moved. Its limit stops workflows that never wait.
pub(crate) struct Work {
    done: AtomicU64,
    max: AtomicU64,
    /// Whether the run has to stop for another reason.
    over: OnceLock<Arc<AtomicBool>>,
}

impl Default for Work {
    fn default() -> Work {
        Work {
            done: AtomicU64::new(0),
            max: AtomicU64::new(WORK_MAX),
            over: OnceLock::new(),
        }
    }
}

impl Work {
    /// Adds work, and returns whether the work before it was within the limit.
    pub(crate) fn add(&self, weight: u64) -> bool {
        let before = self.done.fetch_add(weight, Ordering::Relaxed);
        before <= self.max.load(Ordering::Relaxed) && !self.is_over()
    }

    pub(crate) fn is_over(&self) -> bool {
        let over = self.over.get();
        over.is_some_and(|over| over.load(Ordering::Relaxed))
    }

    /// Only the first one counts.
    pub(crate) fn stop_when(&self, over: Arc<AtomicBool>) {
        let _ = self.over.set(over);
    }

    /// The work, if it is beyond the limit.
    pub(crate) fn too_much(&self) -> Option<u64> {
        let done = self.done.load(Ordering::Relaxed);
        (done > self.max.load(Ordering::Relaxed)).then_some(done)
    }

    pub(crate) fn begin_again(&self) {
        self.done.store(0, Ordering::Relaxed);
    }

    pub(crate) fn limit(&self, max: u64) {
        self.max.store(max, Ordering::Relaxed);
    }
}

/// The weight of a start of a sub-workflow or continuation, in entries of history: it keeps about as much memory.
const START_WORK: u64 = 20;

/// The weight of a produced event, which is also matched and delivered.
const PUBLISH_WORK: u64 = 60;

impl Recorder {
    /// `work` counts all work.
    pub(crate) fn new(inner: Arc<dyn Effects>, work: Arc<Work>) -> Recorder {
        Recorder {
            inner,
            observed: Mutex::default(),
            work,
        }
    }

    fn lock(&self) -> MutexGuard<'_, (Observed, HashSet<String>)> {
        self.observed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn take(&self) -> Observed {
        std::mem::take(&mut self.lock().0)
    }

    pub fn call(&self, call: Call) {
        self.lock().0.calls.push(call);
    }

    pub fn unknown(&self, call: Call) {
        self.lock().0.unknown.push(call);
    }
}

#[async_trait]
impl Effects for Recorder {
    async fn carry_out(&self, instance: &InstanceId, command: &Command) -> Result<(), Error> {
        if let Command::Publish(event) = command {
            let mut lock = self.lock();
            if lock.1.insert(event.key()) {
                lock.0.produced.push((instance.clone(), event.clone()));
            }
        }
        // An event may start an instance, too. A scope that wakes itself by its own events is driven without a pause:
        // only this limit stops it.
        let weight = match command {
            Command::Start(_) => START_WORK,
            Command::Publish(_) => PUBLISH_WORK,
            _ => 0,
        };
        if weight > 0 && !self.work.add(weight) {
            return std::future::pending().await;
        }
        self.inner.carry_out(instance, command).await
    }

    fn progressed(&self, entries: usize) {
        self.work.add(entries as u64);
    }
}
