use super::*;

fn findings(text: &str) -> Vec<String> {
    let reading = swirl_spec::read(
        text.as_bytes(),
        &MapResources::default(),
        &Options::default(),
    );
    reading
        .diagnostics
        .iter()
        .map(ToString::to_string)
        .collect()
}

const YAML: &str = "\
id: greet
version: 1.0.0
specVersion: '0.8'
start: Greet # the first
functions:
  - name: log
    type: custom
    operation: sysout
  - name: token
    type: expression
    operation: '$SECRET.jira + \"/x\"'
states:
  - name: Greet
    type: operation
    actions:
      - functionRef:
          refName: log
          arguments:
            message: .name
            quoted: \"$.name\"
            old: \"{{ $.name }}\"
            text: a text
      - {functionRef: {refName: log, arguments: \".\"}}
      - functionRef: token
        actionDataFilter: {toStateData: .token}
    transition: Choose
  - name: Choose
    type: switch
    dataConditions:
      - {condition: .x, transition: Both}
    defaultCondition: Idle
  - name: Both
    type: parallel
    completionType: allOf
    numCompleted: 0
    branches: [{name: a, actions: [{functionRef: log}]}]
    transition: Idle
  - name: Idle
    type: operation
    end: true
";

const REWRITTEN: &str = "\
id: greet
version: 1.0.0
specVersion: '0.8'
start: Greet # the first
functions:
  - name: log
    type: custom
    operation: sysout
  - name: token
    type: expression
    # swirl migrate: secrets are '$SECRETS' here
    operation: \"$SECRETS.jira + \\\"/x\\\"\"
# swirl migrate: the secrets that the definition uses are listed
secrets: [jira]
states:
  - name: Greet
    type: operation
    actions:
      - functionRef:
          refName: log
          arguments:
            # swirl migrate: an expression is marked with '${ }'
            message: \"${ .name }\"
            # swirl migrate: an expression is marked with '${ }'
            quoted: \"${ .name }\"
            # swirl migrate: an expression is marked with '${ }'
            old: \"${ .name }\"
            text: a text
      # swirl migrate: an expression is marked with '${ }'
      - {functionRef: {refName: log, arguments: \"${ . }\"}}
      - functionRef: token
        actionDataFilter: {toStateData: .token}
    transition: Choose
  - name: Choose
    type: switch
    dataConditions:
      - {condition: .x, transition: Both}
    # swirl migrate: 'defaultCondition' is an object with a transition
    defaultCondition: {transition: Idle}
  - name: Both
    type: parallel
    completionType: allOf
    # swirl migrate: 'numCompleted' belongs to 'completionType: atLeast'
    branches: [{name: a, actions: [{functionRef: log}]}]
    transition: Idle
  - name: Idle
    # swirl migrate: an operation without actions has an empty list
    actions: []
    type: operation
    end: true
";

#[test]
fn yaml_keeps_its_layout_and_gets_comments() {
    let rewritten = rewrite(YAML).unwrap();
    assert_eq!(rewritten.text, REWRITTEN);
    let errors = findings(&rewritten.text);
    let errors: Vec<_> = errors
        .iter()
        .filter(|line| line.contains("error"))
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
    let places = rewritten.changes.iter();
    let places: Vec<_> = places.map(|one| (one.line, one.column)).collect();
    let expected = [
        (11, 16),
        (12, 1),
        (19, 22),
        (20, 21),
        (21, 18),
        (23, 49),
        (31, 23),
        (35, 5),
        (39, 5),
    ];
    assert_eq!(places, expected);
    // Nothing is left to rewrite.
    assert!(rewrite(&rewritten.text).unwrap().changes.is_empty());
}

/// A definition with an operation state that has these arguments, as lines of YAML.
fn with(head: &str, arguments: &str) -> String {
    let mut text = format!(
        "id: w\nversion: 1.0.0\nspecVersion: '0.8'\n{head}functions:\n  - {{name: f, type: custom, operation: sysout}}\nstates:\n  - name: A\n    type: operation\n    actions:\n      - functionRef:\n          refName: f\n          arguments:\n"
    );
    for line in arguments.lines() {
        let indent = if line.is_empty() { "" } else { "            " };
        text.push_str(&format!("{indent}{line}\n"));
    }
    text.push_str("    end: true\n");
    text
}

/// The arguments after the rewriting, and the listed secrets.
fn rewritten(head: &str, arguments: &str) -> (String, String) {
    let rewritten = rewrite(&with(head, arguments)).unwrap();
    let errors = findings(&rewritten.text);
    assert!(
        errors.iter().all(|line| !line.contains("error")),
        "{errors:?}"
    );
    let again = rewrite(&rewritten.text).unwrap();
    assert_eq!(again.changes, [], "{}", rewritten.text);
    let root = source::parse(rewritten.text.as_bytes(), &Limits::default()).unwrap();
    let shown = |pointer| {
        let node = root.at(pointer);
        node.map_or(String::new(), |node| node.to_data().to_string())
    };
    let arguments = shown("/states/0/actions/0/functionRef/arguments");
    (arguments, shown("/secrets"))
}

#[test]
fn texts_of_several_lines_get_no_comments_inside() {
    for (arguments, expected) in [
        (
            "message: |\n  .a\n  + $SECRET.b",
            r#"{"message":"${ .a\n+ $SECRETS.b }\n"}"#,
        ),
        (
            "message: |-\n\n  .a\n\n  + $SECRET.b\n\nother: .x",
            r#"{"message":"\n${ .a\n\n+ $SECRETS.b }","other":"${ .x }"}"#,
        ),
        ("folded: >-\n  $SECRET.b", r#"{"folded":"${ $SECRETS.b }"}"#),
        (
            "folded: >\n  .a\n  + $SECRET.b\nn: 1",
            r#"{"folded":"${ .a + $SECRETS.b }\n","n":1}"#,
        ),
        (
            "a: |\n  ${ .a\n  + $SECRET.b }",
            r#"{"a":"${ .a\n+ $SECRETS.b }\n"}"#,
        ),
        (
            "plain: .first\n  + $SECRET.b",
            r#"{"plain":"${ .first + $SECRETS.b }"}"#,
        ),
        (
            "quoted: '.first\n  + $SECRET.b'\ntext: \"a\n  b\"",
            r#"{"quoted":"${ .first + $SECRETS.b }","text":"a b"}"#,
        ),
        ("a: {b: .x, c: |-\n  .y}", ""),
        (
            "list:\n- >-\n  $SECRET.b\n- .c",
            r#"{"list":["${ $SECRETS.b }","${ .c }"]}"#,
        ),
    ] {
        if expected.is_empty() {
            // A block within braces is no YAML.
            assert!(rewrite(&with("", arguments)).is_err());
            continue;
        }
        let secrets = match arguments.contains("$SECRET") {
            true => r#"["b"]"#,
            false => "",
        };
        let (found, listed) = rewritten("", arguments);
        assert_eq!(
            (found.as_str(), listed.as_str()),
            (expected, secrets),
            "{arguments}"
        );
        let windows = with("", arguments).replace('\n', "\r\n");
        let windows = rewrite(&windows).unwrap().text;
        let unix = rewrite(&with("", arguments)).unwrap().text;
        assert_eq!(windows, unix.replace('\n', "\r\n"));
    }
}

#[test]
fn comments_are_above_the_keys() {
    let text = rewrite(&with("", "# mine\nmessage: |\n\n  .a\n  + $SECRET.b"))
        .unwrap()
        .text;
    let comment = "            # mine\n            # swirl migrate: an expression is marked with '${ }'; secrets are '$SECRETS' here\n            message: |\n\n              ${ .a\n              + $SECRETS.b }\n";
    assert!(text.contains(comment), "{text}");
}

#[test]
fn secrets_are_found_in_each_form() {
    for (argument, expected, names) in [
        ("${ $SECRET.tok }", "${ $SECRETS.tok }", r#"["tok"]"#),
        (
            "$SECRET[\"my-key\"]",
            "${ $SECRETS[\"my-key\"] }",
            r#"["my-key"]"#,
        ),
        (
            "$SECRET.\"my-key\"",
            "${ $SECRETS.\"my-key\" }",
            r#"["my-key"]"#,
        ),
        (
            "Bearer ${ $SECRET.tok } ${ $SECRET[\"yes\"] }",
            "Bearer ${ $SECRETS.tok } ${ $SECRETS[\"yes\"] }",
            r#"["tok","yes"]"#,
        ),
        (
            "Bearer {{ $SECRET.tok }}",
            "Bearer ${ $SECRETS.tok }",
            r#"["tok"]"#,
        ),
        (
            "${ \"$SECRET.no \\($SECRET.yes)\" }",
            "${ \"$SECRET.no \\($SECRETS.yes)\" }",
            r#"["yes"]"#,
        ),
        // Texts that are no expressions.
        ("ask for $SECRET.tok", "ask for $SECRET.tok", ""),
        ("$SECRETIVE.x", "$SECRETIVE.x", ""),
    ] {
        let argument = serde_json::json!({"a": argument}).to_string();
        let expected = serde_json::json!({"a": expected}).to_string();
        let (found, listed) = rewritten("", &argument);
        assert_eq!((found, listed.as_str()), (expected, names), "{argument}");
    }
}

/// All secrets at once aren't to be had here, and the refusal of the result says so.
#[test]
fn all_secrets_at_once_are_refused_afterwards() {
    for argument in ["$SECRET", "${ $SECRET | keys }"] {
        let text = with("", &serde_json::json!({"a": argument}).to_string());
        let text = rewrite(&text).unwrap().text;
        assert!(text.contains("${ $SECRETS "), "{text}");
        let found = findings(&text);
        assert!(
            found.iter().any(|line| line.contains("secret-not-allowed")),
            "{found:?}"
        );
    }
}

#[test]
fn a_list_of_secrets_is_extended() {
    for (head, expected) in [
        ("secrets: [other]\n", r#"["other","my-key","tok","yes"]"#),
        ("secrets: []\n", r#"["my-key","tok","yes"]"#),
        ("secrets: [ 'tok' ] # mine\n", r#"["tok","my-key","yes"]"#),
        (
            "secrets:\n- other # mine\n- tok # too\n",
            r#"["other","tok","my-key","yes"]"#,
        ),
        ("secrets:\n  - other\n", r#"["other","my-key","tok","yes"]"#),
        (
            "secrets: [\n    other,\n    \"tok\"\n  ]\n",
            r#"["other","tok","my-key","yes"]"#,
        ),
    ] {
        let arguments = "a: ${ $SECRET.tok + $SECRET[\"my-key\"] }\nb: $SECRET.yes\nc: \"${ 1 }\"";
        let (_, listed) = rewritten(head, arguments);
        assert_eq!(listed, expected, "{head}");
    }
    let json = serde_json::json!({
        "id": "w", "version": "1.0.0", "specVersion": "0.8", "secrets": ["other"],
        "functions": [{"name": "f", "type": "expression", "operation": "$SECRET.tok"}],
        "states": [{"name": "A", "type": "operation", "actions": [{"functionRef": "f"}], "end": true}],
    });
    let text = rewrite(&json.to_string()).unwrap().text;
    assert!(text.contains(r#""secrets":["other", "tok"]"#), "{text}");
}

#[test]
fn names_of_states_are_quoted_where_yaml_needs_it() {
    let text = |name: &str, written: &str| {
        format!(
            "id: w\nversion: 1.0.0\nspecVersion: '0.8'\nstates:\n  - name: A\n    type: switch\n    dataConditions: [{{condition: .x, end: true}}]\n    defaultCondition: {written}\n  - {{name: {}, type: inject, data: {{}}, end: true}}\n",
            serde_json::Value::from(name)
        )
    };
    for (name, written, expected) in [
        ("123", "\"123\"", "{transition: \"123\"}"),
        ("yes, no", "'yes, no'", "{transition: 'yes, no'}"),
        ("yes, no", "yes, no", "{transition: \"yes, no\"}"),
        ("null", "\"null\"", "{transition: \"null\"}"),
        (
            "Node: 1 # x",
            "'Node: 1 # x'",
            "{transition: 'Node: 1 # x'}",
        ),
        ("a [b]", "a [b]", "{transition: \"a [b]\"}"),
        ("Two words", "Two\n      words", "{transition: Two words}"),
        ("it's", "'it''s'", "{transition: 'it''s'}"),
    ] {
        let rewritten = rewrite(&text(name, written)).unwrap();
        let line = format!("    defaultCondition: {expected}\n");
        assert!(rewritten.text.contains(&line), "{}", rewritten.text);
        let errors = findings(&rewritten.text);
        assert!(
            errors.iter().all(|line| !line.contains("error")),
            "{errors:?}"
        );
    }
}

#[test]
fn marks_within_texts_are_rewritten() {
    for (argument, expected) in [
        (
            "Hello {{ .name }}, you are {{ $.age }}",
            "Hello ${ .name }, you are ${ .age }",
        ),
        ("{{ .a }}{{ .b }}", "${ .a }${ .b }"),
        (".name + \"{{ .x }}\"", "${ .name + \"{{ .x }}\" }"),
        ("Hello {{name}}", "Hello {{name}}"),
    ] {
        let (found, _) = rewritten("", &serde_json::json!({"a": argument}).to_string());
        let expected = serde_json::json!({"a": expected}).to_string();
        assert_eq!(found, expected, "{argument}");
    }
}

#[test]
fn only_what_names_a_file_is_a_file() {
    let text = "id: w\nversion: 1.0.0\nspecVersion: '0.8'\nmetadata: {doc: 'classpath: is a prefix', hint: '${ $SECRET.x }', other: '{{ .x }}'}\ndescription: classpath:/a.json\nfunctions: [{name: f, operation: 'classpath:/specs/api.yaml#op'}]\nstates: [{name: A, type: operation, actions: [{functionRef: {refName: f, arguments: {a: 'classpath:b.json'}}}], end: true}]\n";
    let rewritten = rewrite(text).unwrap();
    assert_eq!(
        rewritten.text,
        text.replace("'classpath:/specs/api.yaml#op'", "\"specs/api.yaml#op\"")
            .replace(
                "functions:",
                "# swirl migrate: a file is named relative to the definition\nfunctions:"
            )
    );
}

#[test]
fn members_are_removed_with_their_comma() {
    for (state, left) in [
        ("numCompleted: 0\n    name: A", "- name: A"),
        ("name: A\n    numCompleted: 0 # none", "    # none\n"),
        (
            "name: A\n    # before\n    numCompleted: '0'\n    # after",
            "# before\n    # swirl migrate: 'numCompleted' belongs to 'completionType: atLeast'\n    # after",
        ),
    ] {
        let text = format!(
            "id: w\nversion: 1.0.0\nspecVersion: '0.8'\nstates:\n  - {state}\n    type: parallel\n    branches: [{{name: b, actions: [{{name: s, sleep: {{before: PT1S}}, subFlowRef: x}}]}}]\n    end: true\n"
        );
        let rewritten = rewrite(&text).unwrap();
        assert!(rewritten.text.contains(left), "{}", rewritten.text);
        assert!(
            !rewritten.text.contains("numCompleted:"),
            "{}",
            rewritten.text
        );
    }
    for state in [
        "{name: A, type: parallel, numCompleted: 0, end: true}",
        "{numCompleted: 0, name: A, type: parallel, end: true}",
        "{name: A, type: parallel, end: true, numCompleted: 0}",
    ] {
        let text = format!("id: w\nversion: 1.0.0\nspecVersion: '0.8'\nstates:\n  - {state}\n");
        let rewritten = rewrite(&text).unwrap().text;
        assert!(
            rewritten.contains("  - {name: A, type: parallel, end: true}\n"),
            "{rewritten}"
        );
    }
}

#[test]
fn places_are_counted_each() {
    let text = "id: w\nversion: 1.0.0\nspecVersion: '0.8'\nfunctions: [{name: f, operation: 'a.json#f'}]\nstates: [{name: A, type: operation, actions: [{functionRef: {refName: f, arguments: {a: .b, c: .d}}}], end: true}]\n";
    let rewritten = rewrite(text).unwrap();
    assert_eq!(rewritten.changes.len(), 2, "{:?}", rewritten.changes);
    assert_eq!(rewritten.text.matches("# swirl migrate").count(), 1);
}

#[test]
fn an_anchored_text_is_rewritten_once() {
    let (found, _) = rewritten("", "a: &x .name\nb: *x\nc: &y {d: .e}\nf: {<<: *y}");
    let expected = r#"{"a":"${ .name }","b":"${ .name }","c":{"d":"${ .e }"},"f":{"d":"${ .e }"}}"#;
    assert_eq!(found, expected);
}

#[test]
fn json_is_rewritten_without_comments() {
    let root = source::parse(YAML.as_bytes(), &Limits::default()).unwrap();
    let json = serde_json::Value::from(&root.to_data());
    for json in [
        json.to_string(),
        serde_json::to_string_pretty(&json).unwrap(),
    ] {
        let rewritten = rewrite(&json).unwrap();
        assert!(rewritten.changes.len() >= 3, "{:?}", rewritten.changes);
        serde_json::from_str::<serde_json::Value>(&rewritten.text).unwrap();
        let errors = findings(&rewritten.text);
        let errors: Vec<_> = errors
            .iter()
            .filter(|line| line.contains("error"))
            .collect();
        assert!(errors.is_empty(), "{errors:?}\n{}", rewritten.text);
    }
}

#[test]
fn other_documents_stay() {
    for text in [
        "id: w\nversion: 1.0.0\nspecVersion: '0.8'\nstates:\n  - {name: A, type: inject, data: {a: .b}, end: true}\n",
        "id: w\nstates: [{name: A, type: inject, start: {kind: default}, data: {a: '{{ $.b }}'}, end: {kind: default}}]\n",
    ] {
        let rewritten = rewrite(text).unwrap();
        assert_eq!(
            (rewritten.text.as_str(), rewritten.changes.len()),
            (text, 0)
        );
    }
    assert!(rewrite("{").is_err());
}
