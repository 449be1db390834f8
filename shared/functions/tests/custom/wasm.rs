//! Connectors that are WebAssembly modules.

use std::time::Duration;

use swirl_functions::http::HttpConfig;
use swirl_functions::types::custom::Connectors;
use swirl_model::{Data, WorkflowError, data};
use tempfile::TempDir;

use crate::custom::fixture::{as_sent, call, caller, config, function, prepare};

/// Code that modules share: an allocator that never frees memory.
const HEAD: &str = r#"(module
  (memory (export "memory") 2)
  (global $next (mut i32) (i32.const 4096))
  (func (export "alloc") (param $length i32) (result i32)
    global.get $next
    global.get $next
    local.get $length
    i32.add
    global.set $next)
"#;

/// Returns its input unchanged.
const ECHO: &str = r#"
  (func (export "call") (param $at i32) (param $length i32) (result i64)
    local.get $at
    i64.extend_i32_u
    i64.const 32
    i64.shl
    local.get $length
    i64.extend_i32_u
    i64.or))"#;

/// Returns this answer for any input.
fn answering(answer: &str) -> String {
    let (quoted, length) = (answer.replace('"', "\\\""), answer.len());
    format!(
        "(data (i32.const 16) \"{quoted}\")
         (func (export \"call\") (param i32 i32) (result i64)
           i64.const {})",
        (16_u64 << 32) | length as u64
    ) + ")"
}

/// A module with this body.
fn with_body(body: &str) -> String {
    format!("(func (export \"call\") (param i32 i32) (result i64) {body}))")
}

fn written(folder: &TempDir, text: &str) -> String {
    let path = folder.path().join("own.wat");
    std::fs::write(&path, text).unwrap();
    format!("mail=wasm:{}", path.display())
}

async fn run(text: &str, arguments: Data, config: HttpConfig) -> Result<Data, WorkflowError> {
    let folder = tempfile::tempdir().unwrap();
    let connector = written(&folder, &format!("{HEAD}{text}"));
    call(&caller(&connector, config), arguments, None).await
}

#[tokio::test]
async fn a_module_takes_the_call_and_returns_the_result() {
    let arguments = data!({"to": "ada"});
    let seen = run(ECHO, arguments.clone(), config()).await.unwrap();
    assert_eq!(seen, as_sent(arguments));
    let answer = run(&answering("{\"a\": [1]}"), data!({}), config()).await;
    assert_eq!(answer.unwrap(), data!({"a": [1]}));
    let nothing = run(&answering(""), data!({}), config()).await;
    assert_eq!(nothing.unwrap(), Data::NULL);
}

#[tokio::test]
async fn calls_share_nothing() {
    let folder = tempfile::tempdir().unwrap();
    // A second call of the same instance would return 1.
    let count = "(global $calls (mut i32) (i32.const 0))
        (func (export \"call\") (param i32 i32) (result i64)
          i32.const 16
          i32.const 48
          global.get $calls
          i32.add
          i32.store8
          global.get $calls
          i32.const 1
          i32.add
          global.set $calls
          i64.const 0x1000000001))";
    let caller = caller(&written(&folder, &format!("{HEAD}{count}")), config());
    for _ in 0..3 {
        assert_eq!(call(&caller, data!({}), None).await.unwrap(), data!(0));
    }
}

#[tokio::test]
async fn a_module_that_fails_is_an_error() {
    let given = "{\"error\": {\"name\": \"Full\", \"message\": \"no room\"}}";
    for (text, name, code, message) in [
        (answering(given), "Full", "failed", "no room"),
        (
            answering("{"),
            "FunctionError",
            "response",
            "not valid JSON",
        ),
        (
            with_body("unreachable"),
            "FunctionError",
            "failed",
            "unreachable",
        ),
        (
            with_body("i64.const 0x7fffffff00000001"),
            "FunctionError",
            "failed",
            "its answer is outside of its memory",
        ),
        (
            with_body("i64.const 0x7fffffff"),
            "LimitExceeded",
            "limit",
            "its answer has 2147483647 bytes",
        ),
        // 65 MiB of memory, with two pages initially.
        (
            with_body(
                "i32.const 1040 memory.grow i32.const -1 i32.ne if unreachable end i64.const 0",
            ),
            "",
            "",
            "",
        ),
        (
            "(func $deep (export \"call\") (param i32 i32) (result i64)
               local.get 0 local.get 1 call $deep))"
                .to_owned(),
            "LimitExceeded",
            "limit",
            "module `",
        ),
    ] {
        let result = run(&text, data!({}), config()).await;
        if name.is_empty() {
            assert_eq!(result.unwrap(), Data::NULL);
            continue;
        }
        let error = result.unwrap_err();
        assert_eq!(
            (error.name.as_str(), error.code.as_deref()),
            (name, Some(code)),
            "{error}"
        );
        assert!(error.message.contains(message), "{error}");
    }
}

#[tokio::test]
async fn an_endless_module_is_stopped() {
    let short = HttpConfig {
        timeout: Duration::from_millis(300),
        ..config()
    };
    let text = with_body("(loop br 0) i64.const 0");
    let error = run(&text, data!({}), short).await.unwrap_err();
    assert_eq!(error.code.as_deref(), Some("timeout"));
    // The runtime waits for the threads of its calls before the test ends, so this one must have been stopped.
}

#[test]
fn invalid_modules_are_rejected_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |text: &str| {
        let connector = written(&folder, text);
        Connectors::parse(&[connector]).unwrap_err().to_string()
    };
    for (text, reason) in [
        ("(module", "cannot read `"),
        ("(module)", "doesn't export `memory`"),
        (
            "(module (memory (export \"memory\") 1))",
            "doesn't export `alloc(i32) -> i32`",
        ),
        (
            &format!("{HEAD}(func (export \"call\") (param i32) (result i64) i64.const 0))"),
            "doesn't export `call(i32, i32) -> i64`",
        ),
        (
            "(module (import \"wasi_snapshot_preview1\" \"fd_write\" (func)))",
            "imports `wasi_snapshot_preview1.fd_write`",
        ),
    ] {
        let error = refused(text);
        assert!(
            error.contains("the connector `mail` cannot be used: "),
            "{error}"
        );
        assert!(error.contains(reason), "{error}");
    }
    let error = Connectors::parse(&["mail=wasm:/none.wasm"]).unwrap_err();
    assert!(
        error.to_string().contains("cannot read `/none.wasm`"),
        "{error}"
    );
}

#[test]
fn it_takes_no_credentials() {
    let folder = tempfile::tempdir().unwrap();
    let caller = caller(&written(&folder, &format!("{HEAD}{ECHO}")), config());
    prepare(&caller, &function("mail", false)).unwrap();
    let problems = prepare(&caller, &function("mail", true)).unwrap_err();
    assert!(
        problems[0]
            .message
            .contains("is a module, which takes no `authRef`")
    );
}
