//! Processes that tasks of DSL 1.0 run.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use swirl_functions::http::{Http, HttpConfig};
use swirl_functions::types::process::Processes;
use swirl_functions::{Caller, Settings};
use swirl_model::workflow::{Function, FunctionKind};
use swirl_model::{Data, WorkflowError, data};
use swirl_ports::LastExchange;
use swirl_servers::eventually;

use crate::custom::exec::{is_alive, written};
use crate::custom::fixture::{call_function, config, function, prepare};

fn process(kind: &str) -> Function {
    Function {
        kind: FunctionKind::Process,
        operation: kind.to_owned(),
        place: "/do/0/run".to_owned(),
        ..function("", false)
    }
}

fn allowing(kinds: &[&str], config: HttpConfig, change: impl FnOnce(&mut Processes)) -> Caller {
    let kinds: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
    let mut processes = Processes::default().allowing(&kinds).unwrap();
    change(&mut processes);
    let settings = Settings {
        processes,
        ..Settings::default()
    };
    Caller::with_settings(Http::new(config).unwrap(), settings)
}

async fn run(caller: &Caller, kind: &str, arguments: Data) -> Result<Data, WorkflowError> {
    call_function(
        caller,
        process(kind),
        arguments,
        None,
        LastExchange::default(),
    )
    .await
}

async fn shell(arguments: Data) -> Result<Data, WorkflowError> {
    run(&allowing(&["shell"], config(), |_| {}), "shell", arguments).await
}

#[test]
fn a_kind_that_the_operator_does_not_allow_is_refused() {
    let caller = allowing(&["script"], config(), |_| {});
    let problems = prepare(&caller, &process("shell")).unwrap_err();
    let message = &problems[0].message;
    assert!(message.contains("`functions.processes`"), "{message}");
    assert!(prepare(&caller, &process("script")).is_ok());
    assert!(Processes::default().allowing(&["bash".to_owned()]).is_err());
}

#[tokio::test]
async fn a_shell_command_gets_input_arguments_and_variables() {
    let given = data!({"command": "cat; echo \" $1 $2 $FOO\"", "stdin": {"a": 1},
        "arguments": ["x y", 2], "environment": {"FOO": "bar"}});
    assert_eq!(shell(given).await.unwrap(), data!("{\"a\":1} x y 2 bar\n"));
    let older = data!({"command": "echo $1", "arguments": {"name": "Ada"}});
    assert_eq!(shell(older).await.unwrap(), data!("name=Ada\n"));
    let without_input = data!({"command": "cat", "return": "all"});
    let all = data!({"code": 0, "stdout": "", "stderr": ""});
    assert_eq!(shell(without_input).await.unwrap(), all);
}

#[tokio::test]
async fn its_environment_is_clean_and_its_folder_its_own() {
    let names = shell(data!({"command": "env | cut -d= -f1 | sort | grep ^CARGO"})).await;
    assert!(names.is_err(), "{names:?}");
    let folder = shell(data!({"command": "pwd; ls -A; touch x"}))
        .await
        .unwrap();
    let folder = folder.to_text();
    assert_eq!(folder.lines().count(), 1, "{folder}");
    assert!(!Path::new(folder.trim()).exists());
}

#[tokio::test]
async fn a_failed_process_is_a_runtime_error() {
    let error = shell(data!({"command": "echo no >&2; exit 3"}))
        .await
        .unwrap_err();
    let problem = error.to_problem();
    assert_eq!(problem.get("status"), Some(data!(500)));
    let kind = problem.get("type").unwrap().to_text();
    assert!(kind.ends_with("/runtime"), "{kind}");
    let detail = problem.get("detail").unwrap().to_text();
    assert_eq!(detail, "the process ended with code 3: no");
    let killed = shell(data!({"command": "kill -9 $$", "return": "code"})).await;
    assert_eq!(killed.unwrap(), data!(137));
}

#[tokio::test]
async fn output_is_bounded() {
    let small = HttpConfig {
        response_bytes_max: 10_000,
        ..config()
    };
    let caller = allowing(&["shell"], small, |_| {});
    for stream in [1, 2] {
        let command = format!("while :; do echo xxxxxxxxxxxxxxxxxxxx >&{stream}; done");
        let mut arguments = data!({"return": "none"});
        arguments.set("command", Data::string(command));
        let error = run(&caller, "shell", arguments).await.unwrap_err();
        assert_eq!(error.name, "LimitExceeded", "{error}");
    }
}

#[tokio::test]
async fn a_process_ends_with_its_call() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ids");
    let command = format!("sleep 1000 & echo $$ $! > {}; wait", file.display());
    let mut arguments = data!({});
    arguments.set("command", Data::string(command));
    let call = tokio::spawn(async move { shell(arguments).await });
    let ids = eventually("it has started", async || written(&file)).await;
    call.abort();
    for id in ids.split(' ') {
        eventually("it is killed", async || (!is_alive(id)).then_some(())).await;
    }
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn what_left_its_group_ends_too_and_the_folder_goes_while_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("seen");
    let command = format!(
        "setsid sleep 1000 & echo $! $(pwd) > {}; i=0; \
         while :; do i=$((i+1)); mkdir -p a/$i; echo x > a/$i/f; done",
        file.display()
    );
    let mut arguments = data!({});
    arguments.set("command", Data::string(command));
    let call = tokio::spawn(async move { shell(arguments).await });
    let seen = eventually("it has started", async || written(&file)).await;
    call.abort();
    let (id, own) = seen.split_once(' ').unwrap();
    let is_over = async || (!is_alive(id) && !Path::new(own).exists()).then_some(());
    eventually("nothing is left", is_over).await;
}

#[tokio::test]
async fn a_process_has_a_time_limit() {
    let caller = allowing(&["shell"], config(), |processes| {
        processes.timeout = Duration::from_millis(100);
    });
    let error = run(&caller, "shell", data!({"command": "sleep 1000"})).await;
    let problem = error.unwrap_err().to_problem();
    assert_eq!(problem.get("status"), Some(data!(408)));
}

/// A program that stands for another one: it shows its arguments and runs its first file.
fn stand_in(folder: &Path, text: &str) -> Vec<String> {
    let file = folder.join("stand-in");
    std::fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    vec![file.display().to_string()]
}

#[tokio::test]
async fn a_script_gets_its_code_as_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let program = stand_in(folder.path(), "basename $1; shift; echo \"$@\"");
    let caller = allowing(&["script"], config(), |processes| {
        processes.javascript = program.clone();
        processes.python = program;
    });
    for (language, code, file) in [
        ("js", "console.log(1)", "script.js"),
        ("js", "// x\nimport { a } from 'node:fs';", "script.mjs"),
        ("js", "important(1)", "script.js"),
        ("python", "print(1)", "script.py"),
    ] {
        let mut arguments = data!({"arguments": ["a", "b"]});
        arguments.set("language", Data::string(language));
        arguments.set("code", Data::string(code));
        let found = run(&caller, "script", arguments).await.unwrap();
        assert_eq!(found.to_text(), format!("{file}\na b\n"), "{code}");
    }
}

#[tokio::test]
async fn arguments_of_the_older_form_are_variables_of_the_script() {
    let folder = tempfile::tempdir().unwrap();
    let program = stand_in(
        folder.path(),
        "case $1 in --require) cat $2 $3 ;; *) cat $1 $(dirname $1)/script.py ;; esac",
    );
    let caller = allowing(&["script"], config(), |processes| {
        processes.javascript = program.clone();
        processes.python = program;
    });
    for code in [
        "#!/usr/bin/env node\n'use strict'; f(n)",
        "export const a = f(n);",
    ] {
        let mut js = data!({"language": "js", "arguments": {"n": "it's"}});
        js.set("code", Data::string(code));
        let found = run(&caller, "script", js).await.unwrap();
        let start = "Object.assign(globalThis, {\"n\":\"it's\"});\n";
        assert_eq!(found.to_text(), format!("{start}{code}"));
    }
    let python = data!({"language": "python", "code": "f(n)", "arguments": {"n": 1}});
    let found = run(&caller, "script", python).await.unwrap().to_text();
    let given = "runpy.run_path(code, json.loads(\"{\\\"n\\\":1}\"), '__main__')\n";
    let (start, code) = found.split_once(given).unwrap();
    assert!(
        start.starts_with("import json") && code == "f(n)",
        "{found}"
    );
}

#[tokio::test]
async fn a_container_is_run_by_the_command_line_of_the_operator() {
    let folder = tempfile::tempdir().unwrap();
    let program = stand_in(
        folder.path(),
        "for word; do echo \"$word\"; case $word in --env-file=*) cat ${word#--env-file=};; esac; done",
    );
    let caller = allowing(&["container"], config(), |processes| {
        processes.containers = program;
    });
    let arguments = data!({"image": "alpine", "name": "order 1", "command": "echo $1",
        "arguments": ["x"], "environment": {"A": "b c"}, "ports": {"8080": 80},
        "volumes": {"/data": "/in"}, "stdin": "x", "lifetime": {"cleanup": "always"}});
    let found = run(&caller, "container", arguments)
        .await
        .unwrap()
        .to_text();
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines[3], "--label");
    assert!(lines[4].starts_with("swirl.call="), "{found}");
    assert!(lines[8].starts_with("--env-file="), "{found}");
    let rest = [&lines[..3], &lines[5..8], &lines[9..]].concat();
    let expected = [
        "run",
        "--name",
        "order-1",
        "--interactive",
        "--rm",
        "--pull=missing",
        "A=b c",
        "--publish=8080:80",
        "--volume=/data:/in",
        "--entrypoint=sh",
        "alpine",
        "-c",
        "echo $1",
        "sh",
        "x",
    ];
    assert_eq!(rest, expected);
    let option = data!({"image": "--privileged"});
    let error = run(&caller, "container", option).await.unwrap_err();
    assert!(error.message.contains("name of an image"), "{error}");
}

/// Stands for Docker: it notes its command lines, and knows one container by its label. Its first `rm` fails.
fn docker(folder: &Path, run: &str) -> (Vec<String>, std::path::PathBuf) {
    let file = folder.join("seen");
    let text = format!(
        "echo \"$*\" >> {seen}\n\
         case $1 in\n\
         run) echo \"$5\" > {seen}.label; {run};;\n\
         ps) [ \"$5\" = \"label=$(cat {seen}.label)\" ] && echo 4f1; :;;\n\
         rm) [ -e {seen}.failed ] || {{ touch {seen}.failed; exit 1; }};;\n\
         esac",
        seen = file.display()
    );
    (stand_in(folder, &text), file)
}

#[tokio::test]
async fn a_container_is_removed_with_its_call() {
    let folder = tempfile::tempdir().unwrap();
    let (program, file) = docker(folder.path(), "exec sleep 1000");
    let caller = allowing(&["container"], config(), |processes| {
        processes.containers = program;
    });
    let arguments = data!({"image": "alpine", "name": "a", "lifetime": {"cleanup": "always"}});
    let call = tokio::spawn(async move { run(&caller, "container", arguments).await });
    eventually("it has started", async || {
        written(&folder.path().join("seen.label"))
    })
    .await;
    call.abort();
    let times = || written(&file).map_or(0, |seen| seen.matches("rm --force 4f1").count());
    let removed = async || (times() == 2).then_some(());
    eventually("it is removed at the second attempt", removed).await;
}

#[tokio::test]
async fn only_the_own_container_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    // The name is another container's, so none is made.
    let forget = format!("rm {}/seen.label; exit 125", folder.path().display());
    let (program, file) = docker(folder.path(), &forget);
    let caller = allowing(&["container"], config(), |processes| {
        processes.containers = program;
    });
    let arguments = data!({"image": "alpine", "name": "prod-db",
        "lifetime": {"cleanup": "eventually", "after": {"milliseconds": 1}}});
    run(&caller, "container", arguments).await.unwrap_err();
    let looked = async || written(&file)?.contains("\nps ").then_some(());
    eventually("it is looked for", looked).await;
    // Time has to pass: it would be removed right after.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let seen = written(&file).unwrap();
    assert!(!seen.contains("rm "), "{seen}");
}
