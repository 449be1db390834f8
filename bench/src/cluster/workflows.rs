//! The workflows of the benchmarks, in edition 0.8 and some of them in DSL 1.0.

pub mod tasks;

use serde_json::{Value, json};

/// The number of states in a chain.
pub const CHAIN: usize = 10;
/// The transitions of an instance of [`messages`]: its start, and in each state one for the branch and one for the
/// join.
pub const TRANSITIONS: usize = 1 + 2 * CHAIN;

fn definition(id: &str, rest: Value) -> Value {
    let mut all = json!({"id": id, "version": "1.0.0", "specVersion": "0.8", "name": id});
    if let (Some(all), Value::Object(rest)) = (all.as_object_mut(), rest) {
        all.extend(rest);
    }
    all
}

fn next(index: usize, last: usize, prefix: &str) -> (String, Value) {
    if index == last {
        ("end".to_owned(), json!(true))
    } else {
        (
            "transition".to_owned(),
            json!(format!("{prefix}{}", index + 1)),
        )
    }
}

/// Ten pure states: five that inject, and five that switch on the data.
pub fn pure(id: &str) -> Value {
    let states = (0..CHAIN).map(|index| {
        let (way, to) = next(index, CHAIN - 1, "S");
        let name = format!("S{index}");
        if index % 2 == 0 {
            return json!({"name": name, "type": "inject", "data": {"n": index}, way: to});
        }
        let condition = format!("${{ .n == {} }}", index - 1);
        json!({
            "name": name, "type": "switch",
            "dataConditions": [{"condition": condition, way: to}],
            "defaultCondition": {"end": true},
        })
    });
    let states: Vec<Value> = states.collect();
    definition(id, json!({"states": states}))
}

/// Ten states with one branch each, which is a separate scope. Every transition needs a message, unless the worker
/// continues by itself.
pub fn messages(id: &str) -> Value {
    let states = (0..CHAIN).map(|index| {
        let (way, to) = next(index, CHAIN - 1, "S");
        json!({
            "name": format!("S{index}"), "type": "parallel", way: to,
            "branches": [{"name": "only", "actions": [{"functionRef": "plus"}]}],
        })
    });
    let states: Vec<Value> = states.collect();
    definition(id, json!({"functions": [plus()], "states": states}))
}

fn plus() -> Value {
    json!({"name": "plus", "type": "expression", "operation": "${ {value: 1} }"})
}

/// Ten HTTP calls in sequence.
pub fn calls(id: &str) -> Value {
    let states = (0..CHAIN).map(|index| {
        let (way, to) = next(index, CHAIN - 1, "S");
        json!({"name": format!("S{index}"), "type": "operation", way: to, "actions": [
            {"functionRef": {"refName": "step", "arguments": {"n": index}}},
        ]})
    });
    let states: Vec<Value> = states.collect();
    let functions = json!([{"name": "step", "operation": "service.json#step"}]);
    definition(id, json!({"functions": functions, "states": states}))
}

/// An iteration for each element of `items`, each of which is a separate scope.
pub fn foreach(id: &str) -> Value {
    definition(
        id,
        json!({"functions": [plus()], "states": [{
            "name": "All", "type": "foreach", "inputCollection": "${ .items }",
            "iterationParam": "item", "outputCollection": "${ .out }",
            "actions": [{"functionRef": "plus"}],
            "stateDataFilter": {"output": "${ {count: (.out | length)} }"}, "end": true,
        }]}),
    )
}

/// The same with a call in each iteration.
pub fn foreach_calls(id: &str) -> Value {
    let functions = json!([{"name": "step", "operation": "service.json#step"}]);
    definition(
        id,
        json!({"functions": functions, "states": [{
            "name": "All", "type": "foreach", "inputCollection": "${ .items }",
            "iterationParam": "item", "outputCollection": "${ .out }",
            "actions": [{"functionRef": {"refName": "step", "arguments": {"n": "${ .item }"}}}],
            "stateDataFilter": {"output": "${ {count: (.out | length)} }"}, "end": true,
        }]}),
    )
}

/// The same, one iteration after another.
pub fn foreach_in_turn(id: &str) -> Value {
    let mut definition = foreach_calls(id);
    definition["states"][0]["mode"] = json!("sequential");
    definition
}

/// Ten states that set data.
pub fn injecting(id: &str) -> Value {
    let states = (0..CHAIN).map(|index| {
        let (way, to) = next(index, CHAIN - 1, "S");
        json!({"name": format!("S{index}"), "type": "inject", "data": {"n": index}, way: to})
    });
    let states: Vec<Value> = states.collect();
    definition(id, json!({"states": states}))
}

/// Ten branches at once.
pub fn parallel(id: &str) -> Value {
    let branches = (0..CHAIN)
        .map(|index| json!({"name": format!("b{index}"), "actions": [{"functionRef": "plus"}]}));
    let branches: Vec<Value> = branches.collect();
    definition(
        id,
        json!({"functions": [plus()], "states": [
            {"name": "All", "type": "parallel", "branches": branches, "end": true},
        ]}),
    )
}

fn done_event() -> Value {
    json!({"name": "done", "source": "/bench", "type": "bench.done", "kind": "produced"})
}

fn end_with_event() -> Value {
    json!({"produceEvents": [{"eventRef": "done", "data": "${ {key: .key} }"}]})
}

/// An event creates the instance, and it ends by producing another one.
pub fn event_started(id: &str) -> Value {
    definition(
        id,
        json!({
            "events": [{"name": "go", "source": "/bench", "type": "bench.go"}, done_event()],
            "states": [{
                "name": "Go", "type": "event", "end": end_with_event(),
                "onEvents": [{"eventRefs": ["go"]}],
            }],
        }),
    )
}

/// Waits for an event with its own key, and ends by producing another one.
pub fn correlated(id: &str) -> Value {
    definition(
        id,
        json!({
            "events": [
                {"name": "answer", "source": "/bench", "type": "bench.answer", "correlation": [
                    {"contextAttributeName": "orderid", "contextAttributeValue": "${ .key }"},
                ]},
                done_event(),
            ],
            "start": "Wait",
            "states": [
                {"name": "Wait", "type": "callback", "eventRef": "answer",
                 "action": {"functionRef": "plus"}, "end": end_with_event()},
            ],
            "functions": [plus()],
        }),
    )
}

/// Only sleeps.
pub fn sleeper(id: &str, duration: &str) -> Value {
    definition(
        id,
        json!({"states": [
            {"name": "Sleep", "type": "sleep", "duration": duration, "end": true},
        ]}),
    )
}

/// Loops until it has been in `.limit` states.
pub fn circle(id: &str) -> Value {
    definition(
        id,
        json!({
            "functions": [{"name": "count", "type": "expression", "operation": "${ {n: (.n + 1)} }"}],
            "states": [
                {"name": "Count", "type": "operation", "transition": "Enough",
                 "actions": [{"functionRef": "count"}]},
                {"name": "Enough", "type": "switch",
                 "dataConditions": [{"condition": "${ .n * 2 >= .limit }", "end": true}],
                 "defaultCondition": {"transition": "Count"}},
            ],
        }),
    )
}
