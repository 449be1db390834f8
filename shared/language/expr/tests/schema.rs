//! JSON Schema: a few lines cannot use more resources than permitted.

use serde_json::{Map, Value, json};
use swirl_expr::{JsonSchema, Limits, SchemaError};
use swirl_model::Data;

/// Each definition refers to the next one twice.
fn doubling(levels: usize, keyword: &str, leaf: Value) -> Value {
    let mut defs = Map::new();
    for level in 0..levels {
        let next = json!({"$ref": format!("#/$defs/a{}", level + 1)});
        defs.insert(format!("a{level}"), json!({keyword: [next.clone(), next]}));
    }
    defs.insert(format!("a{levels}"), leaf);
    json!({"$defs": defs, "$ref": "#/$defs/a0"})
}

fn check(schema: &Value, data: &Value) -> Result<(), SchemaError> {
    let schema = JsonSchema::compile(schema).unwrap();
    schema.check(&Data::from(data.clone()), &Limits::default())
}

#[test]
fn multiplying_references_are_rejected() {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for leaf in [json!({"type": "string"}), json!({}), json!(true)] {
            let refused = JsonSchema::compile(&doubling(40, keyword, leaf)).unwrap_err();
            assert!(refused.contains("multiply"), "{keyword}: {refused}");
        }
        let few = doubling(6, keyword, json!({"type": "object"}));
        let fits = keyword != "oneOf";
        assert_eq!(check(&few, &json!({})).is_ok(), fits, "{keyword}");
    }
    // By another name, and hidden where only a reference leads.
    for to in ["#n", "#/const", "other.json"] {
        let next = |level: usize| json!({"$ref": format!("#/x/a{level}")});
        let mut parts = Map::new();
        for level in 0..40 {
            parts.insert(
                format!("a{level}"),
                json!({"allOf": [next(level + 1), next(level + 1)]}),
            );
        }
        parts.insert("a40".to_owned(), json!({}));
        let start =
            json!({"$anchor": "n", "$id": "other.json", "allOf": [{"$ref": "http://e/s#/x/a0"}]});
        let schema = json!({"$id": "http://e/s", "x": parts, "const": start, "$defs": {"s": start}, "$ref": to});
        assert!(JsonSchema::compile(&schema).is_err(), "{to}");
    }
}

#[test]
fn patterns_with_calls_of_groups_are_rejected() {
    let nested = json!({"allOf": [{"properties": {"a": {"pattern": "(?=x)a\\g<0>?b\\g<0>?"}}}]});
    let keys = json!({"patternProperties": {"(?=x)a\\g<0>?b\\g<0>?": {}}});
    for schema in [nested, keys] {
        let refused = JsonSchema::compile(&schema).unwrap_err();
        assert!(refused.contains("subroutine"), "{refused}");
    }
}

#[test]
fn checks_that_multiply_with_the_data_are_aborted() {
    let mut data = json!({"a": 1});
    for _ in 0..60 {
        data = json!({"a": data});
    }
    for keyword in ["allOf", "anyOf"] {
        let below = json!([{"$ref": "#"}, {"$ref": "#"}]);
        let inner = json!({"type": "object", "properties": {"a": {keyword: below}}});
        // Any result is fine, but it must come immediately.
        let schema = JsonSchema::compile(&inner).unwrap();
        assert!(
            schema
                .check(&Data::from(data.clone()), &Limits::default())
                .is_err()
        );
        let mut closed = inner.clone();
        closed["unevaluatedProperties"] = json!(false);
        let schema = JsonSchema::compile(&closed).unwrap();
        assert!(
            schema
                .check(&Data::from(data.clone()), &Limits::default())
                .is_err()
        );
    }
}

#[test]
fn comparisons_of_many_values_are_bounded() {
    let known: Vec<Value> = (0..20_000).map(|n| json!({"a": n})).collect();
    let asked: Vec<Value> = (0..20_000).map(|n| json!({"a": n + 1})).collect();
    assert_eq!(
        check(&json!({"items": {"enum": known}}), &json!(asked)),
        Err(SchemaError::Limit("steps"))
    );
    let patterns: Map<String, Value> = (0..3_000)
        .map(|n| (format!("x{n}.*y"), json!({})))
        .collect();
    let members: Map<String, Value> = (0..20_000).map(|n| (format!("x{n}"), json!(1))).collect();
    assert_eq!(
        check(&json!({"patternProperties": patterns}), &json!(members)),
        Err(SchemaError::Limit("steps"))
    );
}

#[test]
fn long_chains_and_cycles_end() {
    let chain = |levels: usize, part: fn(Value) -> Value| {
        let mut defs = Map::new();
        for level in 0..levels {
            let next = json!({"$ref": format!("#/$defs/a{}", level + 1)});
            defs.insert(format!("a{level}"), part(next));
        }
        defs.insert(format!("a{levels}"), json!({"type": "object"}));
        json!({"$defs": defs, "$ref": "#/$defs/a0"})
    };
    for part in [|next| json!({"allOf": [next]}), |next| next] {
        assert_eq!(check(&chain(40, part), &json!({})), Ok(()));
        assert!(check(&chain(40, part), &json!([])).is_err());
        let refused = JsonSchema::compile(&chain(5_000, part)).unwrap_err();
        assert!(refused.contains("chain"), "{refused}");
    }
    // Across values, a chain may be as long as data is deep. This test checks the compiled part.
    let below = chain(2_000, |next| json!({"properties": {"a": next}}));
    assert_eq!(check(&below, &json!({"a": {"a": {}}})), Ok(()));
    for circle in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"not": {"$ref": "#"}}),
    ] {
        // Only checks that it ends.
        let _ = check(&circle, &json!({}));
    }
}

#[test]
fn the_first_error_is_short_and_has_its_location() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"name": {"type": "string", "const": "a"}},
        "properties": {"name": {"$ref": "#/definitions/name"}, "const": {"enum": [1, 2]}},
        "additionalProperties": false,
        "required": ["name"],
    });
    assert_eq!(check(&schema, &json!({"name": "a", "const": 1})), Ok(()));
    let said = |data: Value| check(&schema, &data).unwrap_err().to_string();
    assert!(said(json!({})).contains("\"name\" is a required property"));
    assert!(said(json!({"name": "a", "const": 3})).ends_with("at '/const'"));
    assert!(said(json!({"name": "a", "more": 3})).contains("more"));
    assert!(said(json!({"name": vec!["long"; 100_000]})).len() < 2_000);
    let compiled = JsonSchema::compile(&schema).unwrap();
    let masked = compiled.check_masked(&json!({"name": 4711}), &Limits::default());
    assert!(!masked.unwrap_err().to_string().contains("4711"));
}

#[test]
fn messages_quote_only_the_schema() {
    let number = json!({"type": "object", "properties": {"a": {"type": {"b": 1}}}});
    let refused = JsonSchema::compile(&number).unwrap_err();
    assert!(refused.contains(r#"{"b":1}"#), "{refused}");
    assert!(!refused.contains("swirl"), "{refused}");
    let not = json!({"properties": {"a": {"not": {"type": "string"}}}});
    let Err(SchemaError::Invalid { message, .. }) = check(&not, &json!({"a": "x"})) else {
        panic!("it fits");
    };
    assert!(message.contains(r#"{"type":"string"}"#), "{message}");
    let not = json!({"properties": {"a": {"not": {}}}});
    let Err(SchemaError::Invalid { message, .. }) = check(&not, &json!({"a": "x"})) else {
        panic!("it fits");
    };
    assert!(message.contains("{}"), "{message}");
}
