//! Any text as an expression: compiling and evaluating it must not panic, and keeps to its limits.
//!
//! The first byte says in which language, so that each run is short: `a` to `e`, and `A` to `E` for long chains and deep
//! nests of the text.

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
/// `e`, `a`, `b`, `c` and `d`.
const LANGUAGES: [Language; 5] = [
    Language::Cel,
    Language::Jexl,
    Language::Jq,
    Language::JsonPath,
    Language::Spel,
];

fuzz_target!(|data: &[u8]| {
    let Some((kind, text)) = data.split_first() else {
        return;
    };
    let (Ok(text), Ok(document)) = (std::str::from_utf8(text), Data::parse(DOCUMENT)) else {
        return;
    };
    let language = LANGUAGES[usize::from(kind & 0x1f) % LANGUAGES.len()];
    let is_repeated = kind & 0xe0 == 0x40 && matches!(text.len(), 1..=32);
    let text = match is_repeated {
        true => text.repeat(LONG / text.len()),
        false => text.to_owned(),
    };
    // As a path, it is only compiled.
    let _ = PathExpr::compile(language, &text, &VARS);
    if let Ok(program) = Program::compile(language, &text, &VARS) {
        evaluate(&program, &document);
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
    // Far above the limit, as the machine may be busy: this finds hangs.
    assert!(
        begin.elapsed() < Duration::from_secs(20),
        "the limits of steps and time did not hold"
    );
    if let Ok(Some(data)) = result {
        // The result is JSON, and can be read again.
        let text = data.to_string();
        assert!(
            Data::parse(text.as_bytes()).is_ok(),
            "the result is not valid JSON: {text}"
        );
    }
}
