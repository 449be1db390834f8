//! The documents of DSL 1.0 in the mix: nested tasks with loops, branches, a race and retries, functions and HTTP calls;
//! events that continue instances and that start them; a schedule; and a document of 0.8 between two of them.

use std::net::SocketAddr;

use serde_json::{Value, json};

/// The workflow that its schedule starts.
pub const TICK: &str = "chaos.tick";

/// How often.
pub const TICK_MS: i64 = 5_000;

fn document(service: SocketAddr, name: &str, tasks: Value) -> Value {
    let step = json!({
        "call": "http",
        "with": {"method": "post", "endpoint": format!("http://{service}/step"), "body": "${ . }"},
    });
    json!({
        "document": {"dsl": "1.0.3", "namespace": "chaos", "name": name, "version": "1.0.0"},
        "use": {"functions": {"step": step}},
        "do": tasks,
    })
}

/// The innermost sub-workflow.
pub fn part(service: SocketAddr) -> Value {
    document(
        service,
        "part",
        json!([{"part": call("part", "${ .id }", json!(0))}]),
    )
}

pub fn all(service: SocketAddr) -> Vec<Value> {
    let document = |name: &str, tasks: Value| document(service, name, tasks);
    let mut begun = document(
        "begun",
        json!([{"begun": call("begun", "${ $input[0].data.id }", json!(0))}]),
    );
    begun["schedule"] = json!({"on": {"one": {"with": {"source": "/chaos/begin"}}}});
    let mut tick = document("tick", json!([{"tick": {"set": {"ticked": true}}}]));
    tick["schedule"] = json!({"every": {"milliseconds": TICK_MS}});
    vec![
        document("listen", listen()),
        document("nested", nested()),
        document("cross", cross()),
        document("hello", hello()),
        begun,
        tick,
    ]
}

fn call(step: &str, id: &str, item: Value) -> Value {
    json!({"call": "step", "with": {"id": id, "step": step, "item": item}})
}

/// A call of the instance's own, whose result becomes a member of the context.
fn kept(step: &str) -> Value {
    let mut call = call(step, "${ $workflow.input.id }", json!(0));
    call["export"] = json!({"as": format!("${{ $context + {{{step}: $output.value}} }}")});
    call
}

/// The names of tasks that an instance of `nested` enters more than once.
pub const ENTERED: [(&str, i64); 4] = [("ask", 3), ("flaky", 2), ("inside", 3), ("step", 5)];

fn nested() -> Value {
    let mut ask = call("loop", "${ $workflow.input.id }", json!("${ $k }"));
    ask["export"] =
        json!({"as": "${ $context + {loop: (($context.loop // []) + [$output.value])} }"});
    let pause = json!({"pause": {"wait": {"milliseconds": 300}}});
    json!([
        {"each": {"for": {"each": "k", "in": "[0, 1, 2]"}, "do": [{"inside": {"do": [{"ask": ask}]}}]}},
        {"both": {"fork": {"branches": [
            {"left": {"do": [pause, {"call": kept("left")}]}},
            {"right": kept("right")},
        ]}}},
        {"attempts": {"try": [{"flaky": kept("flaky")}], "catch": {
            "errors": {"with": {"status": 500}},
            "retry": {"delay": {"milliseconds": 100}, "limit": {"attempt": {"count": 5}}},
        }}},
        {"race": {"fork": {"compete": true, "branches": [
            {"late": {"wait": {"hours": 1}}},
            {"first": kept("first")},
        ]}, "output": {"as": "$context"}}},
    ])
}

/// Runs a document of 0.8, which runs one of DSL 1.0.
fn cross() -> Value {
    json!([{"old": {"run": {"workflow": {"namespace": "chaos", "name": "old", "version": "1.0.0", "input": "${ . }"}}}}])
}

/// Its event also starts an instance of `begun`.
fn hello() -> Value {
    json!([{"hear": {
        "listen": {"to": {"one": {
            "with": {"type": "chaos.answer"},
            "correlate": {"order": {"from": ".orderid", "expect": "${ .id }"}},
        }}},
        "output": {"as": "${ {answer: .[0].number} }"},
    }}])
}

/// Looks at the event before it consumes it, and has work to do for it.
fn listen() -> Value {
    let answer = json!({
        "with": {"type": "chaos.answer", "data": "${ .number >= 0 }"},
        "correlate": {"order": {"from": ".orderid", "expect": "${ .id }"}},
    });
    json!([
        {"hear": {
            "listen": {"to": {"any": [answer], "until": "length == 1"}},
            "foreach": {"do": [
                {"pause": {"wait": {"milliseconds": 500}}},
                {"keep": {"set": {"answer": "${ $item }"}}},
            ]},
            "output": {"as": ".[0]"},
        }},
        {"tell": {
            "emit": {"event": {"with": {"type": "chaos.done", "data": "${ . }"}}},
            "output": {"as": ".data"},
        }},
    ])
}
