//! Completions from the documents of functions.

use super::*;

#[test]
fn operations_and_arguments_come_from_the_documents_of_functions() {
    struct Beside;
    impl Source for Beside {
        fn beside(&self, _: &str) -> Box<dyn Resources> {
            let mut files = MapResources::default();
            let id =
                r#"{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}"#;
            let get = format!(r#"{{"operationId": "pay", "parameters": [{id}]}}"#);
            let post = r#"{"operationId": "refund"}"#;
            let document =
                format!(r#"{{"paths": {{"/a/{{id}}": {{"get": {get}, "post": {post}}}}}}}"#);
            files.insert("shop.yaml", document);
            Box::new(files)
        }
    }
    let offered = |old: &str, new: &str| offered_in(TEXT, &TEXT.replacen(old, new, 1), Beside);
    assert_eq!(
        offered("'shop.yaml#pay'", "'shop.yaml#\u{a6}'"),
        ["shop.yaml#pay", "shop.yaml#refund"]
    );
    assert_eq!(offered("{a: '${ .a }'}", "{\u{a6}}"), ["id"]);
    assert_eq!(offered("{a: '${ .a }'}", "{id: 1, \u{a6}}"), [""; 0]);
    // Nothing is closed, and what follows isn't valid either.
    assert_eq!(offered("{a: '${ .a }'}}", "{\u{a6}"), ["id"]);
    let broken = TEXT.replacen("transition: Done", "transition: Done\n    x: ]", 1);
    let typed = broken.replacen(
        "refName: pay, arguments: {a: '${ .a }'}}",
        "refName: \u{a6}",
        1,
    );
    assert_eq!(offered_in(TEXT, &typed, Beside), ["pay"]);
}

#[test]
fn other_documents_of_functions_offer_operations_too() {
    struct Beside;
    impl Source for Beside {
        fn beside(&self, _: &str) -> Box<dyn Resources> {
            let mut files = MapResources::default();
            files.insert(
                "x.proto",
                "service S { rpc Pay (Request) returns (Request); rpc Refund (Request) returns (Request); }
                 message Request { string id = 1; }",
            );
            files.insert(
                "aas.yaml",
                "asyncapi: 2.6.0\nchannels: {c: {publish: {operationId: paid, message: {payload: {properties: {id: {}}}}}}}\n",
            );
            Box::new(files)
        }
    }
    let with =
        |function: &str| TEXT.replacen("{name: pay, operation: 'shop.yaml#pay'}", function, 1);
    for (function, expected) in [
        (
            "{name: pay, type: rpc, operation: 'x.proto#\u{a6}'}",
            ["x.proto#S#Pay", "x.proto#S#Refund"].as_slice(),
        ),
        (
            "{name: pay, type: rpc, operation: 'x.proto#S#\u{a6}'}",
            &["x.proto#S#Pay", "x.proto#S#Refund"],
        ),
        (
            "{name: pay, type: asyncapi, operation: \"aas.yaml#\u{a6}\"}",
            &["aas.yaml#paid"],
        ),
    ] {
        assert_eq!(
            offered_in(TEXT, &with(function), Beside),
            expected,
            "{function}"
        );
    }
    for operation in ["x.proto#S#Pay", "x.proto#acme.S#Pay", "aas.yaml#paid"] {
        let text = with(&format!(
            "{{name: pay, type: rpc, operation: '{operation}'}}"
        ));
        let text = text.replacen("{a: '${ .a }'}", "{\u{a6}}", 1);
        assert_eq!(offered_in(TEXT, &text, Beside), ["id"], "{operation}");
    }
    // A mapping on an earlier line isn't closed.
    let open = with("{name: pay, operation: \"x.proto#S#Pay\"").replacen(
        "type: operation",
        "type: \u{a6}",
        1,
    );
    let types = offered_in(TEXT, &open, Beside);
    assert!(types.contains(&"switch".to_owned()), "{types:?}");
}
