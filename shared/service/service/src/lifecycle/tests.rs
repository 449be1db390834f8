//! Entries and their events.

use swirl_model::ids::{DefinitionId, InstanceId, ScopeId};
use swirl_model::time::Timestamp;
use swirl_model::workflow::{Consume, EventRead, Listen, State, TaskWorkflow};

use super::*;
use crate::open_tasks::OpenTasks;

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
        scheduled_at: None,
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
    let written = Written {
        namespace: "default",
        header: &header(),
        tasks: None,
        number: 7,
        entry: &entry,
        following: &[],
        changes: Vec::new(),
        is_told: false,
    };
    let (_, event) = written.events().pop()?;
    Some(serde_json::to_string(&event).unwrap())
}

#[test]
fn an_entry_becomes_a_cloudevent() {
    assert_eq!(
        event(Event::InstanceStarted { scheduled_at: None }).unwrap(),
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
fn events_of_tasks_are_those_of_the_text() {
    let workflow = Workflow {
        states: vec![State {
            name: "wait".into(),
            pointer: "/do/0/wait".to_owned(),
            kind: StateKind::Listen(Box::new(Listen {
                source: None,
                stepwise: None,
                to: Consume::default(),
                until: None,
                read: EventRead::Data,
                each: None,
            })),
            task: Some(Box::default()),
            ..State::default()
        }],
        tasks: Some(Box::new(TaskWorkflow {
            namespace: "shop".to_owned(),
            name: "order".to_owned(),
            ..TaskWorkflow::default()
        })),
        ..Workflow::default()
    };
    let mut header = header();
    header.definition.workflow = "shop.order".into();
    let entry = |event| HistoryEntry {
        at: Timestamp(1_000),
        scope: ScopeId::root(),
        event,
        data: None,
        data_until: None,
    };
    let (state, name) = (StateId(0), Arc::<str>::from("wait"));
    let entries = [
        entry(Event::StateEntered {
            state,
            name: name.clone(),
            purpose: swirl_model::scope::Purpose::Main,
        }),
        entry(Event::StateLeft {
            state,
            name: name.clone(),
            failed: false,
        }),
        entry(Event::StateLeft {
            state,
            name,
            failed: true,
        }),
        entry(Event::Ended {
            status: EndStatus::Faulted,
            error: Some(WorkflowError::new("FunctionError", "busy")),
        }),
        entry(Event::Ended {
            status: EndStatus::Completed,
            error: None,
        }),
    ];
    let (mut seen, mut open) = (Vec::new(), OpenTasks::default());
    for (index, entry) in entries.iter().enumerate() {
        let written = Written {
            namespace: "default",
            header: &header,
            tasks: Some(&workflow),
            number: 1 + index as u64,
            entry,
            following: &entries[index + 1..],
            changes: open.take(entry),
            is_told: false,
        };
        for (_, event) in written.events() {
            let kind = event.kind.trim_start_matches("io.serverlessworkflow.");
            let data = serde_json::to_value(&event.data).unwrap();
            let names = [&data["name"], &data["workflow"]];
            assert!(names.iter().any(|name| *name == "order-abc.shop"), "{data}");
            assert_eq!(data["definition"]["namespace"], "shop");
            let task = data["task"].as_str().unwrap_or_default();
            let more = match (&data["error"]["detail"], &data["outputUri"]) {
                (serde_json::Value::String(text), _) | (_, serde_json::Value::String(text)) => {
                    text.clone()
                }
                _ => String::new(),
            };
            let row = format!(
                "{} {kind} {task} {more}",
                event.id.trim_start_matches("abc@10-")
            );
            seen.push(row.trim_end().to_owned());
        }
    }
    assert_eq!(
        seen,
        [
            "1 task.created.v1 /do/0/wait",
            "1.1 task.started.v1 /do/0/wait",
            "1.2 workflow.correlation-started.v1",
            "2 workflow.correlation-completed.v1",
            "2.1 task.completed.v1 /do/0/wait",
            "3 task.faulted.v1 /do/0/wait busy",
            "4 workflow.faulted.v1  busy",
            "5 workflow.completed.v1  /api/v1/instances/abc",
        ]
    );
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
