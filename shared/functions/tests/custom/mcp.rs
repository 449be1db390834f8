//! Servers of the Model Context Protocol that are processes.

use std::path::Path;

use swirl_functions::http::{Http, HttpConfig};
use swirl_functions::types::process::Processes;
use swirl_functions::{Caller, Settings};
use swirl_model::workflow::{Function, FunctionKind};
use swirl_model::{Data, WorkflowError, data};
use swirl_ports::LastExchange;
use swirl_servers::eventually;

use crate::custom::exec::{is_alive, written};
use crate::custom::fixture::{call_function, config, function, prepare};

/// A server with a few tools.
const SERVER: &str = r#"
import json, os, signal, sys

def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

def hear():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)

first = hear()
print("this line is no message", flush=True)
say({"id": "q", "method": "ping"})
assert hear()["result"] == {}
say({"id": "r", "method": "roots/list"})
assert hear()["error"]["code"] == -32601
say({"method": "notifications/message", "params": {}})
client = first["params"]["clientInfo"]["name"]
say({"id": first["id"], "result": {"protocolVersion": first["params"]["protocolVersion"]}})
assert hear()["method"] == "notifications/initialized"
asked = hear()
parameters = asked.get("params", {})
tool = parameters.get("name")
if asked["method"] == "tools/list":
    say({"id": asked["id"], "result": {"tools": ["add"], "client": client, "argv": sys.argv[1:]}})
elif tool == "echo":
    say({"id": asked["id"], "result": {"length": len(parameters["text"])}})
elif tool == "environment":
    say({"id": asked["id"], "result": {"names": sorted(os.environ), "own": os.environ["OWN"]}})
elif tool == "exit":
    print("no such luck", file=sys.stderr)
    sys.exit(3)
elif tool == "flood":
    while True:
        print("x" * 1000, flush=True)
elif tool == "sleep":
    with open(parameters["file"], "w") as file:
        file.write(f"{os.getpid()}\n")
    signal.pause()
else:
    say({"id": asked["id"], "error": {"code": -32602, "message": "unknown tool"}})
hear()
"#;

fn mcp(method: &str) -> Function {
    Function {
        kind: FunctionKind::Mcp,
        operation: method.to_owned(),
        place: "/do/0/ask".to_owned(),
        metadata: data!({"protocolVersion": "2025-06-18", "transport": "stdio"}),
        ..function("", false)
    }
}

fn caller(kinds: &[&str], config: HttpConfig) -> Caller {
    let kinds: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
    let settings = Settings {
        processes: Processes::default().allowing(&kinds).unwrap(),
        ..Settings::default()
    };
    Caller::with_settings(Http::new(config).unwrap(), settings)
}

/// The arguments for a server with this program.
fn arguments(program: &Path, parameters: Data) -> Data {
    let mut stdio = data!({"command": "python3", "environment": {"OWN": "mine"}});
    let words = [program.display().to_string(), "--quiet".to_owned()];
    let words = words.map(|word| Data::string(word.as_str()));
    stdio.set("arguments", Data::array(words.into()));
    let mut all = Data::object();
    all.set("stdio", stdio);
    all.set("parameters", parameters);
    all
}

async fn ask(caller: &Caller, method: &str, parameters: Data) -> Result<Data, WorkflowError> {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("server.py");
    std::fs::write(&program, SERVER).unwrap();
    let arguments = arguments(&program, parameters);
    let exchange = LastExchange::default();
    call_function(caller, mcp(method), arguments, None, exchange).await
}

fn problem(error: WorkflowError) -> (String, String) {
    let problem = error.problem.unwrap();
    (problem.kind, problem.detail.unwrap_or_default())
}

#[test]
fn a_server_is_refused_unless_the_operator_allows_it() {
    let problems = prepare(&caller(&["shell"], config()), &mcp("tools/list")).unwrap_err();
    let message = &problems[0].message;
    assert!(message.contains("`functions.processes`"), "{message}");
    assert!(prepare(&caller(&["mcp"], config()), &mcp("tools/list")).is_ok());
}

#[tokio::test]
async fn a_call_is_a_session_with_a_process() {
    let caller = caller(&["mcp"], config());
    let listed = ask(&caller, "tools/list", Data::NULL).await.unwrap();
    let expected = data!({"tools": ["add"], "client": "swirl", "argv": ["--quiet"]});
    assert_eq!(listed, expected);
    // More than a pipe holds.
    let mut long = data!({"name": "echo"});
    long.set("text", Data::string("x".repeat(300_000)));
    let echoed = ask(&caller, "tools/call", long).await.unwrap();
    assert_eq!(echoed, data!({"length": 300_000}));
    let seen = ask(&caller, "tools/call", data!({"name": "environment"})).await;
    let seen = seen.unwrap();
    assert_eq!(seen.get("own"), Some(data!("mine")));
    assert!(!seen.to_string().contains("CARGO"), "{seen}");
}

#[tokio::test]
async fn a_failure_is_a_runtime_error() {
    let mut small = config();
    small.response_bytes_max = 10_000;
    let caller = caller(&["mcp"], small);
    let failed = async |tool: &str| {
        let parameters = data!({"name": tool});
        ask(&caller, "tools/call", parameters).await.unwrap_err()
    };
    let (kind, detail) = problem(failed("other").await);
    assert!(kind.ends_with("/runtime"), "{kind}");
    assert!(detail.contains("error -32602: unknown tool"), "{detail}");
    let (kind, detail) = problem(failed("exit").await);
    assert!(kind.ends_with("/runtime"), "{kind}");
    assert!(detail.contains("no such luck"), "{detail}");
    assert_eq!(failed("flood").await.name, "LimitExceeded");
    let mut missing = arguments(Path::new("x"), Data::NULL);
    missing.set("stdio", data!({"command": "no-such-program"}));
    let exchange = LastExchange::default();
    let error = call_function(&caller, mcp("tools/list"), missing, None, exchange).await;
    let (_, detail) = problem(error.unwrap_err());
    assert!(
        detail.contains("`no-such-program` cannot be started"),
        "{detail}"
    );
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_server_is_killed_with_its_call() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("id");
    let caller = caller(&["mcp"], config());
    let mut parameters = data!({"name": "sleep"});
    parameters.set("file", Data::string(file.display().to_string()));
    let mut call = Box::pin(ask(&caller, "tools/call", parameters));
    let id = tokio::select! {
        done = &mut call => panic!("{done:?}"),
        id = eventually("the server's id", async || written(&file)) => id,
    };
    assert!(is_alive(&id));
    drop(call);
    eventually("its end", async || (!is_alive(&id)).then_some(())).await;
}
