use serde_json::json;
use swirl_model::WorkflowError;
use swirl_model::workflow::StateId;
use swirl_spec::resource::MapResources;

use super::*;
use crate::{Trail, render_with};

const DOCUMENT: &str = r#"
id: t
version: "1"
specVersion: "0.8"
events:
  - name: paid
    type: org.example.paid
    source: /bank
    correlation: [{contextAttributeName: order}]
  - {name: packed, type: org.example.packed, source: /hall}
functions: [{name: charge, type: custom, operation: sysout}]
states:
  - name: Await
    type: event
    exclusive: false
    onEvents: [{eventRefs: [paid]}, {eventRefs: [packed]}]
    transition: Both
  - name: Both
    type: parallel
    branches:
      - {name: one, actions: [{functionRef: charge}]}
      - {name: two, actions: [{name: ship, subFlowRef: shipping}]}
    transition: Rest
  - {name: Rest, type: sleep, duration: PT1H, end: true}
"#;

fn workflow() -> Workflow {
    let options = swirl_spec::Options::default();
    let reading = swirl_spec::read(DOCUMENT.as_bytes(), &MapResources::default(), &options);
    reading.workflow.expect("it is read")
}

fn entry(scope: &str, event: Event) -> HistoryEntry {
    HistoryEntry {
        at: Timestamp(1_000),
        scope: ScopeId::new(scope),
        event,
        data: None,
        data_until: None,
    }
}

fn entered(state: u32, name: &str) -> Event {
    Event::StateEntered {
        state: StateId(state),
        name: name.into(),
        purpose: Purpose::Main,
    }
}

fn left(state: u32, name: &str) -> Event {
    Event::StateLeft {
        state: StateId(state),
        name: name.into(),
        failed: false,
    }
}

fn came(name: &str) -> Event {
    Event::EventConsumed {
        name: name.into(),
        source: "/s".to_owned(),
        id: "1".to_owned(),
    }
}

fn started(action: &str) -> Event {
    Event::ActionStarted {
        action: action.to_owned(),
        attempt: 1,
        call: 3,
        in_state: None,
    }
}

fn failure() -> WorkflowError {
    WorkflowError::new("FunctionError", "busy")
}

fn history() -> Vec<HistoryEntry> {
    let failed = Event::BranchFailed { error: failure() };
    let ended = Event::Ended {
        status: EndStatus::Faulted,
        error: Some(failure()),
    };
    [
        ("r", Event::InstanceStarted { scheduled_at: None }),
        ("r", entered(0, "Await")),
        ("r", came("packed")),
        ("r", came("paid")),
        ("r", left(0, "Await")),
        ("r", entered(1, "Both")),
        (
            "r",
            Event::Forked {
                fork: 2,
                branches: 2,
                in_state: None,
            },
        ),
        ("r.2.0", started("charge")),
        ("r.2.1", started("ship")),
        ("r.2.0", failed),
        ("r", ended),
        ("r", Event::Retried),
        ("r.2.0", Event::Retried),
        (
            "r.2.0",
            Event::ActionCompleted {
                action: "charge".to_owned(),
                attempt: 2,
                in_state: None,
            },
        ),
        (
            "r",
            Event::Joined {
                fork: 2,
                in_state: None,
            },
        ),
        ("r", left(1, "Both")),
        ("r", entered(2, "Rest")),
    ]
    .into_iter()
    .map(|(scope, event)| entry(scope, event))
    .collect()
}

/// The activity of each scope after this many entries.
fn told(workflow: &Workflow, count: usize) -> Vec<String> {
    let rewound = Rewound::new(workflow, &history()[..count]);
    let places = rewound.places();
    let told = places.iter().map(|place| {
        let events = place.waits_for.iter();
        let events: Vec<&str> = events.filter_map(|event| event.name.as_deref()).collect();
        let part = |part: &Option<String>| part.clone().unwrap_or("-".to_owned());
        let (state, action) = (part(&place.state), part(&place.action));
        format!(
            "{} {state} {action} {} {events:?}",
            place.scope, place.doing
        )
    });
    told.collect()
}

#[test]
fn each_entry_can_be_rewound_to() {
    let workflow = workflow();
    let forked = "r Both - waiting for branches []";
    let ships = "r.2.1 - ship waiting for a sub-workflow []";
    for (count, expected) in [
        (0, vec![]),
        (1, vec!["r - - starting []"]),
        (
            2,
            vec![r#"r Await - waiting for events ["paid", "packed"]"#],
        ),
        (3, vec![r#"r Await - waiting for events ["paid"]"#]),
        (4, vec!["r Await - continuing []"]),
        (5, vec!["r Await - ending []"]),
        (6, vec!["r Both - beginning []"]),
        (7, vec![forked]),
        (
            9,
            vec![forked, "r.2.0 - charge calling a function []", ships],
        ),
        (10, vec![forked, "r.2.0 - charge failed []", ships]),
        (
            11,
            vec!["r Both - failed []", "r.2.0 - charge failed []", ships],
        ),
        (14, vec![forked, ships]),
        (15, vec!["r Both - continuing []"]),
        (17, vec!["r Rest - sleeping []"]),
    ] {
        assert_eq!(told(&workflow, count), expected, "after {count} entries");
    }
}

#[test]
fn the_status_is_rewound_too() {
    let workflow = workflow();
    let mut history = history();
    let operated = |action: &str| Event::Operated {
        action: action.into(),
        by: None,
        reason: None,
        state: None,
        from: None,
        to: None,
        batch: None,
        with: None,
    };
    let completed = Event::Ended {
        status: EndStatus::Completed,
        error: None,
    };
    history.extend([
        entry("r", operated("suspend")),
        entry("r", operated("resume")),
        entry("r", completed),
    ]);
    let at = |count: usize| {
        let rewound = Rewound::new(&workflow, &history[..count]);
        let is_over = rewound.ended_at.is_some();
        (rewound.status, rewound.suspended, is_over, rewound.error)
    };
    assert_eq!(at(10), (Status::Running, false, false, None));
    assert_eq!(at(11), (Status::Faulted, false, true, Some(failure())));
    assert_eq!(at(12), (Status::Running, false, false, None));
    assert_eq!(at(18), (Status::Running, true, false, None));
    assert_eq!(at(19), (Status::Running, false, false, None));
    assert_eq!(at(20), (Status::Completed, false, true, None));
    assert!(Rewound::new(&workflow, &history).places().is_empty());
}

#[test]
fn an_awaited_event_lists_its_correlation_attributes() {
    let workflow = workflow();
    let rewound = Rewound::new(&workflow, &history()[..2]);
    let places = rewound.places();
    assert_eq!(
        serde_json::to_value(&places[0].waits_for[0]).unwrap(),
        json!({"name": "paid", "source": "/bank", "type": "org.example.paid", "correlation": {"order": null}})
    );
}

#[test]
fn the_diagram_shows_the_former_position() {
    let workflow = workflow();
    let drawn = |count: usize| {
        let history = &history()[..count];
        let rewound = Rewound::new(&workflow, history);
        render_with(&workflow, &Trail::rewound(history, &rewound))
    };
    let has = |svg: &str, class: &str| svg.matches(&format!("card {class}")).count();
    let waits = drawn(3);
    assert_eq!(
        (has(&waits, "here"), has(&waits, "past")),
        (1, 0),
        "{waits}"
    );
    let failed = drawn(11);
    assert_eq!((has(&failed, "failed"), has(&failed, "past")), (1, 1));
    let rests = drawn(17);
    assert_eq!((has(&rests, "here"), has(&rests, "past")), (1, 2));
}
