//! Instances that are moved to another version of their definition.

mod tasks;

use swirl_model::error::names;
use swirl_model::event::Event;
use swirl_model::ids::InstanceId;
use swirl_model::instance::{Instance, Status};
use swirl_model::time::Timestamp;
use swirl_model::{CloudEvent, Data, WorkflowError, data};
use swirl_ports::{Clock, InstanceQueries, InstanceRecords};
use swirl_service::{Action, Operator, StartRequest, Target, Unfit};
use swirl_virtual_time::{Act, Mock, Which, World};

use crate::fixture::{start_of, world};

struct Run {
    world: World,
}

fn answer(call: &swirl_ports::CallRequest) -> Mock {
    match &*call.function.name {
        "never" => Mock::Never,
        "broken" => Mock::Answer {
            after_ms: 10,
            result: Err(WorkflowError::new(names::FUNCTION_ERROR, "not today")),
        },
        name => Mock::Answer {
            after_ms: 10,
            result: Ok(data!({"called": name})),
        },
    }
}

impl Run {
    /// An instance of the first of two versions, a second after its start.
    fn new(first: &str, second: &str, input: Data) -> Run {
        let documents = [("1", first), ("2", second)].map(|(version, body)| {
            let body = body.trim();
            format!("id: order\nversion: \"{version}\"\nspecVersion: \"0.8\"\n{body}")
        });
        Run::of(&documents, "order", "1", input)
    }

    fn of(documents: &[String; 2], workflow: &str, version: &str, input: Data) -> Run {
        let world = world(&documents.each_ref().map(String::as_str), answer);
        let mut run = Run { world };
        let start = StartRequest {
            version: Some(version.to_owned()),
            input,
            ..start_of(workflow)
        };
        run.until(1_000, vec![Act::Start(start)]);
        run
    }

    fn until(&mut self, ms: i64, acts: Vec<Act>) {
        let now = self.world.clock.now();
        let plan = acts.into_iter().map(|act| (now, act)).collect();
        self.world.run(plan, Timestamp(ms)).unwrap();
    }

    fn send(&mut self, kind: &str, id: &str, until: i64) {
        let event: CloudEvent = serde_json::from_value(serde_json::json!({
            "id": id, "source": "/shop", "type": kind, "orderid": "o1", "data": {"got": id}
        }))
        .unwrap();
        self.until(until, vec![Act::Event(event)]);
    }

    fn operate(&mut self, action: Action, until: i64) {
        let act = Act::Operate {
            name: "it".to_owned(),
            which: Which::Name(self.id().to_string()),
            action,
        };
        self.until(until, vec![act]);
    }

    fn id(&mut self) -> InstanceId {
        let all = self.world.instances().unwrap();
        let [one] = &all[..] else { panic!("{all:?}") };
        one.header.id.clone()
    }

    fn instance(&mut self) -> Instance {
        let (store, id) = (self.world.store.clone(), self.id());
        let found = self.world.wait(async move { store.instance(&id).await });
        found.unwrap().unwrap()
    }

    fn migrate_at(&mut self, state: Option<&str>) -> Result<(), Unfit> {
        let (service, id) = (self.world.service.clone(), self.id());
        let target = Target {
            version: "2",
            state,
            mark: None,
        };
        let operator = Operator {
            name: Some("ada".to_owned()),
            reason: Some("it was wrong".to_owned()),
            batch: None,
        };
        let moved = self.world.wait(service.migrate(&id, target, &operator));
        moved.unwrap().map(|moved| {
            assert_eq!((&*moved.from, &*moved.to), ("1", "2"));
        })
    }

    fn migrate(&mut self) {
        self.migrate_at(None).unwrap();
        let instance = self.instance();
        assert_eq!(&*instance.header.definition.version, "2");
        assert_eq!(instance.header.version, "2");
    }

    /// Why it doesn't fit, and that trying it changes nothing.
    fn misfit(&mut self) -> String {
        let (store, id) = (self.world.store.clone(), self.id());
        let before = self.world.wait(store.scopes(&id)).unwrap();
        let Err(Unfit::Misfit(reason)) = self.migrate_at(None) else {
            panic!("it fits")
        };
        assert_eq!(self.world.wait(store.scopes(&id)).unwrap(), before);
        assert_eq!(&*self.instance().header.definition.version, "1");
        reason
    }

    fn ended(&mut self, status: Status) -> Data {
        let instance = self.instance();
        let state = &instance.state;
        assert_eq!(state.status, status, "{:?}", state.error);
        state.output.clone().unwrap_or_default()
    }
}

const SLEEP: &str = r#"
states:
  - {name: Wait, type: sleep, duration: PT1M, transition: Done}
  - {name: Done, type: inject, data: {done: 1}, end: true}
"#;
const MORE: &str = r#"
states:
  - {name: First, type: inject, data: {first: true}, transition: Wait}
  - {name: Other, type: inject, data: {other: true}, transition: Wait}
  - {name: Wait, type: sleep, duration: PT5M, transition: Added}
  - {name: Added, type: inject, data: {added: true}, transition: Done}
  - {name: Done, type: inject, data: {done: 2}, end: true}
"#;

#[test]
fn what_follows_is_done_as_the_new_version_says() {
    let mut run = Run::new(SLEEP, MORE, data!({}));
    run.migrate();
    // It slept a minute, as the timer that was armed says.
    run.until(59_000, vec![]);
    assert_eq!(run.instance().state.status, Status::Running);
    run.until(61_000, vec![]);
    assert_eq!(
        run.ended(Status::Completed),
        data!({"added": true, "done": 2})
    );
    let (store, id) = (run.world.store.clone(), run.id());
    let history = run.world.wait(store.history(&id)).unwrap();
    let mut operated = history.iter().filter_map(|entry| match &entry.event {
        Event::Operated {
            action,
            by,
            reason,
            from,
            to,
            ..
        } => Some((
            &**action,
            by.clone(),
            reason.clone(),
            from.clone(),
            to.clone(),
        )),
        _ => None,
    });
    let text = |text: &str| Some(text.to_owned());
    let expected = (
        "migrate",
        text("ada"),
        text("it was wrong"),
        text("1"),
        text("2"),
    );
    assert_eq!(operated.next(), Some(expected));
    assert_eq!(operated.next(), None);
}

#[test]
fn a_place_that_is_gone_is_a_reason() {
    let mut run = Run::new(SLEEP, &MORE.replace("Wait", "Pause"), data!({}));
    assert_eq!(run.misfit(), "state 'Wait' does not exist in version 2");
    let kind = MORE.replace(
        "{name: Wait, type: sleep, duration: PT5M,",
        "{name: Wait, type: inject, data: {},",
    );
    let mut run = Run::new(SLEEP, &kind, data!({}));
    assert_eq!(
        run.misfit(),
        "state 'Wait' is of type sleep there, and of type inject in version 2"
    );
    // It continues as before.
    run.until(61_000, vec![]);
    assert_eq!(run.ended(Status::Completed), data!({"done": 1}));
    let ended = run.migrate_at(None).unwrap_err();
    assert_eq!(ended.to_string(), "the instance has ended: it is completed");
}

const EVENTS: &str = r#"
events:
  - {name: paid, source: /shop, type: paid, correlation: [{contextAttributeName: orderid, contextAttributeValue: "${ .id }"}]}
states:
  - {name: Begin, type: inject, data: {}, transition: Wait}
  - name: Wait
    type: event
    onEvents: [{eventRefs: [paid], actions: []}]
    end: true
"#;

#[test]
fn a_wait_that_is_the_same_stays() {
    let more = EVENTS.replace(
        "events:\n",
        "events:\n  - {name: sent, source: /shop, type: sent}\n  - {name: lost, source: /shop, type: lost}\n",
    );
    let mut run = Run::new(EVENTS, &more, data!({"id": "o1"}));
    let wait = |run: &mut Run| {
        let (store, id) = (run.world.store.clone(), run.id());
        let scopes = run.world.wait(store.scopes(&id)).unwrap();
        scopes[0].wait.clone().unwrap()
    };
    let before = wait(&mut run);
    run.migrate();
    let after = wait(&mut run);
    assert_eq!(after.wait, before.wait);
    assert_eq!(
        (
            before.slots[0].filters[0].def.0,
            after.slots[0].filters[0].def.0
        ),
        (0, 2)
    );
    run.send("paid", "e1", 2_000);
    assert_eq!(
        run.ended(Status::Completed),
        data!({"id": "o1", "got": "e1"})
    );
}

#[test]
fn a_wait_that_was_wrong_is_put_right() {
    let wrong = EVENTS.replace("type: paid", "type: payed");
    let mut run = Run::new(&wrong, EVENTS, data!({"id": "o1"}));
    // The event arrives before the move, and is kept for later waits.
    run.send("paid", "e1", 2_000);
    assert_eq!(run.instance().state.status, Status::Running);
    run.migrate();
    run.until(3_000, vec![]);
    assert_eq!(
        run.ended(Status::Completed),
        data!({"id": "o1", "got": "e1"})
    );

    let mut run = Run::new(&wrong, EVENTS, data!({"id": "o1"}));
    run.migrate();
    run.send("payed", "e1", 2_000);
    assert_eq!(run.instance().state.status, Status::Running);
    run.send("paid", "e2", 3_000);
    assert_eq!(
        run.ended(Status::Completed),
        data!({"id": "o1", "got": "e2"})
    );
}

#[test]
fn other_events_are_a_reason() {
    let more = EVENTS.replace(
        "onEvents: [",
        "onEvents: [{eventRefs: [sent], actions: []}, ",
    );
    let more = more.replace(
        "events:\n",
        "events:\n  - {name: sent, source: /shop, type: sent}\n",
    );
    let mut run = Run::new(EVENTS, &more, data!({"id": "o1"}));
    assert_eq!(
        run.misfit(),
        "state 'Wait' waits for other events in version 2"
    );
    let secret = EVENTS.replace("${ .id }", "${ $SECRETS.id }");
    let secret = secret.replace("events:\n", "secrets: [id]\nevents:\n");
    let mut run = Run::new(EVENTS, &secret, data!({"id": "o1"}));
    let reason = run.misfit();
    assert!(reason.contains("reads a secret"), "{reason}");
}

const BRANCHES: &str = r#"
functions:
  - {name: one, operation: "a.json#one"}
  - {name: broken, operation: "a.json#broken"}
states:
  - name: Both
    type: parallel
    branches:
      - {name: left, actions: [{name: l, functionRef: one, sleep: {before: PT1M}, actionDataFilter: {toStateData: .left}}]}
      - {name: right, actions: [{name: r, functionRef: one, actionDataFilter: {toStateData: .right}}]}
    end: true
"#;

#[test]
fn branches_go_along() {
    let more = BRANCHES
        .replace(
            "states:\n",
            "states:\n  - {name: Zero, type: inject, data: {}, transition: Both}\n",
        )
        .replace(
            "  - {name: one,",
            "  - {name: zero, operation: \"a.json#zero\"}\n  - {name: one,",
        )
        .replace(
            "{name: l, functionRef: one",
            "{name: k, functionRef: zero}, {name: l, functionRef: one",
        );
    let mut run = Run::new(BRANCHES, &more, data!({}));
    run.migrate();
    run.until(62_000, vec![]);
    let one = data!({"called": "one"});
    let output = run.ended(Status::Completed);
    assert_eq!(
        (output.get("left"), output.get("right")),
        (Some(one.clone()), Some(one))
    );

    let other = BRANCHES.replace("name: right", "name: top");
    let mut run = Run::new(BRANCHES, &other, data!({}));
    assert_eq!(
        run.misfit(),
        "parallel state 'Both' has other branches in version 2"
    );
    // The completed branch's result has a target that the new version doesn't have.
    let elsewhere = BRANCHES.replace("toStateData: .right", "toStateData: .top");
    let mut run = Run::new(BRANCHES, &elsewhere, data!({}));
    let reason = run.misfit();
    assert!(reason.contains("'.right'"), "{reason}");
}

#[test]
fn iterations_that_have_not_begun_are_those_of_the_new_version() {
    let first = r#"
states:
  - name: Each
    type: foreach
    mode: sequential
    inputCollection: "${ .items }"
    outputCollection: "${ .out }"
    iterationParam: item
    actions: [{name: do, functionRef: same, sleep: {before: PT10S}}]
    end: true
functions: [{name: same, type: expression, operation: "{v: 1}"}]
"#;
    let second = first.replace("{v: 1}", "{v: 2}").replace(
        "states:\n",
        "states:\n  - {name: Zero, type: inject, data: {}, transition: Each}\n",
    );
    let mut run = Run::new(first, &second, data!({"items": [1, 2, 3]}));
    run.until(15_000, vec![]);
    run.migrate();
    run.until(60_000, vec![]);
    let output = run.ended(Status::Completed);
    assert_eq!(
        output.get("out"),
        Some(data!([{"v": 1}, {"v": 2}, {"v": 2}]))
    );
}

const CALLS: &str = r#"
functions: [{name: one, operation: "a.json#one"}, {name: broken, operation: "a.json#broken"}]
states:
  - name: Work
    type: operation
    actions: [{name: first, functionRef: one}, {name: then, functionRef: broken}]
    end: true
"#;

#[test]
fn a_failed_instance_is_retried_with_what_is_right() {
    let fixed = CALLS.replace(
        "functionRef: broken}",
        "functionRef: one}, {name: last, functionRef: one}",
    );
    let mut run = Run::new(CALLS, &fixed, data!({}));
    assert_eq!(run.instance().state.status, Status::Faulted);
    run.migrate();
    assert_eq!(run.instance().state.status, Status::Faulted);
    run.operate(Action::Retry, 2_000);
    run.ended(Status::Completed);
    let calls = run.world.observed().calls;
    let names: Vec<&str> = calls.iter().map(|call| &*call.function).collect();
    assert_eq!(names, ["one", "broken", "one", "one"]);

    let gone = CALLS.replace("name: then", "name: other");
    let mut run = Run::new(CALLS, &gone, data!({}));
    assert_eq!(
        run.misfit(),
        "state 'Work' has no action 'then' in version 2"
    );
}

#[test]
fn a_failed_instance_continues_at_a_state_with_other_data() {
    let without = r#"
functions: [{name: one, operation: "a.json#one"}]
states:
  - {name: Begin, type: inject, data: {begun: true}, transition: Call}
  - {name: Call, type: operation, actions: [{functionRef: one}], end: true}
"#;
    let mut run = Run::new(CALLS, without, data!({"a": 1}));
    assert_eq!(run.misfit(), "state 'Work' does not exist in version 2");
    let Err(Unfit::Misfit(reason)) = run.migrate_at(Some("Nowhere")) else {
        panic!("it fits")
    };
    assert_eq!(reason, "state 'Nowhere' does not exist in version 2");
    run.migrate_at(Some("Begin")).unwrap();
    let edit = Action::Edit {
        state: Some("Begin".to_owned()),
        data: data!({"b": 2}),
        context: None,
    };
    run.operate(edit, 3_000);
    assert_eq!(
        run.ended(Status::Completed),
        data!({"b": 2, "begun": true, "called": "one"})
    );
}

#[test]
fn a_failed_action_is_tried_again_with_other_data() {
    let picky = r#"
functions: [{name: pick, type: expression, operation: "if .n < 0 then error(\"negative\") else {ok: .n} end"}]
states:
  - {name: Pick, type: operation, actions: [{functionRef: pick}], end: true}
"#;
    let mut run = Run::new(picky, SLEEP, data!({"n": -1}));
    assert_eq!(run.instance().state.status, Status::Faulted);
    let edit = Action::Edit {
        state: None,
        data: data!({"n": 5}),
        context: None,
    };
    run.operate(edit, 2_000);
    assert_eq!(run.ended(Status::Completed), data!({"n": 5, "ok": 5}));
}

#[test]
fn what_is_under_way_is_not_moved() {
    let calls = CALLS.replace("functionRef: one", "functionRef: never");
    let calls = calls.replace(
        "{name: one,",
        "{name: never, operation: \"a.json#never\"}, {name: one,",
    );
    let mut run = Run::new(&calls, &calls, data!({}));
    let (service, id) = (run.world.service.clone(), run.id());
    let asked = run.world.wait(service.would_migrate(&id, "2", None));
    let Err(Unfit::Busy(reason)) = asked.unwrap() else {
        panic!("it isn't busy")
    };
    assert!(
        reason.starts_with("a function call is under way"),
        "{reason}"
    );
    let asked = run
        .world
        .wait(service.would_migrate(&id, "7", None))
        .unwrap();
    let unknown = asked.unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "there is no workflow 'order' in version 7"
    );
    let asked = run
        .world
        .wait(service.would_migrate(&id, "1", None))
        .unwrap();
    assert_eq!(
        asked.unwrap_err().to_string(),
        "the instance runs with order:1 already"
    );
}
