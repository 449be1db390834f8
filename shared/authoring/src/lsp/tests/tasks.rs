//! Documents of DSL 1.0.

use super::*;

const TASKS: &str = "document: {dsl: 1.0.3, namespace: a, name: w, version: 1.0.0}
use:
  secrets: [bank]
  authentications:
    own: {basic: {use: bank}}
  errors:
    gone: {type: 'https://example.com/gone', status: 410}
  retries:
    patient: {delay: PT1S}
  timeouts:
    short: {after: PT5S}
  functions:
    pay:
      input: {schema: {document: {type: object, properties: {amount: {type: number}}}}}
      call: http
      with: {method: post, endpoint: {uri: 'https://bank.example.com', authentication: {use: own}}}
  extensions:
    - log:
        extend: call
        before: [{say: {set: {}}}]
do:
  - first:
      call: pay
      with: {amount: '${ $context.x }'}
      timeout: short
  - inner:
      do:
        - first: {set: {key: '${ $secrets.bank }'}, then: last}
        - other: {wait: PT1S}
        - last: {set: {a: 1}}
      then: second
  - second:
      try:
        - fail: {raise: {error: gone}}
      catch:
        errors: {with: {status: 410}}
        retry: patient
        then: third
  - third:
      for: {each: row, in: .rows}
      do:
        - one: {set: {n: '${ $row.a }'}}
  - fourth:
      listen: {to: {any: []}}
      foreach: {item: event}
  - pets:
      call: openapi
      with:
        document: {endpoint: shop.yaml}
        operationId: pay
        parameters: {id: 1}
  - messages:
      call: asyncapi
      with:
        document: {endpoint: lights.yaml}
        channel: lights
        subscription:
          consume: {amount: 5}
          foreach:
            do:
              - each: {set: {a: 1}, then: after}
              - after: {wait: PT1S}
timeout: short
";

/// Completes at the `¦` that replaces the first occurrence of a text.
fn offered(old: &str, new: &str) -> Vec<String> {
    struct Beside;
    impl Source for Beside {
        fn beside(&self, _: &str) -> Box<dyn Resources> {
            let mut files = MapResources::default();
            let id = r#"{"name": "id", "in": "path", "required": true, "schema": {}}"#;
            files.insert(
                "shop.yaml",
                format!(
                    r#"{{"paths": {{"/a/{{id}}": {{"get": {{"operationId": "pay", "parameters": [{id}]}}, "post": {{"operationId": "refund"}}}}}}}}"#
                ),
            );
            Box::new(files)
        }
    }
    assert!(TASKS.contains(old), "{old}");
    offered_in(TASKS, &TASKS.replacen(old, new, 1), Beside)
}

#[test]
fn the_document_is_valid() {
    let mut session = open(TASKS);
    let found = session.findings();
    let diagnostics = found[0]["diagnostics"].as_array().unwrap();
    let errors: Vec<&Value> = diagnostics
        .iter()
        .filter(|found| found["severity"] == 1 && found["code"] != "unresolvable-reference")
        .collect();
    assert!(errors.len() <= 1, "{errors:?}");
}

#[test]
fn names_of_the_place_are_offered() {
    const WORDS: [&str; 3] = ["continue", "exit", "end"];
    let tasks = |names: &[&'static str]| [names, &WORDS].concat();
    let of_list = tasks(&["first", "other", "last"]);
    assert_eq!(offered("then: last", "then: ¦"), of_list);
    let outer = tasks(&[
        "first", "inner", "second", "third", "fourth", "pets", "messages",
    ]);
    assert_eq!(offered("then: second", "then: ¦"), outer);
    let of_messages = tasks(&["each", "after"]);
    assert_eq!(offered("then: after", "then: ¦"), of_messages);
    assert_eq!(offered("then: third", "then: ¦"), outer);
    let calls = offered("call: pay", "call: ¦");
    assert_eq!(
        calls,
        ["pay", "a2a", "asyncapi", "grpc", "http", "mcp", "openapi"]
    );
    for (old, new, name) in [
        ("error: gone", "error: ¦", "gone"),
        ("retry: patient", "retry: ¦", "patient"),
        ("timeout: short", "timeout: ¦", "short"),
        ("\ntimeout: short", "\ntimeout: ¦", "short"),
        ("{use: own}", "{use: ¦}", "own"),
        ("{use: bank}", "{use: ¦}", "bank"),
        ("$secrets.bank", "$secrets.¦", "bank"),
    ] {
        assert_eq!(offered(old, new), [name], "{new}");
    }
}

#[test]
fn tasks_and_arguments_are_offered() {
    let has = |old: &str, new: &str, wanted: &[&str], unwanted: &[&str]| {
        let all = offered(old, new);
        for word in wanted {
            assert!(
                all.contains(&(*word).to_owned()),
                "{new}: {word} of {all:?}"
            );
        }
        for word in unwanted {
            assert!(
                !all.contains(&(*word).to_owned()),
                "{new}: {word} of {all:?}"
            );
        }
    };
    has(
        "wait: PT1S",
        "¦",
        &["wait", "call", "if", "then"],
        &["catch"],
    );
    has("then: second", "¦", &["output", "export"], &["do", "call"]);
    has(
        "errors: {with: {status: 410}}",
        "¦",
        &["errors", "as"],
        &["then"],
    );
    has("{item: event}", "{¦}", &["item", "do", "export"], &["each"]);
    has(
        "{method: post, ",
        "{method: post, ¦: 1, ",
        &["headers", "body"],
        &["method"],
    );
    has(
        "extend: call",
        "extend: ¦",
        &["call", "all", "composite"],
        &[],
    );
    has("{any: []}", "{¦}", &["one", "all", "any"], &[]);
    has(
        "{use: own}",
        "{oauth2: {authority: 'https://id.example.com', grant: ¦}}",
        &["client_credentials", "password"],
        &[],
    );
    assert_eq!(offered("{amount: '${ $context.x }'}", "{¦}"), ["amount"]);
    assert_eq!(
        offered("operationId: pay", "operationId: ¦"),
        ["pay", "refund"]
    );
    assert_eq!(offered("{id: 1}", "{¦}"), ["id"]);
}

#[test]
fn variables_are_offered_in_expressions() {
    let all = offered("$row.a", "$¦");
    for name in [
        "$row",
        "$index",
        "$error",
        "$event",
        "$context",
        "$workflow",
    ] {
        assert!(all.contains(&name.to_owned()), "{name}: {all:?}");
    }
    assert!(!all.contains(&"$CONST".to_owned()), "{all:?}");
    let all = offered("$context.x", "$workflow.¦");
    assert_eq!(all, ["id", "definition", "input", "startedAt"]);
    assert!(offered("in: .rows", "in: $inp¦").contains(&"$input".to_owned()));
}

#[test]
fn keys_of_the_data_are_offered_in_expressions_of_tasks() {
    let text = "document: {dsl: 1.0.3, namespace: a, name: w, version: 1.0.0}
input: {schema: {document: {type: object, properties: {ord: {type: object, properties: {id: {}}}}}}}
do:
  - first:
      set: {who: 'FIRST', list: [{price: 1}]}
      export: {as: {kept: '${ .who }'}}
  - rows:
      for: {each: row, in: '${ .list }'}
      do:
        - one: {set: {n: 'INNER'}}
  - last: {wait: PT1S, output: {as: '${ LAST }'}}
";
    let offered = |place: &str, typed: &str| {
        let plain = |text: String| {
            let places = ["FIRST", "INNER", "LAST"];
            places
                .iter()
                .fold(text, |text, place| text.replace(place, "."))
        };
        let (valid, typed) = (plain(text.to_owned()), plain(text.replace(place, typed)));
        offered_in(&valid, &typed, Nothing).join(" ")
    };
    assert_eq!(offered("FIRST", "${ .¦"), "ord");
    assert_eq!(offered("FIRST", "${ .ord|.¦"), "id");
    assert_eq!(offered("FIRST", "${ .ord | .i¦ }"), "id");
    assert_eq!(offered("INNER", "${ $row.¦ }"), "price");
    assert_eq!(offered("INNER", "${ $context.¦ }"), "kept");
    assert_eq!(offered("INNER", "${ $workflow.input.ord.¦ }"), "id");
    assert_eq!(offered("LAST", ".¦"), "list n who");
    let task = offered("INNER", "${ $task.¦ }");
    assert_eq!(task, "name reference definition input output startedAt");
}

#[test]
fn names_are_found_where_they_are_known() {
    let line = |text: &str| TASKS.lines().position(|line| line.contains(text)).unwrap();
    let column =
        |text: &str, part: &str| TASKS.lines().nth(line(text)).unwrap().find(part).unwrap();
    let mut session = open(TASKS);
    for (text, part, defined) in [
        ("then: last", "last", "- last:"),
        ("then: second", "second", "- second:"),
        ("call: pay", "pay", "    pay:"),
        ("error: gone", "gone", "    gone:"),
        ("retry: patient", "patient", "    patient:"),
        ("timeout: short", "short", "    short:"),
        ("{use: own}", "own}", "    own:"),
        ("$secrets.bank", "bank", "secrets: ["),
        ("then: after", "after", "- after:"),
    ] {
        let here = (line(text), column(text, part));
        let found = at(&mut session, "textDocument/definition", here.0, here.1);
        assert_eq!(found[0]["range"]["start"]["line"], line(defined), "{text}");
    }
    // A task of the same name in another list is another task.
    let edits = at(
        &mut session,
        "textDocument/rename",
        line("- first: {set"),
        column("- first: {set", "first"),
    );
    assert_eq!(edits["changes"][URI].as_array().unwrap().len(), 1);
    let hover = at(
        &mut session,
        "textDocument/hover",
        line("then: last"),
        column("then: last", "then"),
    );
    let shown = hover["contents"]["value"].as_str().unwrap();
    assert!(
        shown.starts_with("**then**: the task of the same list"),
        "{shown}"
    );
    let params = json!({"textDocument": {"uri": URI}});
    let symbols = session
        .answer("textDocument/documentSymbol", &params)
        .unwrap();
    let names: Vec<&str> = symbols
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|symbol| symbol["name"].as_str())
        .collect();
    assert!(
        names.starts_with(&[
            "bank", "own", "gone", "patient", "short", "pay", "log", "say", "first"
        ]),
        "{names:?}"
    );
    assert!(names.contains(&"after"), "{names:?}");
    let inner = symbols
        .as_array()
        .unwrap()
        .iter()
        .find(|symbol| symbol["name"] == "inner")
        .unwrap();
    assert_eq!(inner["range"]["end"]["line"], line("then: second"));
}
