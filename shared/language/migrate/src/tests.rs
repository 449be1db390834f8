use swirl_documents::source::{Limits, parse};
use swirl_spec::resource::MapResources;

use super::*;

fn migrated(document: &str, format: Format) -> Result<Migrated, Vec<String>> {
    let root = parse(document.as_bytes(), &Limits::default()).unwrap();
    let options = Options {
        provided: ["f".to_owned()].into(),
        ..Options::default()
    };
    let reading = reader::read_node(&root, &MapResources::default(), &options);
    let workflow = reading
        .workflow
        .unwrap_or_else(|| panic!("{:?}", reading.diagnostics));
    migrate(&workflow, &root, format, Assume::default()).map_err(|obstacles| {
        let described = obstacles.into_iter().map(|obstacle| {
            let state = obstacle.state.unwrap_or_default();
            format!("{} {state}: {}", obstacle.place.line, obstacle.message)
        });
        described.collect()
    })
}

const OF_0_5: &str = "\
id: order
name: Order
version: 1.0.0
schemaVersion: '0.5'
functions: [{name: f, operation: 'https://example.com/api.json#f'}]
retries: [{name: often, delay: PT2S, maxAttempts: 3}]
states:
- name: First
  start: true
  type: operation
  actionMode: sequential
  actions: [{functionRef: {refName: f, parameters: {id: '{{ $.id }}', text: 'no: ${ this }'}}}]
  onErrors: [{error: Broken, code: '500', retryRef: often, end: true}]
  transition: Wait
- {name: Wait, type: delay, timeDelay: PT1H, end: true}
";

#[test]
fn a_document_of_0_5() {
    insta::assert_snapshot!(migrated(OF_0_5, Format::Yaml).unwrap().text, @r#"
    # Migrated from edition 0.5.
    # - actions that a handler of errors retried are retried by 'retryRef'
    id: order
    name: Order
    version: "1.0.0"
    specVersion: "0.8"
    expressionLang: jsonpath
    start: First
    errors:
      - name: Broken
        code: "500"
    functions:
      - name: f
        type: rest
        operation: "https://example.com/api.json#f"
    retries:
      - name: retry-1
        delay: PT2S
        maxAttempts: 3
    states:
      - name: First
        type: operation
        actions:
          - functionRef:
              refName: f
              arguments:
                id: "${ $.id }"
                text: "no: $${ this }"
            retryRef: retry-1
            retryableErrors:
              - Broken
        onErrors:
          - errorRef: Broken
            end: true
        transition: Wait
      - name: Wait
        type: sleep
        duration: PT1H
        end: true
    "#);
}

#[test]
fn as_json() {
    let json = migrated(OF_0_5, Format::Json).unwrap();
    let value: serde_json::Value = serde_json::from_str(&json.text).unwrap();
    assert_eq!(value["specVersion"], "0.8");
    assert_eq!(
        json.notes,
        ["actions that a handler of errors retried are retried by 'retryRef'"]
    );
}

#[test]
fn what_0_8_cannot_say_has_its_place() {
    let document = OF_0_5.replace("maxAttempts: 3", "maxAttempts: 1").replace(
        "- {name: Wait, type: delay, timeDelay: PT1H, end: true}",
        "- {name: Wait, type: delay, timeDelay: PT1H, end: {terminate: true}}",
    );
    assert_eq!(
        migrated(&document, Format::Yaml).unwrap_err(),
        [
            "8 First: an action is retried once; in 0.8 'maxAttempts: 1' means no retry",
            "15 Wait: an end with 'terminate' ends the parents too; in 0.8 it ends its own instance",
        ]
    );
}

#[test]
fn what_is_read_again_is_compared() {
    let root = parse(OF_0_5.as_bytes(), &Limits::default()).unwrap();
    let reading = reader::read_node(&root, &MapResources::default(), &Options::default());
    let (simple, _) = simplify::simplify(&reading.workflow.unwrap());
    let text = migrated(OF_0_5, Format::Yaml).unwrap().text;
    assert_eq!(check(&simple, &text, &root), []);
    for (from, to, message) in [
        ("PT1H", "PT2H", "the state 'Wait' would be different in 0.8"),
        (
            "maxAttempts: 3",
            "maxAttempts: 4",
            "the state 'First' would be different in 0.8",
        ),
        (
            "order",
            "odour",
            "the workflow's id would be different in 0.8",
        ),
        (
            "api.json",
            "other.json",
            "the function 'f' would be different in 0.8",
        ),
        (
            "specVersion: \"0.8\"\n",
            "specVersion: \"0.8\"\nkeepActive: true\n",
            "'keepActive' would be",
        ),
        ("type: sleep", "type: nap", "edition 0.8 refuses it"),
    ] {
        let other = text.replace(from, to);
        let found = check(&simple, &other, &root);
        assert!(other != text && found.len() == 1, "{from}: {found:?}");
        assert!(found[0].message.starts_with(message), "{from}: {found:?}");
    }
}

#[test]
fn texts_of_yaml() {
    for text in [
        "a",
        "PT1S",
        "0.8",
        "yes",
        "No",
        "null",
        "a: b",
        "- a",
        "a #b",
        "",
        " a",
        "1e3",
        "~",
        "=",
        "a\n\"b\\",
        "é",
        "{a}",
        "${ .a }",
        "n",
        "1.0.0",
        "a/b-c_d.e",
        "\u{9b}2J\u{7f}",
        "\"\u{85}\u{2028}\u{feff}",
        "two\nlines\u{2029}",
    ] {
        let mut data = swirl_model::Data::object();
        data.set(text, swirl_model::Data::string(text));
        let mut outer = swirl_model::Data::object();
        outer.set(
            "list",
            swirl_model::Data::array(vec![
                data.clone(),
                swirl_model::Data::array(vec![data.clone(), swirl_model::Data::int(1)]),
                swirl_model::Data::object(),
                swirl_model::Data::array(Vec::new()),
            ]),
        );
        outer.set("below", data);
        let notes = ["two\nlines".to_owned()];
        let written = text::write(&outer, Format::Yaml, "0.5", &notes);
        let read = parse(written.as_bytes(), &Limits::default());
        assert_eq!(read.unwrap().to_data(), outer, "{written}");
    }
}

#[test]
fn search_attributes_stay_and_their_expressions_change_with_the_language() {
    let own = "metadata: {team: desk, swirl: {search: {orderId: {value: '{{ $.order.id }}', type: string}}, retention: {completed: PT1H, faulted: P90D}, history: {data: all}}}\n";
    let text = migrated(&format!("{OF_0_5}{own}"), Format::Yaml)
        .unwrap()
        .text;
    let (_, metadata) = text.split_once("\nmetadata:\n").unwrap();
    let (metadata, _) = metadata.split_once("\nstates:").unwrap();
    insta::assert_snapshot!(metadata, @r#"
    team: desk
    swirl:
      search:
        orderId:
          value: "${ $.order.id }"
          type: string
      retention:
        completed: PT1H
        faulted: P90D
      history:
        data: all
    "#);
}
