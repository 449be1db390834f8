//! The language, one fact per line: `give(input, filter, output)`.

mod basics;
mod collections;
mod compiling;

use swirl_expr::{Env, EvalError, PathError, PathExpr, Program};
use swirl_model::Data;

/// 2015-03-05T23:51:47.500Z
const ENV_MS: i64 = 1_425_599_507_500;

fn env() -> Env {
    Env {
        now_ms: ENV_MS,
        ..Env::default()
    }
}

fn json(text: &str) -> Data {
    Data::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn eval(input: &str, filter: &str) -> Result<Option<Data>, EvalError> {
    let program = Program::jq(filter, &["x", "obj"]).unwrap_or_else(|e| panic!("{filter}: {e}"));
    program.one(
        &json(input),
        &[Data::int(7), json(r#"{"a":{"b":1}}"#)],
        &env(),
    )
}

/// The single output. Compared as text, so the order of keys matters.
#[track_caller]
fn give(input: &str, filter: &str, output: &str) {
    match eval(input, filter) {
        Ok(Some(data)) => assert_eq!(data.to_string(), output, "{input} | {filter}"),
        other => panic!("{input} | {filter}: {other:?}"),
    }
}

/// All outputs.
#[track_caller]
fn gives(input: &str, filter: &str, outputs: &str) {
    give(input, &format!("[{filter}]"), outputs);
}

#[track_caller]
fn fails(input: &str, filter: &str, message: &str) {
    match eval(input, filter) {
        Err(EvalError::Message(text)) => assert!(text.contains(message), "{filter}: {text}"),
        other => panic!("{input} | {filter}: {other:?}"),
    }
}

#[track_caller]
fn refused(filter: &str, message: &str) -> swirl_expr::CompileError {
    match Program::jq(filter, &["CONST", "SECRETS"]) {
        Err(error) => {
            assert!(error.message.contains(message), "{filter}: {error}");
            error
        }
        Ok(_) => panic!("{filter} compiles"),
    }
}
