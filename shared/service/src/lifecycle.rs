//! Converts entries of histories to lifecycle events: CloudEvents with the types of DSL 1.0. This is a pure function of
//! the entry, so an entry that is read again gives the same event with the same id.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use swirl_model::event::{Event, HistoryEntry};
use swirl_model::instance::{EndStatus, Header};
use swirl_model::{CloudEvent, Data, WorkflowError};
use swirl_ports::{EventStream, Extract, HistorySink, Result};

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
    pub fn new(namespace: &str, stream: Arc<dyn EventStream>) -> LifecycleEvents {
        LifecycleEvents {
            namespace: namespace.into(),
            stream,
            counts: Arc::default(),
        }
    }

    pub fn counts(&self) -> &Arc<LifecycleCounts> {
        &self.counts
    }
}

#[async_trait]
impl HistorySink for LifecycleEvents {
    /// Appends one event after another, so that an instance's events keep the order of its history even after failures.
    async fn take(&self, part: Extract<'_>) -> Result<()> {
        let workflow = &part.header.definition.workflow;
        for (number, entry) in (part.before + 1..).zip(part.entries) {
            let Some((of, event)) = lifecycle_event(&self.namespace, part.header, number, entry)
            else {
                continue;
            };
            self.stream.append(workflow, &event).await?;
            let count = match of {
                Subject::Workflow => &self.counts.workflow,
                Subject::Task => &self.counts.task,
            };
            count.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Returns the event for an entry, if the entry is about the lifecycle of an instance or a state. `number` counts from
/// 1.
fn lifecycle_event(
    namespace: &str,
    header: &Header,
    number: u64,
    entry: &HistoryEntry,
) -> Option<(Subject, CloudEvent)> {
    let mut data = Data::object();
    let (of, what, instant) = match &entry.event {
        Event::InstanceStarted => (Subject::Workflow, "started", "startedAt"),
        Event::Ended { status, error } => {
            if let Some(error) = error {
                data.set("error", error_of(error));
            }
            match status {
                EndStatus::Completed => (Subject::Workflow, "completed", "completedAt"),
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
        Event::StateEntered { name, .. } => {
            data.set("task", text(name, NAME_BYTES_MAX));
            (Subject::Task, "started", "startedAt")
        }
        Event::StateLeft { name, failed, .. } => {
            data.set("task", text(name, NAME_BYTES_MAX));
            match failed {
                false => (Subject::Task, "completed", "completedAt"),
                true => (Subject::Task, "faulted", "faultedAt"),
            }
        }
        _ => return None,
    };
    let at = Data::string(format!("{:.3}", entry.at));
    data.set(instant, at.clone());
    let id = &header.definition;
    let qualified = format!("{}-{}.{namespace}", id.workflow, header.id);
    let (object, name) = match of {
        Subject::Workflow => ("workflow", "name"),
        Subject::Task => ("task", "workflow"),
    };
    data.set(name, Data::string(qualified));
    if of == Subject::Task {
        data.set("scope", Data::string(entry.scope.as_str()));
    }
    let mut definition = Data::object();
    definition.set("namespace", Data::string(namespace));
    definition.set("name", Data::string(&*id.workflow));
    definition.set("version", text(&header.version, NAME_BYTES_MAX));
    data.set("definition", definition);
    let attributes = [
        ("time", at),
        ("subject", Data::string(header.id.as_str())),
        ("datacontenttype", Data::string("application/json")),
        // The CloudEvents extension for the order of events.
        ("sequence", Data::string(format!("{number:010}"))),
    ];
    let attributes = attributes.into_iter();
    let event = CloudEvent {
        specversion: "1.0".to_owned(),
        id: format!("{}-{number}", header.seed()),
        source: format!("/swirl/{namespace}"),
        kind: format!("io.serverlessworkflow.{object}.{what}.v1"),
        attributes: attributes
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
        data: Some(data),
    };
    Some((of, event))
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
    Data::string(&text[..text.floor_char_boundary(bytes_max.min(text.len()))])
}

#[cfg(test)]
mod tests {
    use swirl_model::ids::{DefinitionId, InstanceId, ScopeId};
    use swirl_model::time::Timestamp;

    use super::*;

    fn header() -> Header {
        Header {
            id: InstanceId::new("abc"),
            definition: DefinitionId {
                workflow: "order".into(),
                version: "1.0".into(),
            },
            version: "1.0".to_owned(),
            input: Data::object(),
            started_at: Timestamp(16),
            parent: None,
            continued_from: None,
            key: None,
            instance_key: None,
            timeout: None,
            depth: 0,
            hops: 0,
            trace: Default::default(),
            retention: Default::default(),
        }
    }

    fn event(event: Event) -> Option<String> {
        let entry = HistoryEntry {
            at: Timestamp(1_000),
            scope: ScopeId::root(),
            event,
            data: None,
            data_until: None,
        };
        let (_, event) = lifecycle_event("default", &header(), 7, &entry)?;
        Some(serde_json::to_string(&event).unwrap())
    }

    #[test]
    fn an_entry_becomes_a_cloudevent() {
        assert_eq!(
            event(Event::InstanceStarted).unwrap(),
            concat!(
                r#"{"specversion":"1.0","id":"abc@10-7","source":"/swirl/default","#,
                r#""type":"io.serverlessworkflow.workflow.started.v1","datacontenttype":"application/json","#,
                r#""sequence":"0000000007","subject":"abc","time":"1970-01-01T00:00:01.000Z","#,
                r#""data":{"startedAt":"1970-01-01T00:00:01.000Z","name":"order-abc.default","#,
                r#""definition":{"namespace":"default","name":"order","version":"1.0"}}}"#
            )
        );
        let failed = event(Event::Ended {
            status: EndStatus::Faulted,
            error: Some(WorkflowError::new("FunctionError", "busy")),
        });
        let failed = failed.unwrap();
        let error = r#""error":{"title":"FunctionError","name":"FunctionError","detail":"busy"}"#;
        assert!(failed.contains(error), "{failed}");
        assert!(failed.contains("workflow.faulted.v1"), "{failed}");
        assert_eq!(
            event(Event::Joined {
                fork: 1,
                in_state: None
            }),
            None
        );
    }

    #[test]
    fn a_long_message_is_truncated() {
        let error = WorkflowError::new("E", "ä".repeat(MESSAGE_BYTES_MAX));
        let event = event(Event::Ended {
            status: EndStatus::Faulted,
            error: Some(error),
        });
        assert!(event.unwrap().len() < MESSAGE_BYTES_MAX + 1_000);
    }

    #[test]
    fn the_event_names_the_operator() {
        let operated = |action: &str| {
            event(Event::Operated {
                action: action.into(),
                by: Some("ann".to_owned()),
                reason: Some("why".to_owned()),
                state: None,
                from: None,
                to: None,
                batch: None,
                with: Some(InstanceId::new("parent")),
            })
        };
        for (action, kind) in [
            ("suspend", "suspended"),
            ("resume", "resumed"),
            ("retry", "resumed"),
        ] {
            let event = operated(action).unwrap();
            assert!(event.contains(&format!("workflow.{kind}.v1")), "{event}");
            assert!(event.contains(r#""by":"ann","reason":"why""#), "{event}");
            assert!(event.contains(r#""with":"parent""#), "{event}");
        }
        assert_eq!(operated("cancel"), None, "its end is an entry of its own");
    }
}
