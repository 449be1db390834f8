//! Random cases of DSL 1.0: a document, the documents that it runs and starts, and events. They are JSON, which is YAML.

use serde_json::{Value, json};

use super::shapes::{Around, Shapes};
use crate::generate::Case;
use crate::random::Random;

pub const MAIN: &str = "sim.main";

/// How many things that take minutes a document has.
const SLOW: usize = 2;

pub fn generate(seed: u64, size: usize) -> Case {
    let mut random = Random::new(seed ^ 0x0d51);
    let mut around = Around {
        subs: true,
        functions: true,
        hears: true,
        ..Around::default()
    };
    let mut shapes = Shapes::new(Random::new(random.next()), SLOW);
    let mut main = document("main", &mut shapes, &around, size.max(1));
    let mut events = std::mem::take(&mut shapes.events);
    if random.percent(10) {
        // The first task hears an event that isn't kept.
        let first = json!({"first": {"listen": {"to": {"one": {"with": {"type": "plain"}}}},
            "output": {"as": "${ $input + {plain: .[0].got?} }"}}});
        if let Some(list) = main["do"].as_array_mut() {
            list.insert(0, first);
        }
        events.push((17 * 60_000 + 431, "plain".to_owned()));
    }
    (around.subs, around.hears) = (false, false);
    let mut shapes = Shapes::new(Random::new(random.next()), usize::from(random.percent(10)));
    let sub = document("sub", &mut shapes, &around, 1 + size / 3);
    around.functions = false;
    let mut shapes = Shapes::new(Random::new(random.next()), 0);
    let leaf = document("leaf", &mut shapes, &around, 1);
    let told = started("told", json!({"one": {"with": {"type": "told"}}}));
    let pair = json!([{"with": {"type": "pair1"}}, {"with": {"type": "pair2"}}]);
    let pair = started("pair", json!({"all": pair}));
    let two = json!({"any": [{"with": {"type": "told"}}], "until": "${ length == 2 }"});
    let two = started("two", two);
    let until = json!({"any": [{"with": {"type": "pair1"}}, {"with": {"type": "plain"}}],
        "until": {"one": {"with": {"type": "pair2"}}}});
    let until = started("until", until);
    if random.percent(20) {
        events.push((2_100, "pair1".to_owned()));
        events.push((33 * 60_000, "pair2".to_owned()));
    }
    let text = |document: &Value| format!("{document:#}\n");
    Case {
        seed,
        size,
        main: text(&main),
        sub: text(&sub),
        older: [leaf, told, pair, two, until].iter().map(text).collect(),
        events,
        tasks: true,
    }
}

fn about(name: &str) -> Value {
    json!({"dsl": "1.0.3", "namespace": "sim", "name": name, "version": "1.0.0"})
}

/// A workflow that events start.
fn started(name: &str, on: Value) -> Value {
    let heard = json!({"heard": {"set": {"n": "${ .[0].data.n? // 1 }", "count": "${ length }"}}});
    let slow = json!({"slow": {"call": "http", "with": {"method": "get",
        "endpoint": format!("http://sim.test/slow/{name}"), "body": "${ .n }"}}});
    json!({"document": about(name), "schedule": {"on": on}, "do": [heard, slow]})
}

fn document(name: &str, shapes: &mut Shapes, around: &Around, size: usize) -> Value {
    let mut document = json!({"document": about(name)});
    if shapes.random.percent(10) {
        document["evaluate"] = json!({"mode": "loose"});
    }
    // An instance that starts without an input gets the members that all expressions use.
    let default = "${ {n: 5, order: \"42\"} + . }";
    document["input"] = match shapes.random.percent(20) {
        true => json!({"from": default, "schema": {"document": {"type": "object"}}}),
        false => json!({"from": default}),
    };
    document["do"] = shapes.list(around, size);
    if shapes.random.percent(70) {
        document["output"] =
            json!({"as": {"n": "${ .n? }", "all": "${ . }", "context": "${ $context }"}});
    }
    if shapes.random.percent(8) {
        document["timeout"] = json!({"after": {"hours": 99}});
    }
    let mut used = json!({
        "timeouts": {"long": {"after": "PT90H"}},
        "errors": {"known": {"type": "https://serverlessworkflow.io/spec/1.0.0/errors/runtime", "status": 500,
            "title": "Known", "detail": "at ${ .n }"}},
        "retries": {"often": {"delay": {"seconds": 3}, "limit": {"attempt": {"count": 4}}}}
    });
    if around.functions {
        let inside = Around {
            repeats: true,
            depth: 1,
            ..Around::default()
        };
        let (one, two) = (1 + shapes.random.below(2), 1 + shapes.random.below(2));
        let (first, second) = (shapes.list(&inside, one), shapes.list(&inside, two));
        used["functions"] = json!({
            "fa": {"do": first},
            "fb": {"input": {"from": "${ . + {fb: true} }"}, "do": second,
                "output": {"as": "${ . + {at: $task.reference} }"}, "export": {"as": "${ $context + {fb: $task.name} }"}},
            "fc": {"call": "http", "with": {"method": "get", "endpoint": "http://sim.test/slow/{n}", "body": "${ . }"}}
        });
    }
    if shapes.random.percent(25) {
        let count = 1 + shapes.random.below(2);
        let list: Vec<Value> = (0..count).map(|index| extension(shapes, index)).collect();
        used["extensions"] = json!(list);
    }
    document["use"] = used;
    document
}

fn extension(shapes: &mut Shapes, index: usize) -> Value {
    let kinds = [
        "set",
        "call",
        "for",
        "try",
        "run",
        "composite",
        "wait",
        "switch",
        "emit",
        "all",
    ];
    let mut extension = json!({"extend": kinds[shapes.random.below(kinds.len())]});
    if shapes.random.percent(40) {
        extension["when"] = json!("${ .n? // 0 | . % 3 != 1 }");
    }
    let counted =
        format!("${{ $context + {{x{index}: (($context.x{index} // 0) + 1), of: $task.name}} }}");
    let notes = json!({"note": {"set": {"n": 1}, "export": {"as": counted}}});
    let asks = json!({"ask": {"call": "http", "with": {"method": "get", "endpoint": "http://sim.test/quick/x"}}});
    let mut before = vec![notes.clone()];
    if shapes.random.percent(30) {
        before.push(asks);
    }
    if shapes.random.percent(20) {
        before.push(
            json!({"skip": {"if": "${ $context.k1 == 4 or $context.x0 == 3 }",
            "set": {"n": 2, "order": "skipped"}, "then": "exit"}}),
        );
        // The output of the one before, if it is skipped itself.
        before.push(json!({"rest": {"set": {"n": 3}}}));
    }
    if shapes.random.percent(80) {
        extension["before"] = json!(before);
    }
    if shapes.random.percent(50) || extension.get("before").is_none() {
        let gave = "${ $context + {gave: ($task.output | type)} }";
        extension["after"] = json!([{"after": {"wait": {"seconds": 1}, "export": {"as": gave}}}]);
    }
    json!({format!("x{index}"): extension})
}
