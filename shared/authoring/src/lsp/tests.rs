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
    let mut session = Session::new(Box::new(Nothing));
    session.notify(
        "textDocument/didOpen",
        &json!({"textDocument": {"uri": URI, "version": 1, "text": text}}),
    );
    session
}

/// The place of the n-th `|` stands for the cursor.
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
    // A function and a state of nearly the same name are not the same.
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

/// A document with one line changed, and what is offered at the end of the new text in it.
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
fn what_is_offered_is_what_the_reader_takes() {
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

#[test]
fn whatever_stands_there_nothing_breaks() {
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
