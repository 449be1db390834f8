//! Workflows for the tests of diagrams. They are built by hand, so no reader is needed.

use std::sync::Arc;

use swirl_model::data;
use swirl_model::time::IsoDuration;
use swirl_model::workflow::*;

/// Builds a workflow piece by piece.
struct Make {
    workflow: Workflow,
}

impl Make {
    fn new(id: &str, names: &[&str]) -> Make {
        let mut workflow = Workflow {
            id: id.to_owned(),
            ..Workflow::default()
        };
        workflow.version = Version::Literal("1.0.0".to_owned());
        workflow.name = Some(format!("The {id} workflow"));
        let states = (0..names.len() as u32).map(StateId).collect();
        workflow.flows.push(Flow {
            start: StateId(0),
            states,
            ..Flow::default()
        });
        for name in names {
            workflow.states.push(State {
                name: Arc::from(*name),
                flow: Workflow::ROOT,
                kind: StateKind::Inject(data!({"a": 1})),
                next: Some(Next::End(End::default())),
                metadata: data!({}),
                ..State::default()
            });
        }
        Make { workflow }
    }

    fn state(&mut self, index: u32, kind: StateKind, next: Option<Next>) -> &mut State {
        let state = &mut self.workflow.states[index as usize];
        state.kind = kind;
        state.next = next;
        state
    }

    fn expr(&mut self, text: &str) -> ExprId {
        self.workflow.expressions.push(ExprSource {
            language: Language::Jq,
            text: text.to_owned(),
            params: vec![],
            pointer: String::new(),
        });
        ExprId(self.workflow.expressions.len() as u32 - 1)
    }

    fn event(&mut self, name: &str) -> EventId {
        self.workflow.events.push(EventDef {
            name: Arc::from(name),
            source: None,
            kind: Some(name.to_owned()),
            produced: false,
            correlation: vec![],
            data_only: true,
            metadata: data!({}),
            filter: None,
        });
        EventId(self.workflow.events.len() as u32 - 1)
    }

    fn error(&mut self, name: &str) -> ErrorId {
        self.workflow.errors.push(ErrorDef {
            name: name.to_owned(),
            ..ErrorDef::default()
        });
        ErrorId(self.workflow.errors.len() as u32 - 1)
    }

    fn calls(&mut self, functions: &[&str]) -> ListId {
        let mut list = ActionList::default();
        for name in functions {
            let function = FunctionId(self.workflow.functions.len() as u32);
            self.workflow.functions.push(Function {
                name: Arc::from(*name),
                kind: FunctionKind::Rest,
                operation: String::new(),
                place: String::new(),
                resource_auth: None,
                auth: None,
                metadata: data!({}),
                within: None,
            });
            let kind = ActionKind::Call(Call {
                function,
                arguments: None,
                selection_set: None,
                detached: false,
                subscription: None,
            });
            list.actions.push(self.action(kind));
        }
        self.list(list)
    }

    fn action(&mut self, kind: ActionKind) -> ActionId {
        self.workflow.actions.push(Action {
            kind,
            ..Action::default()
        });
        ActionId(self.workflow.actions.len() as u32 - 1)
    }

    fn list(&mut self, list: ActionList) -> ListId {
        self.workflow.lists.push(list);
        ListId(self.workflow.lists.len() as u32 - 1)
    }
}

fn to(state: u32) -> Next {
    Next::Transition(Transition {
        to: StateId(state),
        compensate: false,
        produce: vec![],
        guard: None,
    })
}

fn end() -> Next {
    Next::End(End::default())
}

fn seconds(seconds: u64) -> Period {
    IsoDuration::from_secs(seconds).into()
}

fn handler(errors: ErrorSet, next: Next) -> Handler {
    Handler {
        errors,
        then: Then::Next(next),
        ..Handler::default()
    }
}

pub(crate) fn all() -> Vec<(&'static str, Workflow)> {
    vec![
        ("hello", hello()),
        ("order", order()),
        ("job", job()),
        ("approval", approval()),
    ]
}

fn hello() -> Workflow {
    Make::new("hello", &["Greet"]).workflow
}

/// Parallel and foreach states, errors, compensation, a workflow timeout.
fn order() -> Workflow {
    let mut m = Make::new(
        "order",
        &["Reserve", "Each", "Fork", "Undo", "Apologise", "Clean up"],
    );
    let reserve = m.calls(&["reserveItems", "chargeCard"]);
    let out = m.error("OutOfStock");
    let refused = m.error("CardRefused");
    let apology = m.event("OrderCancelled");
    let state = m.state(0, StateKind::Operation(reserve), Some(to(1)));
    state.compensated_by = Some(StateId(3));
    state.timeout = Some(seconds(60));
    state.on_errors = vec![
        handler(ErrorSet::These(vec![out, refused]), to(4)),
        handler(
            ErrorSet::Any,
            Next::End(End {
                terminate: true,
                ..End::default()
            }),
        ),
    ];
    let (items, price) = (m.expr(".order.items"), m.calls(&["priceOf"]));
    let each = StateKind::Foreach(Foreach {
        input: items,
        output: None,
        param: "item".into(),
        mode: IterationMode::Batches(Count::Fixed(5)),
        body: Body::Actions(price),
        pause: None,
    });
    m.state(1, each, Some(to(2)));
    let (mail, ship) = (
        m.calls(&["sendMail"]),
        m.calls(&["ship", "track", "printLabelOfTheParcel"]),
    );
    let branch = |name: &str, list, timeout| Branch {
        name: name.into(),
        body: Body::Actions(list),
        timeout,
        awaited: true,
    };
    let fork = StateKind::Parallel(Parallel {
        branches: vec![
            branch("Mail", mail, None),
            branch("Parcel", ship, Some(seconds(3600))),
        ],
        at_least: Some(Count::Fixed(1)),
        ..Parallel::default()
    });
    m.state(2, fork, Some(end())).on_errors = vec![handler(
        ErrorSet::Any,
        Next::Transition(Transition {
            to: StateId(4),
            compensate: true,
            produce: vec![],
            guard: None,
        }),
    )];
    let undo = m.calls(&["releaseItems"]);
    m.state(3, StateKind::Operation(undo), None)
        .used_for_compensation = true;
    let note = m.calls(&["sendApology"]);
    let produce = Produce {
        event: apology,
        data: None,
        attributes: vec![],
    };
    let ends = Next::End(End {
        produce: vec![produce],
        ..End::default()
    });
    m.state(4, StateKind::Operation(note), Some(ends));
    let clean = m.calls(&["cleanUp"]);
    m.state(5, StateKind::Operation(clean), Some(end()));
    m.workflow.timeout = Some(WorkflowTimeout {
        duration: seconds(86_400),
        interrupt: false,
        run_before: Some(StateId(5)),
    });
    m.workflow
}

/// A polling loop with backward transitions.
fn job() -> Workflow {
    let mut m = Make::new(
        "job",
        &["Submit", "Wait", "Look", "Decide", "Report failure"],
    );
    let (submit, look, report) = (
        m.calls(&["submitJob"]),
        m.calls(&["jobStatus"]),
        m.calls(&["report"]),
    );
    m.state(0, StateKind::Operation(submit), Some(to(1)));
    m.state(1, StateKind::Sleep(seconds(5)), Some(to(2)));
    m.state(2, StateKind::Operation(look), Some(to(3)))
        .on_errors = vec![handler(ErrorSet::Any, to(2))];
    let (done, failed) = (
        m.expr(".status == \"SUCCEEDED\""),
        m.expr(".status == \"FAILED\""),
    );
    let condition = |test, name: Option<&str>, next| Condition {
        name: name.map(str::to_owned),
        test: Test::Holds(test),
        next,
    };
    let switch = StateKind::Switch(Switch {
        conditions: vec![
            condition(done, None, end()),
            condition(failed, Some("failed"), to(4)),
        ],
        default: Some(to(1)),
    });
    m.state(3, switch, None);
    m.state(4, StateKind::Operation(report), Some(end()));
    m.workflow
}

/// Events, a callback, a sub-workflow, a branch with its own states.
fn approval() -> Workflow {
    let mut m = Make::new(
        "approval",
        &[
            "Applications",
            "Ask",
            "Decision",
            "Onboard",
            "Later",
            "Inner",
            "Rest",
        ],
    );
    let (applied, recommended) = (m.event("Applied"), m.event("Recommended"));
    let (answered, yes, no) = (m.event("Answered"), m.event("Approved"), m.event("Refused"));
    let (store, log) = (m.calls(&["store"]), m.calls(&["log"]));
    let entry = |events: Vec<EventId>, actions| OnEvents {
        wait: Wait::All((0..events.len() as u16).map(Wait::Event).collect()),
        events,
        filter: EventFilter::default(),
        actions,
        next: None,
        timeout: None,
    };
    let events = StateKind::Event(EventState {
        exclusive: true,
        entries: vec![
            entry(vec![applied], store),
            entry(vec![applied, recommended], log),
        ],
        timeout: None,
        timeout_restarts: false,
    });
    m.state(0, events, Some(to(1)));
    let ask = m.calls(&["askManager"]);
    let callback = StateKind::Callback(Callback {
        actions: ask,
        event: answered,
        filter: EventFilter::default(),
        timeout: Some(seconds(7200)),
    });
    m.state(1, callback, Some(to(2)));
    let condition = |event, next| EventCondition {
        name: None,
        event,
        filter: EventFilter::default(),
        next,
    };
    let decision = StateKind::SwitchEvents(SwitchEvents {
        conditions: vec![condition(yes, to(3)), condition(no, end())],
        timeout: Some(seconds(3600)),
        default: Some(to(4)),
    });
    m.state(2, decision, None);
    let subflow = ActionKind::Subflow(Subflow {
        workflow: "onboarding".to_owned(),
        version: None,
        input: None,
        detached: false,
        on_parent_end: OnParentEnd::Terminate,
    });
    let subflow = m.action(subflow);
    let list = m.list(ActionList {
        actions: vec![subflow],
        parallel: false,
    });
    let flow = FlowId(1);
    m.workflow.flows[0].states.truncate(5);
    m.workflow.flows.push(Flow {
        start: StateId(5),
        states: vec![StateId(5), StateId(6)],
        ..Flow::default()
    });
    m.state(5, StateKind::Sleep(seconds(1)), Some(to(6))).flow = flow;
    m.workflow.states[6].flow = flow;
    let parallel = StateKind::Parallel(Parallel {
        branches: vec![
            Branch {
                name: "Sub".into(),
                body: Body::Actions(list),
                timeout: None,
                awaited: true,
            },
            Branch {
                name: "Own states".into(),
                body: Body::Flow(flow),
                timeout: None,
                awaited: true,
            },
        ],
        at_least: None,
        ..Parallel::default()
    });
    m.state(3, parallel, Some(end()));
    let again = ContinueAs {
        workflow: "approval".to_owned(),
        version: None,
        data: None,
        timeout: None,
    };
    let again = Next::End(End {
        continue_as: Some(again),
        ..End::default()
    });
    m.state(4, StateKind::Sleep(seconds(86_400)), Some(again));
    m.workflow
}
