mod functions;
mod tasks;

use super::*;
use swirl_spec::resource::MapResources;

struct Nothing;

impl Source for Nothing {
    fn beside(&self, _: &str) -> Box<dyn Resources> {
        Box::new(MapResources::default())
    }
}

const URI: &str = "file:///w.sw.yaml";

const TEXT: &str = "id: w
version: 1.0.0
specVersion: '0.8'
functions:
  - {name: pay, operation: 'shop.yaml#pay'}
states:
  - name: Pay
    type: operation
    actions:
      - functionRef: {refName: pay, arguments: {a: '${ .a }'}}
    transition: Done
  - {name: Done, type: inject, data: {ok: true}, end: true}
";

fn open(text: &str) -> Session {
    let mut session = Session::new(Arc::new(Nothing));
    session.notify(
        "textDocument/didOpen",
        &json!({"textDocument": {"uri": URI, "version": 1, "text": text}}),
    );
    session
}

/// The position of the n-th `|`, which stands for the cursor.
fn at(session: &mut Session, method: &str, line: usize, character: usize) -> Value {
    let params = json!({
        "textDocument": {"uri": URI},
        "position": {"line": line, "character": character},
        "newName": "Paid",
    });
    session.answer(method, &params).unwrap()
}

fn labels(items: &Value) -> Vec<&str> {
    items
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|item| item["label"].as_str())
        .collect()
}

#[test]
fn findings_follow_the_text() {
    let mut session = open(TEXT);
    let sent = session.findings();
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0]["diagnostics"], json!([]));
    assert!(session.findings().is_empty());
    let range =
        json!({"start": {"line": 10, "character": 16}, "end": {"line": 10, "character": 20}});
    session.notify(
        "textDocument/didChange",
        &json!({"textDocument": {"uri": URI, "version": 2}, "contentChanges": [{"range": range, "text": "Doen"}]}),
    );
    let sent = session.findings();
    let finding = &sent[0]["diagnostics"][0];
    assert_eq!(
        (&sent[0]["version"], &finding["code"]),
        (&json!(2), &json!("unknown-state"))
    );
    assert_eq!(finding["range"], range);

    let params =
        json!({"textDocument": {"uri": URI}, "range": range, "context": {"diagnostics": []}});
    let fixes = session.answer("textDocument/codeAction", &params).unwrap();
    assert_eq!(fixes[0]["title"], "write 'Done'");
    assert_eq!(fixes[0]["edit"]["changes"][URI][0]["newText"], "Done");
    let hover = at(&mut session, "textDocument/hover", 10, 17);
    assert!(
        hover["contents"]["value"]
            .as_str()
            .unwrap()
            .starts_with("# unknown-state")
    );

    session.notify(
        "textDocument/didClose",
        &json!({"textDocument": {"uri": URI}}),
    );
    assert!(session.findings().is_empty());
    assert!(session.answer("textDocument/hover", &params).is_err());
}

#[test]
fn names_are_found_and_renamed() {
    let mut session = open(TEXT);
    let definition = at(&mut session, "textDocument/definition", 10, 18);
    assert_eq!(
        definition[0]["range"]["start"],
        json!({"line": 11, "character": 11})
    );
    let references = at(&mut session, "textDocument/references", 4, 11);
    assert_eq!(references.as_array().unwrap().len(), 2);
    let edits = at(&mut session, "textDocument/rename", 11, 12);
    let edits = edits["changes"][URI].as_array().unwrap();
    let starts: Vec<&Value> = edits
        .iter()
        .map(|edit| &edit["range"]["start"]["line"])
        .collect();
    assert_eq!(starts, [&json!(11), &json!(10)]);
    assert_eq!(edits[0]["newText"], "Paid");
    // A function and a state with almost the same name are different.
    let range = at(&mut session, "textDocument/prepareRename", 6, 11);
    assert_eq!(range["end"], json!({"line": 6, "character": 13}));
    assert_eq!(
        at(&mut session, "textDocument/prepareRename", 2, 3),
        Value::Null
    );
    for name in ["Pay", "", "a: b", " x", "-x"] {
        let position = json!({"line": 11, "character": 12});
        let params = json!({"textDocument": {"uri": URI}, "position": position, "newName": name});
        assert!(
            session.answer("textDocument/rename", &params).is_err(),
            "{name}"
        );
    }
    let symbols = session.answer(
        "textDocument/documentSymbol",
        &json!({"textDocument": {"uri": URI}}),
    );
    let symbols = symbols.unwrap();
    let names: Vec<&str> = symbols
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|symbol| symbol["name"].as_str())
        .collect();
    assert_eq!(names, ["pay", "Pay", "Done"]);
}

/// Changes one line of a document, and returns the completions at the end of its new text.
fn offered(line: usize, new: &str) -> Vec<String> {
    let mut lines: Vec<&str> = TEXT.lines().collect();
    let (before, after) = new.split_once('|').unwrap();
    let whole = format!("{before}{after}");
    lines[line] = &whole;
    let mut session = open(&lines.join("\n"));
    let items = at(&mut session, "textDocument/completion", line, before.len());
    labels(&items).into_iter().map(str::to_owned).collect()
}

#[test]
fn completions_are_accepted_by_the_reader() {
    assert_eq!(offered(10, "    transition: |"), ["Pay", "Done"]);
    assert_eq!(offered(9, "      - functionRef: {refName: |}"), ["pay"]);
    let types = offered(7, "    type: |");
    assert!(
        types.contains(&"operation".to_owned()) && types.contains(&"switch".to_owned()),
        "{types:?}"
    );
    let keys = offered(10, "    tr|");
    assert!(
        keys.contains(&"transition".to_owned()) && keys.contains(&"actionMode".to_owned()),
        "{keys:?}"
    );
    let keys = offered(11, "  - {name: Done, type: inject, da|, end: true}");
    assert!(
        keys.contains(&"data".to_owned()) && !keys.contains(&"actions".to_owned()),
        "{keys:?}"
    );
    let keys = offered(3, "err|");
    assert!(keys.contains(&"errors".to_owned()), "{keys:?}");
}

/// Completes at the `¦` in the text, which was `valid` before.
fn offered_in(valid: &str, text: &str, source: impl Source + 'static) -> Vec<String> {
    let (before, after) = text.split_once('\u{a6}').unwrap();
    let place = Text::new(before.to_owned()).end();
    let mut session = Session::new(Arc::new(source));
    let document = json!({"uri": URI, "version": 1, "text": valid});
    session.notify("textDocument/didOpen", &json!({"textDocument": document}));
    session.findings();
    let typed = format!("{before}{after}");
    session.notify(
        "textDocument/didChange",
        &json!({"textDocument": {"uri": URI, "version": 2}, "contentChanges": [{"text": typed}]}),
    );
    let (line, character) = (place.line, place.character);
    let items = at(&mut session, "textDocument/completion", line, character);
    labels(&items).into_iter().map(str::to_owned).collect()
}

#[test]
fn keys_of_the_data_are_offered_in_expressions() {
    struct Beside;
    impl Source for Beside {
        fn beside(&self, _: &str) -> Box<dyn Resources> {
            let mut files = MapResources::default();
            let line = r#"{"properties": {"price": {}, "count": {}}}"#;
            let schema = format!(r#"{{"properties": {{"items": {{"items": {line}}}}}}}"#);
            files.insert("input.json", schema);
            Box::new(files)
        }
    }
    let text = "id: w
version: 1.0.0
specVersion: '0.8'
dataInputSchema: input.json
constants: {limits: {day: 3}}
functions:
  - {name: pay, type: custom, operation: pay}
states:
  - name: First
    type: inject
    data: {customer: {name: Ada, 'order-id': 7}}
    transition: Pay
  - name: Pay
    type: operation
    actions:
      - functionRef: {refName: pay, arguments: {a: '${ ARGUMENT }'}}
        actionDataFilter:
          results: '${ RESULTS }'
          toStateData: '${ .paid }'
    transition: Done
  - name: Done
    type: switch
    dataConditions:
      - condition: 'CONDITION'
        end: true
    defaultCondition: {end: true}
";
    let offered = |place: &str, typed: &str| {
        let plain = |text: String| {
            let places = ["ARGUMENT", "RESULTS", "CONDITION"];
            places
                .iter()
                .fold(text, |text, place| text.replace(place, "."))
        };
        let (valid, typed) = (plain(text.to_owned()), plain(text.replace(place, typed)));
        offered_in(&valid, &typed, Beside).join(" ")
    };
    assert_eq!(offered("ARGUMENT", ".¦"), "customer items");
    assert_eq!(offered("ARGUMENT", ".customer.n¦"), "name");
    assert_eq!(offered("ARGUMENT", ".items | map(.¦)"), "count price");
    assert_eq!(offered("ARGUMENT", "$WORKFLOW.input.¦"), "items");
    assert_eq!(offered("ARGUMENT", "$CONST.limits.¦"), "day");
    assert_eq!(offered("CONDITION", ".¦"), "customer items paid");
    // Only the service knows its results.
    assert_eq!(offered("RESULTS", ".¦"), "");
}

#[test]
fn properties_are_explained_and_texts_formatted() {
    let mut session = open(TEXT);
    let hover = at(&mut session, "textDocument/hover", 10, 6);
    assert!(
        hover["contents"]["value"]
            .as_str()
            .unwrap()
            .starts_with("**transition**: ")
    );
    let params = json!({"textDocument": {"uri": URI}});
    let edits = session.answer("textDocument/formatting", &params).unwrap();
    let formatted = edits[0]["newText"].as_str().unwrap();
    assert_eq!(format::format(TEXT.as_bytes()).unwrap(), formatted);
    let mut session = open(formatted);
    assert_eq!(
        session.answer("textDocument/formatting", &params).unwrap(),
        json!([])
    );
    let mut session = open("a: [");
    assert_eq!(
        session
            .answer("textDocument/formatting", &params)
            .unwrap_err()
            .0,
        REQUEST_FAILED
    );
}

/// The text after the fix with this title.
fn fixed(text: &str, title: &str) -> String {
    let mut session = open(text);
    session.findings();
    let params = json!({"textDocument": {"uri": URI}, "context": {"diagnostics": []}});
    let fixes = session.answer("textDocument/codeAction", &params).unwrap();
    let all = fixes.as_array().unwrap();
    let fix = all.iter().find(|fix| fix["title"] == title);
    let fix = fix.unwrap_or_else(|| panic!("no '{title}' among {fixes}"));
    let edit = &fix["edit"]["changes"][URI][0];
    let (start, end) = range(&edit["range"]).unwrap();
    let mut fixed = Text::new(text.to_owned());
    fixed.replace(start, end, edit["newText"].as_str().unwrap());
    fixed.as_str().to_owned()
}

/// The definition with other states.
fn with_states(states: &str) -> String {
    let head = TEXT.split("states:").next().unwrap();
    format!("{head}states:\n{states}")
}

#[test]
fn missing_properties_are_added_and_literals_quoted() {
    let states =
        "  - name: A\n    type: switch\n    dataConditions: [{condition: .a, end: true}]\n";
    let text = fixed(&with_states(states), "add 'defaultCondition'");
    assert!(
        text.contains("  - defaultCondition: {\"end\":true}\n    name: A\n"),
        "{text}"
    );
    let states = "  - {name: A, type: inject, data: {}}\n";
    let text = fixed(&with_states(states), "add 'end'");
    assert!(text.contains("- {end: true, name: A,"), "{text}");
    let mut session = open(&text);
    let found = session.findings();
    assert!(
        !found[0].to_string().contains("missing-property"),
        "{found:?}"
    );

    let states = "  - {name: 7, type: inject, data: {}, end: true}\n";
    let text = fixed(&with_states(states), "put 7 in quotes");
    assert!(text.contains("name: '7'"), "{text}");
    let states = "  - {name: A, type: inject, data: {}, end: 'true'}\n";
    let text = fixed(&with_states(states), "write true without quotes");
    assert!(text.contains("end: true}"), "{text}");
    let json = r#"{"id": "w", "version": "1.0.0", "specVersion": "0.8", "states": [{"name": "A", "type": "inject", "data": {}}]}"#;
    let text = fixed(json, "add 'end'");
    assert!(text.contains(r#"[{"end": true, "name": "A""#), "{text}");
}

#[test]
fn errors_are_marked_inside_expressions() {
    for (written, marked) in [
        ("'${ .a | nosuch(1) }'", "nosuch"),
        ("\"${ .a + $nobody }\"", "$nobody"),
        ("'it''s ${ .a | }'", "|"),
        (
            ">-\n              ${ .a\n              | nosuch }",
            "nosuch",
        ),
    ] {
        let states = format!(
            "  - name: A\n    type: operation\n    actions:\n      - functionRef:\n          refName: pay\n          arguments:\n            a: {written}\n    end: true\n"
        );
        let text = Text::new(with_states(&states));
        let mut session = open(text.as_str());
        let findings = session.findings();
        let all = findings[0]["diagnostics"].as_array().unwrap();
        let found = all.iter().find(|found| found["code"] == "bad-expression");
        let found = found.unwrap_or_else(|| panic!("{written}: {findings:?}"));
        let (start, end) = range(&found["range"]).unwrap();
        assert_eq!(
            &text.as_str()[text.byte(start)..text.byte(end)],
            marked,
            "{found}"
        );
    }
}

#[test]
fn the_diagram_follows_the_cursor() {
    let mut session = open(TEXT);
    let drawn = at(&mut session, "swirl/diagram", 9, 3);
    assert_eq!(
        (&drawn["svg"], &drawn["state"]),
        (&Value::Null, &json!("Pay"))
    );
    session.findings();
    for (line, state) in [
        (0, None),
        (6, Some("Pay")),
        (10, Some("Pay")),
        (11, Some("Done")),
    ] {
        let drawn = at(&mut session, "swirl/diagram", line, 4);
        assert_eq!(drawn["state"].as_str(), state, "{line}");
        let svg = drawn["svg"].as_str().unwrap();
        assert_eq!(
            svg.matches("card here").count(),
            usize::from(state.is_some()),
            "{line}"
        );
    }
    // With an error, the last diagram stays.
    let range =
        json!({"start": {"line": 10, "character": 16}, "end": {"line": 10, "character": 20}});
    session.notify(
        "textDocument/didChange",
        &json!({"textDocument": {"uri": URI, "version": 2}, "contentChanges": [{"range": range, "text": "Nowhere"}]}),
    );
    session.findings();
    assert!(at(&mut session, "swirl/diagram", 6, 4)["svg"].is_string());
}

#[test]
fn symbols_span_their_declarations() {
    let mut session = open(TEXT);
    let params = json!({"textDocument": {"uri": URI}});
    let symbols = session
        .answer("textDocument/documentSymbol", &params)
        .unwrap();
    let lines = |symbol: &Value| {
        (
            symbol["range"]["start"]["line"].clone(),
            symbol["range"]["end"]["line"].clone(),
        )
    };
    assert_eq!(lines(&symbols[0]), (json!(4), json!(4)));
    assert_eq!(lines(&symbols[1]), (json!(6), json!(10)));
    assert_eq!(lines(&symbols[2]), (json!(11), json!(11)));
}

#[test]
fn findings_move_with_the_text_until_it_is_analysed() {
    let mut session = open(&TEXT.replace("transition: Done", "transition: Doen"));
    session.findings();
    let range = json!({"start": {"line": 4, "character": 0}, "end": {"line": 4, "character": 0}});
    session.notify(
        "textDocument/didChange",
        &json!({"textDocument": {"uri": URI, "version": 2}, "contentChanges": [{"range": range, "text": "\n\n"}]}),
    );
    let hover = at(&mut session, "textDocument/hover", 12, 17);
    assert!(hover.to_string().contains("unknown-state"), "{hover}");
    let params = json!({"textDocument": {"uri": URI}});
    let fixes = session.answer("textDocument/codeAction", &params).unwrap();
    assert_eq!(
        fixes[0]["edit"]["changes"][URI][0]["range"]["start"]["line"],
        12
    );
}

#[test]
fn secrets_and_functions_are_renamed_in_expressions_too() {
    let text = "id: w
version: 1.0.0
specVersion: '0.8'
secrets: [KEY]
functions:
  - {name: e, type: expression, operation: '.KEY + $SECRETS.KEY'}
states:
  - name: A
    type: switch
    dataConditions:
      - condition: |
          .e and
          $SECRETS.KEY == 1
        end: true
    defaultCondition: {end: true}
";
    let mut session = open(text);
    let edits = at(&mut session, "textDocument/rename", 3, 10);
    let edits = edits["changes"][URI].as_array().unwrap();
    let starts = edits.iter().map(|edit| edit["range"]["start"].clone());
    let place = |line: usize, character: usize| json!({"line": line, "character": character});
    let expected = [place(3, 10), place(5, 60), place(12, 19)];
    assert_eq!(starts.collect::<Vec<_>>(), expected);
    let mut session = open("a: [");
    let params = json!({"textDocument": {"uri": URI}, "position": place(0, 0), "newName": "x"});
    assert!(session.answer("textDocument/rename", &params).is_err());
}

#[test]
fn arbitrary_text_does_not_panic() {
    let methods = [
        "textDocument/hover",
        "textDocument/completion",
        "textDocument/definition",
        "textDocument/references",
        "textDocument/prepareRename",
    ];
    for text in ["", "a", "é: {\u{1f600}: [", "- - -\n  :", "{\"a\": ", TEXT] {
        let mut session = open(text);
        assert_eq!(session.findings().len(), 1, "{text}");
        for line in 0..text.lines().count() + 2 {
            for character in (0..40).step_by(3) {
                for method in methods {
                    at(&mut session, method, line, character);
                }
            }
        }
    }
    let mut session = open(TEXT);
    assert_eq!(
        session
            .answer("textDocument/foldingRange", &json!({}))
            .unwrap_err()
            .0,
        METHOD_NOT_FOUND
    );
    assert_eq!(
        session
            .answer("textDocument/hover", &json!({"textDocument": {"uri": URI}}))
            .unwrap_err()
            .0,
        INVALID_PARAMS
    );
    session.notify(
        "textDocument/didChange",
        &json!({"textDocument": {"uri": "other"}}),
    );
    session.notify("$/setTrace", &json!({}));
}
