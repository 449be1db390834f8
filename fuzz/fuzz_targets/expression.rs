//! Any text as an expression: compiling and evaluating it must not panic, and keeps to its limits.

#![no_main]

use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use swirl_expr::{Env, Limits, PathExpr, Program};
use swirl_model::Data;

const VARS: [&str; 3] = ["CONST", "SECRETS", "WORKFLOW"];
const DOCUMENT: &[u8] =
    br#"{"a": [1, 2.5, "x", null, {"b": [true, []]}], "name": "na\u00efve", "n": -3, "o": {"k": "v"}}"#;

fuzz_target!(|text: &str| {
    let Ok(document) = Data::parse(DOCUMENT) else {
        return;
    };
    // As a path, it is only compiled.
    let _ = PathExpr::jq(text, &VARS);
    let Ok(program) = Program::jq(text, &VARS) else {
        return;
    };
    let limits = Limits {
        time: Duration::from_millis(50),
        memory_bytes: 16 << 20,
        output_bytes: 1 << 20,
        ..Limits::default()
    };
    let vars = [Data::object(), Data::object(), document.clone()];
    let begin = Instant::now();
    let result = program.one(
        &document,
        &vars,
        &Env {
            now_ms: 1_704_067_200_000,
            limits,
        },
    );
    // Far above the limit, as the machine may be busy: what this is to find is a hang.
    assert!(
        begin.elapsed() < Duration::from_secs(5),
        "the limit of 50 ms did not hold"
    );
    if let Ok(Some(data)) = result {
        // What comes out is JSON, and can be read again.
        let text = data.to_string();
        assert!(
            Data::parse(text.as_bytes()).is_ok(),
            "the result is no JSON: {text}"
        );
    }
});
