//! Converts entries of histories to lifecycle events: CloudEvents with the types of DSL 1.0. An entry that is read again
//! gives the same events with the same ids. Their content depends on the definition, if it can be read, and the error of a
//! task on the entries that follow in the same part of the history. Events of open tasks depend on the entries before.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use swirl_model::event::{Event, HistoryEntry};
use swirl_model::instance::{EndStatus, Header};
use swirl_model::workflow::{StateId, StateKind, Workflow};
use swirl_model::{CloudEvent, Data, WorkflowError};
use swirl_ports::{EventStream, Extract, HistorySink, InstanceQueries, Result};
use swirl_runtime::{Error, Registry};

use crate::open_tasks::{Change, How, OpenByInstance};

/// Longer texts are truncated, so that no event exceeds the size of a message.
const MESSAGE_BYTES_MAX: usize = 16 << 10;
const NAME_BYTES_MAX: usize = 1 << 10;

/// The subject of a lifecycle event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Workflow,
    Task,
}

/// Appends lifecycle events to a stream.
pub struct LifecycleEvents {
    namespace: Arc<str>,
    stream: Arc<dyn EventStream>,
    registry: Arc<Registry>,
    open: OpenByInstance,
    counts: Arc<LifecycleCounts>,
}

/// The number of events that this process has published.
#[derive(Debug, Default)]
pub struct LifecycleCounts {
    workflow: AtomicU64,
    task: AtomicU64,
}

impl LifecycleCounts {
    /// The counts by subject.
    pub fn published(&self) -> [(&'static str, u64); 2] {
        [
            ("workflow", self.workflow.load(Ordering::Relaxed)),
            ("task", self.task.load(Ordering::Relaxed)),
        ]
    }
}

impl LifecycleEvents {
    pub fn new(
        namespace: &str,
        stream: Arc<dyn EventStream>,
        registry: Arc<Registry>,
        histories: Arc<dyn InstanceQueries>,
    ) -> LifecycleEvents {
        LifecycleEvents {
            namespace: namespace.into(),
            stream,
            registry,
            open: OpenByInstance::new(histories),
            counts: Arc::default(),
        }
    }

    pub fn counts(&self) -> &Arc<LifecycleCounts> {
        &self.counts
    }
}

#[async_trait]
impl HistorySink for LifecycleEvents {
    async fn take(&self, part: Extract<'_>) -> Result<()> {
        let workflow = &part.header.definition.workflow;
        // The id of a definition of DSL 1.0 has two parts.
        let definition = match workflow.contains('.') {
            true => match self.registry.get(&part.header.definition).await {
                Ok(definition) => Some(definition),
                Err(Error::Store(error)) => return Err(error),
                Err(_) => None,
            },
            false => None,
        };
        let tasks = definition.as_ref().map(|definition| &definition.workflow);
        let tasks = tasks.filter(|workflow| workflow.tasks.is_some());
        let mut open = match tasks {
            Some(_) => self.open.before(&part).await?,
            None => None,
        };
        let entries = part.entries.iter().enumerate();
        let written = entries.map(|(index, entry)| {
            let is_told = match (&entry.event, &open) {
                (Event::StateLeft { state, .. }, Some(open)) => {
                    open.is_faulted(&entry.scope, *state)
                }
                _ => false,
            };
            let written = Written {
                namespace: &self.namespace,
                header: part.header,
                tasks,
                number: part.before + 1 + index as u64,
                entry,
                following: &part.entries[index + 1..],
                changes: open.as_mut().map_or_else(Vec::new, |open| open.take(entry)),
                is_told,
            };
            written.events()
        });
        let (subjects, events): (Vec<Subject>, Vec<CloudEvent>) = written.flatten().unzip();
        self.stream.append(workflow, &events).await?;
        if tasks.is_some() {
            self.open.keep(&part, open);
        }
        for of in subjects {
            let count = match of {
                Subject::Workflow => &self.counts.workflow,
                Subject::Task => &self.counts.task,
            };
            count.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// An entry of a history.
struct Written<'w> {
    namespace: &'w str,
    header: &'w Header,
    /// Its definition, if that has tasks.
    tasks: Option<&'w Workflow>,
    /// From 1.
    number: u64,
    entry: &'w HistoryEntry,
    following: &'w [HistoryEntry],
    /// What it does to open tasks.
    changes: Vec<Change>,
    /// It is left by an error of which there was an event already.
    is_told: bool,
}

/// The content of an event: its subject, the change, the name of the instant, and further data.
type Said = (Subject, &'static str, &'static str, Data);

impl Written<'_> {
    /// The events for the entry, if it is about the lifecycle of an instance or a state.
    fn events(&self) -> Vec<(Subject, CloudEvent)> {
        let mut all: Vec<Said> = self.said().into_iter().collect();
        let listens = |state: StateId| {
            let tasks = self.tasks.and_then(|it| it.states.get(state.0 as usize));
            tasks.is_some_and(
                |state| matches!(&state.kind, StateKind::Listen(it) if it.source.is_none()),
            )
        };
        match &self.entry.event {
            Event::StateEntered { state, name, .. } if self.tasks.is_some() => {
                let mut data = Data::object();
                data.set("task", self.task(*state, name));
                all.insert(0, (Subject::Task, "created", "createdAt", data));
                if listens(*state) {
                    let what = "correlation-started";
                    all.push((Subject::Workflow, what, "startedAt", Data::object()));
                }
            }
            Event::StateLeft { state, failed, .. } if !failed && listens(*state) => {
                let what = "correlation-completed";
                all.insert(0, (Subject::Workflow, what, "completedAt", Data::object()));
            }
            _ => {}
        }
        all.extend(self.changes.iter().map(|change| self.changed(change)));
        let all = all.into_iter().enumerate();
        all.map(|(place, said)| (said.0, self.event(said, place)))
            .collect()
    }

    /// The event of a task that an entry changes among others.
    fn changed(&self, change: &Change) -> Said {
        let mut data = Data::object();
        data.set("task", self.task(change.task.state, &change.task.name));
        data.set("scope", Data::string(change.scope.as_str()));
        let (what, instant) = match &change.how {
            How::Cancelled => ("cancelled", "cancelledAt"),
            How::Faulted(error) => {
                data.set("error", error_of(error));
                ("faulted", "faultedAt")
            }
            How::Resumed => ("resumed", "resumedAt"),
            How::Retried => ("retried", "retriedAt"),
            How::Suspended => ("suspended", "suspendedAt"),
        };
        (Subject::Task, what, instant, data)
    }

    /// The place of a task in the document, or the name of a state.
    fn task(&self, id: StateId, name: &str) -> Data {
        let state = self.tasks.and_then(|it| it.states.get(id.0 as usize));
        // The instance may have moved to another version since then.
        let place = state.filter(|state| *state.name == *name).map(|state| {
            let reference = state.task.as_ref().and_then(|task| task.reference.as_ref());
            reference.unwrap_or(&state.pointer)
        });
        text(place.map_or(name, String::as_str), NAME_BYTES_MAX)
    }

    /// The error by which a task was left. The history says it after the tasks that the error left.
    fn error(&self) -> Option<&WorkflowError> {
        let own = |entry: &&HistoryEntry| entry.scope == self.entry.scope;
        let is_left = |event: &Event| matches!(event, Event::StateLeft { failed: true, .. });
        let mut own = self.following.iter().filter(own);
        match &own.find(|entry| !is_left(&entry.event))?.event {
            Event::ErrorHandled { error, .. } | Event::BranchFailed { error } => Some(error),
            Event::Ended { error, .. } => error.as_ref(),
            _ => None,
        }
    }

    fn said(&self) -> Option<Said> {
        let mut data = Data::object();
        let (of, what, instant) = match &self.entry.event {
            Event::InstanceStarted { .. } => (Subject::Workflow, "started", "startedAt"),
            Event::Ended { status, error } => {
                if let Some(error) = error {
                    data.set("error", error_of(error));
                }
                match status {
                    EndStatus::Completed => {
                        if self.tasks.is_some() {
                            let output = format!("/api/v1/instances/{}", self.header.id);
                            data.set("outputUri", Data::string(output));
                        }
                        (Subject::Workflow, "completed", "completedAt")
                    }
                    EndStatus::Faulted => (Subject::Workflow, "faulted", "faultedAt"),
                    EndStatus::Cancelled | EndStatus::Terminated => {
                        data.set("status", Data::string(status.as_str()));
                        (Subject::Workflow, "cancelled", "cancelledAt")
                    }
                }
            }
            Event::Operated {
                action,
                by,
                reason,
                state,
                from,
                to,
                batch,
                with,
            } => {
                let found = match &**action {
                    "suspend" => (Subject::Workflow, "suspended", "suspendedAt"),
                    "resume" | "retry" | "skip" | "rerun" => {
                        (Subject::Workflow, "resumed", "resumedAt")
                    }
                    _ => return None,
                };
                data.set("action", Data::string(&**action));
                for (name, value) in [
                    ("by", by),
                    ("reason", reason),
                    ("state", state),
                    ("from", from),
                    ("to", to),
                    ("batch", batch),
                ] {
                    if let Some(value) = value {
                        data.set(name, text(value, MESSAGE_BYTES_MAX));
                    }
                }
                if let Some(parent) = with {
                    data.set("with", Data::string(parent.as_str()));
                }
                found
            }
            Event::GivenUp { reason } => {
                data.set("reason", text(reason, MESSAGE_BYTES_MAX));
                (Subject::Workflow, "suspended", "suspendedAt")
            }
            Event::StateEntered { state, name, .. } => {
                data.set("task", self.task(*state, name));
                (Subject::Task, "started", "startedAt")
            }
            Event::StateLeft { failed: true, .. } if self.is_told => return None,
            Event::TaskRetried { state, name } => {
                data.set("task", self.task(*state, name));
                (Subject::Task, "retried", "retriedAt")
            }
            Event::StateLeft {
                state,
                name,
                failed,
            } => {
                data.set("task", self.task(*state, name));
                if let Some(error) = self.error().filter(|_| *failed && self.tasks.is_some()) {
                    data.set("error", error_of(error));
                }
                match failed {
                    false => (Subject::Task, "completed", "completedAt"),
                    true => (Subject::Task, "faulted", "faultedAt"),
                }
            }
            _ => return None,
        };
        Some((of, what, instant, data))
    }

    /// `place`: of the event among those for the entry.
    fn event(&self, (of, what, instant, mut data): Said, place: usize) -> CloudEvent {
        let (header, entry) = (self.header, self.entry);
        let at = Data::string(format!("{:.3}", entry.at));
        data.set(instant, at.clone());
        let id = &header.definition;
        let tasks = self.tasks.and_then(|workflow| workflow.tasks.as_ref());
        let (namespace, name) = match tasks {
            Some(tasks) => (tasks.namespace.as_str(), tasks.name.as_str()),
            None => (self.namespace, &*id.workflow),
        };
        let qualified = format!("{name}-{}.{namespace}", header.id);
        let (object, property) = match of {
            Subject::Workflow => ("workflow", "name"),
            Subject::Task => ("task", "workflow"),
        };
        data.set(property, Data::string(qualified));
        if of == Subject::Task && data.get("scope").is_none() {
            data.set("scope", Data::string(entry.scope.as_str()));
        }
        let mut definition = Data::object();
        definition.set("namespace", Data::string(namespace));
        definition.set("name", Data::string(name));
        definition.set("version", text(&header.version, NAME_BYTES_MAX));
        data.set("definition", definition);
        let [further, in_order] = match place {
            0 => [String::new(), String::new()],
            place => [format!(".{place}"), format!(".{place:04}")],
        };
        let attributes = [
            ("time", at),
            ("subject", Data::string(header.id.as_str())),
            ("datacontenttype", Data::string("application/json")),
            // The CloudEvents extension for the order of events.
            (
                "sequence",
                Data::string(format!("{:010}{in_order}", self.number)),
            ),
        ];
        let attributes = attributes.into_iter();
        CloudEvent {
            specversion: CloudEvent::SPECVERSION.to_owned(),
            id: format!("{}-{}{further}", header.seed(), self.number),
            source: format!("/swirl/{}", self.namespace),
            kind: format!("io.serverlessworkflow.{object}.{what}.v1"),
            attributes: attributes
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            data: Some(data),
        }
    }
}

/// The error with the members that DSL 1.0 defines.
fn error_of(error: &WorkflowError) -> Data {
    let mut data = Data::object();
    let kind = error.problem.as_ref().map(|problem| &problem.kind);
    let title = error.problem.as_ref().and_then(|it| it.title.as_ref());
    let short = [
        ("type", kind),
        ("title", title.or(Some(&error.name))),
        ("name", Some(&error.name)),
        ("code", error.code.as_ref()),
        ("state", error.state.as_ref()),
    ];
    for (name, value) in short {
        if let Some(value) = value {
            data.set(name, text(value, NAME_BYTES_MAX));
        }
    }
    if let Some(status) = error.status {
        data.set("status", Data::int(status.into()));
    }
    data.set("detail", text(&error.message, MESSAGE_BYTES_MAX));
    data
}

fn text(text: &str, bytes_max: usize) -> Data {
    Data::string(&text[..text.floor_char_boundary(bytes_max)])
}

#[cfg(test)]
mod tests;
