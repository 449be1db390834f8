//! The same workflows in DSL 1.0.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::CHAIN;

fn document(name: &str, rest: Value) -> Value {
    let mut all = json!({
        "document": {"dsl": "1.0.3", "namespace": "bench", "name": name, "version": "1.0.0"},
    });
    if let (Some(all), Value::Object(rest)) = (all.as_object_mut(), rest) {
        all.extend(rest);
    }
    all
}

fn named(name: &str, task: Value) -> Value {
    json!({ name: task })
}

fn call(address: SocketAddr, n: Value) -> Value {
    let endpoint = format!("http://{address}/step");
    json!({"call": "http", "with": {"method": "post", "endpoint": endpoint, "body": {"n": n}}})
}

/// Ten tasks that set data.
pub fn set(name: &str) -> Value {
    let tasks = (0..CHAIN).map(|index| named(&format!("s{index}"), json!({"set": {"n": index}})));
    document(name, json!({"do": tasks.collect::<Vec<_>>()}))
}

/// Ten HTTP calls in sequence.
pub fn calls(name: &str, address: SocketAddr) -> Value {
    let tasks = (0..CHAIN).map(|index| named(&format!("s{index}"), call(address, json!(index))));
    document(name, json!({"do": tasks.collect::<Vec<_>>()}))
}

/// Ten branches at once.
pub fn fork(name: &str) -> Value {
    let branches =
        (0..CHAIN).map(|index| named(&format!("b{index}"), json!({"set": {"value": 1}})));
    let branches: Vec<Value> = branches.collect();
    document(
        name,
        json!({"do": [{"all": {"fork": {"branches": branches}}}]}),
    )
}

/// A call for each element of `items`, one after another.
pub fn for_each(name: &str, address: SocketAddr) -> Value {
    let body = [named("step", call(address, json!("${ $item }")))];
    document(
        name,
        json!({"do": [{"all": {"for": {"in": "${ .items }"}, "do": body}}]}),
    )
}

fn tell(key: &str) -> Value {
    let event = json!({"type": "bench.done", "source": "/bench", "data": {"key": key}});
    json!({"tell": {"emit": {"event": {"with": event}}}})
}

/// An event creates the instance, and it ends by producing another one.
pub fn event_started(name: &str) -> Value {
    document(
        name,
        json!({
            "schedule": {"on": {"one": {"with": {"type": "bench.go", "source": "/bench"}}}},
            "do": [tell("${ .[0].data.key }")],
        }),
    )
}

/// Waits for an event with its own key, and ends by producing another one.
pub fn correlated(name: &str) -> Value {
    let filter = json!({
        "with": {"type": "bench.answer", "source": "/bench"},
        "correlate": {"order": {"from": ".orderid", "expect": "${ .key }"}},
    });
    document(
        name,
        json!({"do": [
            {"wait": {"listen": {"to": {"one": filter}}, "output": {"as": "${ $input }"}}},
            tell("${ .key }"),
        ]}),
    )
}

/// Counts to `.times`.
pub fn counting(name: &str) -> Value {
    document(
        name,
        json!({"do": [{"all": {
            "for": {"in": "${ [range(.times)] }"},
            "do": [{"count": {"set": {"n": "${ $index }"}}}],
        }}]}),
    )
}
