//! Any text as an expression of each language: compiling and evaluating it must not panic, and keeps to its limits.

#![no_main]

use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use swirl_expr::{Env, Limits, PathExpr, Program};
use swirl_model::Data;
use swirl_model::workflow::Language;

const VARS: [&str; 3] = ["CONST", "SECRETS", "WORKFLOW"];
const DOCUMENT: &[u8] =
    br#"{"a": [1, 2.5, "x", null, {"b": [true, []]}], "name": "na\u00efve", "n": -3, "o": {"k": "v"}}"#;

/// Bytes of a source that repeats a short one.
const LONG: usize = 8 << 10;
const LANGUAGES: [Language; 5] = [
    Language::Cel,
    Language::Jexl,
    Language::Jq,
    Language::JsonPath,
    Language::Spel,
];

fuzz_target!(|text: &str| {
    let Ok(document) = Data::parse(DOCUMENT) else {
        return;
    };
    for language in LANGUAGES {
        // As a path, it is only compiled.
        let _ = PathExpr::compile(language, text, &VARS);
        if let Ok(program) = Program::compile(language, text, &VARS) {
            evaluate(&program, &document);
        }
        // Long chains and deep nests of it.
        if let 1..=32 = text.len() {
            let long = text.repeat(LONG / text.len());
            if let Ok(program) = Program::compile(language, &long, &VARS) {
                evaluate(&program, &document);
            }
        }
    }
});

fn evaluate(program: &Program, document: &Data) {
    let limits = Limits {
        steps: 1_000_000,
        time: Duration::from_millis(500),
        memory_bytes: 16 << 20,
        output_bytes: 1 << 20,
        ..Limits::default()
    };
    let vars = [Data::object(), Data::object(), document.clone()];
    let begin = Instant::now();
    let result = program.one(
        document,
        &vars,
        &Env {
            now_ms: 1_704_067_200_000,
            limits,
        },
    );
    // Far above the limit, as the machine may be busy: what this is to find is a hang.
    assert!(
        begin.elapsed() < Duration::from_secs(20),
        "the limits of steps and time did not hold"
    );
    if let Ok(Some(data)) = result {
        // What comes out is JSON, and can be read again.
        let text = data.to_string();
        assert!(
            Data::parse(text.as_bytes()).is_ok(),
            "the result is no JSON: {text}"
        );
    }
}
