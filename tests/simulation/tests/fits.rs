//! A stored scope that refers to missing parts of its definition is distinguished from one that may be driven.

use serde_json::{Value, json};
use swirl_engine::{Definition, Env, NewInstance, Outcome, new_instance, step};
use swirl_model::event::Input;
use swirl_model::ids::InstanceId;
use swirl_model::scope::Scope;
use swirl_model::time::Timestamp;
use swirl_model::{Data, data};
use swirl_spec::resource::MapResources;

const DEFINITION: &str = "
id: w
name: w
version: '1'
specVersion: '0.8'
functions: [{name: f, type: expression, operation: '{n: 1}'}]
errors: [{name: any, code: '*'}]
events: [{name: e, type: e, source: s}]
states:
- {name: a, type: operation, actions: [{functionRef: f}, {functionRef: f}], onErrors: [{errorRef: any, end: true}], transition: b}
- {name: b, type: switch, dataConditions: [{condition: '${ .x }', end: true}], defaultCondition: {transition: c}}
- {name: c, type: event, onEvents: [{eventRefs: [e]}], end: true}
";

fn with(scope: &Scope, pointer: &str, value: Value) -> Scope {
    let mut json = serde_json::to_value(scope).unwrap();
    match pointer.rsplit_once('/') {
        Some((parent, name)) => json.pointer_mut(parent).unwrap()[name] = value,
        None => panic!("{pointer}"),
    }
    serde_json::from_value(json).unwrap()
}

#[test]
fn missing_parts_are_found() {
    let resources = MapResources::default();
    let reading = swirl_spec::read(DEFINITION.as_bytes(), &resources, &Default::default());
    let workflow = reading.workflow.unwrap();
    let def = Definition::compile(workflow).unwrap();
    let new = NewInstance {
        input: data!({}),
        ..NewInstance::default()
    };
    let (header, fresh) = new_instance(&def, InstanceId::new("i"), new, Timestamp(7)).unwrap();
    assert!(def.fits(&fresh));
    let env = Env {
        now: Timestamp(7),
        secrets: Data::NULL,
        ..Env::default()
    };
    let mut waiting = fresh.clone();
    let outcome = step(&def, &header, &mut waiting, Input::Wake, &env);
    assert!(matches!(outcome, Outcome::Accepted { .. }));
    assert!(waiting.wait.is_some() && def.fits(&waiting), "{waiting:?}");

    let list = |list: u32, index: u32, end: u32, step: Value| {
        let run = json!({"list": list, "index": index, "end": end, "attempt": 0, "waited_ms": 0, "step": step});
        json!({"At": {"state": 0, "purpose": "Main", "entered": true, "work": {"List": run}}})
    };
    let call = json!({"Call": {"call": 1, "at": 7}});
    let at = |work: Value, state: u32| json!({"At": {"state": state, "purpose": "Main", "entered": true, "work": work}});
    let way = |way: Value| {
        let work = json!({"Continue": {"call": 1, "way": way, "input": null}});
        at(work, 0)
    };
    for (there, cursor) in [
        (true, list(0, 0, 2, json!("Ready"))),
        (true, list(0, 1, 2, call.clone())),
        (true, list(0, 2, 2, json!("Ready"))),
        (false, list(0, 2, 2, call.clone())),
        (false, list(0, 2, 3, call)),
        (false, list(0, 3, 2, json!("Ready"))),
        (false, list(9, 0, 1, json!("Ready"))),
        (true, at(json!("Begin"), 2)),
        (false, at(json!("Begin"), 3)),
        (true, way(json!({"State": 1}))),
        (false, way(json!({"State": 3}))),
        (true, way(json!({"Handler": [0, 0]}))),
        (false, way(json!({"Handler": [0, 1]}))),
        (true, way(json!({"Condition": [1, 0]}))),
        (false, way(json!({"Condition": [1, 1]}))),
        (false, way(json!({"Condition": [0, 0]}))),
        (true, way(json!({"Entry": [2, 0]}))),
        (false, way(json!({"Entry": [2, 1]}))),
    ] {
        let scope = with(&fresh, "/cursor", cursor.clone());
        assert_eq!(def.fits(&scope), there, "{cursor}");
    }
    for (field, there, not) in [
        (
            "/role",
            json!({"Branch": {"state": 2, "index": 0}}),
            json!({"Branch": {"state": 3, "index": 0}}),
        ),
        (
            "/role",
            json!({"Action": {"list": 0, "index": 1}}),
            json!({"Action": {"list": 0, "index": 2}}),
        ),
        ("/completed", json!([0, 2]), json!([0, 3])),
        (
            "/merges",
            json!([{"to": null, "value": 1}]),
            json!([{"to": 0, "value": 1}]),
        ),
        (
            "/compensation",
            json!({"left": [0], "then": {"State": 2}}),
            json!({"left": [3], "then": {"State": 2}}),
        ),
    ] {
        assert!(def.fits(&with(&fresh, field, there)), "{field}");
        assert!(!def.fits(&with(&fresh, field, not)), "{field}");
    }
    let unknown = with(&waiting, "/wait/slots/0/filters/0/def", json!(1));
    assert!(!def.fits(&unknown));
    let arrived = json!({"arrived": [], "done": [1], "running": null});
    assert!(!def.fits(&with(&waiting, "/cursor/At/events", arrived)));
}
