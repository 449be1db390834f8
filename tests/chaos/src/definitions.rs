//! The workflows of the mix: calls with retries, fan-out, branches with sub-workflows and sleeps, callbacks with
//! correlated events, compensation, waits for events, states that need only data. The documents of DSL 1.0 are in
//! `tasks`.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::tasks;

/// All definitions, sub-workflows first. `service`: the address of the service that they call.
pub fn all(service: SocketAddr) -> Vec<Value> {
    let own = vec![
        tasks::part(service),
        child(),
        chain(),
        fan(),
        split(),
        talk(),
        saga(),
        pure(),
        hear(),
        old(),
    ];
    own.into_iter().chain(tasks::all(service)).collect()
}

/// A document of DSL 1.0 runs it, and it runs another one.
fn old() -> Value {
    let mut old = definition(
        "old",
        "Both",
        json!([
            {"name": "Both", "type": "operation", "actions": [action("old", "old"), {
                "subFlowRef": "chaos.part", "actionDataFilter": {"toStateData": "${ .part }"},
            }], "stateDataFilter": {"output": "${ {old, part} }"}, "end": true},
        ]),
    );
    old["id"] = json!("chaos.old");
    old
}

fn definition(id: &str, start: &str, states: Value) -> Value {
    json!({
        "id": id, "version": "1.0.0", "specVersion": "0.8", "name": id, "start": start,
        "functions": [{"name": "step", "operation": "service.json#step"}],
        "retries": [{"name": "soon", "delay": "PT0.1S", "maxAttempts": 5}],
        "events": [
            {"name": "answer", "source": "/chaos", "type": "chaos.answer", "correlation": [
                {"contextAttributeName": "orderid", "contextAttributeValue": "${ .id }"},
            ]},
            {"name": "done", "type": "chaos.done", "kind": "produced"},
        ],
        "states": states,
    })
}

fn call(step: &str, item: Value) -> Value {
    json!({"refName": "step", "arguments": {"id": "${ .id }", "step": step, "item": item}})
}

/// A call whose result goes to a member of the state data.
fn action(step: &str, to: &str) -> Value {
    json!({
        "functionRef": call(step, json!(0)),
        "actionDataFilter": {"results": "${ .value }", "toStateData": format!("${{ .{to} }}")},
    })
}

fn chain() -> Value {
    let mut flaky = action("flaky", "b");
    flaky["retryRef"] = json!("soon");
    definition(
        "chain",
        "Both",
        json!([
            {"name": "Both", "type": "operation", "actions": [action("a", "a"), flaky],
             "transition": "Sleep"},
            {"name": "Sleep", "type": "sleep", "duration": "PT1S", "transition": "Last"},
            {"name": "Last", "type": "operation", "actions": [action("c", "c")],
             "stateDataFilter": {"output": "${ {a, b, c} }"}, "end": true},
        ]),
    )
}

fn fan() -> Value {
    definition(
        "fan",
        "All",
        json!([
            {"name": "All", "type": "foreach", "inputCollection": "${ .items }",
             "iterationParam": "item", "outputCollection": "${ .out }",
             "actions": [{
                 "functionRef": call("fan", json!("${ $item }")),
                 "actionDataFilter": {"results": "${ .value }"},
             }],
             "stateDataFilter": {"output": "${ {out} }"}, "end": true},
        ]),
    )
}

fn split() -> Value {
    let mut late = action("z", "z");
    late["sleep"] = json!({"before": "PT0.5S"});
    definition(
        "split",
        "Branches",
        json!([
            {"name": "Branches", "type": "parallel", "branches": [
                {"name": "x", "actions": [action("x", "x")]},
                {"name": "y", "actions": [{
                    "subFlowRef": "child",
                    "actionDataFilter": {"toStateData": "${ .y }"},
                }]},
                {"name": "z", "actions": [late]},
            ], "stateDataFilter": {"output": "${ {x, y, z} }"}, "end": true},
        ]),
    )
}

fn child() -> Value {
    definition(
        "child",
        "Only",
        json!([
            {"name": "Only", "type": "operation", "actions": [action("child", "value")],
             "stateDataFilter": {"output": "${ {value} }"}, "end": true},
        ]),
    )
}

fn talk() -> Value {
    definition(
        "talk",
        "Ask",
        json!([
            {"name": "Ask", "type": "callback",
             "action": {"functionRef": call("ask", json!(0)), "actionDataFilter": {"useResults": false}},
             "eventRef": "answer", "eventDataFilter": {"toStateData": "${ .answer }"},
             "stateDataFilter": {"output": "${ {answer} }"},
             "end": {"produceEvents": [{"eventRef": "done", "data": "${ {answer} }"}]}},
        ]),
    )
}

/// Needs only data, so the coordinator that delivers the event also continues the instance.
fn hear() -> Value {
    let mut hear = definition(
        "hear",
        "Hear",
        json!([
            {"name": "Hear", "type": "callback",
             "action": {"functionRef": "same", "actionDataFilter": {"useResults": false}},
             "eventRef": "answer", "eventDataFilter": {"toStateData": "${ .answer }"},
             "stateDataFilter": {"output": "${ {answer} }"},
             "end": {"produceEvents": [{"eventRef": "done", "data": "${ {answer} }"}]}},
        ]),
    );
    hear["functions"] = json!([{"name": "same", "type": "expression", "operation": "${ .id }"}]);
    hear
}

fn saga() -> Value {
    definition(
        "saga",
        "Book",
        json!([
            {"name": "Book", "type": "operation", "actions": [action("book", "booked")],
             "compensatedBy": "Unbook", "transition": "Pay"},
            {"name": "Pay", "type": "operation", "actions": [action("pay", "paid")],
             "compensatedBy": "Unpay", "transition": "Refuse"},
            {"name": "Refuse", "type": "inject", "data": {"refused": true},
             "stateDataFilter": {"output": "${ {id, booked, paid, refused} }"},
             "end": {"compensate": true}},
            {"name": "Unbook", "type": "operation", "usedForCompensation": true,
             "actions": [action("unbook", "unbooked")]},
            {"name": "Unpay", "type": "operation", "usedForCompensation": true,
             "actions": [action("unpay", "unpaid")]},
        ]),
    )
}

fn pure() -> Value {
    let mut pure = definition(
        "pure",
        "Count",
        json!([
            {"name": "Count", "type": "operation", "actions": [{
                "functionRef": "twice", "actionDataFilter": {"toStateData": "${ .twice }"},
             }], "transition": "Which"},
            {"name": "Which", "type": "switch",
             "dataConditions": [{"condition": "${ .number % 2 == 0 }", "transition": "Even"}],
             "defaultCondition": {"transition": "Odd"}},
            {"name": "Even", "type": "inject", "data": {"even": true}, "transition": "Last"},
            {"name": "Odd", "type": "inject", "data": {"even": false}, "transition": "Last"},
            {"name": "Last", "type": "inject", "data": {},
             "stateDataFilter": {"output": "${ {id, twice, even} }"}, "end": true},
        ]),
    );
    pure["functions"] =
        json!([{"name": "twice", "type": "expression", "operation": "${ .number * 2 }"}]);
    pure
}
